import { query } from '../../platform/db/query.ts'
import { addPaise } from '../../platform/money.ts'
import type { ClosedBase } from '../closing/closed-items.ts'
import { daysOfMonth, IS_TOUCHED, readCloses } from '../closing/closed-months.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import { type MerchantSnapshot, readMerchant } from '../reading/merchant.ts'
import { amountOf, type Rest, readRests } from '../reading/rests.ts'
import { readMids, type Snapshot, snapshotOf } from '../reading/snapshot.ts'
import { byDay, changedMovements, type MoneyMovement, movementsOf, movementsOfRest } from './movements.ts'

/**
 * A movement on the day on which it is posted. A change that was recorded after the close of its month is posted on the last
 * day of the first month that was not closed then, and `originalDay` is its own day.
 */
export type Posting = MoneyMovement & { originalDay?: string }

/**
 * Days of a closed month as known at its close, or days after the last closed month as known at the time of the report.
 * Changes since the close of the month before, `closed`, are posted on `lateOn`.
 */
export type Period = {
  days: Days
  snapshot: Snapshot
  rests: readonly Rest[]
  closed: Closed | undefined
  lateOn: string
  /** Undefined if `lateOn` is not one of the days. */
  changes: Changes | undefined
}

type Closed = Omit<ClosedBase, 'sums'>

/** A closed month, and what was known at its close. `rests` are those that may have changed since. */
type Changes = { closed: Closed; snapshot: Snapshot; rests: Record<'before' | 'after', readonly Rest[]> }

/** Returns the periods of these days, oldest first, as known at the time of the snapshot. */
export async function readPeriods(snapshot: Snapshot, days: Days): Promise<Period[]> {
  const { client, known } = snapshot
  const closes = (await readCloses(client, { known })).map((one) => ({ ...one, to: daysOfMonth(one.month).to }))
  const periods: Period[] = []
  for (const [index, close] of [...closes, undefined].entries()) {
    const closed = closes[index - 1]
    const first = closed === undefined ? days.from : addDays(closed.to, 1)
    const from = first > days.from ? first : days.from
    const to = close !== undefined && close.to < days.to ? close.to : days.to
    if (from > to) continue
    const read = close === undefined ? snapshot : await snapshotOf(client, close.closedAt)
    const rests = await readRests(read, { days: { from, to } })
    const lateOn = daysOfMonth(first.slice(0, 7)).to
    const isLate = closed !== undefined && lateOn >= from && lateOn <= to
    const changes = isLate ? await readChanges(read, closed) : undefined
    periods.push({ days: { from, to }, snapshot: read, rests, closed, lateOn, changes })
  }
  return periods
}

async function readChanges(after: Snapshot, closed: Closed): Promise<Changes> {
  const { client, known } = after
  const { closedAt, to } = closed
  const snapshot = await snapshotOf(client, closedAt)
  const { end } = boundsOf({ from: to, to })
  const mids = await readMids(client, {})
  const changed = await CHANGED_RESTS(client, { known, closedAt, end, mids, until: addDays(to, 31) })
  const references = changed.map(({ reference }) => reference)
  const restsAt = async (read: Snapshot) =>
    references.length === 0
      ? []
      : (await readRests(read, { references })).filter((rest) => rest.day <= to && amountOf(rest) !== 0)
  return { closed, snapshot, rests: { before: await restsAt(snapshot), after: await restsAt(after) } }
}

/**
 * Payouts whose amounts beside settlement lines were changed by an import or an undo, or whose day and merchant a changed
 * line may decide. The lines of a payout and its report by the acquirer lie within 31 days.
 */
const CHANGED_RESTS = query<
  { reference: string },
  { known: Date; closedAt: Date; end: Date; until: string; mids: readonly string[] }
>(`
  select bank_reference_number as reference
    from payout_rests
    join settlement_imports using (import_id)
   where (imported_at > :closedAt and imported_at <= :known or undone_at > :closedAt and undone_at <= :known)
     and (day is null or day <= :until)
   union
  select reference
    from settlement_lines
   where mid = any (:mids) and at < :end::timestamptz + interval '31 days'
     and reference = any (array(select bank_reference_number from payout_rests where amount_paise <> 0))
     and ${IS_TOUCHED}`)

/** Returns the postings of a merchant in these periods, in date order. */
export async function postingsOf(mid: string, periods: readonly Period[]): Promise<Posting[]> {
  let postings: Posting[] = []
  for (const { days, snapshot, rests, lateOn, changes } of periods) {
    const merchant = await readMerchant(snapshot, mid)
    postings = postings.concat(await movementsOf(merchant, days, rests))
    if (changes !== undefined) postings = postings.concat(await changesOf(merchant, lateOn, changes))
  }
  // The sort is stable, so changes after a close come last on their day.
  return postings.sort(byDay)
}

/** Returns the postings of payouts that belong to no single merchant. */
export function sharedPostingsOf(periods: readonly Period[]): Posting[] {
  const postings = periods.flatMap(({ rests, lateOn, changes }): Posting[] => {
    const { before = [], after = [] } = changes?.rests ?? {}
    return [...restsOf(null, rests), ...differenceOf(restsOf(null, after), restsOf(null, before), lateOn)]
  })
  return postings.sort(byDay)
}

const restsOf = (mid: string | null, rests: readonly Rest[]) =>
  rests.filter((rest) => rest.mid === mid).flatMap(movementsOfRest)

/** Returns the changes of a merchant's movements since the close, posted on `lateOn`. */
async function changesOf(after: MerchantSnapshot, lateOn: string, changes: Changes): Promise<Posting[]> {
  const { closed, snapshot, rests } = changes
  const { mid } = after
  const before = await readMerchant(snapshot, mid)
  const { recorded, replaced } = await changedMovements(before, after, closed.to)
  return differenceOf([...recorded, ...restsOf(mid, rests.after)], [...replaced, ...restsOf(mid, rests.before)], lateOn)
}

/** Returns the difference of movements, by day, acquirer account, kind and reference, posted on `lateOn`. */
function differenceOf(after: readonly MoneyMovement[], before: readonly MoneyMovement[], lateOn: string): Posting[] {
  const sums = new Map<string, MoneyMovement>()
  for (const [movements, sign] of [[after, 1] as const, [before, -1] as const]) {
    for (const movement of movements) {
      const { day, account, kind, reference } = movement
      const key = JSON.stringify([day, account, kind, reference])
      sums.set(key, { ...movement, amount: addPaise(sums.get(key)?.amount ?? 0, sign * movement.amount) })
    }
  }
  const changed = [...sums.values()].filter(({ amount }) => amount !== 0).sort(byDay)
  return changed.map((one) => ({ ...one, day: lateOn, originalDay: one.day }))
}
