import type { Queryable } from '../../platform/db/pool.ts'
import { orderIdsBegin } from '../payments/intent.ts'

/**
 * Number of deliveries that one statement reads, and deletes at most. Each statement is its own transaction, so that a
 * killed run loses no progress, and the service waits for no lock of a run.
 */
const STEP_DELIVERIES = 1_000

/**
 * Deletes delivered and abandoned deliveries whose last attempt is older than `before`. Returns the number of deleted
 * deliveries; `afterStep` receives the number so far. A delivery that is scheduled stays, however old its event is.
 *
 * payment.expired stays, because the judgement of a late payment reads whether the merchant was notified of the expiry.
 *
 * Deliveries are read endpoint by endpoint in the order of the primary key, up to the orders created at `before`,
 * because orderIds begin with their time and no event precedes its order.
 */
export async function pruneDeliveries(
  db: Queryable,
  before: Date,
  afterStep: (pruned: number) => Promise<unknown>,
): Promise<number> {
  let pruned = 0
  const endpoints = await db.query<{ mid: string; endpointId: string }>(ENDPOINTS)
  for (const { mid, endpointId } of endpoints.rows) {
    let step: Step = { orderId: '', sequence: 0, pruned: 0 }
    while (step.orderId !== null) {
      const { rows } = await db.query<Step>(PRUNE_STEP, [
        mid,
        endpointId,
        step.orderId,
        step.sequence,
        orderIdsBegin(before),
        before,
      ])
      step = rows[0] as Step
      pruned += step.pruned
      await afterStep(pruned)
    }
  }
  return pruned
}

/** The result of a statement: the last delivery that it has read, null if none was left, and the number of deleted ones. */
type Step = { orderId: string | null; sequence: number | null; pruned: number }

const ENDPOINTS = 'select mid, endpoint_id as "endpointId" from webhook_endpoints order by mid, endpoint_id'

const PRUNE_STEP = `
  with step as materialized (
    select order_id, sequence
      from webhook_deliveries
     where mid = $1 and endpoint_id = $2 and (order_id, sequence) > ($3, $4::smallint) and order_id < $5
     order by order_id, sequence
     limit ${STEP_DELIVERIES}
  ), pruned as (
    -- The conditions are here, so that PostgreSQL repeats them for a delivery that an operator is resending.
    delete from webhook_deliveries d
     using step
     where d.mid = $1 and d.endpoint_id = $2 and d.order_id = step.order_id and d.sequence = step.sequence
       and d.due_at is null and d.attempted_at < $6 and d.type <> 'payment.expired'
    returning 1
  )
  select last.order_id as "orderId", last.sequence, (select count(*) from pruned) as pruned
    from (select 1) one
    left join lateral (select order_id, sequence from step order by order_id desc, sequence desc limit 1) last on true`
