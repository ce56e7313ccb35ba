import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { expiryJobs } from '../../src/gateway/webhooks/expiries.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { LIMITS } from '../../src/limits.ts'
import { type Notification, newUtr, notification, notify } from '../support/acquirer.ts'
import { opsOn } from '../support/ops.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { CANCEL, type Key, newMerchant, post, STATUS, startService, type TestService } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

// Tests why an attempt failed, and who receives the reason. The acquirer sends its notifications in the service's own
// format.

let service: TestService
let mid: string
let key: Key
let endpointId: string
beforeAll(async () => {
  // No instance delivers the webhooks that this file writes.
  service = await startService({
    asServiceRole: true,
    sandbox: true,
    limits: { webhooks: { lookIntervalMs: 3_600_000 } },
  })
  ;({ mid, key } = await newMerchant(service.db))
  endpointId = (await newWebhook(service.db, { mid, url: 'https://shop.example/hook' }, service.clock.now())).endpointId
})

const newOrder = () => createOrder(service, { mid, key })
const fail = (orderId: string, changes: Notification & { reason?: unknown; code?: unknown } = {}) =>
  reportPayment(service, orderId, { status: 'FAIL', UTR: newUtr(), ...changes } as Notification)
const statusOf = async (orderId: string) => (await post(service.app, STATUS, { mid, order_id: orderId }, key)).body

/** The data of all webhooks of an order, as they are sent. */
async function eventsOf(orderId: string) {
  const now = new Date(service.clock.now().getTime() + 1)
  const claimed = await createDeliveries(service.db).claim({ mid, endpointId }, 1_000, now, now)
  await service.db.query('update webhook_deliveries set due_at = occurred_at where mid = $1', [mid])
  return claimed
    .filter((delivery) => delivery.orderId === orderId)
    .map((delivery) => JSON.parse(toMessage(delivery).body))
}

const expireAll = () => runPendingJobs(expiryJobs({ db: service.db, now: service.clock.now, limits: LIMITS.webhooks }))

describe('failure reason in checkPaymentStatus', () => {
  it('checkPaymentStatus returns the reason of the last attempt while the order is open, and after the order has failed', async () => {
    const orderId = await newOrder()
    expect(await statusOf(orderId)).not.toHaveProperty('reason')
    await fail(orderId, { reason: 'wrong_pin' })
    service.clock.advance(1)
    await fail(orderId, { code: 'U03' })
    const open = { status: false, statusCode: 200, txnStatus: 'PENDING', msg: 'Last attempt failed; still open' }
    expect(await statusOf(orderId)).toEqual({ ...open, reason: 'limit_exceeded' })
    service.clock.advance(25 * 60)
    expect(await statusOf(orderId)).toMatchObject({
      txnStatus: 'FAIL',
      msg: 'Payment failed',
      reason: 'limit_exceeded',
    })
  })

  it('checkPaymentStatus returns the reason `other` for an attempt without a reason, and no reason once the order is paid or cancelled', async () => {
    const [paid, cancelled, untouched] = [await newOrder(), await newOrder(), await newOrder()]
    for (const orderId of [paid, cancelled]) await fail(orderId)
    expect(await statusOf(paid)).toMatchObject({ txnStatus: 'PENDING', reason: 'other' })
    await reportPayment(service, paid)
    const { body } = await post(service.app, CANCEL, { mid, order_id: cancelled }, key)
    expect(body).toMatchObject({ msg: 'Payment cancelled' })
    expect(body).not.toHaveProperty('reason')
    service.clock.advance(25 * 60)
    expect(await statusOf(untouched)).toMatchObject({ msg: 'Payment intent expired' })
    for (const orderId of [paid, cancelled, untouched]) expect(await statusOf(orderId)).not.toHaveProperty('reason')
  })
})

