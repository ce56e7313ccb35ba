import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { newUtr } from '../support/acquirer.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { newMerchant, startService, type TestService, unique } from '../support/service.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({
    asServiceRole: true,
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') },
    limits: { webhooks: { lookIntervalMs: 100 } },
  })
})
afterAll(() => receiver.close())

it('sends the data of a dispute as they were stored, although its facts have changed since', async () => {
  const { db, clock } = service
  const merchant = await newMerchant(db)
  const { mid } = merchant
  const order_id = unique('O')
  const orderId = await createOrder(service, merchant, { order_id })
  const UTR = newUtr()
  await reportPayment(service, orderId, { UTR })
  const path = `/${unique('hook')}`
  await newWebhook(db, { mid, url: `${receiver.url}${path}` }, clock.now())
  // The first delivery fails, and is repeated after the dispute has changed twice.
  receiver.responses.set(path, (response, count) => response.writeHead(count === 1 ? 500 : 200).end())
  const respondBy = new Date('2026-04-02T18:29:59Z')
  const facts = { id: 'D-1', orderId, amount: 50_50, reasonText: 'Goods "not" received – ₹' }
  const record = (report: { status: 'open' | 'under review' | 'won'; respondBy?: Date }) =>
    createDisputes(service.pools.reports).record(
      'direct',
      { ...facts, ...report },
      { source: 'notification', now: clock.now },
    )
  await record({ status: 'open', respondBy })
  await expect.poll(() => receiver.to(path).length, { timeout: 20_000 }).toBe(1)
  await record({ status: 'under review' })
  await record({ status: 'won' })
  // A delivery in progress would become pending again when the clock advances.
  const settled = async () => {
    const { rows } = await db.query('select from webhook_deliveries where order_id = $1 and attempted_at is not null', [
      orderId,
    ])
    return rows.length
  }
  await expect.poll(settled, { timeout: 20_000 }).toBe(3)
  clock.advance(60)
  await expect.poll(() => receiver.to(path).length, { timeout: 20_000 }).toBe(4)

  const body = (type: string, status: string, sequence: number) =>
    `{"type":"${type}","timestamp":"2026-03-31T18:29:59.000Z","data":{"mid":"${mid}","orderId":"${orderId}",` +
    `"order_id":"${order_id}","UTR":"${UTR}","dispute_id":"D-1","amount":"50.50","status":"${status}",` +
    `"reason_text":"Goods \\"not\\" received – ₹","respond_by":"2026-04-02T18:29:59.000Z","sequence":${sequence}}}`
  const opened = body('dispute.opened', 'OPEN', 2)
  const bodies = receiver.to(path).map((received) => received.body)
  expect(bodies.toSorted()).toEqual(
    [opened, opened, body('dispute.updated', 'UNDER_REVIEW', 3), body('dispute.updated', 'WON', 4)].toSorted(),
  )
  const ids = receiver.to(path).map(({ headers }) => headers['webhook-id'])
  expect(new Set(ids)).toEqual(new Set([2, 3, 4].map((sequence) => `msg_${orderId}_${sequence}`)))
})
