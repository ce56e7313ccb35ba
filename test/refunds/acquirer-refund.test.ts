import { expect, it } from 'vitest'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import type { Refund, RefundStatus } from '../../src/gateway/refunds/refund.ts'
import { findRefund, isLeftToPerson } from '../../src/gateway/refunds/store.ts'
import { newSetuMerchant, startServiceWithBank } from '../support/fake-setu.ts'
import { createOrder } from '../support/orders.ts'
import { CANCEL, post, unique } from '../support/service.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import { until } from '../support/wait.ts'

const { service, bank } = await startServiceWithBank({ asServiceRole: true })
const merchant = await newSetuMerchant(service)

/** Reports a refund that the acquirer has initiated itself. */
const sendReport = (
  orderId: string,
  utr: string | undefined,
  id: string,
  status: RefundStatus = 'SUCCESS',
  by = 'setu',
) =>
  createRefundUpdates(service.pools.reports).recordNotification(
    by,
    { acquirerInitiated: true, orderId, utr, status, id, amount: 200_00, reference: `ARN${id}` },
    service.clock.now(),
  )

/** An order that is cancelled and then paid. */
async function paidLate() {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  const { payment } = await bank.pay(orderId, { faults: { lost: 1 } })
  const { qr } = bank.paid().at(-1) as ReturnType<FakeSetu['paid']>[number]
  // Otherwise the bank's rejection to close a paid link would schedule a status check, which would find the payment.
  bank.nextFaults.expireDqr = [{ status: 500 }]
  const closes = bank.countOf('expireDqr')
  await post(service.app, CANCEL, { mid: merchant.mid, order_id: orderId }, merchant.key)
  await until('the close has failed', () => bank.countOf('expireDqr') > closes)
  return { orderId, utr: payment.rrn, receive: () => bank.sendEvent(bank.eventOf(qr, payment)) }
}

const exceptionsOf = async (orderId: string) =>
  (
    await service.db.query(
      `select e.kind, r.reason
         from payment_exceptions e
         left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
        where e.order_id = $1
        order by e.kind`,
      [orderId],
    )
  ).rows

const refundsOf = async (orderId: string) =>
  (await service.db.query(`select status, utr, created_by from refunds where order_id = $1`, [orderId])).rows

it('the service stores an acquirer’s own refund of a late payment once and resolves the exception, however many notifications arrive', async () => {
  const { orderId, utr, receive } = await paidLate()
  expect(await receive()).toBe(200)
  expect(await exceptionsOf(orderId)).toEqual([{ kind: 'late payment', reason: null }])
  const id = unique('own')
  await sendReport(orderId, utr, id, 'PENDING')
  expect(await refundsOf(orderId)).toEqual([{ status: 'PENDING', utr, created_by: 'acquirer' }])
  const reported = await Promise.all(Array.from({ length: 8 }, () => sendReport(orderId, utr, id)))
  expect(reported.filter((one) => one?.changed)).toHaveLength(1)
  expect(await refundsOf(orderId)).toEqual([{ status: 'SUCCESS', utr, created_by: 'acquirer' }])
  expect(await exceptionsOf(orderId)).toEqual([
    { kind: 'late payment', reason: `the refund succeeded, reference ARN${id}` },
  ])
  const ourRefundId = reported[0]?.refund?.ourRefundId as string
  expect(await findRefund(service.db, merchant.mid, { ourRefundId })).toMatchObject({
    acquirerRefundId: id,
    dueAt: null,
  })
})

it('the service stores an acquirer’s own refund once, even if a later notification has the refund’s id in capitals', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  const id = unique('own')
  await sendReport(orderId, utr, id, 'PENDING')
  await sendReport(orderId, utr, id.toUpperCase())
  expect(await refundsOf(orderId)).toEqual([{ status: 'SUCCESS', utr, created_by: 'acquirer' }])
})

it('the service leaves an acquirer’s own refund without a final status to the operator, because no status check finds the refund by the service’s id', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  const reported = await sendReport(orderId, utr, unique('own'), 'PENDING')
  expect(await isLeftToPerson(service.db, reported?.refund as Refund)).toBe(true)
})

it('the service stores an acquirer’s own refund once if several concurrent notifications report the refund first', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  const id = unique('own')
  await Promise.all(Array.from({ length: 8 }, () => sendReport(orderId, utr, id)))
  expect(await refundsOf(orderId)).toHaveLength(1)
})

it('the service treats an acquirer’s own refund as unknown until the refunded payment is reported', async () => {
  const { orderId, utr, receive } = await paidLate()
  expect(await sendReport(orderId, utr, 'early')).toBeUndefined()
  expect(await receive()).toBe(200)
  expect(await sendReport(orderId, utr, 'early')).toMatchObject({ changed: true })
})

it('the service assigns an acquirer’s own refund without a payment identifier to the order’s own payment', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  expect(await sendReport(orderId, undefined, unique('own'))).toMatchObject({ changed: true })
  expect(await refundsOf(orderId)).toEqual([{ status: 'SUCCESS', utr, created_by: 'acquirer' }])
})

it.each([
  ['of an unknown order', 'f'.repeat(32), 'setu'],
  ['of an order of another acquirer', undefined, 'cashfree'],
])('the service does not store an acquirer’s own refund %s', async (_what, other, acquirer) => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  expect(await sendReport(other ?? orderId, utr, unique('own'), 'SUCCESS', acquirer)).toBeUndefined()
  expect(await refundsOf(orderId)).toEqual([])
})

it('the service includes an acquirer’s own refund in the refunded sum of the refunded payment', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  await sendReport(orderId, utr, unique('own'))
  expect(await sendReport(orderId, utr, unique('own'))).toMatchObject({ exception: 'refunded above what was paid' })
})

it('the service stores an acquirer’s own refunds of one payment up to the number of refunds that a merchant may request for one payment', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  const report = (amount: number, status: RefundStatus) =>
    createRefundUpdates(service.pools.reports).recordNotification(
      'setu',
      { acquirerInitiated: true, orderId, utr, status, id: unique('own'), amount, reference: '' },
      service.clock.now(),
    )
  for (let i = 0; i < 100; i++) await report(1, i % 2 ? 'FAIL' : 'SUCCESS')
  expect(await report(1, 'FAIL')).toEqual({ changed: false })
  expect(await report(1, 'SUCCESS')).toMatchObject({ exception: 'refunded above what was paid', isNew: true })
  expect(await refundsOf(orderId)).toHaveLength(100)
})

it('the service stores no exception for an acquirer’s own failed refund that exceeds the payment, because no money has moved', async () => {
  const { orderId, utr, receive } = await paidLate()
  await receive()
  await sendReport(orderId, utr, unique('own'))
  expect(await sendReport(orderId, utr, unique('own'), 'FAIL')).toEqual({ changed: false })
  expect(await refundsOf(orderId)).toHaveLength(1)
})
