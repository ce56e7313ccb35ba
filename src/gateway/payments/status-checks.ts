import type { Database } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import type { Intent, PaymentLink } from './intent.ts'
import { OPEN_STATUSES } from './outcome.ts'
import { findPendingChecks, type PendingMerchant } from './pending-merchants.ts'
import { findMerchant } from './reports.ts'
import { mayCheckStatus, type StatusCheckRules, type StatusCheckState } from './status-check-times.ts'

/**
 * Seconds from an intent's expiry to the status checks that are always scheduled, unless a final status is reported
 * earlier: 90 s, 8 minutes and 2 hours. NPCI allows the first check after 90 s at the earliest. The last check of an
 * order is reserved for 8 minutes after the expiry, shortly before the final status is reported to the merchant.
 */
const AFTER_EXPIRY_SECONDS = [90, 8 * 60, 2 * 60 * 60] as const

/** Shortest pause before the next status check of an intent, if no caller waits for its outcome. */
const PAUSE_SECONDS = 60

/**
 * Largest number of a merchant's pending status checks that one statement reads, in order to claim some of these
 * checks.
 */
const CONSIDERED = 250

/**
 * While the last response was unreadable, the status is checked once an hour, for a day from the expiry or the first
 * unreadable response, whichever is later.
 */
const UNREADABLE = { pauseSeconds: 60 * 60, daySeconds: 24 * 60 * 60 }

/**
 * A status check of an order's payment at its acquirer. `statusChecks` is the check's number within the order, starting
 * from 1.
 */
export type StatusCheck = {
  mid: string
  orderId: string
  paymentLink: PaymentLink
  statusChecks: number
  /** Whether the order has not expired. */
  isOpen: boolean
}

export function firstStatusCheck({ expiresAt }: Pick<Intent, 'expiresAt'>): Date {
  return new Date(expiresAt.getTime() + AFTER_EXPIRY_SECONDS[0] * 1000)
}

/**
 * The queue of status checks. Each check is counted before it is sent, so that neither a crash nor another
 * instance can exceed the limit.
 */
export function createStatusChecks(db: Database) {
  return {
    findPending: (now: Date) => findPendingChecks(db, { now }),

    /**
     * Returns the number of status checks that all instances sent to each acquirer account in the last minute. The
     * result omits an account without status checks.
     */
    async countOfLastMinute(acquirers: readonly string[], now: Date): Promise<Map<string, number>> {
      const rows = await COUNT_SINCE(db, { acquirers, since: new Date(now.getTime() - 60_000) })
      return new Map(rows.map(({ acquirer, count }) => [acquirer, count]))
    },

    /**
     * Claims up to `limit` pending status checks of a merchant at an acquirer account: first the checks of expired
     * intents, then the oldest checks. An intent has at most `most` checks. Checks of paid intents are removed and do
     * not count toward the limit, because most intents are paid.
     */
    async claimPending(
      { acquirer, mid }: PendingMerchant,
      limit: number,
      now: Date,
      most: number,
    ): Promise<StatusCheck[]> {
      const rows = await CLAIM_PENDING(db, { acquirer, mid, limit, now, most, pauses: AFTER_EXPIRY_SECONDS })
      return rows.flatMap(({ paid, ...row }) => (paid ? [] : [toStatusCheck(row)]))
    },

    /**
     * Schedules the status check of an order after an unauthenticated notification: at least 3 s after the last check,
     * or at least 60 s if the order has had 20 checks. Returns false for an order that the acquirer does not have.
     */
    async scheduleSoon(acquirer: string, orderId: string, now: Date): Promise<boolean> {
      const mid = await findMerchant(db, orderId)
      return (await SCHEDULE_SOON(db, { mid, orderId, acquirer, now })).length === 1
    },

    /**
     * Claims a status check of one order, even before its scheduled time. Returns undefined if the order has no checks
     * left, or has had another number of checks than `made`.
     */
    async claim(orderId: string, most: number, now: Date, made?: number): Promise<StatusCheck | undefined> {
      const [row] = await CLAIM(db, { orderId, most, now, made })
      return row && toStatusCheck(row)
    },

    /**
     * Schedules a failed status check again. A check that the acquirer did not process is not counted. Any other check
     * is scheduled again only if the order has no further scheduled check and has had fewer than `most` checks. The
     * pauses grow with the time since the expiry.
     */
    repeat: (
      { mid, orderId, statusChecks }: StatusCheck,
      { isChecked, isUnreadable, most }: { isChecked: boolean; isUnreadable: boolean; most: number },
      now: Date,
    ) => REPEAT(db, { mid, orderId, statusChecks, now, uncounted: isChecked ? 0 : 1, most, isUnreadable }),
  }
}

