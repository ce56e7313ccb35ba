import { type Database, inTransaction } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
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
  for (const endpoint of await ENDPOINTS(db, {})) {
    let step: Step = { last: '', pruned: 0 }
    while (step.last !== null) {
      step = await pruneStep(db, { ...endpoint, after: step.last, end: orderIdsBegin(before), before })
      pruned += step.pruned
      await afterStep(pruned)
    }
  }
  return pruned
}

/** `last` is the last orderId that the transaction has read; null if no delivery was left. */
type Step = { last: string | null; pruned: number }

const pruneStep = (db: Database, range: Range): Promise<Step> =>
  inTransaction(db, async (client) => {
    // PostgreSQL underestimates an endpoint's deliveries, because it multiplies the shares of merchant and endpoint. It
    // would then read and sort all of them in each step.
    await client.query('set local enable_sort = off')
    return (await PRUNE_STEP(client, range))[0] as Step
  })

type Named = { mid: string; endpointId: string }

const ENDPOINTS = query<Named, object>('select mid, endpoint_id from webhook_endpoints order by mid, endpoint_id')

/** The deliveries of an endpoint whose orderIds are after `after` and before `end`. */
type Range = Named & { after: string; end: string; before: Date }

/**
 * The orders are an array, because PostgreSQL would read all deliveries of the endpoint to join them. The delete has the
 * conditions, so that PostgreSQL repeats them for a delivery that an operator is resending.
 */
const PRUNE_STEP = plannedQuery<Step, Range>(`
  with step as materialized (
    select order_id
      from webhook_deliveries
     where mid = :mid and endpoint_id = :endpointId and order_id > :after and order_id < :end
     order by order_id
     limit ${STEP_DELIVERIES}
  ), pruned as (
    delete from webhook_deliveries
     where mid = :mid and endpoint_id = :endpointId and order_id = any (array(select order_id from step))
       and due_at is null and attempted_at < :before and type <> 'payment.expired'
    returning 1
  )
  select (select max(order_id) from step) as last, (select count(*) from pruned) as pruned`)
