import { beforeAll, expect, it } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import type { RefundUpdate } from '../../src/gateway/refunds/refund.ts'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { WEBHOOKS } from '../../src/gateway/webhooks/events.ts'
import { expiryJobs } from '../../src/gateway/webhooks/expiries.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { LIMITS } from '../../src/limits.ts'
import { newUtr } from '../support/acquirer.ts'
import { departureOfEvent } from '../support/openapi.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { CANCEL, newMerchant, post, startService, type TestService, unique } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const FINAL_AFTER_SECONDS = 25 * 60

type Event = { type: string; data: Record<string, unknown> }

let service: TestService
let merchant: NewMerchant
/** Events of every type, in each of its forms. */
let events: Event[]
beforeAll(async () => {
  // The service delivers no webhooks in this test.
  service = await startService({ limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
  const { db, clock } = service
  merchant = await newMerchant(db)
  const { mid, key } = merchant
  const { endpointId } = await newWebhook(db, { mid, url: 'https://shop.example/hook' }, clock.now())
  const newOrder = () => createOrder(service, merchant, { order_id: unique('O') })

  const paid = await newOrder()
  await reportPayment(service, paid)
  const ends: RefundUpdate[] = [
    { status: 'SUCCESS', reference: '412345678901' },
    { status: 'FAIL', reference: '', reason: 'R21' },
  ]
  for (const end of ends) {
    const requested = { mid, orderId: paid, refundId: unique('R'), amount: 50, note: 'sold out', createdBy: 'merchant' }
    const created = await createRefund(service.pools.due, requested, clock.now())
    if (!('refund' in created)) throw new Error(created.rejected)
    await createRefundUpdates(service.pools.due).record(created.refund, end, {
      source: 'notification',
      by: 'acquirer',
      now: clock.now,
    })
  }
  const disputes = createDisputes(service.pools.due)
  for (const status of ['open', 'won'] as const)
    await disputes.record(
      'direct',
      { id: 'D1', orderId: paid, status, amount: 5_050 },
      { source: 'op', now: clock.now },
    )
  await post(service.app, CANCEL, { mid, order_id: await newOrder() }, key)
  await newOrder()
  await reportPayment(service, await newOrder(), { status: 'REJECT', UTR: newUtr(), reason: 'wrong_pin' })
  await reportPayment(service, await newOrder(), { status: 'FAIL', UTR: undefined })
  clock.advance(FINAL_AFTER_SECONDS)
  await runPendingJobs(expiryJobs({ db, now: clock.now, limits: LIMITS.webhooks }))

  const at = new Date(clock.now().getTime() + 60_000)
  const deliveries = await createDeliveries(db).claim({ mid, endpointId }, 100, at, at)
  events = deliveries.map((delivery) => JSON.parse(toMessage(delivery).body))
})

it('the OpenAPI document describes the events that the service sends', () => {
  expect(new Set(events.map(({ type }) => type))).toEqual(new Set(WEBHOOKS.map(({ type }) => type)))
  expect(events.map((event) => [event.type, departureOfEvent(event)])).toEqual(
    events.map(({ type }) => [type, undefined]),
  )
})

it('the OpenAPI document rejects an event with an unknown field, a missing field or the status of another event', () => {
  for (const event of events) {
    const { sequence: _, ...others } = event.data
    const changed = [others, { ...event.data, customer_name: 'Asha' }, { ...event.data, txnStatus: 'OTHER' }]
    for (const data of changed) expect(departureOfEvent({ ...event, data } as Event), event.type).toBeDefined()
  }
})