export type StatusChecks = ReturnType<typeof createStatusChecks>

/**
 * An order for whose outcome a caller waits. `statusCheck` is null if the order is not open, or if the service itself
 * has built the order's link.
 */
export type WaitedFor = { mid: string; orderId: string; expiresAt: Date; statusCheck: StatusCheckState | null }

/** SQL for the `statusCheck` of the order `i`. The look-up is skipped for orders that are not open. */
export const statusCheckState = (mid = 'i.mid') => `
  case when i.status in ${OPEN_STATUSES} then (
    select json_build_object(
             'acquirer', a.acquirer, 'statusChecks', a.status_checks,
             'createdAt', extract(epoch from i.created_at) * 1000,
             'statusCheckedAt', extract(epoch from a.status_checked_at) * 1000, 'dueAt', extract(epoch from a.status_check_at) * 1000)
      from acquirer_intents a
     where a.mid = ${mid} and a.order_id = i.order_id) end`

const FIND_WAITED_FOR = query<WaitedFor, { orderIds: string[] }>(`
  select i.mid, i.order_id, i.expires_at, ${statusCheckState()} as status_check
    from payment_intents i
   where i.order_id = any (:orderIds)`)

/** Schedules the status check of an order now, unless another call has scheduled or sent it. */
const SCHEDULE = query<object, { mid: string; orderId: string; statusChecks: number; now: Date }>(`
  update acquirer_intents
     set status_check_at = :now
   where mid = :mid and order_id = :orderId and status_checks = :statusChecks and status_check_at > :now`)

/** Schedules status checks while a caller waits. `rulesOf` returns the rules of an account's acquirer. */
export function createWaiting(db: Database, rulesOf: (account: string) => StatusCheckRules | undefined) {
  /**
   * Returns a function that schedules a status check of the order; undefined if the acquirer allows no check now, so
   * that most calls write nothing. mayCheckStatus explains `cameBackAt`.
   */
  function statusCheckFor({ mid, orderId, expiresAt, statusCheck }: WaitedFor, now: Date, cameBackAt?: Date) {
    const rules = statusCheck && rulesOf(statusCheck.acquirer)
    if (!rules || !mayCheckStatus({ ...statusCheck, expiresAt }, rules, now, cameBackAt)) return undefined
    return async () => void (await SCHEDULE(db, { mid, orderId, statusChecks: statusCheck.statusChecks, now }))
  }

  return {
    statusCheckFor,

    /**
     * Schedules the status checks that the acquirers allow for orders with open pay pages. `orders` maps each orderId
     * to its `cameBackAt`.
     */
    async schedule(orders: ReadonlyMap<string, Date | undefined>, now: Date): Promise<void> {
      if (orders.size === 0) return
      const waiting = await FIND_WAITED_FOR(db, { orderIds: [...orders.keys()] })
      for (const order of waiting) await statusCheckFor(order, now, orders.get(order.orderId))?.()
    },
  }
}

export type Waiting = ReturnType<typeof createWaiting>

type StatusCheckRow = PaymentLink & Omit<StatusCheck, 'paymentLink'>

function toStatusCheck({ mid, orderId, statusChecks, isOpen, ...paymentLink }: StatusCheckRow): StatusCheck {
  return { mid, orderId, statusChecks, isOpen, paymentLink }
}

const COUNT_SINCE = plannedQuery<{ acquirer: string; count: number }, { acquirers: readonly string[]; since: Date }>(`
  select acquirer, count(*)
    from acquirer_intents
   where acquirer = any (:acquirers) and status_checked_at > :since
   group by acquirer`)

