import { hasState, QUERY_CANCELED } from '../../platform/db/outage.ts'
import { type Database, readBriefly } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { startOfDay } from '../../platform/time.ts'
import { balancesBefore } from '../closing/brought-forward.ts'
import { type ClosedBase, readClosedBase } from '../closing/closed-items.ts'
import { findOpen } from '../closing/open-discrepancies.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import { type MerchantSnapshot, readMerchant } from '../reading/merchant.ts'
import { isMerchantError, type MerchantError, readOne, SAVEPOINT, snapshotOf } from '../reading/snapshot.ts'
import { openExceptions } from './reconcile.ts'

/**
 * The final line of `ops reconcile` for the same days. `open` summarizes the open discrepancies of all days until the
 * last of these days. The sum of these discrepancies is `owed`. Amounts are in paise.
 */
export type RecentBalance = Days & {
  balances: boolean
  /** Merchants that are not included in the figures, because they cannot be reconciled. */
  errors: MerchantError[]
  differences: number
  openExceptions: number
  carriedForward: Paise
  open: { count: number; owed: Paise; oldest: string | null }
}

/**
 * Largest number of merchants whose balance is computed here. If more merchants have movements, only `ops reconcile`
 * computes the balance.
 */
const MERCHANTS_READ = 200
/** Time limit for all merchants together. The elapsed time is checked between two merchants. */
const LONGEST_MS = 10_000

/**
 * Returns whether yesterday balances, together with the days whose payouts were expected yesterday. Also summarizes the
 * open discrepancies of all days. Returns undefined if the calculation takes too long or if too many merchants have
 * movements; closing months makes the calculation faster.
 */
export async function balanceUntilYesterday(
  db: Database,
  now: Date,
  statementTimeoutMs: number,
): Promise<RecentBalance | undefined> {
  const until = performance.now() + LONGEST_MS
  try {
    return await readBriefly(db, statementTimeoutMs, async (client) => {
      await client.query(`set transaction isolation level repeatable read; ${SAVEPOINT}`)
      const snapshot = await snapshotOf(client, now)
      const to = addDays(snapshot.today, -1)
      const closed = await readClosedBase(snapshot, snapshot.today)
      const days = { from: snapshot.bankDays.previousBankDay(to), to }
      const since = closed && startOfDay(addDays(closed.to, -31))
      const moved = await MIDS_SINCE(client, { since, month: closed?.month })
      if (moved.length > MERCHANTS_READ) return undefined
      const nothing = { count: 0, owed: 0, oldest: null }
      let all: Figures = { differences: 0, openExceptions: 0, carriedForward: 0, open: nothing }
      const errors: MerchantError[] = []
      for (const { mid } of moved) {
        if (performance.now() > until) return undefined
        const figures = await readOne(snapshot, mid, async () =>
          addMerchant(all, await readMerchant(snapshot, mid), days, closed),
        )
        if (isMerchantError(figures)) errors.push(figures)
        else all = figures
      }
      return { ...days, balances: errors.length + all.differences + all.openExceptions === 0, errors, ...all }
    })
  } catch (error) {
    if (hasState(error, QUERY_CANCELED)) return undefined
    throw error
  }
}

type Figures = Pick<RecentBalance, 'differences' | 'openExceptions' | 'carriedForward' | 'open'>

/** Returns the figures of all merchants, including one more merchant. */
async function addMerchant(
  all: Figures,
  merchant: MerchantSnapshot,
  days: Days,
  closed: ClosedBase | undefined,
): Promise<Figures> {
  const open = { ...all.open }
  let { differences } = all
  await findOpen(merchant, { closed, to: days.to }, (found) => {
    for (const { day, owed } of found) {
      if (day >= days.from) differences += 1
      open.count += 1
      open.owed = addPaise(open.owed, owed)
      if (open.oldest === null || day < open.oldest) open.oldest = day
    }
  })
  const exceptions = await openExceptions(merchant, days)
  const carriedForward = addPaise(all.carriedForward, (await balancesBefore(merchant, merchant.today, closed)).sum)
  return { differences, openExceptions: all.openExceptions + exceptions.length, carriedForward, open }
}

/**
 * Returns the merchants with movements in or after this closed month, at most `MERCHANTS_READ` plus one. Filters by the
 * time of storage, because payments and settlements are stored on disk in this order.
 */
const MIDS_SINCE = query<{ mid: string }, { since: Date | undefined; month: string | undefined }>(`
  select mid from closed_items where month = :month
   union select mid from settlements where recorded_at >= coalesce(:since::timestamptz, '-infinity')
   union select mid from payments where received_at >= coalesce(:since::timestamptz, '-infinity')
   union select mid from payment_exceptions where received_at >= coalesce(:since::timestamptz, '-infinity')
   union select mid from difference_resolutions where resolved_at >= coalesce(:since::timestamptz, '-infinity')
   limit ${MERCHANTS_READ + 1}`)
