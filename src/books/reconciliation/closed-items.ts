import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, boundsOf, countDays, type Days } from '../ledger/bank-days.ts'
import { daysOfMonth } from './closed-months.ts'
import type { MerchantSnapshot } from './merchant.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * A closed month with its open items. A report continues from these items instead of reading all earlier movements.
 * `sums` maps each `mid` to the current sum of all earlier movements in paise.
 */
export type ClosedBase = { month: string; closedAt: Date; to: string; sums: ReadonlyMap<string, Paise> }

/** Returns the newest closed month before `day` whose open items are stored, as known at the time of the snapshot. */
export async function readClosedBase(
  { client, known }: Pick<Snapshot, 'client' | 'known'>,
  day: string,
): Promise<ClosedBase | undefined> {
  const [closed] = await NEWEST(client, { known, before: day.slice(0, 7) })
  if (closed === undefined) return undefined
  const { to } = daysOfMonth(closed.month)
  const sums = await SUMS(client, { ...closed, known, end: boundsOf({ from: to, to }).end })
  return { ...closed, to, sums: new Map(sums.map(({ mid, sum }) => [mid, sum])) }
}

type ClosedAt = { month: string; closedAt: Date }

const NEWEST = query<ClosedAt, { known: Date; before: string }>(`
  select month, closed_at
    from closed_months
   where closed_at <= :known and month < :before and month in (select month from closed_items)
   order by month desc
   limit 1`)

/** Adds the changes since the month was closed to the balances carried forward. */
const SUMS = query<{ mid: string; sum: Paise }, ClosedAt & { known: Date; end: Date }>(`
  select mid, sum(paise)::bigint as sum
    from (select mid, balance_paise as paise from closed_items where month = :month
           union all
          select mid, case when recorded_at <= :closedAt then -amount_paise else amount_paise end
            from ledger
           where at < :end
             and (recorded_at > :closedAt and recorded_at <= :known and replaced_at > :known
                  or recorded_at <= :closedAt and replaced_at > :closedAt and replaced_at <= :known)) each
   group by mid`)

/**
 * Returns ranges of days until `to` on which the merchant may have open discrepancies. The ranges contain days of
 * discrepancies that were open when the month was closed, days of items that changed after the month was closed, and
 * days that were not judged yet when the month was closed.
 */
export async function daysSince(
  merchant: MerchantSnapshot,
  { month, closedAt, to: end }: ClosedBase,
  to: string,
): Promise<Days[]> {
  const { client, mid, known, bankDays, unknownOrders } = merchant
  const unjudged = bankDays.previousBankDay(toIstDay(closedAt))
  const from = unjudged <= end ? unjudged : addDays(end, 1)
  const reported = unknownOrders.filter(
    ({ receivedAt, resolvedAt }) => receivedAt > closedAt || (resolvedAt !== null && resolvedAt > closedAt),
  )
  const params = { mid, known, closedAt, month, end: startOfDay(from), reported: reported.map(({ utr }) => utr) }
  // Includes all days of a payout, because one line may change the payout's form and thus the result for the other
  // payments in the payout.
  const changed = (await CHANGED_DAYS(client, params)).flatMap(({ day }) =>
    daysFrom(bankDays.previousBankDay(bankDays.bankDayFrom(day)), bankDays.nextBankDay(day)),
  )
  const days = [...new Set(changed)].filter((day) => day < from && day <= to).sort()
  const runs: Days[] = []
  for (const day of days) {
    const last = runs.at(-1)
    if (last !== undefined && addDays(last.to, 1) === day) last.to = day
    else runs.push({ from: day, to: day })
  }
  return from <= to ? [...runs, { from, to }] : runs
}

const daysFrom = (from: string, to: string) =>
  Array.from({ length: countDays(from, to) }, (_, index) => addDays(from, index))

/**
 * Returns the days before :end on which the merchant may have open discrepancies. The result contains days of
 * discrepancies that were open when the month was closed, and days of items with a movement that was recorded,
 * replaced, reported or resolved after the month was closed. Movements dated :end or later are included, because they
 * may name a payment that an earlier payout by totals included.
 */
const CHANGED_DAYS = query<
  { day: string },
  ClosedAt & { mid: string; known: Date; end: Date; reported: readonly string[] }
>(`
  with touched as materialized (
    select item
      from ledger
     where mid = :mid and at < :end
       and (recorded_at > :closedAt and recorded_at <= :known or replaced_at > :closedAt and replaced_at <= :known)
     union all
    select p.utr
      from settlement_lines line
      join payments p on p.mid = :mid and p.utr = line.item
     where line.mid = :mid and line.at >= :end and coalesce(p.paid_at, p.received_at) < :end
       and (line.recorded_at > :closedAt and line.recorded_at <= :known
            or line.replaced_at > :closedAt and line.replaced_at <= :known)
     union all
    select utr
      from money_exceptions
     where mid = :mid and utr <> '' and (received_at > :closedAt or resolved_at > :closedAt)
     union all
    select utr collate "C" from unnest(:reported::text[]) as utr
     union all
    select p.utr
      from money_exceptions e
      join payments p on p.mid = :mid and p.order_id = e.order_id
     where e.mid = :mid and e.kind = 'failure after success' and (e.received_at > :closedAt or e.resolved_at > :closedAt)
  )
  select distinct day
    from (select day from closed_items where mid = :mid and month = :month
           union all
          select l.day from touched t join ledger l on l.mid = :mid and l.item = t.item and l.at < :end
           union all
          -- A changed bank holiday may change the result for any day.
          select l.day
            from ledger l
           where l.mid = :mid and l.at < :end
             and exists (select from bank_holiday_changes where changed_at > :closedAt and changed_at <= :known)) each`)
