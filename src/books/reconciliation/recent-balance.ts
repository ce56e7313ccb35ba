import type { PoolClient } from 'pg'
import { hasState, QUERY_CANCELED } from '../../platform/db/outage.ts'
import { type Database, readBriefly, setLocally } from '../../platform/db/pool.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import { createLedger } from '../ledger/read-ledger.ts'
import { readClosedBase } from './closed-items.ts'
import { openOfMerchant } from './open-differences.ts'
import { openExceptions } from './read-open.ts'
import { snapshotOf } from './reconcile.ts'
import { broughtForward } from './reconcile-merchant.ts'

/**
 * What `ops reconcile` says at last of the same days; and `open`, the differences of all days until then, which add up to
 * `owed`. Amounts are in paise.
 */
export type RecentBalance = Days & {
  balances: boolean
  differences: number
  openExceptions: number
  carriedForward: bigint
  open: { count: number; owed: bigint; oldest: string | null }
}

/** More merchants than these are left to `ops reconcile`. */
const MERCHANTS_READ = 200
/** Longest time for all of them. It is looked at between two merchants. */
const LONGEST_MS = 10_000

/**
 * Whether the books of yesterday and of the days whose payments were due then balance, and what is open of all days. Undefined
 * when it takes too long, or too many merchants have something in the books: closed months make it shorter. It writes nothing, so
 * that the role of the service suffices.
 */
export async function balanceUntilYesterday(
  db: Database,
  now: Date,
  statementTimeoutMs: number,
): Promise<RecentBalance | undefined> {
  const until = performance.now() + LONGEST_MS
  try {
    return await readBriefly(db, statementTimeoutMs, async (client) => {
      await client.query('set transaction isolation level repeatable read')
      await setLocally(client, ['jit = off'])
      const to = addDays(toIstDay(now), -1)
      const newSnapshot = await snapshotOf(client, now)
      const closed = await readClosedBase(client, now, addDays(to, 1))
      const snapshot = { ...newSnapshot, closed }
      const days = { from: snapshot.bankDays.previousBankDay(to), to }
      const mids = await midsSince(client, closed && startOfDay(addDays(closed.to, -31)), closed?.month)
      if (mids.length > MERCHANTS_READ) return undefined
      let [differences, exceptions, carriedForward] = [0, 0, 0n]
      const open: RecentBalance['open'] = { count: 0, owed: 0n, oldest: null }
      for (const mid of mids) {
        if (performance.now() > until) return undefined
        const ledger = createLedger(snapshot, mid)
        for await (const { day, owed } of openOfMerchant(ledger, closed, to)) {
          if (day >= days.from) differences += 1
          open.count += 1
          open.owed += owed
          if (open.oldest === null || day < open.oldest) open.oldest = day
        }
        for await (const _ of openExceptions(ledger, days)) exceptions += 1
        carriedForward += await broughtForward(ledger, addDays(to, 1))
      }
      const balances = differences + exceptions === 0
      return { ...days, balances, differences, openExceptions: exceptions, carriedForward, open }
    })
  } catch (error) {
    if (hasState(error, QUERY_CANCELED)) return undefined
    throw error
  }
}

/**
 * Merchants that have something in the books of this closed month or since, at most one more than MERCHANTS_READ. Payments and
 * settlements lie in the order of the time at which they were stored.
 */
async function midsSince(client: PoolClient, since: Date | undefined, month: string | undefined): Promise<string[]> {
  const { rows } = await client.query<{ mid: string }>(
    `select mid from closed_items where month = $2
      union select mid from settlements where known_at >= coalesce($1::timestamptz, '-infinity')
      union select mid from payments where heard_at >= coalesce($1::timestamptz, '-infinity')
      union select mid from payment_exceptions where received_at >= coalesce($1::timestamptz, '-infinity')
      union select mid from difference_resolutions where resolved_at >= coalesce($1::timestamptz, '-infinity')
      limit ${MERCHANTS_READ + 1}`,
    [since, month],
  )
  return rows.map(({ mid }) => mid)
}
