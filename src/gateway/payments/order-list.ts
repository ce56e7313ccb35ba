import { defineList, isInDays, type List, type ListValues } from '../../platform/lists/list.ts'
import { INSTRUMENT_FIELD, REFUNDED } from './fetch-transaction-list.ts'
import { orderIdsBeginSql } from './intent.ts'
import { IS_LONG, LONGEST_EXPIRY_MINUTES } from './order-lifetime.ts'
import { EXPIRY_GRACE_MINUTES, FINAL_STATUSES } from './outcome.ts'
import { hasTxnStatusSql, outcomeSql } from './payment-status.ts'
import { failureReason } from './reported-status.ts'

export const TXN_STATUSES = ['PENDING', ...FINAL_STATUSES] as const
type TxnStatus = (typeof TXN_STATUSES)[number]
export const STATUS_RULE = `must be ${TXN_STATUSES.join(', ').replace(/, (?=\w+$)/, ' or ')}`

const FROM = 'to_timestamp({from})'
const UNTIL = 'to_timestamp({until})'
const NOW = 'to_timestamp({now})'

/** The last field is for operators only. */
const FIELDS = [
  ['orderId', 'i.order_id'],
  ['order_id', 'i.merchant_order_id', 'free text'],
  ['merchant_id', 'i.mid'],
  ['amount', 'i.amount_paise', 'paise'],
  ['status', outcomeSql('txnStatus', NOW)],
  ['msg', outcomeSql('msg', NOW)],
  ['reason', `coalesce(${failureReason('{mid}')}, '')`],
  ['UTR', `coalesce(i.utr, '')`],
  ['refunded', `case when i.utr is null then 0 else ${REFUNDED} end`, 'paise'],
  ['created_at', 'i.created_at', 'moment'],
  ['expires_at', 'i.expires_at', 'moment'],
  ['paid_at', 'coalesce(p.paid_at, p.received_at)', 'moment or null'],
  INSTRUMENT_FIELD,
] as const

const WITH_PAYMENT = 'left join payments p on p.mid = {mid} and p.utr = i.utr'

const ALL = {
  fields: FIELDS,
  from: `payment_intents i ${WITH_PAYMENT}`,
  where: `i.mid = {mid} and ${isInDays('i.created_at')}`,
  order: 'i.created_at, i.order_id',
}

/** The orders of a merchant that were created in a period, by the time of creation. */
export const ORDERS = defineList(ALL)

/** Describes a list of the orders with a status, which begins before all orders of the period were read. */
const amongAll = (txnStatus: TxnStatus) => ({ ...ALL, filter: hasTxnStatusSql(txnStatus, NOW), beginsEmpty: true })

/** SQL condition: the merchant's order with this order_id was created from `from` until before `until`. */
const isCreated = (from: string, until: string) =>
  `mid = {mid} and order_id >= ${orderIdsBeginSql(from)} and order_id < ${orderIdsBeginSql(until)}`

const COLUMNS = 'mid, merchant_order_id, amount_paise, status, utr, created_at, expires_at, unreadable_at'

/** SQL for the orders of these rows. `offset 0` makes PostgreSQL look up one order after the other. */
const ordersOfRows = (rows: string) => `
  select order_id, ${COLUMNS}
    from (select distinct order_id from ${rows}) r
   cross join lateral (select ${COLUMNS} from payment_intents where mid = {mid} and order_id = r.order_id offset 0) o`

/**
 * Describes a list of the orders with a status, which reads only orders that may have it. The orders are sorted by
 * orderId, which begins with the time of creation. Each part is sorted too, so that PostgreSQL merges the parts without a
 * sort.
 */
const among = (txnStatus: TxnStatus, parts: string[]) => ({
  fields: FIELDS,
  from: `(${parts.map((sql) => `(${sql} order by order_id)`).join(' union all ')}) i ${WITH_PAYMENT}`,
  where: 'true',
  filter: hasTxnStatusSql(txnStatus, NOW),
  order: 'i.order_id',
})

/** SQL for the time after which every open order was created, except long and unreadable orders. */
const RECENT = `${NOW} - interval '${LONGEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES} minutes'`
const EARLIER = isCreated(FROM, `least(${UNTIL}, ${RECENT})`)
const IS_ABANDONED = `expires_at <= ${NOW} - interval '${EXPIRY_GRACE_MINUTES} minutes'`

const PENDING_ORDERS = defineList(
  among('PENDING', [
    `select order_id, ${COLUMNS} from payment_intents where ${isCreated(`greatest(${FROM}, ${RECENT})`, UNTIL)}`,
    `select order_id, ${COLUMNS} from payment_intents where ${EARLIER} and ${IS_LONG} and not ${IS_ABANDONED}`,
    `${ordersOfRows(`payment_exceptions where kind = 'unreadable' and ${EARLIER}`)} where ${IS_ABANDONED}`,
  ]),
)
const PAID_ORDERS = defineList(amongAll('SUCCESS'))
const FAILED_ORDERS = defineList(amongAll('FAIL'))
// Only an order with a rejected attempt can be rejected.
const REJECTED_ORDERS = defineList(
  among('REJECT', [ordersOfRows(`payment_attempts where status = 'REJECT' and ${isCreated(FROM, UNTIL)}`)]),
)

const OF_STATUS: Record<string, List> = {
  PENDING: PENDING_ORDERS,
  SUCCESS: PAID_ORDERS,
  FAIL: FAILED_ORDERS,
  REJECT: REJECTED_ORDERS,
} satisfies Record<TxnStatus, List>

/** Returns the list of the orders with the `status` of `values`, or of all orders if `values` has no status. */
export const ordersOf = ({ status = '' }: ListValues): List => OF_STATUS[status] ?? ORDERS
