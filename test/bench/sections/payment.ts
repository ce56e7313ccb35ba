import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { createRequest } from '../../support/requests.ts'
import { until } from '../../support/wait.ts'
import { newWebhook } from '../../support/webhooks.ts'
import type { WorkspaceDatabase } from '../../support/workspace.ts'
import type { Section } from '../bench.ts'
import { type Service, startContender, startOurs, typical } from '../contenders.ts'
import { type Side, sideBySide } from '../side-by-side.ts'
import { newMerchants } from '../tables.ts'

/** Others depend on the client's library. */
const WEBHOOK_HEADERS = ['content-type', 'content-length', 'webhook-id', 'webhook-timestamp', 'webhook-signature']

/** Measures everything a payment needs: create, three status checks, the acquirer's notification and the webhook. */
export const payment: Section = async (bench) => {
  const sides = await Promise.all([
    side(await bench.createDatabase('payment_ours'), startOurs),
    side(await bench.createComparedDatabase('payment_typical'), (url) => startContender(typical(url))),
  ])
  return async () => {
    const [ours, typical] = (await Promise.all(sides.map((start) => start()))) as [Side, Side]
    const finding = await sideBySide(bench, 'One payment', { ours, typical }, { costAtMost: 0.5 })
    await Promise.all([ours, typical].map(({ service }) => service.stop()))
    return [finding]
  }
}

async function side({ name, db, url }: WorkspaceDatabase, startService: (url: string) => Promise<Service>) {
  const merchants = await newMerchants(db)
  let received = 0
  let first: unknown
  const receiver = createServer(async (request, response) => {
    const body = await text(request)
    response.end()
    received++
    first ??= { headers: WEBHOOK_HEADERS.map((name) => [name, request.headers[name]]), body }
  })
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve))
  const webhookUrl = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`
  for (const { mid } of merchants) await newWebhook(db, { mid, url: webhookUrl }, new Date())
  const creates = merchants.map((merchant) => createRequest(merchant))

  const settled = async () => {
    const { rows } = await db.query<{ paid: number }>(
      `select count(*)::integer as paid from payment_intents where status = 'SUCCESS'`,
    )
    await until(`${name} sent all webhooks`, () => received >= (rows[0]?.paid ?? 0))
  }
  return async (): Promise<Side> => ({
    service: await startService(url),
    requests: () => creates,
    mode: 'payments',
    settled,
    webhook: () => first,
  })
}
