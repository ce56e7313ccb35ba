import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import { isOverSql, OPEN_STATUSES } from '../../gateway/payments/outcome.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import { HOUR_MS, istDayOf } from '../../platform/time.ts'

const IS_OVER = isOverSql(':now::timestamptz')

/** SQL expression for each count. */
const COUNTS = {
  orders: 'count(*)',
  paid: `count(*) filter (where status = 'SUCCESS')`,
  /** Expired orders whose last attempt failed. */
  failed: `count(*) filter (where status in ('FAIL', 'REJECT') and ${IS_OVER})`,
  /** Expired orders without an attempt. */
  expired: `count(*) filter (where status = 'PENDING' and ${IS_OVER})`,
  /** Orders that the merchant cancelled. */
  cancelled: `count(*) filter (where status = 'CANCELLED')`,
  /** Orders that are still payable. */
  waiting: `count(*) filter (where status in ${OPEN_STATUSES} and not ${IS_OVER})`,
  paise: 'coalesce(sum(amount_paise), 0)',
  paidPaise: `coalesce(sum(amount_paise) filter (where status = 'SUCCESS'), 0)`,
}

type CountName = keyof typeof COUNTS
const NAMES = Object.keys(COUNTS) as CountName[]

const countsOf = (count: (name: CountName) => number) =>
  Object.fromEntries(NAMES.map((name) => [name, count(name)])) as OrderCounts

/** Numbers of orders by state, and sums in paise. */
export type OrderCounts = Record<CountName, number>

export const NO_ORDERS = countsOf(() => 0)

export const add = (one: OrderCounts, other: OrderCounts): OrderCounts => countsOf((name) => one[name] + other[name])

export const HOURS = 24

/**
 * Counts the orders of the IST day of `now` by their state at `now`, for each hour and merchant with orders, in no
 * particular order. Order ids start with the time of creation, so each count reads one range of their index. Counting
 * 14,000 orders takes about 10 ms.
 */
export function countOrdersOfDay(db: Queryable, now: Date) {
  const begin = istDayOf(now).getTime()
  const bounds = Array.from({ length: HOURS + 1 }, (_, hour) => orderIdsBegin(new Date(begin + hour * HOUR_MS)))
  return BY_HOUR_AND_MERCHANT(db, { begins: bounds.slice(0, -1), ends: bounds.slice(1), now })
}

/**
 * `begins` and `ends` are the first order ids of each hour and of the next. There is one index range per hour, because grouping
 * by an hour computed from each row takes three times as long. Sums are JavaScript numbers, which are exact up to 2^53
 * paise (90 lakh crore rupees).
 */
const BY_HOUR_AND_MERCHANT = plannedQuery<
  OrderCounts & { mid: string; hour: number },
  { begins: string[]; ends: string[]; now: Date }
>(`
  select h.hour - 1 as hour, c.*
    from unnest(:begins::text[], :ends::text[]) with ordinality as h (first, next, hour)
   cross join lateral (
     select mid, ${NAMES.map((name) => `(${COUNTS[name]})::bigint as "${name}"`).join(', ')}
       from payment_intents i
      where order_id >= h.first and order_id < h.next
      group by mid) c`)
