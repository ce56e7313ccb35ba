import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
import { type Columns, toColumns } from '../../platform/db/shared-batches.ts'
import type { Intent } from './intent.ts'
import { EXPIRY_GRACE_MINUTES } from './outcome.ts'

export type EventType =
  | 'payment.succeeded'
  | 'payment.attempt_failed'
  | 'payment.cancelled'
  | 'payment.expired'
  | 'refund.succeeded'
  | 'refund.failed'
  | 'dispute.opened'
  | 'dispute.updated'

/**
 * An event for webhooks. `txnStatus` and `utr` are the values that checkPaymentStatus returns after the event, or the
 * status and reference of a refund. `sequence` numbers the events of an order.
 */
type Event = {
  orderId: string
  sequence: number
  txnStatus: string
  utr?: string | undefined
  ourRefundId?: string
  occurredAt: Date
  /** Why the last attempt to pay failed. */
  failureReason?: string | null
  /** The JSON of the data of a dispute event, which is sent as stored. */
  data?: string
}

/**
 * Writes a delivery of each event for each endpoint of the merchant that receives `type`. The call must be part of the
 * transaction that makes the change, so that change and deliveries are stored together or not at all. If several events
 * have the same sequence number, only the first event is delivered. A merchant without endpoints costs one look-up in a
 * small index.
 */
export async function writeDeliveries(
  db: Queryable,
  type: EventType,
  mid: string,
  events: readonly Event[],
): Promise<void> {
  if (events.length === 0) return
  const insert = plannedQuery<object, object>(insertDeliveries(type, ':mid', GIVEN))
  await insert(db, { mid, ...toColumns(events.map((event) => ({ ...NO_DETAILS, ...event }))) })
}

const NO_DETAILS = { utr: undefined, ourRefundId: undefined, failureReason: undefined, data: undefined }

const GIVEN = `
  unnest(:orderId::text[], :sequence::smallint[], :txnStatus::text[], :utr::text[], :ourRefundId::text[],
         :occurredAt::timestamptz[], :failureReason::text[], :data::text[])
    as c (order_id, sequence, txn_status, utr, our_refund_id, occurred_at, failure_reason, data)`

/**
 * The SQL of `writeDeliveries`. `events` is SQL for a relation `c` of order_id, sequence, txn_status, utr,
 * our_refund_id, occurred_at, failure_reason and, for a dispute, data. `mid` is SQL for the merchant of these events.
 */
export const insertDeliveries = (type: EventType, mid: string, events: string) => `
  insert into webhook_deliveries
    (mid, endpoint_id, order_id, sequence, type, txn_status, utr, our_refund_id, occurred_at, failure_reason, data,
     due_at)
  select e.mid, e.endpoint_id, c.order_id, c.sequence, '${type}', c.txn_status, c.utr, c.our_refund_id, c.occurred_at,
         c.failure_reason, ${type.startsWith('dispute.') ? 'c.data' : 'null'},
         ${type === 'payment.succeeded' ? DUE_AT : 'c.occurred_at'}
    from ${events}
    join webhook_endpoints e on e.mid = ${mid}
   where e.disabled_at is null${type === 'payment.succeeded' ? '' : ` and e.kind = 'webhook'`}
      on conflict do nothing`

/**
 * Stores when the orders of merchants with a webhook become final, in the transaction that stores the orders. Only long
 * orders need it, because the look-up of new orders finds all others, even after a day without instances.
 */
export async function scheduleExpiries(db: Queryable, orders: readonly Intent[]): Promise<void> {
  if (orders.length > 0) await SCHEDULE_EXPIRIES(db, { ...toColumns(orders), grace: EXPIRY_GRACE_MINUTES })
}

type Scheduled = Columns<Pick<Intent, 'mid' | 'orderId' | 'expiresAt'>> & { grace: number }

const SCHEDULE_EXPIRIES = plannedQuery<object, Scheduled>(`
  insert into webhook_expiries (mid, order_id, final_at)
  select i.mid, i.order_id, i.expires_at + :grace * interval '1 minute'
    from unnest(:mid::text[], :orderId::text[], :expiresAt::timestamptz[]) as i (mid, order_id, expires_at)
    -- Citus needs the mids here too, to read only the merchants' own shards.
    join (select distinct mid
            from webhook_endpoints
           where mid = any (:mid) and kind = 'webhook' and disabled_at is null) w on w.mid = i.mid`)

/** The endpoint_id under which a merchant's return-URL callbacks are stored. */
export const RETURN_URL_CALLBACK = 'return-call'

/**
 * A return-URL callback is scheduled 10 s after the change, so that the customer's browser reaches the merchant's
 * server first.
 */
const DUE_AT = `c.occurred_at + case when e.kind = 'return call' then interval '10 seconds' else interval '0' end`
