import { expect, it } from 'vitest'
import { statusCheckRulesOf } from '../../src/gateway/acquirers/acquirers.ts'
import { cashfreeClient } from '../../src/gateway/acquirers/cashfree/client.ts'
import { statusCheckJobs } from '../../src/gateway/acquirers/check-status.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { createStatusChecks } from '../../src/gateway/payments/status-checks.ts'
import { expiryJobs } from '../../src/gateway/webhooks/expiries.ts'
import { LIMITS } from '../../src/limits.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { opsOn } from '../support/ops.ts'
import { runAllPendingJobs, runPendingJobs } from '../support/pending-jobs.ts'
import { form, post, REFUND, STATUS } from '../support/service.ts'
import { newKey } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'
import { cashfree } from './conformance/cashfree.ts'
import type { BankPayment } from './conformance/driver.ts'
import { startInstance } from './conformance/instance.ts'
import { bankOf, cancel, newOrder, type Order, recorded, statusOf } from './conformance/orders.ts'

/** From then on the status of an unpaid order is final. */
const OVER_SECONDS = 26 * 60
const WAIT_MS = 30_000

const stage = await cashfree({
  limits: {
    outbound: { acquirerMs: WAIT_MS },
    acquirers: { requestMs: WAIT_MS },
    webhooks: { lookIntervalMs: 3_600_000 },
  },
})
const of = await stage.newMerchant()
await newWebhook(stage.service.db, { mid: of.mid, url: 'https://shop.example/hook' }, stage.service.clock.now())

const { ops } = opsOn(() => stage.service.databaseUrl, ['payments'])

const checkStatus = ({ orderId }: Order) => startInstance(stage).checkStatus(orderId)

/**
 * Creates an order whose payment Cashfree reports with an unknown status. `readable` is the payment's original status.
 */
async function newUnreadableOrder() {
  const order = await newOrder(stage, of)
  const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  const readable = payment.status
  payment.status = 'odd'
  await expect(checkStatus(order)).rejects.toMatchObject({ isUnreadable: true })
  return { order, payment, readable }
}

const expire = () => {
  const { db, clock } = stage.service
  return runPendingJobs(expiryJobs({ db, now: clock.now, limits: LIMITS.webhooks }))
}

async function eventsOf({ orderId }: Order) {
  const { rows } = await stage.service.db.query(
    'select type from webhook_deliveries where order_id = $1 order by sequence',
    [orderId],
  )
  return rows.map(({ type }) => type)
}

type Booked = { status: string; payments: BankPayment[] }

/** The bank's record of an order, which a test may change. */
const bookOf = ({ orderId }: Order) =>
  (bankOf(stage) as unknown as { orders: Map<string, Booked> }).orders.get(orderId) as Booked

async function exceptionsOf({ orderId, of }: Order) {
  const { rows } = await stage.service.db.query(
    `select kind, resolved_by as by from payment_exceptions e left join payment_resolutions r using (mid, exception_id)
      where e.mid = $1 and e.order_id = $2 order by e.received_at`,
    [of.mid, orderId],
  )
  return rows
}

it('the service writes payment.expired only after a readable response that reports no payment', async () => {
  const { order, payment } = await newUnreadableOrder()
  stage.service.clock.advance(OVER_SECONDS)
  await expire()
  expect([await statusOf(stage, order), await eventsOf(order)]).toEqual(['PENDING', []])
  payment.status = 'failed'
  bookOf(order).status = 'EXPIRED'
  await checkStatus(order)
  await expire()
  expect(await statusOf(stage, order)).toBe('FAIL')
  expect(await eventsOf(order)).toEqual(['payment.attempt_failed', 'payment.expired'])
  expect(await exceptionsOf(order)).toEqual([{ kind: 'unreadable', by: 'enquiry' }])
})

it('the service sets the final status of an order once an operator has resolved the exception', async () => {
  const { order } = await newUnreadableOrder()
  stage.service.clock.advance(OVER_SECONDS)
  await expire()
  const { rows } = await stage.service.db.query(
    'select exception_id as id from payment_exceptions where order_id = $1',
    [order.orderId],
  )
  const { code } = await ops(
    'resolve',
    '--exception',
    rows[0].id,
    '--reason',
    'not paid, by the dashboard',
    '--by',
    'asha',
  )
  expect(code).toBe(0)
  expect(await statusOf(stage, order)).toBe('FAIL')
  // The command uses the machine's clock, which is ahead of the service's.
  const before = stage.service.clock.now()
  stage.service.clock.set(new Date().toISOString())
  await expire()
  stage.service.clock.set(before.toISOString())
  expect(await eventsOf(order)).toEqual(['payment.expired'])
})

