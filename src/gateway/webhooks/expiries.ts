import type { Limits } from '../../limits.ts'
import { type Database, inTransaction, type Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import type { JobSource } from '../../platform/scheduler.ts'
import { orderIdsBeginSql } from '../payments/intent.ts'
import { HIGHEST_EXPIRY_MINUTES, IS_LONG, LONGEST_EXPIRY_MINUTES } from '../payments/order-lifetime.ts'
import { writeDeliveries } from '../payments/outbox.ts'
import { abandonedUntil, EXPIRY_GRACE_MINUTES, OPEN_STATUSES, type Status } from '../payments/outcome.ts'
import { failureReason, writtenExpiries } from '../payments/reported-status.ts'

/**
 * Minutes from an unpaid order's creation until its status is final: the time to pay, from 1 minute to a day, plus the
 * grace period. `ofLong` is the most for a long order.
 */
const FINAL_AFTER_MINUTES = {
  atLeast: 1 + EXPIRY_GRACE_MINUTES,
  atMost: LONGEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES,
  ofLong: HIGHEST_EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES,
}
/**
 * Length of the period, in minutes, whose orders one statement reads, so that an instance does not read a whole day in
 * one statement at startup.
 */
const STATEMENT_MINUTES = { atLeast: 1, atMost: 15 }

type Dependencies = { db: Database; now: () => Date; limits: Pick<Limits['webhooks'], 'lookedAt'> }

/**
 * Writes payment.expired for unpaid orders of merchants with a webhook, when the status that checkPaymentStatus returns
 * becomes final. Orders are found by their orderIds, which start with their creation time, so that the table of intents
 * needs no further index. Orders are read when they are 9 to 10 minutes old. Most orders are paid by then. Only the
 * unpaid orders are stored in webhook_expiries, with the time at which each order becomes final.
 *
 * At startup, an instance reads the orders of the last day that may still be open, so that no order is missed after a
 * period without instances. Orders that can be paid for longer are stored in webhook_expiries when they are created.
 */
export function expiryJobs({ db, now, limits }: Dependencies): JobSource {
  const { lookedAt } = limits
  let writtenUntil: Date | undefined

  async function saveNewOrders(isStopped: () => boolean) {
    const until = minutes(now(), STATEMENT_MINUTES.atLeast + 1 - FINAL_AFTER_MINUTES.atLeast)
    let from = writtenUntil ?? minutes(now(), -FINAL_AFTER_MINUTES.atMost)
    while (minutes(from, STATEMENT_MINUTES.atLeast) <= until && !isStopped()) {
      const to = new Date(Math.min(until.getTime(), minutes(from, STATEMENT_MINUTES.atMost).getTime()))
      await SAVE_OPEN(db, { from, to, grace: EXPIRY_GRACE_MINUTES })
      from = to
      writtenUntil = from
    }
  }

  return {
    name: 'expired orders',
    // `ofGroup` is high, because the number of connections in the pool is the effective limit of the group.
    concurrency: { ofQueue: 1, ofGroup: lookedAt },
    async findQueues({ isPending = true, isStopped = () => false } = {}) {
      await saveNewOrders(isStopped)
      if (!isPending) return []
      return (await FIND_DUE(db, { now: now(), lookedAt })).map(({ mid }) => ({
        key: `${mid} expired orders`,
        group: 'expired orders',
        // One transaction claims the orders and writes their events, so that a killed process leaves no order claimed
        // without its events.
        claim: async () => [async () => (await writeExpired(db, mid, lookedAt, now())) === lookedAt],
      }))
    },
  }
}

const FIND_DUE = query<{ mid: string }, { now: Date; lookedAt: number }>(`
  select distinct mid
    from (select mid from webhook_expiries where final_at <= :now order by final_at limit :lookedAt) due`)

/** SQL condition at the time $1; null without orders. */
export const EXPIRIES_ARE_PENDING = '(select min(final_at) from webhook_expiries) <= $1'

/**
 * Writes the events of up to `limit` final orders of a merchant, each once, and returns the number of orders that were
 * read. Skips orders that another transaction has locked, so that the others do not wait; a later call writes the
 * events of the skipped ones.
 */
function writeExpired(db: Database, mid: string, limit: number, now: Date): Promise<number> {
  return inTransaction(db, async (client) => {
    const held = await CLAIM(client, { mid, limit, now })
    const waiting = held.filter(({ isUnreadable }) => isUnreadable).map(({ orderId }) => orderId)
    const finalAt = new Map(held.flatMap((row) => (row.isUnreadable ? [] : [[row.orderId, row.finalAt] as const])))
    // The update is a second statement, so that it sees events that another instance wrote before that instance
    // released an order.
    const expired = await EXPIRE(client, { mid, orderIds: [...finalAt.keys()], waiting })
    const events = expired.map(({ orderId, sequence, status, failureReason }) => {
      const txnStatus = status === 'REJECT' ? 'REJECT' : 'FAIL'
      return { orderId, sequence, failureReason, txnStatus, occurredAt: finalAt.get(orderId) as Date }
    })
    await writeDeliveries(client, 'payment.expired', mid, events)
    return held.length
  })
}

type Claimed = { orderId: string; finalAt: Date; isUnreadable: boolean }

/** The expression is materialized, so that intents are looked up one by one, whatever the planner estimates. */
const CLAIM = plannedQuery<Claimed, { mid: string; limit: number; now: Date }>(`
  with due as materialized (
    select order_id, final_at
      from webhook_expiries
     where mid = :mid and final_at <= :now
     order by final_at
     limit :limit
       for update skip locked
  )
  select due.order_id, due.final_at, i.unreadable_at is not null as is_unreadable
    from due
    join payment_intents i on i.mid = :mid and i.order_id = due.order_id
   order by due.order_id
     for no key update of i skip locked`)

/** SQL condition: the event payment.expired of the order `i` is stored. */
const IS_WRITTEN = `exists (${writtenExpiries('i.mid', 'i.order_id')})`

type Expired = { orderId: string; sequence: number; status: Status; failureReason: string | null }

const EXPIRE = plannedQuery<Expired, { mid: string; orderIds: string[]; waiting: string[] }>(`
  with looked as (
    delete from webhook_expiries where mid = :mid and order_id = any (:orderIds)
  ), waiting as (
    -- An unreadable order stays open until a readable response schedules its expiry again.
    update webhook_expiries set final_at = 'infinity' where mid = :mid and order_id = any (:waiting)
  )
  update payment_intents i
     set event_sequence = event_sequence + 1
   where mid = :mid and order_id = any (:orderIds) and status in ${OPEN_STATUSES} and not ${IS_WRITTEN}
  returning order_id, event_sequence as sequence, status, ${failureReason()} as failure_reason`)

/** Stores the open orders of a merchant for whom a webhook endpoint is being added. */
export async function watchOpenOrders(db: Queryable, mid: string, now: Date): Promise<void> {
  const dayAgo = minutes(now, -FINAL_AFTER_MINUTES.atMost)
  const only = { mid, expiringAfter: abandonedUntil(now), grace: EXPIRY_GRACE_MINUTES }
  await SAVE_OPEN_OF_MERCHANT(db, { ...only, from: dayAgo, to: now })
  // Earlier orders are open only if they are long, and these are read by their own index.
  const from = minutes(now, -FINAL_AFTER_MINUTES.ofLong)
  await SAVE_LONG_OF_MERCHANT(db, { ...only, from, to: dayAgo })
}

/**
 * SQL that stores the open orders created from `from` until before `to`, of merchants with a webhook endpoint that was
 * created before the order expires. A repeat changes nothing.
 */
const saveOpen = (condition: string) => `
  with open as materialized (
    -- The expression is materialized, so that orders are read once, by the index of the period, whatever the planner
    -- estimates.
    select mid, order_id, expires_at
      from payment_intents i
     where order_id >= ${orderIdsBeginSql(':from::timestamptz')} and order_id < ${orderIdsBeginSql(':to::timestamptz')}
       and status in ${OPEN_STATUSES} ${condition}
       and not ${IS_WRITTEN}
  )
  insert into webhook_expiries (mid, order_id, final_at)
  select i.mid, i.order_id, i.expires_at + :grace * interval '1 minute'
    from open i
    join (select mid, min(created_at) as since
            from webhook_endpoints
           where kind = 'webhook' and disabled_at is null
           group by mid) w on w.mid = i.mid
   where i.expires_at + :grace * interval '1 minute' > w.since
  on conflict do nothing`

/** `grace` is in minutes. */
type Period = { from: Date; to: Date; grace: number }
type OfMerchant = Period & { mid: string; expiringAfter: Date }
const OF_MERCHANT = 'and mid = :mid and expires_at > :expiringAfter'

const SAVE_OPEN = query<object, Period>(saveOpen(''))
const SAVE_OPEN_OF_MERCHANT = plannedQuery<object, OfMerchant>(saveOpen(OF_MERCHANT))
/** Long orders have an index of their own. */
const SAVE_LONG_OF_MERCHANT = plannedQuery<object, OfMerchant>(saveOpen(`${OF_MERCHANT} and ${IS_LONG}`))

const minutes = (moment: Date, more: number) => new Date(moment.getTime() + more * 60_000)