describe('report of a failed attempt', () => {
  it('the service adds the reason from a report once to a known attempt without a reason', async () => {
    const orderId = await newOrder()
    const UTR = newUtr()
    await fail(orderId, { UTR })
    await fail(orderId, { UTR, code: 'ZM' })
    expect(await statusOf(orderId)).toMatchObject({ reason: 'wrong_pin' })
    await fail(orderId, { UTR, code: 'Z9' })
    expect(await statusOf(orderId)).toMatchObject({ reason: 'wrong_pin' })
    // The event was already written, and contains the facts known at that time.
    const reported = await eventsOf(orderId)
    expect(reported.map(({ type, data }) => [type, data.reason])).toEqual([['payment.attempt_failed', 'other']])
  })

  it('the service does not change the order for a report whose code alone proves no failure', async () => {
    const orderId = await newOrder()
    await fail(orderId, { code: 'RB' })
    expect(await statusOf(orderId)).toMatchObject({ msg: 'Payment pending' })
  })

  it.each([{ reason: 'bad weather' }, { code: 'two words' }, { code: 'x'.repeat(65) }, { reason: 7 }])(
    'the service rejects a report whose reason or code has another format: %j',
    async (wrong) => {
      const orderId = await newOrder()
      const body = notification(orderId, { status: 'FAIL', ...wrong } as Notification)
      expect((await notify(service, body)).status).toBe(400)
    },
  )

  it('the service accepts a reason or a code in a daily transaction report', async () => {
    const orders = [await newOrder(), await newOrder(), await newOrder()]
    const lines = ['risk_declined,', ',Z9', ',96'].map(
      (reported, i) => `${orders[i]},FAIL,${newUtr()},200,,${reported}`,
    )
    const csv = `order_id,status,utr,amount,paid_at,reason,code\n${lines.join('\n')}\n`
    const result = await importDailyReport(service.db, Readable.from([csv]), { now: service.clock.now })
    expect(result).toMatchObject({ recorded: 2, unchanged: 1 })
    const reasons = []
    for (const orderId of orders) reasons.push((await statusOf(orderId)).reason)
    expect(reasons).toEqual(['risk_declined', 'insufficient_funds', undefined])
  })
})

describe('failure reason in webhooks', () => {
  it('webhooks report the reason of each attempt and of the expiry, but no reason for an order without an attempt', async () => {
    const [tried, untouched] = [await newOrder(), await newOrder()]
    await fail(tried, { code: 'Z9' })
    service.clock.advance(1)
    await fail(tried, { reason: 'declined_by_customer' })
    service.clock.advance(26 * 60)
    await expireAll()
    expect((await eventsOf(tried)).map(({ type, data }) => [type, data.reason])).toEqual([
      ['payment.attempt_failed', 'insufficient_funds'],
      ['payment.attempt_failed', 'declined_by_customer'],
      ['payment.expired', 'declined_by_customer'],
    ])
    const [expired] = await eventsOf(untouched)
    expect(expired.type).toBe('payment.expired')
    expect(expired.data).not.toHaveProperty('reason')
  })
})

describe('failure reason for the operator', () => {
  it('ops shows reason and code in the history, and the metrics count the reasons', async () => {
    const { ops, json } = opsOn(() => service.databaseUrl)
    const orderId = await newOrder()
    await fail(orderId, { code: 'U03' })
    expect((await ops('payments', 'show', '--order-id', orderId)).stdout).toContain('FAIL, limit_exceeded (U03)')
    const shown = await json('payments', 'show', '--order-id', orderId)
    expect(JSON.stringify(shown)).toContain('"failureReason":"limit_exceeded","failureCode":"U03"')
    const counted = await service.metrics()
    expect(counted).toMatch(/payment_failures_total\{reason="limit_exceeded",acquirer="direct"\} [1-9]/)
    expect(counted).toMatch(/payment_failures_total\{reason="risk_declined",acquirer="cashfree"\} 0/)
  })
})

describe('failure reason on the pay page', () => {
  const page = async (orderId: string, language = 'en') =>
    (await service.app.inject({ url: `/pay/${orderId}`, headers: { 'accept-language': language } })).payload

  it('the pay page shows the failure reason in the customer’s language, also in the final state', async () => {
    const orderId = await newOrder()
    await fail(orderId, { code: 'Z9' })
    expect(await page(orderId)).toContain('<p class="attempt">The account does not have enough money.')
    expect(await page(orderId, 'hi')).toContain('<p class="attempt">खाते में पर्याप्त पैसे नहीं हैं।')
    const events = service.app.inject(`/pay/${orderId}/events`)
    service.clock.advance(60 * 60)
    expect((await events).payload).toMatch(/data: failed\n\n/)
    expect(await page(orderId, 'hi')).toContain('<p class="attempt">खाते में पर्याप्त पैसे नहीं हैं।</p>')
  })

  it('the sandbox’s pay page simulates a failed attempt with a chosen reason', async () => {
    const orderId = await newOrder()
    expect(await page(orderId)).toContain('<option>payee_not_allowed</option>')
    const played = await post(service.app, `/pay/${orderId}/simulate`, { status: 'FAIL', reason: 'payee_not_allowed' })
    expect(played.status).toBe(303)
    expect(await statusOf(orderId)).toMatchObject({ reason: 'payee_not_allowed' })
    await post(service.app, `/pay/${orderId}/simulate`, { status: 'SUCCESS', reason: 'payee_not_allowed' })
    expect(await statusOf(orderId)).toMatchObject({ txnStatus: 'SUCCESS' })
  })
})