it('the service cancels an order with an unreadable payment and resolves the payment’s exception', async () => {
  const { order } = await newUnreadableOrder()
  stage.service.clock.advance(OVER_SECONDS)
  expect(await cancel(stage, order)).toMatchObject({ txnStatus: 'FAIL', msg: 'Payment cancelled' })
  expect((await exceptionsOf(order))[0]).toEqual({ kind: 'unreadable', by: 'merchant' })
})

it('the service marks an order as paid, without a late payment, when an operator confirms the order’s unreadable payment', async () => {
  const { order } = await newUnreadableOrder()
  stage.service.clock.advance(OVER_SECONDS)
  const { code, stderr } = await ops('confirm', '--order-id', order.orderId, '--utr', '523504870999', '--amount', '200')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(await statusOf(stage, order)).toBe('SUCCESS')
  expect((await exceptionsOf(order)).map(({ kind }) => kind)).toEqual(['unreadable'])
})

it('the service stores an exception for an unreadable payment of an order with the final status FAIL, and does not reopen the order', async () => {
  const order = await newOrder(stage, of)
  const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  payment.status = 'odd'
  stage.service.clock.advance(OVER_SECONDS)
  expect(await statusOf(stage, order)).toBe('FAIL')
  await expect(checkStatus(order)).rejects.toMatchObject({ isUnreadable: true })
  expect(await statusOf(stage, order)).toBe('FAIL')
  expect(await exceptionsOf(order)).toEqual([{ kind: 'unreadable', by: null }])
})

it.each([
  ['shortly before the expiry', 0],
  ['days before the expiry', 3],
])(
  'the service checks the status of an order whose payment became unreadable %s hourly for a day after the expiry, within the order’s limit on checks',
  async (_, days) => {
    const { service } = stage
    const { order } = await newUnreadableOrder()
    await service.db.query(
      `update payment_intents set unreadable_at = unreadable_at - $2 * interval '1 day' where order_id = $1`,
      [order.orderId, days],
    )
    const nextCheck = new Date(service.clock.now().getTime() + 16 * 60_000)
    await service.db.query('update acquirer_intents set status_checks = 0, status_check_at = $2 where order_id = $1', [
      order.orderId,
      nextCheck,
    ])
    const source = statusCheckJobs({
      statusChecks: createStatusChecks(service.db),
      clientOf: startInstance(stage).clientOf,
      rulesOf: statusCheckRulesOf,
      reports: createReports(service.db),
      now: service.clock.now,
      limits: LIMITS.acquirers,
    })
    const count = async () => {
      const { rows } = await service.db.query('select status_checks from acquirer_intents where order_id = $1', [
        order.orderId,
      ])
      return rows[0].status_checks
    }
    const counts: number[] = []
    for (let minutes = 0; minutes < 30 * 60; minutes += 10) {
      service.clock.advance(600)
      await runAllPendingJobs(source)
      counts.push(await count())
    }
    const checksAt = counts.flatMap((value, at) => (value > (counts[at - 1] ?? 0) ? [at * 10] : []))
    expect(counts.at(-1)).toBe(12)
    const pauses = checksAt.slice(4).map((at, index) => at - (checksAt[index + 3] as number))
    expect(pauses.every((pause) => pause >= 60 && pause <= 70)).toBe(true)
    expect(await statusOf(stage, order)).toBe('PENDING')
  },
)

it('the service shows, finds and refunds an order that was paid without a bank reference', async () => {
  const order = await newOrder(stage, of)
  const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  const reference = payment.rrn
  payment.rrn = 'NA'
  await checkStatus(order)
  const show = async () => (await ops('show', '--order-id', order.orderId)).stdout
  expect(await show()).toContain('not known yet: utr is the acquirer’s payment id')
  payment.rrn = reference
  await checkStatus(order)
  expect(await show()).toMatch(new RegExp(`bankReference +${reference}`))
  for (const utr of [payment.id, reference]) {
    expect((await ops('find', '--utr', utr)).stdout).toContain(order.orderId)
  }
  const paid = await post(stage.service.app, STATUS, form({ mid: of.mid, order_id: order.orderId }), of.key)
  expect(paid.body.data.UTR).toBe(payment.id.toUpperCase())
  // A confirmation by the reference means the stored payment.
  const again = await ops('confirm', '--order-id', order.orderId, '--utr', reference, '--amount', '200')
  expect(again.stdout).toContain('was already paid')
  const refund = { mid: of.mid, order_id: order.orderId, refund_id: 'R1', note: 'returned' }
  const key = await newKey(stage.service.db, of, RIGHTS)
  expect((await post(stage.service.app, REFUND, form(refund), key)).status).toBe(200)
})

it('the service stores the bank reference of a payment once, whatever the database role', async () => {
  const order = await newOrder(stage, of)
  const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  Object.assign(payment, { rrn: null })
  await checkStatus(order)
  const set = (reference: string) =>
    stage.service.db.query('update payments set bank_reference = $2 where order_id = $1', [order.orderId, reference])
  await set('523504870001')
  await expect(set('523504870002')).rejects.toThrow('set once')
})

