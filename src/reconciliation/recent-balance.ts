import type { PoolClient } from 'pg'
import { hasState, QUERY_CANCELED } from '../db/outage.ts'
import { type Database, readBriefly, setLocally } from '../db/pool.ts'
import { toIstDay } from '../ist.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import { createLedger } from '../ledger/read-ledger.ts'
import { boundsOf } from '../ledger/sql.ts'
import { snapshotOf } from './reconcile.ts'
import { reconcileMerchant } from './reconcile-merchant.ts'

/** What `ops reconcile` says at last of the same days. */
export type RecentBalance = Days & { balances: boolean; differences: number; openExceptions: number }

/** More merchants than these are left to `ops reconcile`. */
const MERCHANTS_READ = 200
/** Longest time for all of them. It is looked at between two merchants. */
const LONGEST_MS = 10_000

/**
 * Whether the books of yesterday and of the days whose payments were due then balance. Undefined when it takes too long, or
 * too many merchants had something on these days. It writes nothing, so that the role of the service suffices.
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
      const snapshot = await snapshotOf(client, now)
      const { bankDays } = snapshot
      const to = addDays(toIstDay(now), -1)
      const days = { from: bankDays.previousBankDay(to), to }
      const mids = await activeMids(client, { from: bankDays.previousBankDay(days.from), to })
      if (mids.length > MERCHANTS_READ) return undefined
      let [differences, openExceptions] = [0, 0]
      for (const mid of mids) {
        if (performance.now() > until) return undefined
        for await (const finding of reconcileMerchant(createLedger(snapshot, mid), days)) {
          if (finding.type !== 'total') continue
          differences += finding.sums.differences
          openExceptions += finding.sums.openExceptions
        }
      }
      return { ...days, balances: differences + openExceptions === 0, differences, openExceptions }
    })
  } catch (error) {
    if (hasState(error, QUERY_CANCELED)) return undefined
    throw error
  }
}

/**
 * Merchants that had something in the books on these days, at most one more than MERCHANTS_READ. Payments and settlements
 * lie in the order of the time at which they were stored; a file may be dated some days ahead.
 */
async function activeMids(client: PoolClient, days: Days): Promise<string[]> {
  const [begin, end] = boundsOf(days)
  const { rows } = await client.query<{ mid: string }>(
    `select mid from settlements where known_at >= $1::timestamptz - interval '7 days' and initiated_at >= $1 and initiated_at < $2
      union select mid from payments where heard_at >= $1
      union select mid from payment_exceptions where received_at >= $1
      union select mid from refunds where status = 'SUCCESS' and ended_at >= $1
      union select mid from difference_resolutions where day >= $3::date and day <= $4::date
      limit ${MERCHANTS_READ + 1}`,
    [begin, end, days.from, days.to],
  )
  return rows.map(({ mid }) => mid)
}
