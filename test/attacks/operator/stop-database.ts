import { setTimeout as sleep } from 'node:timers/promises'
import { newUtr, notificationRequest } from '../../support/acquirer.ts'
import type { Request } from '../../support/http-client.ts'
import { momentOfReturn } from '../../support/postgres-server.ts'
import { createdOrderId, createRequest, statusRequest } from '../../support/requests.ts'
import type { Outcome } from '../attacks.ts'
import { bystanderClient } from '../bystander.ts'
import type { Scene } from '../scene.ts'

const SERVING_MS = 2_000
const AWAY_MS = 1_000
/** How long after the end of PostgreSQL a shop asks. */
const ASKED_AFTER_MS = [50, 350, 650]
/** How soon everybody is served again is judged by `npm run test:faults -- database`. */
const RETURN_LIMIT_MS = 1_000

/** PostgreSQL is away for a second. Meanwhile a shop asks for an order that was paid: the answer must be that it was. */
export async function stopDatabase(
  { postgres, databaseUrl, bystander: { merchant } }: Scene,
  url: string,
  seconds: number,
): Promise<Outcome> {
  const startedAt = performance.now()
  const client = bystanderClient()
  const send = (request: Request) => client.send(url, request)
  const orderId = createdOrderId(await send(createRequest(merchant)))
  if (orderId === undefined) throw new Error('no order to pay')
  await send(notificationRequest(orderId, newUtr()))
  await sleep(SERVING_MS)

  const from = performance.now()
  const down = postgres.shutDown()
  const asked = ASKED_AFTER_MS.map(async (afterMs) => {
    await sleep(afterMs)
    return send(statusRequest(merchant, orderId))
  })
  await Promise.all([down, sleep(AWAY_MS)])
  const [until] = await Promise.all([momentOfReturn(databaseUrl), postgres.restart()])
  const answers = await Promise.all(asked)
  await sleep(Math.max(0, seconds * 1_000 - (performance.now() - startedAt)))
  client.close()

  const wrong = answers.filter(({ status, text }) => status === undefined || JSON.parse(text).txnStatus !== 'SUCCESS')
  const told = wrong.map(({ status, fault }) => status ?? fault)
  const awaySeconds = ((until - from) / 1_000).toFixed(1)
  return {
    sent: `PostgreSQL away for ${awaySeconds} s, ${asked.length} × checkPaymentStatus of a paid order meanwhile`,
    excused: {
      from,
      until: until + RETURN_LIMIT_MS,
      why: `while PostgreSQL was away (${awaySeconds} s) and in the second after it`,
    },
    broken:
      wrong.length === 0 ? [] : [`a paid order is told to be paid: ${wrong.length} of ${asked.length} were ${told}`],
  }
}
