import type { PoolClient } from 'pg'
import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Paise } from '../../platform/money.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import type { Difference } from '../ledger/differences.ts'
import type { Ledger } from '../ledger/read-ledger.ts'
import { boundsOf, KNOWN, textOf } from '../ledger/sql.ts'
import { daysOfMonth } from './closed-months.ts'

/**
 * Where reading may begin: at the end of a closed month. `sums` are what all movements until then add up to by now, in paise, by
 * mid.
 */
export type ClosedBase = { month: string; closedAt: Date; to: string; sums: ReadonlyMap<string, Paise> }

/** What is carried forward from a month, in paise: each open difference, and the rest of what the movements add up to. */
export async function storeClosedItems(
  db: Queryable,
  month: string,
  open: readonly Pick<Difference, 'mid' | 'id' | 'day' | 'owed'>[],
  sums: ReadonlyMap<string, Paise>,
): Promise<void> {
  const rest = new Map(sums)
  for (const { mid, owed } of open) rest.set(mid, (rest.get(mid) ?? 0) - owed)
  const { to } = daysOfMonth(month)
  const items = [
    ...open.map(({ mid, id, day, owed }) => ({ mid, item: id, day, balance: owed })),
    ...[...rest].filter(([, sum]) => sum !== 0).map(([mid, sum]) => ({ mid, item: '', day: to, balance: sum })),
  ]
  await db.query(
    `insert into closed_items (mid, month, item, day, balance_paise)
     select mid, $1, item, day, balance
       from json_to_recordset($2) as i (mid text, item text, day date, balance bigint)`,
    [month, JSON.stringify(items)],
  )
}

/** What the movements of all days until `to` add up to, in paise, by mid. */
export async function sumsUntil(db: Queryable, to: string, known: Date): Promise<Map<string, Paise>> {
  const { rows } = await db.query<{ mid: string; sum: Paise }>(
    `select mid, sum(amount_paise)::bigint as sum from ledger where at < $1 and ${KNOWN} group by mid`,
    [boundsOf({ from: to, to })[1], known],
  )
  return new Map(rows.map(({ mid, sum }) => [mid, sum]))
}

/** The newest month that ended before `day`, had been closed by the time `known`, and whose items are stored. */
export async function readClosedBase(client: PoolClient, known: Date, day: string): Promise<ClosedBase | undefined> {
  const { rows } = await client.query<{ month: string; closedAt: Date }>(
    `select month, closed_at as "closedAt"
       from closed_months
      where closed_at <= $1 and month < $2 and month in (select month from closed_items)
      order by month desc
      limit 1`,
    [known, day.slice(0, 7)],
  )
  const [closed] = rows
  if (closed === undefined) return undefined
  const { to } = daysOfMonth(closed.month)
  const sums = await client.query<{ mid: string; sum: Paise }>(
    `select mid, sum(paise)::bigint as sum
       from (select mid, balance_paise as paise from closed_items where month = $1
              union all
             select mid, case when recorded_at <= $3 then -amount_paise else amount_paise end
               from ledger
              where at < $4 and (recorded_at > $3 and ${KNOWN} or recorded_at <= $3 and replaced_at > $3 and replaced_at <= $2)
            ) each
      group by mid`,
    [closed.month, known, closed.closedAt, boundsOf({ from: to, to })[1]],
  )
  return { ...closed, to, sums: new Map(sums.rows.map(({ mid, sum }) => [mid, sum])) }
}

/**
 * The days until `to` on which the merchant may have an open difference, as runs of days: those of the differences that were open
 * when the month was closed, those of items that have changed since, and all that were not judged then.
 */
export async function daysSince(ledger: Ledger, { month, closedAt, to: end }: ClosedBase, to: string): Promise<Days[]> {
  const { client, mid, known, bankDays } = ledger
  const unjudged = bankDays.previousBankDay(toIstDay(closedAt))
  const from = unjudged <= end ? unjudged : addDays(end, 1)
  const ofNoOrder = ledger.noOrderSince(closedAt).map(({ utr }) => utr)
  const { rows } = await client.query<{ day: string }>(
    DAYS_SINCE(mid, known, closedAt, startOfDay(from), month, ofNoOrder),
  )
  const changed = rows.flatMap(({ day }) => [day, bankDays.bankDayFrom(day), bankDays.nextBankDay(day)])
  const days = [...new Set(changed)].filter((day) => day < from && day <= to).sort()
  const runs: Days[] = []
  for (const day of days) {
    const last = runs.at(-1)
    if (last !== undefined && addDays(last.to, 1) === day) last.to = day
    else runs.push({ from: day, to: day })
  }
  return from <= to ? [...runs, { from, to }] : runs
}

/**
 * The days before $4 of the differences of merchant $1 that were open when month $5 was closed at $3, and of all movements of items
 * of which something was recorded, replaced, reported or resolved since; $6 are items of exceptions of no known order.
 */
const DAYS_SINCE = prepared(`
  with touched as materialized (
    select item
      from ledger
     where mid = $1 and at < $4 and (recorded_at > $3 and recorded_at <= $2 or replaced_at > $3 and replaced_at <= $2)
     union all
    select upper(e.utr) collate "C"
      from payment_exceptions e
      left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
     where e.mid = $1 and e.utr <> '' and (e.received_at > $3 or r.resolved_at > $3)
     union all
    select utr collate "C" from unnest($6::text[]) as utr
     union all
    select p.utr
      from payment_exceptions e
      left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      join payments p on p.mid = $1 and p.order_id = e.order_id
     where e.mid = $1 and e.kind = 'failure after success' and (e.received_at > $3 or r.resolved_at > $3)
  )
  select distinct ${textOf('day')} as day
    from (select day from closed_items where mid = $1 and month = $5
           union all
          select l.day from touched t join ledger l on l.mid = $1 and l.item = t.item and l.at < $4
           union all
          -- Another calendar may judge every day otherwise.
          select l.day
            from ledger l
           where l.mid = $1 and l.at < $4
             and exists (select from bank_holiday_changes where changed_at > $3 and changed_at <= $2)) each`)