const STATUS_CHECK = `
  a.mid, a.order_id, a.acquirer, a.acquirer_merchant_id as merchant_id, a.acquirer_order_id as id, a.reference, a.link,
  a.status_checks`

type Claimed = PendingMerchant & { limit: number; now: Date; most: number; pauses: readonly number[] }

const CLAIM_PENDING = plannedQuery<StatusCheckRow & { paid: boolean }, Claimed>(`
  with oldest as materialized (
    select order_id, status_checks, status_check_at
      from acquirer_intents
     where mid = :mid and acquirer = :acquirer and status_check_at <= :now
     order by status_check_at
     limit ${CONSIDERED}
       for update skip locked
  ), due as materialized (
    select a.order_id, i.status = 'SUCCESS' as paid, i.expires_at > :now as is_open,
           row_number() over (partition by i.status = 'SUCCESS' order by i.expires_at > :now, a.status_check_at) as place,
           case when i.status <> 'SUCCESS' and a.status_checks + 1 < :most then (
             select greatest(min(i.expires_at + s * interval '1 second'),
                             :now::timestamptz + interval '${PAUSE_SECONDS} seconds')
               from unnest(:pauses::integer[]) s
              where i.expires_at + s * interval '1 second' > :now
                and (a.status_checks + 2 < :most or s > ${AFTER_EXPIRY_SECONDS[0]})
             having count(*) > 0) end as next
      from oldest a
      join payment_intents i on i.mid = :mid and i.order_id = a.order_id
  )
  update acquirer_intents a
     set status_checks = least(a.status_checks + case when due.paid then 0 else 1 end, 32767),
         status_check_at = due.next,
         status_checked_at = case when due.paid then a.status_checked_at else :now end
    from due
   where a.mid = :mid and a.order_id = due.order_id and (due.paid or due.place <= :limit)
  returning ${STATUS_CHECK}, due.is_open, due.paid`)

type Reported = { mid: string | undefined; orderId: string; acquirer: string; now: Date }

const SCHEDULE_SOON = query<object, Reported>(`
  with due as materialized (
    select order_id, status_checked_at + make_interval(secs => case when status_checks < 20 then 3 else 60 end) as at
      from acquirer_intents
     where mid = :mid and order_id = :orderId and acquirer = :acquirer
       for update
  )
  update acquirer_intents a
     set status_check_at = least(a.status_check_at, greatest(due.at, :now))
    from due
   where a.mid = :mid and a.order_id = due.order_id
  returning 1`)

const CLAIM = query<StatusCheckRow, { orderId: string; most: number; now: Date; made: number | undefined }>(`
  update acquirer_intents a
     set status_checks = a.status_checks + 1, status_checked_at = :now,
         status_check_at = case when a.status_checks + 1 < :most then a.status_check_at end
   where a.order_id = :orderId and a.status_checks < :most and a.status_checks = coalesce(:made, a.status_checks)
  returning ${STATUS_CHECK}, false as is_open`)

type Repeated = Pick<StatusCheck, 'mid' | 'orderId' | 'statusChecks'> & {
  now: Date
  uncounted: number
  most: number
  isUnreadable: boolean
}

const REPEAT = query<object, Repeated>(`
  with again as materialized (
    select a.order_id,
           :now::timestamptz + case when :isUnreadable::boolean then interval '${UNREADABLE.pauseSeconds} seconds'
             else greatest(interval '${PAUSE_SECONDS} seconds', (:now - i.expires_at) / 2) end as at
      from acquirer_intents a
      join payment_intents i on i.mid = :mid and i.order_id = a.order_id
     where a.mid = :mid and a.order_id = :orderId and a.status_checks = :statusChecks
       and (:uncounted = 1 or (a.status_check_at is null and a.status_checks < :most))
       and not (:isUnreadable::boolean
                and greatest(i.unreadable_at, i.expires_at) <= :now - interval '${UNREADABLE.daySeconds} seconds')
       for update of a
  )
  update acquirer_intents a
     set status_checks = a.status_checks - :uncounted, status_check_at = again.at
    from again
   where a.mid = :mid and a.order_id = again.order_id`)
