import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { disableEndpoint, enableEndpoint } from '../../src/gateway/webhooks/endpoints.ts'
import { createFindPending } from '../../src/jobs.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'
import { newWebhook } from '../support/webhooks.ts'

// A database of its own, because the poll reads the pending rows of all merchants.

const NONE = {
  // Citus rejects the statement that finds out.
  webhooks: ON_CITUS,
  'status checks at acquirers': false,
  'refunds at acquirers': false,
  'disputes at acquirers': false,
  'expired orders': false,
}

let service: TestService
let findPending: ReturnType<typeof createFindPending>
beforeAll(async () => {
  service = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
  findPending = createFindPending(service.pools.due, service.clock.now)
})
afterAll(() => vi.restoreAllMocks())

const minutesFromNow = (minutes: number) => new Date(service.clock.now().getTime() + minutes * 60_000)

/** Creates a paid order with a delivery to an endpoint of its own, and returns a function that schedules the delivery. */
async function newDelivery(now = service.clock.now()) {
  const merchant = await newMerchant(service.db)
  const endpoint = await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/' }, now)
  const orderId = await createOrder(service, merchant)
  expect((await notify(service, notification(orderId, { UTR: newUtr() }))).status).toBe(200)
  const schedule = (at: Date | null) =>
    service.db.query('update webhook_deliveries set due_at = $3 where mid = $1 and order_id = $2', [
      merchant.mid,
      orderId,
      at,
    ])
  return { ...endpoint, orderId, schedule }
}

it('a new database has no pending jobs', async () => {
  expect(await findPending()).toEqual(NONE)
})

it('the poll finds the pending delivery of an enabled endpoint among the endpoints before and after it', async () => {
  const [one, other, third] = [await newDelivery(), await newDelivery(), await newDelivery()]
  const all = [one, other, third]
  for (const { schedule } of all) await schedule(minutesFromNow(1))
  expect(await findPending()).toEqual(NONE)
  for (const { schedule, endpointId } of all) {
    await schedule(service.clock.now())
    expect(await findPending()).toEqual({ ...NONE, webhooks: true })
    await disableEndpoint(service.db, { endpointId, now: service.clock.now() })
    expect(await findPending()).toEqual(NONE)
    await enableEndpoint(service.db, { endpointId })
    await schedule(minutesFromNow(1))
  }
  for (const { schedule } of all) await schedule(null)
  expect(await findPending()).toEqual(NONE)
})

it('webhooks may be pending when 50 endpoints have scheduled deliveries', async () => {
  const { schedule, mid, orderId } = await newDelivery()
  await schedule(null)
  const add = (count: number) =>
    service.db.query(
      `with endpoints as (
         insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at)
         select $1, 'ep' || i, 'webhook', 'https://shop.example/', 'sealed', $3 from generate_series(1, $4) i
             on conflict do nothing
         returning endpoint_id
       )
       insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, due_at)
       select $1, endpoint_id, $2, 1, 'payment.succeeded', 'SUCCESS', $3, $5 from endpoints`,
      [mid, orderId, service.clock.now(), count, minutesFromNow(1)],
    )
  await add(49)
  expect(await findPending()).toEqual(NONE)
  await add(50)
  expect(await findPending()).toEqual({ ...NONE, webhooks: true })
  await service.db.query('update webhook_deliveries set due_at = null where mid = $1', [mid])
})

it('the poll finds a status check, a refund, an expired order and a dispute only when they are pending', async () => {
  const { mid, orderId, schedule } = await newDelivery()
  await schedule(null)
  await service.db.query(
    `insert into acquirer_intents
       (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks, status_check_at)
     values ($1, $2, 'setu', 'm', 'o', 'r', 'upi://pay', 0, $3)`,
    [mid, orderId, minutesFromNow(1)],
  )
  await service.db.query(
    `insert into refunds
       (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status, due_at)
     values ($1, 'R1', 'R1', $2, 'U1', 100, 'Cold tea', 'setu', 'merchant', $3, 'PENDING', $4)`,
    [mid, orderId, service.clock.now(), minutesFromNow(2)],
  )
  await service.db.query('insert into webhook_expiries (mid, order_id, final_at) values ($1, $2, $3)', [
    mid,
    orderId,
    minutesFromNow(3),
  ])
  await service.db.query(
    `insert into disputes (mid, acquirer, dispute_id, order_id, utr, opened_at, recorded_at, reported_at, status, updated_at, check_at)
     values ($1, 'cashfree', 'D1', $2, 'U1', $3, $3, $3, 'open', $3, $4)`,
    [mid, orderId, service.clock.now(), minutesFromNow(4)],
  )
  expect(await findPending()).toEqual(NONE)
  service.clock.advance(60)
  expect(await findPending()).toEqual({ ...NONE, 'status checks at acquirers': true })
  service.clock.advance(60)
  expect(await findPending()).toEqual({
    ...NONE,
    'status checks at acquirers': true,
    'refunds at acquirers': true,
  })
  service.clock.advance(60)
  const others = { 'status checks at acquirers': true, 'refunds at acquirers': true, 'expired orders': true }
  expect(await findPending()).toEqual({ ...NONE, ...others })
  service.clock.advance(60)
  expect(await findPending()).toEqual({ ...NONE, ...others, 'disputes at acquirers': true })
})

it.skipIf(ON_CITUS)('an instance without pending jobs sends one statement per poll', async () => {
  const sent: string[] = []
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    sent.push(typeof args[0] === 'string' ? args[0] : (args[0] as { text: string }).text)
    return query.apply(this, args)
  } as never)
  await startService({ limits: { webhooks: { lookIntervalMs: 5 } } })
  // The first poll also reads the orders of the last day, by about 100 statements.
  const isPoll = (statement: string) => statement.includes('"refunds at acquirers"')
  await until('the instance has sent nothing but polls', () => sent.length > 100 && sent.slice(-8).every(isPoll))
})