it('the service stores a second payment of an order once, and only as a duplicate payment', async () => {
  const order = await newOrder(stage, of)
  const { payment: first } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  Object.assign(first, { rrn: '1234567890' })
  await checkStatus(order)
  bookOf(order).payments.push({ ...first, id: `${first.id}9` })
  for (let i = 0; i < 2; i++) await checkStatus(order)
  const { exceptions, intent } = await recorded(stage, order)
  expect(intent).toEqual(['SUCCESS', '1234567890'])
  expect(exceptions).toEqual([['double payment', 'SUCCESS', `${first.id}9`, '200.00']])
})

it('the service recognises an operator-confirmed payment by the acquirer’s payment id or by the bank reference', async () => {
  const [byId, byReference] = [await newOrder(stage, of), await newOrder(stage, of)]
  const pay = ({ orderId }: Order) => bankOf(stage).pay(orderId, { faults: { lost: 1 } })
  const { payment: first } = await pay(byId)
  const confirm = ({ orderId }: Order, utr: string) =>
    ops('confirm', '--order-id', orderId, '--utr', utr, '--amount', '200')
  expect((await confirm(byId, first.id)).code).toBe(0)
  await checkStatus(byId)
  // The command uses the machine's clock, by which the order has expired.
  expect((await exceptionsOf(byId)).map(({ kind }) => kind)).toEqual(['late payment'])
  const { payment: second } = await pay(byReference)
  await checkStatus(byReference)
  expect((await confirm(byReference, second.id)).stdout).toContain('was already paid')
  expect(await exceptionsOf(byReference)).toEqual([])
})

it.each([
  ['no payment', (book: BankPayment[]) => void book.splice(0)],
  ['a failed payment', (book: BankPayment[]) => void Object.assign(book[0] as BankPayment, { status: 'failed' })],
  ['a pending payment', (book: BankPayment[]) => void Object.assign(book[0] as BankPayment, { status: 'pending' })],
])('the service leaves an order open if Cashfree reports the order as PAID with %s', async (_what, change) => {
  const order = await newOrder(stage, of)
  await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  change(bookOf(order).payments)
  const paidOrder = { order_id: order.orderId, order_status: 'PAID' }
  const account = { apiUrl: 'https://api.example', clientId: 'c', clientSecret: 's', notificationSecrets: ['s'] }
  const listed = bookOf(order).payments.map(({ id, status }) => ({
    cf_payment_id: id,
    payment_status: status === 'failed' ? 'FAILED' : 'PENDING',
    payment_amount: '200.00',
  }))
  const client = cashfreeClient(account, async ({ path }) => ({
    status: 200,
    body: path.endsWith('/payments') ? listed : paidOrder,
    requestId: undefined,
  }))
  const paymentLink = { acquirer: 'cashfree', merchantId: 'CF', id: order.orderId, reference: order.orderId, link: '' }
  for (const isOpen of [true, false]) {
    const requesting = client.getPayments({ orderId: order.orderId, paymentLink, isOpen })
    await expect(requesting).rejects.toMatchObject({ isUnreadable: true })
  }
})

it('the service stores an exception for an unreadable payment of a cancelled order', async () => {
  const order = await newOrder(stage, of)
  const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  payment.status = 'odd'
  await stage.service.db.query(
    "update payment_intents set status = 'CANCELLED', cancelled_at = now() where order_id = $1",
    [order.orderId],
  )
  await expect(checkStatus(order)).rejects.toMatchObject({ isUnreadable: true })
  expect(await statusOf(stage, order)).toBe('FAIL')
  expect(await exceptionsOf(order)).toEqual([{ kind: 'unreadable', by: null }])
})

it.each(['-', '__', 'NA', '0', 'null'])('the service treats %j as a missing payment id', async (id) => {
  const [named, nameless] = [await newOrder(stage, of), await newOrder(stage, of)]
  const { payment } = await bankOf(stage).pay(named.orderId, { faults: { lost: 1 } })
  Object.assign(payment, { id })
  await checkStatus(named)
  expect((await recorded(stage, named)).intent).toEqual(['SUCCESS', payment.rrn])
  Object.assign((await bankOf(stage).pay(nameless.orderId, { faults: { lost: 1 } })).payment, { id, rrn: 'NA' })
  await expect(checkStatus(nameless)).rejects.toMatchObject({ isUnreadable: true })
})

it('the service records a readable payment and stores an exception for an unreadable payment of the same order', async () => {
  const order = await newOrder(stage, of)
  const { payment } = await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
  bookOf(order).payments.push({ ...payment, id: 'null', rrn: 'NA' })
  await expect(checkStatus(order)).rejects.toMatchObject({ isUnreadable: true })
  expect((await recorded(stage, order)).intent).toEqual(['SUCCESS', payment.rrn])
  expect(await exceptionsOf(order)).toEqual([{ kind: 'unreadable', by: null }])
})
