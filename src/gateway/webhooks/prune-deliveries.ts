import { type Database, inTransaction } from '../../platform/db/pool.ts'
import { orderIdsBegin } from '../payments/intent.ts'

/**
 * Number of deliveries that one transaction reads; it deletes only deliveries of their orders. A killed run therefore
 * loses no progress, and the service waits only briefly for a locked row.
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
  db: Database,
  before: Date,
  afterStep: (pruned: number) => Promise<unknown>,
): Promise<number> {
  let pruned = 0
  const endpoints = await db.query<{ mid: string; endpointId: string }>(ENDPOINTS)
  for (const { mid, endpointId } of endpoints.rows) {
    let step: Step = { last: '', pruned: 0 }
    while (step.last !== null) {
      step = await pruneStep(db, [mid, endpointId, step.last, orderIdsBegin(before), before])
      pruned += step.pruned
      await afterStep(pruned)
    }
  }
  return pruned
}

/** `last` is the last orderId that the transaction has read; null if no delivery was left. */
type Step = { last: string | null; pruned: number }

const pruneStep = (db: Database, values: unknown[]): Promise<Step> =>
  inTransaction(db, async (client) => {
    // PostgreSQL underestimates an endpoint's deliveries, because it multiplies the shares of merchant and endpoint. It
    // would then read and sort all of them in each step.
    await client.query('set local enable_sort = off')
    const { rows } = await client.query<Step>(PRUNE_STEP, values)
    return rows[0] as Step
  })

const ENDPOINTS = 'select mid, endpoint_id as "endpointId" from webhook_endpoints order by mid, endpoint_id'

/**
 * The orders are an array, because PostgreSQL would read all deliveries of the endpoint to join them. The delete has the
 * conditions, so that PostgreSQL repeats them for a delivery that an operator is resending.
 */
const PRUNE_STEP = `
  with step as materialized (
    select order_id
      from webhook_deliveries
     where mid = $1 and endpoint_id = $2 and order_id > $3 and order_id < $4
     order by order_id
     limit ${STEP_DELIVERIES}
  ), pruned as (
    delete from webhook_deliveries
     where mid = $1 and endpoint_id = $2 and order_id = any (array(select order_id from step))
       and due_at is null and attempted_at < $5 and type <> 'payment.expired'
    returning 1
  )
  select (select max(order_id) from step) as last, (select count(*) from pruned) as pruned`
