import * as z from 'zod'
import { ORDERS, ordersOf, STATUS_RULE, TXN_STATUSES } from '../../gateway/payments/order-list.ts'
import type { Database } from '../../platform/db/pool.ts'
import { errorText } from '../../platform/fields.ts'
import { jsonForm, type ListValues, secondsOf } from '../../platform/lists/list.ts'
import { createLists } from '../../platform/lists/lists.ts'
import { toPaise } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { read } from './command.ts'
import { flag, oneOf, optional } from './field.ts'
import { daysOf, FROM, inOrder, MID, MONTH, TO } from './fields.ts'
import { requireMerchant } from './merchants.ts'
import { rupees, table } from './result.ts'

const STATUS = z.enum(TXN_STATUSES, errorText(STATUS_RULE))

export const listPayments = read('payments list', 'List orders of a merchant', {
  title: 'Orders',
  note: 'The list has orders that were not paid, too. Without days, it covers today.',
  fields: {
    mid: MID,
    period: oneOf([{ from: optional(FROM), to: optional(TO) }, { month: MONTH }], inOrder),
    status: optional(flag(STATUS, 'STATUS', 'Status', 'txnStatus, such as PENDING')),
  },
  csv: true,
  async run({ mid, status, period }, { db, now }) {
    await requireMerchant(db, mid)
    const { from = period.to ?? toIstDay(now), to = from } = daysOf(period)
    const days = { from: secondsOf(startOfDay(from)), until: secondsOf(nextDay(startOfDay(to))) }
    const orders = readOrders(db, { mid, status, ...days, now: secondsOf(now) })
    return table('createdAt, orderId, merchantOrderId, amount, status, reason, utr, refunded, instrument', orders, {
      empty: 'No orders.',
      first: ['createdAt', 'merchantOrderId', 'amount', 'status', 'reason', 'utr', 'refunded', 'instrument'],
    })
  },
})

/** Reads the orders of fetchOrderList, so that an operator sees what the merchant sees. */
async function* readOrders(db: Database, values: ListValues) {
  const { toRecord } = jsonForm(ORDERS, () => ['', ''])
  for await (const lines of createLists({ lists: db }).long(ordersOf(values), values, new AbortController().signal)) {
    for (const line of lines) {
      const { orderId, order_id, created_at, amount, refunded, ...order } = JSON.parse(toRecord(line))
      yield {
        ...{ createdAt: new Date(created_at), orderId, merchantOrderId: order_id, amount: rupees(toPaise(amount)) },
        ...{ status: order.status, reason: order.reason || null, utr: order.UTR || null },
        ...{ refunded: rupees(toPaise(refunded)), instrument: order.instrument || null },
      }
    }
  }
}
