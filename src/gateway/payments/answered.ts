import type { Queryable } from '../../platform/db/pool.ts'
import { RETURN_CALL } from './outbox.ts'

/** SQL condition: the merchant has got an answer that the order `i` has failed for good. */
export const FAIL_TOLD = `(i.status = 'CANCELLED' or i.fail_told_at is not null)`

/**
 * SQL of why the last attempt to pay the order `i` failed; null if the order has another status. `mid` is SQL: the parameter in
 * a query of one merchant, which Citus then sends to one shard.
 */
export const failureReason = (mid = 'i.mid') => `
  case when i.status in ('FAIL', 'REJECT') then coalesce((
    select t.failure_reason
      from payment_attempts t
     where t.mid = ${mid} and t.order_id = i.order_id
     order by t.reported_at desc
     limit 1), 'other') end`

/** SQL query for a stored webhook about an order's expiry, by which the merchant counts as told. Arguments are SQL. */
export const writtenExpiries = (mid: string, orderId: string) => `
            select true
              from webhook_endpoints e
              join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id and d.order_id = ${orderId}
             where e.mid = ${mid} and d.type = 'payment.expired'`

export type Answered = { mid: string; orderId: string; isFailed: boolean }

/** Stores that an answer has told the merchant of an order's failure, or of its payment, which ends the return call. */
export async function saveAnswered(db: Queryable, { mid, orderId, isFailed }: Answered, now: Date): Promise<void> {
  await db.query(
    isFailed
      ? 'update payment_intents set fail_told_at = $3 where mid = $1 and order_id = $2 and fail_told_at is null'
      : `update webhook_deliveries
            set due_at = null, delivered_at = $3, attempted_at = $3, outcome = 'told', answer = ''
          where mid = $1 and endpoint_id = '${RETURN_CALL}' and order_id = $2 and delivered_at is null`,
    [mid, orderId, now],
  )
}
