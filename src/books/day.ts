import type { Queryable } from '../db/pool.ts'
import { orderIdsBegin } from '../payments/intent.ts'
import { givenUpUntil, OPEN_STATUSES } from '../payments/outcome.ts'

/** What became of orders: numbers of them, and sums in paise. */
export type OrderCounts = {
  orders: number
  paid: number
  /** The last attempt failed, and the time to pay is over. */
  failed: number
  /** Nobody tried, and the time to pay is over. */
  expired: number
  /** Closed by the merchant. */
  cancelled: number
  /** May still be paid. */
  waiting: number
  paise: number
  paidPaise: number
}

export const NO_ORDERS: OrderCounts = {
  orders: 0,
  paid: 0,
  failed: 0,
  expired: 0,
  cancelled: 0,
  waiting: 0,
  paise: 0,
  paidPaise: 0,
}

export type OfHour = OrderCounts & { hour: number }
export type OfMerchant = OrderCounts & { mid: string }

/** Orders made from `since` until before `until`. */
type Period = { since: Date; until: Date }

/**
 * Counts orders by when they were made, and tells what has become of them at `now`. OrderIds begin with their time, so each is
 * one pass over a part of their index, and creating an intent needs no index for it.
 */
export function createOrderCounts(db: Queryable) {
  return {
    /** By hours after `since`, without those that have none. */
    async countByHour({ since, until }: Period, now: Date): Promise<OfHour[]> {
      const { rows } = await db.query<CountRow & { hour: number }>(
        `select ${hourSince('$4')} as hour, ${COUNTS} from payment_intents where ${IN_PERIOD} group by 1`,
        [orderIdsBegin(since), orderIdsBegin(until), givenUpUntil(now), since],
      )
      return rows.map(({ hour, ...row }) => ({ hour, ...toCounts(row) }))
    },

    /** The same by hours after `since`, and by merchants: those with the most orders first. Both without zeros. */
    async countByHourAndMerchant(
      { since, until }: Period,
      now: Date,
    ): Promise<{ hours: OfHour[]; merchants: OfMerchant[] }> {
      const { rows } = await db.query<CountRow & { hour: number | null; mid: string | null }>(
        // One pass gathers both.
        `select mid, hour, ${COUNTS}
           from (select mid, status, expires_at, amount, paise,
                        ${hourSince('$4')} as hour
                   from payment_intents
                  where ${IN_PERIOD}) i
          group by grouping sets ((mid), (hour))
          order by orders desc, mid`,
        [orderIdsBegin(since), orderIdsBegin(until), givenUpUntil(now), since],
      )
      return {
        hours: rows.flatMap(({ hour, mid, ...row }) => (hour === null ? [] : [{ hour, ...toCounts(row) }])),
        merchants: rows.flatMap(({ hour, mid, ...row }) => (mid === null ? [] : [{ mid, ...toCounts(row) }])),
      }
    },
  }
}

export function add(one: OrderCounts, other: OrderCounts): OrderCounts {
  return {
    orders: one.orders + other.orders,
    paid: one.paid + other.paid,
    failed: one.failed + other.failed,
    expired: one.expired + other.expired,
    cancelled: one.cancelled + other.cancelled,
    waiting: one.waiting + other.waiting,
    paise: one.paise + other.paise,
    paidPaise: one.paidPaise + other.paidPaise,
  }
}

/** The share of orders that were paid, of those whose end is known; undefined while there is none. */
export function conversionOf({ orders, paid, waiting }: OrderCounts): number | undefined {
  return orders > waiting ? paid / (orders - waiting) : undefined
}

const hourSince = (moment: string) => `floor(extract(epoch from created_at - ${moment}::timestamptz) / 3600)::integer`

const IN_PERIOD = 'order_id >= $1 and order_id < $2'

/** Intents that expired until $3 are given up. */
const COUNTS = `
  count(*)::integer as orders,
  count(*) filter (where status = 'SUCCESS')::integer as paid,
  count(*) filter (where status in ('FAIL', 'REJECT') and expires_at <= $3)::integer as failed,
  count(*) filter (where status = 'PENDING' and expires_at <= $3)::integer as expired,
  count(*) filter (where status = 'CANCELLED')::integer as cancelled,
  count(*) filter (where status in ${OPEN_STATUSES} and expires_at > $3)::integer as waiting,
  coalesce(sum(amount * 100 + paise), 0)::text as paise,
  coalesce(sum(amount * 100 + paise) filter (where status = 'SUCCESS'), 0)::text as "paidPaise"`

/** PostgreSQL's sums are wider than a number, which holds 15 digits: 90,000 crore rupees. */
type CountRow = Omit<OrderCounts, 'paise' | 'paidPaise'> & { paise: string; paidPaise: string }

const toCounts = ({ paise, paidPaise, ...counts }: CountRow): OrderCounts => ({
  ...counts,
  paise: Number(paise),
  paidPaise: Number(paidPaise),
})
