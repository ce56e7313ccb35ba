import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { groupBy } from '../group-by.ts'
import { nextSequence, writeDeliveries } from '../payments/events.ts'
import {
  EXPIRY_GRACE_MINUTES,
  givenUpUntil,
  LONGEST_EXPIRY_MINUTES,
  OPEN_STATUSES,
  type Status,
} from '../payments/outcome.ts'

/** The shortest is a minute, and the grace comes after it: no order is final sooner after it was made. */
const LOOKED_AT_AFTER_MINUTES = EXPIRY_GRACE_MINUTES - 1
/** Of orders made within this time, one statement looks at all: after an outage there may be a day's. */
const SWEEP_MINUTES = 15

/** orderIdsBegin of payments/intent.ts, in SQL. */
const orderIdsFrom = (moment: string) => `lpad(to_hex((extract(epoch from ${moment}) * 1000)::bigint), 12, '0')`

const minutesBefore = (moment: Date, minutes: number) => new Date(moment.getTime() - minutes * 60_000)

/**
 * Writes payment.expired when the answer of checkPaymentStatus becomes final for an unpaid order of a merchant with a webhook.
 * Such orders are found by their orderIds, which begin with their time: the table of intents needs no index for it, and
 * creating an intent costs no more. By then most orders are paid, and only the others are written down.
 */
export function createExpiries(db: Database) {
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

    /** Writes the events of up to `limit` orders that are final by now, merchant by merchant. Returns how many were looked at. */
    async tell(limit: number, now: Date): Promise<number> {
      const { rows } = await db.query<{ mid: string; orderId: string }>(
        `select mid, order_id as "orderId" from webhook_expiries where final_at <= $1 order by final_at limit $2`,
        [now, limit],
      )
      let looked = 0
      for (const orders of groupBy(rows, ({ mid }) => mid)) {
        const orderIds = orders.map(({ orderId }) => orderId)
        looked += await tellMerchant(db, orders[0]?.mid as string, orderIds, now)
      }
      return looked
    },
  }
}

/** An order that somebody else holds is told later: the others do not wait for it. */
function tellMerchant(db: Database, mid: string, orderIds: string[], now: Date): Promise<number> {
  return inTransaction(db, async (client) => {
    const { rows: held } = await client.query<{ orderId: string; finalAt: Date }>(
      // By the array in both tables, so that rows are looked up one by one, whatever the planner expects.
      `select e.order_id as "orderId", e.final_at as "finalAt"
         from webhook_expiries e
         join payment_intents i on i.mid = e.mid and i.order_id = e.order_id
        where e.mid = $1 and e.order_id = any ($2) and e.final_at <= $3 and i.mid = $1 and i.order_id = any ($2)
        order by e.order_id
          for update of e skip locked
          for no key update of i skip locked`,
      [mid, orderIds, now],
    )
    const finalAt = new Map(held.map((row) => [row.orderId, row.finalAt]))
    const { rows: expired } = await client.query<{ orderId: string; sequence: number; status: Status }>(
      `with looked as (
         delete from webhook_expiries where mid = $1 and order_id = any ($2) and final_at <= $3
       )
       update payment_intents
          set event_sequence = ${nextSequence()}
        where mid = $1 and order_id = any ($2) and status in ${OPEN_STATUSES}
       returning order_id as "orderId", event_sequence as sequence, status`,
      [mid, [...finalAt.keys()], now],
    )
    const events = expired.map(({ orderId, sequence, status }) => {
      const txnStatus = status === 'REJECT' ? 'REJECT' : 'FAIL'
      return { orderId, sequence, txnStatus, occurredAt: finalAt.get(orderId) as Date }
    })
    await writeDeliveries(client, 'payment.expired', mid, events)
    return held.length
  })
}

/** The open orders of that time, of merchants with a webhook. */
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

/** Those that are told of expired orders. */
const WEBHOOKS = `(select * from webhook_endpoints where kind = 'webhook' and disabled_at is null) w`

export type Expiries = ReturnType<typeof createExpiries>

/** Writes down the orders of `mid` that are open now, which the sweep has passed: it has a webhook from now on. */
export async function watchOpenOrders(db: Queryable, mid: string, now: Date): Promise<void> {
  await db.query(
    `insert into webhook_expiries (mid, order_id, final_at)
     select i.mid, i.order_id, i.expires_at + $4 * interval '1 minute'
       from payment_intents i
      where i.mid = $1 and i.order_id >= ${orderIdsFrom('$2::timestamptz')} and i.status in ${OPEN_STATUSES} and i.expires_at > $3
        -- The clock of this machine may be behind that of the one that told it.
        and not exists (
          select from webhook_endpoints e
            join webhook_deliveries d on d.mid = e.mid and d.endpoint_id = e.endpoint_id and d.order_id = i.order_id
           where e.mid = i.mid and d.type = 'payment.expired')
     on conflict do nothing`,
    [mid, minutesBefore(now, LONGEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES), givenUpUntil(now), EXPIRY_GRACE_MINUTES],
  )
}
