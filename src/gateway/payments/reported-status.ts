import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { RETURN_URL_CALLBACK } from './outbox.ts'

/** SQL condition: a response has reported to the merchant that the order `i` has finally failed. */
export const FAILURE_REPORTED = `(i.status = 'CANCELLED' or i.failure_reported_at is not null)`

/**
 * SQL for the reason why the last attempt to pay the order `i` failed; null if the order has another status. `mid` is
 * SQL: a query about one merchant passes its parameter, and therefore reads only this merchant's shard. The last attempt
 * is found without a sort, because lists forbid sorts. Attempts of the same time have one reason in every query.
 */
export const failureReason = (mid = 'i.mid') => `
  case when i.status in ('FAIL', 'REJECT') then coalesce((
    select min(t.failure_reason)
      from payment_attempts t
     where t.mid = ${mid} and t.order_id = i.order_id
       and t.received_at = (select max(l.received_at) from payment_attempts l where l.mid = ${mid} and l.order_id = i.order_id)), 'other') end`

/**
 * SQL query for a stored webhook about an order's expiry, because such a webhook counts as a report to the merchant.
 * The arguments are SQL.
 */
export const writtenExpiries = (mid: string, orderId: string) => `
            select true
              from webhook_endpoints e
              join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id and d.order_id = ${orderId}
             where e.mid = ${mid} and d.type = 'payment.expired'`

export type ReportedStatus = { mid: string; orderId: string; isFailed: boolean }

/**
 * Stores that a response has reported an order's failure or payment to the merchant. A reported payment stops the
 * return-URL callback.
 */
export const saveReportedStatus = (db: Queryable, { isFailed, ...order }: ReportedStatus, now: Date) =>
  (isFailed ? SAVE_FAILURE : SAVE_PAYMENT)(db, { ...order, now })

type Reported = Omit<ReportedStatus, 'isFailed'> & { now: Date }

const SAVE_FAILURE = query<object, Reported>(`
  update payment_intents set failure_reported_at = :now
   where mid = :mid and order_id = :orderId and failure_reported_at is null`)

const SAVE_PAYMENT = query<object, Reported>(`
  update webhook_deliveries
     set due_at = null, delivered_at = :now, attempted_at = :now, outcome = 'reported', response = ''
   where mid = :mid and endpoint_id = '${RETURN_URL_CALLBACK}' and order_id = :orderId and delivered_at is null`)
