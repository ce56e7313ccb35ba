import type { Queryable } from '../db/pool.ts'

/** A change of a payment, or the end of a refund, that its merchant is told of. */
export type EventType =
  | 'payment.succeeded'
  | 'payment.attempt_failed'
  | 'payment.cancelled'
  | 'payment.expired'
  | 'refund.succeeded'
  | 'refund.failed'

/**
 * A change that its merchant is told of. `txnStatus` and `utr` are what checkPaymentStatus tells from then on; of a refund
 * they are its own status and reference. `sequence` counts within the order.
 */
type Event = {
  orderId: string
  sequence: number
  txnStatus: string
  utr?: string | undefined
  ourRefundId?: string
  occurredAt: Date
}

/**
 * SQL for the number of an order's next change, at most 32,767, the largest smallint. `of` is the order's alias with its
 * dot, such as `i.`. An order on which an earlier version of the service stored that many failed attempts is at the limit
 * already: all its further changes get 32,767.
 */
export const nextSequence = (of = '') => `least(${of}event_sequence + 1, 32767)`

/**
 * Writes one delivery of each event for each endpoint of the merchant that is told of `type`. It must run in the
 * transaction that changes the payments, so that change and event are stored both or not at all. Of changes that share
 * a number only the first is told. A merchant without an endpoint costs one look-up in a small index.
 */
export async function writeDeliveries(
  db: Queryable,
  type: EventType,
  mid: string,
  events: readonly Event[],
): Promise<void> {
  if (events.length === 0) return
  const given = `unnest($2::text[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::timestamptz[])
                   as c (order_id, sequence, txn_status, utr, our_refund_id, occurred_at)`
  await db.query(insertDeliveries(type, '$1', given), [
    mid,
    events.map(({ orderId }) => orderId),
    events.map(({ sequence }) => sequence),
    events.map(({ txnStatus }) => txnStatus),
    events.map(({ utr }) => utr),
    events.map(({ ourRefundId }) => ourRefundId),
    events.map(({ occurredAt }) => occurredAt),
  ])
}

/**
 * The SQL of `writeDeliveries`. `events` is a relation `c` of order_id, sequence, txn_status, utr, our_refund_id and
 * occurred_at; `mid` names its merchant.
 */
export const insertDeliveries = (type: EventType, mid: string, events: string) => `
  insert into webhook_deliveries
    (mid, endpoint_id, order_id, sequence, type, txn_status, utr, our_refund_id, occurred_at, due_at)
  select e.mid, e.endpoint_id, c.order_id, c.sequence, '${type}', c.txn_status, c.utr, c.our_refund_id, c.occurred_at,
         ${type === 'payment.succeeded' ? DUE_AT : 'c.occurred_at'}
    from ${events}
    join webhook_endpoints e on e.mid = ${mid}
   where e.disabled_at is null${type === 'payment.succeeded' ? '' : ` and e.kind = 'webhook'`}
      on conflict do nothing`

/** The endpoint_id of a merchant's return calls, which share one endpoint. */
export const RETURN_CALL = 'return-call'

/** Ends the return call of an order: checkPaymentStatus has told its merchant that it is paid. */
export async function endReturnCall(db: Queryable, mid: string, orderId: string, now: Date): Promise<void> {
  await db.query(
    `update webhook_deliveries
        set due_at = null, delivered_at = $3, attempted_at = $3, outcome = 'told', answer = ''
      where mid = $1 and endpoint_id = '${RETURN_CALL}' and order_id = $2 and delivered_at is null`,
    [mid, orderId, now],
  )
}

/** Whether an answer has told the merchant that the order `i` has failed for good. In SQL. */
export const FAIL_TOLD = `(i.status = 'CANCELLED' or i.fail_told_at is not null)`

/** Keeps when an answer first told the merchant that the order has failed for good. */
export async function saveFailTold(db: Queryable, mid: string, orderId: string, now: Date): Promise<void> {
  await db.query(
    'update payment_intents set fail_told_at = $3 where mid = $1 and order_id = $2 and fail_told_at is null',
    [mid, orderId, now],
  )
}

/** Rows when it is written that the merchant is told of an order's expiry: that counts as told. In SQL, as its arguments. */
export const writtenExpiries = (mid: string, orderId: string) => `
            select true
              from webhook_endpoints e
              join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id and d.order_id = ${orderId}
             where e.mid = ${mid} and d.type = 'payment.expired'`

/** A return call is due 10 s after the change, so that the customer's browser reaches the shop first. */
const DUE_AT = `c.occurred_at + case when e.kind = 'return call' then interval '10 seconds' else interval '0' end`
