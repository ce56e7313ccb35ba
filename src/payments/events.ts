/** A change of a payment that its merchant is told of. */
export type EventType = 'payment.succeeded' | 'payment.attempt_failed' | 'payment.cancelled' | 'payment.expired'

/**
 * The part of a statement that writes one delivery for each endpoint that is told of `type`. It belongs into the statement that
 * changes the payments, so that there is never a change without its event, nor an event without the change. `changed` is
 * its CTE of them, with mid, order_id, event_sequence, txn_status, utr and occurred_at. A merchant without an endpoint
 * costs one look-up in a small index.
 */
export function deliveriesOf(changed: string, type: EventType): string {
  return `
    insert into webhook_deliveries
      (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, due_at)
    select c.mid, e.endpoint_id, c.order_id, c.event_sequence, '${type}', c.txn_status, c.utr, c.occurred_at,
           ${type === 'payment.succeeded' ? DUE_AT : 'c.occurred_at'}
      from ${changed} c
      join webhook_endpoints e on e.mid = c.mid
     where e.disabled_at is null${type === 'payment.succeeded' ? '' : ` and e.kind = 'webhook'`}`
}

/** A return call comes later, so that the customer's browser is there first. */
const DUE_AT = `c.occurred_at + case when e.kind = 'return call' then interval '10 seconds' else interval '0' end`
