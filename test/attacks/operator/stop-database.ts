import { setTimeout as sleep } from 'node:timers/promises'
import type { Request } from '../../faults/http-client.ts'
import { createdOrderId } from '../../faults/journal.ts'
import { checkStatus, create, newName, notification } from '../../faults/operations.ts'
import { momentOfReturn } from '../../faults/postgres-server.ts'
import type { Blow } from '../attacks.ts'
import type { Field } from '../field.ts'
import { innocentClient } from '../innocents.ts'

const SERVING_MS = 2_000
const AWAY_MS = 1_000
/** When a shop asks, after PostgreSQL is gone. */
const ASKED_AFTER_MS = [50, 350, 650]
/** How soon everybody is served again is judged by `npm run test:faults -- database`. */
const RETURN_LIMIT_MS = 1_000

/** PostgreSQL is away for a second, in which a shop asks whether an order was paid that was: the answer must not be no. */
export async function stopDatabase(
  { postgres, databaseUrl, innocent }: Field,
  url: string,
  seconds: number,
): Promise<Blow> {
  const startedAt = performance.now()
  const client = innocentClient()
  const send = (request: Request) => client.send(url, request)
  const orderId = createdOrderId(await send(create(innocent, { orderId: newName(), idempotencyKey: undefined })))
  if (orderId === undefined) throw new Error('no order to pay')
  await send(notification(orderId, newName().replaceAll('-', '')))
  await sleep(SERVING_MS)

  const from = performance.now()
  const down = postgres.shutDown()
  const asked = ASKED_AFTER_MS.map(async (afterMs) => {
    await sleep(afterMs)
    return send(checkStatus(innocent, orderId))
  })
  await Promise.all([down, sleep(AWAY_MS)])
  const [until] = await Promise.all([momentOfReturn(databaseUrl), postgres.restart()])
  const answers = await Promise.all(asked)
  await sleep(Math.max(0, seconds * 1_000 - (performance.now() - startedAt)))
  client.close()

  const wrong = answers.filter((answer) => !('text' in answer) || JSON.parse(answer.text).txnStatus !== 'SUCCESS')
  const told = wrong.map((answer) => ('status' in answer ? answer.status : answer.unanswered))
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
