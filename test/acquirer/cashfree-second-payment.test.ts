import { expect, it } from 'vitest'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { findRefund } from '../../src/gateway/refunds/store.ts'
import { newUtr } from '../support/acquirer.ts'
import { CASHFREE, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { createOrder } from '../support/orders.ts'
import { unique } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'

const { service, bank } = await startServiceBeside(CASHFREE, {
  asServiceRole: true,
  limits: { webhooks: { lookIntervalMs: 100 } },
})
const merchant = await newCashfreeMerchant(service)

/** Creates an order that is paid twice, and both payments are reported by Cashfree. */
async function paidTwice() {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  const { order, payment } = await bank.pay(orderId)
  const second = { ...payment, id: newUtr(), rrn: newUtr() }
  expect(await bank.sendEvent(bank.eventOf(order, second))).toBe(200)
  return { orderId, second }
}

const refundsOf = async (orderId: string) =>
  (await service.db.query('select utr, status, amount_paise from refunds where order_id = $1', [orderId])).rows

const openExceptionsOf = async (orderId: string) =>
  (
    await service.db.query(
      `select e.exception_id, e.kind
         from payment_exceptions e
         left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
        where e.order_id = $1 and r.mid is null`,
      [orderId],
    )
  ).rows

/**
 * Cashfree's automatic refund as its published refund entity describes it: it names the payment by Cashfree's own id.
 */
const ownRefund = (orderId: string, cf_payment_id: string, changes = {}) => ({
  data: {
    refund: {
      cf_refund_id: unique('8'),
      cf_payment_id,
      refund_id: null,
      order_id: orderId,
      refund_amount: 200,
      refund_currency: 'INR',
      refund_note: null,
      refund_status: 'SUCCESS',
      refund_type: 'PAYMENT_AUTO_REFUND',
      refund_arn: unique('ARN').replace(/[^A-Za-z0-9]/g, ''),
      ...changes,
    },
  },
  type: 'REFUND_STATUS_WEBHOOK',
})

it('the service records Cashfree’s automatic refund of a duplicate payment and resolves the exception of the duplicate payment', async () => {
  const { orderId, second } = await paidTwice()
  expect(await bank.sendEvent(ownRefund(orderId, second.id))).toBe(200)
  expect(await refundsOf(orderId)).toEqual([{ utr: second.rrn, status: 'SUCCESS', amount_paise: 20_000 }])
  expect(await openExceptionsOf(orderId)).toEqual([])
})

it('the service records a refund created in Cashfree’s dashboard and resolves the exception of the refunded payment', async () => {
  const { orderId, second } = await paidTwice()
  const inDashboard = { refund_id: 'refund_of_asha-1', refund_type: 'MERCHANT_INITIATED', refund_note: 'paid twice' }
  expect(await bank.sendEvent(ownRefund(orderId, second.id, inDashboard))).toBe(200)
  expect(await refundsOf(orderId)).toEqual([{ utr: second.rrn, status: 'SUCCESS', amount_paise: 20_000 }])
  expect(await openExceptionsOf(orderId)).toEqual([])
})

it('the service stores a Cashfree refund with an unknown status as PENDING and logs an error for the operator', async () => {
  const { orderId, second } = await paidTwice()
  expect(await bank.sendEvent(ownRefund(orderId, second.id, { refund_status: 'PARKED' }))).toBe(200)
  expect(await refundsOf(orderId)).toMatchObject([{ utr: second.rrn, status: 'PENDING' }])
  const errors = service.log.map((line) => JSON.parse(line)).filter(({ level }) => level === 50)
  const msg = expect.stringContaining('Unknown refund state')
  expect(errors).toEqual([expect.objectContaining({ acquirer: 'cashfree', orderId, status: 'PARKED', msg })])
})

it.each([
  ['text instead of an object', 'refunded'],
  ['a number instead of an object', 7],
  ['for zero rupees', { refund_amount: 0 }],
  ['for more than the maximum amount of an order', { refund_amount: 500_000.01 }],
])(
  'the service returns 400 for a Cashfree notification and stores the notification if the notification’s refund is %s',
  async (_what, changes) => {
    const { orderId, second } = await paidTwice()
    const own = ownRefund(orderId, second.id, typeof changes === 'object' ? changes : {})
    const refund = typeof changes === 'object' ? own.data.refund : changes
    const saved = async () => Number((await service.db.query(UNREADABLE)).rows[0].count)
    const before = await saved()
    expect(await bank.sendEvent({ ...own, data: { refund } })).toBe(400)
    expect(await saved()).toBe(before + 1)
    expect(await refundsOf(orderId)).toEqual([])
  },
)

const UNREADABLE = `select count(*) from payment_exceptions where kind = 'unreadable'`

it('the service does not send a refund of a duplicate payment to Cashfree, because Cashfree would refund the first payment', async () => {
  const { orderId, second } = await paidTwice()
  const [{ exception_id: exceptionId }] = await openExceptionsOf(orderId)
  const requested = { mid: merchant.mid, orderId, amount: undefined, note: 'paid twice', createdBy: 'asha' }
  const created = await createRefund(service.db, { ...requested, utr: second.rrn, exceptionId }, service.clock.now())
  const { ourRefundId } = 'refund' in created ? created.refund : { ourRefundId: '' }
  const stored = () => findRefund(service.db, merchant.mid, { ourRefundId })
  await expect
    .poll(stored)
    .toMatchObject({ status: 'FAIL', reason: expect.stringContaining('in the Cashfree dashboard') })
  expect(bank.refunds.all.filter((one) => one.orderId === orderId)).toEqual([])
})
