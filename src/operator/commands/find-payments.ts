import * as z from 'zod'
import { LANGUAGES } from '../../gateway/checkout/texts.ts'
import type { Dispute } from '../../gateway/disputes/dispute.ts'
import { ORDERS, ordersOf, STATUS_RULE, TXN_STATUSES } from '../../gateway/payments/order-list.ts'
import { createExceptions } from '../../gateway/payments/read-exceptions.ts'
import { type Refund, type RefundStatus, toRefundData } from '../../gateway/refunds/refund.ts'
import { listRefunds } from '../../gateway/refunds/store.ts'
import type { Database } from '../../platform/db/pool.ts'
import { errorText, pastedUtr, text } from '../../platform/fields.ts'
import { jsonForm, type ListValues, secondsOf } from '../../platform/lists/list.ts'
import { createLists } from '../../platform/lists/lists.ts'
import { lenientAmountText, type Paise, toPaise } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { customerTexts, orderState, orderStatus } from '../support/order-state.ts'
import {
  type Criteria,
  createPaymentHistory,
  type FoundOrder,
  type PaymentHistory,
  type SettledPayment,
} from '../support/payment-history.ts'
import { stepsOf } from '../support/payment-steps.ts'
import { discrepancyText, type PayoutOfOrder, payoutOfOrder, payoutText } from '../support/payout-of-order.ts'
import { read } from './command.ts'
import { CommandError } from './errors.ts'
import { exceptionTable } from './exceptions.ts'
import { flag, type InputOf, oneOf, optional } from './field.ts'
import { DAY, daysOf, EXCEPTION, FROM, inOrder, MID, MONTH, ORDER_ID, REFUND, TO } from './fields.ts'
import { requireMerchant } from './merchants.ts'
import { type Data, document, Money, type RecordData, record, rupees, type TableData, table } from './result.ts'

const SEARCH = oneOf([
  {},
  { utr: flag(pastedUtr, 'UTR', 'UTR', 'pasted text around it is ignored') },
  { orderId: ORDER_ID },
  { merchantOrderId: flag(text(64), 'ID', 'order_id of the merchant') },
  { paymentId: flag(text(64), 'ID', 'Payment id of the acquirer') },
  { refund: REFUND },
  { exception: EXCEPTION },
  {
    amount: optional(flag(lenientAmountText, 'RUPEES', 'Amount', 'in rupees')),
    on: optional({ ...DAY, label: 'Day of the order or payment', hint: 'IST; default: today' }),
  },
])

/** The flags with which the search of every page finds a payment by one text. */
export const IDENTIFIERS = ['utr', 'order-id', 'merchant-order-id', 'payment-id', 'refund', 'exception']

export const findPayments = read('payments find', 'Find payments, by default those of today', {
  title: 'Payments',
  fields: { by: SEARCH, mid: optional(MID) },
  async run({ by, mid }, { db, now }) {
    const histories = createPaymentHistory(db, now)
    const ofException = by.exception === undefined ? undefined : await createExceptions(db).find(by.exception)
    const [ofRefund] = by.refund === undefined ? [] : await listRefunds(db, { ourRefundId: by.refund })
    const criteria = toCriteria(by, (ofRefund ?? ofException)?.orderId, now)
    const isDay = 'from' in criteria
    const { orders, more } = await histories.search(criteria, mid)
    const [first, second] = orders
    const only = first && !second && !isDay ? { ...first, ...(await findOrder(db, first.orderId, now)) } : undefined
    const ofNoOrder = 'utr' in criteria || isDay ? await createExceptions(db).ofNoOrder(criteria) : []
    const exceptions = ofException && orders.length === 0 ? [ofException] : ofNoOrder
    // Finds settlements of all merchants, even with --mid, because the bank may have settled the payment to another
    // merchant.
    const settlements = 'utr' in criteria ? await histories.settlementsOf([criteria.utr]) : []
    const lists = {
      payments: paymentTable(only ? [only] : orders, now),
      exceptions: exceptionTable(exceptions, { title: 'Exceptions without a known order:' }),
      settlements: settlementTable(settlements),
    }
    const shown = only ? describeLater(db, only, now) : lists.payments
    const data = document({ ...lists, more }, shown, lists.exceptions, ...settlementParts(orders, only, settlements))
    return {
      data,
      warnings: more ? [`only the newest ${orders.length} are shown: add --mid, or narrow the search`] : [],
    }
  },
})

export const showPayment = read('payments show', 'Show an order and its history', {
  title: 'Order',
  fields: { orderId: ORDER_ID },
  async run({ orderId }, { db, now }) {
    const found = await findOrder(db, orderId, now)
    return describe(found, now, await payoutOfOrder(db, found, now))
  },
})

export async function findOrder(db: Database, orderId: string, now: Date): Promise<PaymentHistory> {
  const found = await createPaymentHistory(db, now).find(orderId)
  if (!found) throw new CommandError('the order does not exist: search with ops payments find')
  return found
}

/** Without an identifier, the criteria are a day, by default today. `named` is the order of the refund or exception. */
function toCriteria(input: InputOf<{ by: typeof SEARCH }>['by'], named: string | undefined, now: Date): Criteria {
  const { utr, merchantOrderId, paymentId, refund, exception, amount, on = toIstDay(now) } = input
  if (utr !== undefined) return { utr }
  if (merchantOrderId !== undefined) return { merchantOrderId }
  if (paymentId !== undefined) return { paymentId }
  const orderId = input.orderId ?? named ?? (refund || exception ? '' : undefined)
  if (orderId !== undefined) return { orderId }
  const from = startOfDay(on)
  return { amount, from, until: nextDay(from) }
}

