import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { groupBy } from '../group-by.ts'
import { writeDeliveries } from '../payments/events.ts'
import { EXPIRY_GRACE_MINUTES, LONGEST_EXPIRY_MINUTES, OPEN_STATUSES, type Status } from '../payments/outcome.ts'
import { LOOKED_AT_AFTER_MINUTES, minutesBefore, orderIdsFrom, SWEEP_MINUTES } from './expiry-times.ts'

/**
 * What createExpiries does on one server by two statements, for a database that is spread: what is looked for over all
 * merchants is stored merchant by merchant, since Citus locks rows of one shard at a time.
 */
export function createSpreadExpiries(db: Database) {
  async function writeDown(client: Queryable, { since, until }: { since: Date; until: Date }): Promise<void> {
    await client.query(
      `with open as materialized (
         -- By the index of orderIds, which lie in it by time: each order is read once, whatever the planner expects.
         select mid, order_id, expires_at
           from payment_intents i
          where order_id >= ${orderIdsFrom('$1::timestamptz')} and order_id < ${orderIdsFrom('$2::timestamptz')}
            and i.status in ${OPEN_STATUSES}
       )
       insert into webhook_expiries (mid, order_id, final_at)
       select i.mid, i.order_id, i.expires_at + $3 * interval '1 minute'
         from open i
         join (select mid, min(created_at) as since from ${WEBHOOKS} group by mid) e on e.mid = i.mid
        where i.expires_at + $3 * interval '1 minute' > e.since
       on conflict do nothing`,
      [since, until, EXPIRY_GRACE_MINUTES],
    )
  }

  /** An order that somebody else holds is told later: the others do not wait for it. */
  function tellMerchant(mid: string, orderIds: string[], now: Date): Promise<number> {
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
            set event_sequence = event_sequence + 1
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

  return {
    /** Writes down open orders that were made some minutes ago. Returns whether there are more. */
    sweep(now: Date): Promise<boolean> {
      const end = minutesBefore(now, LOOKED_AT_AFTER_MINUTES)
      return inTransaction(db, async (client) => {
        const sweep = await client.query<{ since: Date; until: Date; more: boolean }>(
          `select since, until, until < $2 as more
             from (select greatest(swept_until, $1) as since,
                          least($2, greatest(swept_until, $1) + $3 * interval '1 minute') as until
                     from webhook_expiry_sweep
                    where swept_until < $2
                      for update skip locked) s`,
          [minutesBefore(now, LONGEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES), end, SWEEP_MINUTES],
        )
        const [found] = sweep.rows
        if (found === undefined) return false
        const webhooks = await client.query(`select 1 from ${WEBHOOKS} limit 1`)
        if (webhooks.rows.length > 0) await writeDown(client, found)
        await client.query('update webhook_expiry_sweep set swept_until = $1', [found.until])
        return found.more
      })
    },

    /**
     * Writes the events of up to `limit` orders that are final by now, merchant by merchant, since the rows of one are on one
     * server. Returns how many were looked at; those that another instance holds are not.
     */
    async tell(limit: number, now: Date): Promise<number> {
      const { rows } = await db.query<{ mid: string; orderId: string }>(
        `select mid, order_id as "orderId" from webhook_expiries where final_at <= $1 order by final_at limit $2`,
        [now, limit],
      )
      let looked = 0
      for (const orders of groupBy(rows, ({ mid }) => mid)) {
        const orderIds = orders.map(({ orderId }) => orderId)
        looked += await tellMerchant(orders[0]?.mid as string, orderIds, now)
      }
      return looked
    },
  }
}

/** Those that are told of expired orders. */
const WEBHOOKS = `(select * from webhook_endpoints where kind = 'webhook' and disabled_at is null) w`
