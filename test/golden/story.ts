import { saveException } from '../../src/gateway/payments/exceptions.ts'
import { saveUnreadable } from '../../src/gateway/payments/unreadable.ts'
import { reconEvent, serveRecon } from '../support/cashfree-recon.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { CANCEL } from '../support/requests.ts'
import type { Stage } from './stage.ts'

/** Orders of October, which the settlements and the bank statement of that month are about. */
async function pastOrders({ order, report }: Stage) {
  const orders = { paid: 200, short: 300, missing: 400, fees: 1000, refunded: 600, twice: 500 }
  for (const [name, amount] of Object.entries(orders)) {
    await order('CHAI', name, amount)
    await report(name, amount, { UTR: `UTR${name.toUpperCase()}` })
  }
}

const UNPAID = 'open reported confirmed failed retried cancelled late differing unread'.split(' ')

/** Kinds of exceptions that take hours or an acquirer's error. */
const OTHER_KINDS = [
  'UTR of another merchant',
  'refund without an end',
  'refund failed after success',
  'refunded above what was paid',
  'refund differs',
] as const

/** Orders in every state, and an exception of each kind except `unreadable` and `refund unsure`, which follow later. */
async function presentOrders(stage: Stage) {
  const { db, order, report, send, value, others } = stage
  for (const name of UNPAID) {
    await order('CHAI', name, name === 'reported' ? 80 : 90)
  }
  for (const name of ['failed', 'retried']) {
    await report(name, 90, { status: 'FAIL', UTR: undefined, reason: 'wrong_pin' })
  }
  await report('retried', 90, { UTR: 'UTRRETRIED' })
  for (const order_id of ['cancelled', 'late']) await send('CHAI', CANCEL, { mid: 'CHAI', order_id })
  await report('late', 90, { UTR: 'UTRLATE' })
  await report('differing', 91, { UTR: 'UTRDIFFERING' })
  await report('open', 90, { UTR: 'UTRPAID' })
  await report('twice', 500, { UTR: 'UTRTWICE2' })
  await report('paid', 200, { status: 'FAIL', UTR: 'UTRPAID' })
  await report('missing', 400, { orderId: 'f'.repeat(32), UTR: 'UTRNOORDER' })
  await order('BOOKS', 'checked', 120)
  for (const { referenceId } of [...others.setu.qrs.values()])
    await others.setu.pay(referenceId, { rrn: '523504870001' })
  const paid = { mid: 'CHAI', orderId: value('paid') }
  for (const kind of OTHER_KINDS) {
    await saveException(db, kind, { ...paid, utr: 'UTRPAID', amount: 20_000, status: '' }, new Date())
  }
}

/** Names the stored exceptions by kind, such as `exception-double-payment`; of several the first. */
async function nameExceptions({ db }: Stage) {
  const { rows } = await db.query('select kind, exception_id from payment_exceptions order by received_at desc')
  return Object.fromEntries(rows.map(({ kind, exception_id: id }) => [`exception-${kind.replaceAll(' ', '-')}`, id]))
}

/** Marks an order as unreadable, and one delivery as delivered, one as abandoned. */
async function spoilSome({ db, value }: Stage) {
  await saveUnreadable(db, { mid: 'CHAI', orderId: value('unread'), isBesidePayment: false }, 'direct', new Date())
  const state = (name: string, change: string) =>
    db.query(`update webhook_deliveries set ${change}, attempted_at = $1, due_at = null where order_id = $2`, [
      new Date(),
      value(name),
    ])
  await state('retried', `delivered_at = occurred_at, attempts = 1, outcome = '200', response = 'thanks'`)
  await state('late', `attempts = 15, outcome = '503', response = 'later'`)
}

/** Moves a refund to Setu, which has an unknown outcome there. */
async function makeUnsure({ db, value }: Stage) {
  const ourRefundId = value('refund-unsure')
  await db.query(`update refunds set acquirer = 'setu' where our_refund_id = $1`, [ourRefundId])
  const subject = { mid: 'CHAI', orderId: value('paid'), amount: 1_000, status: '', ourRefundId } as const
  await saveException(db, 'refund unsure', subject, new Date())
}

/** Stores an order that Cashfree paid out, and the page of its reconciliation. */
async function serveCashfree({ db, others }: Stage) {
  const order = { mid: 'FLOWERS', utr: 'UTRCASHFREE', paidAt: new Date('2026-11-20T12:00:00+05:30') }
  const orderId = await storePaidOrder(db, { ...order, acquirer: 'cashfree' })
  await db.query(
    `insert into acquirer_intents
       (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
     values ('FLOWERS', $1, 'cashfree', 'cf', $1, 'tr', 'upi://pay', 0)`,
    [orderId],
  )
  const paid = reconEvent('PAYMENT', {
    order_details: { order_id: orderId },
    payment_details: { bank_reference: order.utr },
  })
  serveRecon(others.cashfree, { data: [paid, reconEvent('PAYMENT')] })
  return { cashfree: orderId }
}

/** The changes that the service makes between the commands, by the name in cases.txt. */
export const CHANGES: Record<string, (stage: Stage) => Promise<unknown>> = {
  pastOrders,
  presentOrders,
  spoilSome,
  nameExceptions,
  makeUnsure,
  serveCashfree,
}