export const paymentTable = (found: FoundOrder[], now: Date, title?: string) =>
  table('paidAt, amount, status, mid, merchantOrderId, utr, foundBy, orderId, createdAt, acquirer', found, {
    ...{ title, empty: 'No payments found.' },
    cells: (order) => toListed(order, now),
    json: (order) => (isHistory(order) ? toJson(order, now) : toListed(order, now)),
  })

const isHistory = (order: FoundOrder): order is FoundOrder & PaymentHistory => 'changes' in order

const toListed = (order: FoundOrder, now: Date) => {
  return { ...order, status: orderStatus(order, now), amount: new Money(order.amount, true) }
}

const settlementTable = (settlements: SettledPayment[], title?: string) =>
  table('initiatedAt, mid, utr, paymentUtr, ₹amount, ₹fee, ₹tax, status', settlements, { title })

export function refundTable(refunds: Refund[], views: { title?: string; empty?: string } = {}): TableData {
  const columns = 'refundId, madeAt, mid, orderId, acquirer, amount, status, reference, endedAt, reason'
  const cells = ({ ourRefundId: refundId, createdAt: madeAt, amount, ...refund }: Refund) => {
    return { ...refund, refundId, madeAt, amount: new Money(amount, true) }
  }
  return table(columns, refunds, {
    ...{ ...views, cells, json: toRefundData },
    changes: ({ ourRefundId }) => [{ refund: ourRefundId }],
  })
}

export function disputeTable(disputes: Dispute[], views: { title?: string; empty?: string } = {}): TableData {
  const columns =
    'respondBy, disputeId, status, ₹amount, kind, reasonText, mid, orderId, utr, acquirer, openedAt, updatedAt'
  const flagsOf = ({ mid, disputeId: dispute, acquirer }: Dispute) => ({ dispute, mid, acquirer })
  return table(columns, disputes, {
    ...views,
    links: (dispute) => ({ disputeId: { name: 'disputes show', flags: flagsOf(dispute) } }),
    changes: (dispute) => [flagsOf(dispute)],
  })
}

/** Returns those settlements with the UTR that are missing from the history of the found payment. */
function settlementParts(found: FoundOrder[], only: PaymentHistory | undefined, settlements: SettledPayment[]): Data[] {
  const steps = only?.settlements ?? []
  const others = settlements.filter(({ mid, utr }) => !steps.some((step) => step.mid === mid && step.utr === utr))
  const isOfFound = ({ mid }: SettledPayment) => found.length === 0 || found.some((order) => order.mid === mid)
  const foreign = others.filter((one) => !isOfFound(one))
  return [
    settlementTable(others.filter(isOfFound), 'Settlements:'),
    settlementTable(foreign, 'Settlements to other merchants:'),
  ]
}

/** The fields of an order and its history. */
export type ShownPayment = ReturnType<typeof toJson> & { payout: PayoutOfOrder | null }

const toJson = (history: PaymentHistory, now: Date) => ({
  ...history,
  ...orderState(history, now),
  customer: customerTexts(history, now),
  ...moneyOf(history),
  exceptions: exceptionTable(history.exceptions),
  settlements: settlementTable(history.settlements, 'Settlements'),
  refunds: refundTable(history.refunds, { title: 'Refunds' }),
  disputes: disputeTable(history.disputes, { title: 'Disputes' }),
  webhooks: deliveryTable(history.webhooks),
  steps: table('at, by, what', stepsOf(history, now)),
})

const deliveryTable = (deliveries: PaymentHistory['webhooks']) =>
  table('id, type, outcome, attempts, deliveredAt, dueAt, url', deliveries, {
    title: 'Webhook deliveries',
    changes: ({ id }) => [{ delivery: id }],
  })

/** The amounts of an order. Refunds of a duplicate payment are not included. */
function moneyOf({ amount, utr, refunds, refundable }: PaymentHistory) {
  const inRupees = (paise: Paise) => new Money(paise, true)
  const sumOf = (status: RefundStatus) =>
    refunds.reduce((sum, one) => (one.utr === utr && one.status === status ? sum + one.amount : sum), 0)
  const [refunded, refundsOpen] = [inRupees(sumOf('SUCCESS')), inRupees(sumOf('PENDING'))]
  return { amount: inRupees(amount), refunded, refundsOpen, refundable: inRupees(refundable) }
}

const REFERENCE_UNKNOWN = 'not known yet: utr is the acquirer’s payment id'

/** Formats a payment once the text output reaches it, because the search of its payout reads a ledger. */
async function* describeLater(db: Database, history: PaymentHistory, now: Date): AsyncGenerator<Data> {
  yield describe(history, now, await payoutOfOrder(db, history, now))
}

/** Formats a payment and its history. */
function describe(history: PaymentHistory, now: Date, payout: PayoutOfOrder | null): RecordData {
  const json = { ...toJson(history, now), payout }
  const {
    changes,
    exceptions,
    webhooks,
    settlements,
    refunds,
    disputes,
    secondPayments,
    lastAttempt,
    customer,
    steps,
    payout: _,
    ...fields
  } = json
  const isOnlyId = history.utr !== null && history.bankReference === null
  const bankReference = isOnlyId ? REFERENCE_UNKNOWN : history.bankReference
  const payoutFields = {
    payout: payoutText(payout, history.settlementDueOn),
    discrepancy: payout?.discrepancy ? `${payout.discrepancy.id}, ${discrepancyText(payout.discrepancy)}` : null,
  }
  const toCustomer = LANGUAGES.map((language) => `for the customer (${language}): ${customer[language]}`).join('\n')
  return document(json, record({ ...fields, bankReference, ...payoutFields }), toCustomer, steps, disputes)
}

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
