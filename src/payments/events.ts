import type { Queryable } from '../db/pool.ts'

/** A change of a payment that its merchant is told of. */
export type EventType = 'payment.succeeded' | 'payment.attempt_failed' | 'payment.cancelled' | 'payment.expired'

/** What the merchant is told of a change: what checkPaymentStatus tells from then on. `sequence` counts within the order. */
type Event = {
  mid: string
  orderId: string
  sequence: number
  txnStatus: string
  utr?: string | undefined
  occurredAt: Date
}

/**
 * The number of an order's next change, in SQL; `of` is the order's alias with its dot, if it has one. Where an earlier version
 * has stored so many failed attempts that the highest number is taken, the changes that follow share it.
 */
export const nextSequence = (of = '') => `least(${of}event_sequence + 1, 32767)`

/**
 * Writes one delivery for each endpoint that is told of `type`. It belongs into the transaction that changes the payment, so
 * that there is never a change without its event, nor an event without the change; only of changes that share a number the
 * first one alone is told. A merchant without an endpoint costs one look-up in a small index.
 */
export async function writeDeliveries(
  db: Queryable,
  type: EventType,
  { mid, orderId, sequence, txnStatus, utr, occurredAt }: Event,
): Promise<void> {
  await db.query(
    `with changed as (
       select $2::text as order_id, $3::smallint as event_sequence, $4::text as txn_status, $5::text as utr,
              $6::timestamptz as occurred_at
     )
     ${deliveriesOf('changed', type)}`,
    [mid, orderId, sequence, txnStatus, utr, occurredAt],
  )
}

/**
 * The same as a part of the statement that makes the changes of the merchant $1: `changed` is its CTE of them, with order_id,
 * event_sequence, txn_status, utr and occurred_at.
 */
export function deliveriesOf(changed: string, type: EventType): string {
  return `
    insert into webhook_deliveries
      (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, due_at)
    select e.mid, e.endpoint_id, c.order_id, c.event_sequence, '${type}', c.txn_status, c.utr, c.occurred_at,
           ${type === 'payment.succeeded' ? DUE_AT : 'c.occurred_at'}
      from ${changed} c
      join webhook_endpoints e on e.mid = $1
     where e.disabled_at is null${type === 'payment.succeeded' ? '' : ` and e.kind = 'webhook'`}
    on conflict do nothing`
}

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

/** A return call comes later, so that the customer's browser is there first. */
const DUE_AT = `c.occurred_at + case when e.kind = 'return call' then interval '10 seconds' else interval '0' end`

/** Writes down for good what became of an intent, and who told it; `paidAt` is when the bank says that it happened. */
export async function writeChange(
  db: Queryable,
  { mid, orderId, utr, paidAt }: { mid: string; orderId: string; utr?: string | undefined; paidAt?: Date | undefined },
  told: { status: string; reason: string; toldBy?: string | undefined; note?: string | undefined; now: Date },
): Promise<void> {
  await db.query(
    `insert into payment_changes (mid, order_id, utr, paid_at, status, reason, told_by, note, changed_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
    [mid, orderId, utr, paidAt, told.status, told.reason, told.toldBy, told.note, told.now],
  )
}
