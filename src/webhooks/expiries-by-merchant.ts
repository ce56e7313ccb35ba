import { type Database, inTransaction } from '../db/pool.ts'
import { groupBy } from '../group-by.ts'
import { nextSequence, writeDeliveries } from '../payments/events.ts'
import { OPEN_STATUSES, type Status } from '../payments/outcome.ts'

/**
 * Writes the events of up to `limit` orders that are final by now, merchant by merchant, since Citus locks rows of one shard at
 * a time. Returns how many were looked at; those that another instance holds are not.
 */
export async function tellByMerchant(db: Database, limit: number, now: Date): Promise<number> {
  const { rows } = await db.query<{ mid: string; orderId: string }>(
    `select mid, order_id as "orderId" from webhook_expiries where final_at <= $1 order by final_at limit $2`,
    [now, limit],
  )
  let looked = 0
  for (const orders of groupBy(rows, ({ mid }) => mid)) {
    const orderIds = orders.map(({ orderId }) => orderId)
    looked += await tellOne(db, orders[0]?.mid as string, orderIds, now)
  }
  return looked
}

/** An order that somebody else holds is told later: the others do not wait for it. */
function tellOne(db: Database, mid: string, orderIds: string[], now: Date): Promise<number> {
  return inTransaction(db, async (client) => {
    const due = await client.query<{ orderId: string; finalAt: Date }>(
      `select order_id as "orderId", final_at as "finalAt"
         from webhook_expiries
        where mid = $1 and order_id = any ($2) and final_at <= $3
        order by order_id
          for update skip locked`,
      [mid, orderIds, now],
    )
    const held = await client.query<{ orderId: string; status: Status }>(
      `select order_id as "orderId", status
         from payment_intents
        where mid = $1 and order_id = any ($2)
        order by order_id
          for no key update skip locked`,
      [mid, due.rows.map(({ orderId }) => orderId)],
    )
    const finalAt = new Map(due.rows.map((row) => [row.orderId, row.finalAt]))
    // Due, which is said once more: otherwise PostgreSQL expects more rows, and may read the whole table.
    await client.query('delete from webhook_expiries where mid = $1 and order_id = any ($2) and final_at <= $3', [
      mid,
      held.rows.map(({ orderId }) => orderId),
      now,
    ])
    const expired = await client.query<{ orderId: string; sequence: number; status: Status }>(
      `update payment_intents
          set event_sequence = ${nextSequence()}
        where mid = $1 and order_id = any ($2) and status in ${OPEN_STATUSES}
       returning order_id as "orderId", event_sequence as sequence, status`,
      [mid, held.rows.map(({ orderId }) => orderId)],
    )
    await writeDeliveries(
      client,
      'payment.expired',
      expired.rows.map(({ orderId, sequence, status }) => {
        const txnStatus = status === 'REJECT' ? 'REJECT' : 'FAIL'
        return { mid, orderId, sequence, txnStatus, occurredAt: finalAt.get(orderId) as Date }
      }),
    )
    return held.rows.length
  })
}
