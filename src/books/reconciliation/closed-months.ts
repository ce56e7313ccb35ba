import { createHash } from 'node:crypto'
import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import type { Ledger } from '../ledger/read-ledger.ts'
import { boundsOf, CARRIED_UTR } from '../ledger/sql.ts'
import { spellSums, type Totals, totalsFrom } from './sums.ts'

export type Figures = Readonly<Omit<ReturnType<typeof spellSums>, (typeof NOT_KEPT)[number]>>

/** Figures of all merchants together, beside those of each mid. */
export const ALL = '*'

/** `figures` are of each merchant, and of ALL. `month` is `YYYY-MM`. */
export type ClosedMonth = {
  month: string
  closedAt: Date
  closedBy: string
  /** SHA-256 of the figures' JSON, in hex. */
  sha256: string
  figures: Readonly<Record<string, Figures>>
}

/** What has changed in a month since it was closed: each figure that differs, and who has changed the books since. */
export type MonthChange = {
  closedAt: Date
  closedBy: string
  figures: { figure: string; was: string | number; is: string | number }[]
  by: string[]
}

/** The days of the month `YYYY-MM`. */
export function daysOfMonth(month: string): Days {
  const next = addDays(`${month}-28`, 4).slice(0, 7)
  return { from: `${month}-01`, to: addDays(`${next}-01`, -1) }
}

/** Figures that are not kept: what is awaited changes with every later payout, and both parts of `resolved` are in it. */
const NOT_KEPT = ['awaited', 'open', 'resolvedPlus', 'resolvedMinus'] as const

/** The figures of a month that are kept. */
export function figuresOf(totals: Totals): Figures {
  const isKept = (name: string) => !NOT_KEPT.some((other) => other === name)
  return Object.fromEntries(Object.entries(spellSums(totals)).filter(([name]) => isKept(name))) as Figures
}

const COLUMNS = 'month, closed_at as "closedAt", closed_by as "closedBy", sha256, figures'

/** The months that were closed until `known`, newest first. */
export async function readClosedMonths({ client, known }: { client: Queryable; known: Date }): Promise<ClosedMonth[]> {
  const { rows } = await client.query<ClosedMonth>(
    `select ${COLUMNS} from closed_months where closed_at <= $1 order by month desc`,
    [known],
  )
  return rows
}

/** Keeps a month's figures. Returns what is kept, which is of the first closing; `isNew` when this is the first. */
export async function closeMonth(
  db: Queryable,
  { month, closedAt, closedBy, figures }: Omit<ClosedMonth, 'sha256'>,
): Promise<{ kept: ClosedMonth; isNew: boolean }> {
  const text = JSON.stringify(figures)
  const inserted = await db.query(
    `insert into closed_months (month, closed_at, closed_by, sha256, figures) values ($1, $2, $3, $4, $5)
     on conflict do nothing
     returning 1`,
    [month, closedAt, closedBy, createHash('sha256').update(text).digest('hex'), text],
  )
  const { rows } = await db.query<ClosedMonth>(`select ${COLUMNS} from closed_months where month = $1`, [month])
  return { kept: rows[0] as ClosedMonth, isNew: inserted.rows.length > 0 }
}

/** Whether a month has no payment, no settlement and no import, so that its name is probably mistyped. */
export async function isEmptyMonth(db: Queryable, month: string, { [ALL]: all }: ClosedMonth['figures']) {
  if (all && all.payments + all.settlements > 0) return false
  const { rows } = await db.query(
    `select from settlement_imports where imported_at >= $1 and imported_at < $2
      union all
     select from statement_imports where imported_at >= $1 and imported_at < $2
      limit 1`,
    boundsOf(daysOfMonth(month)),
  )
  return rows.length === 0
}

/** The closed month that these days are, if they are one. */
export const closedMonthOf = ({ from, to }: Days, closed: readonly ClosedMonth[]): ClosedMonth | undefined =>
  closed.find(({ month }) => from === daysOfMonth(month).from && to === daysOfMonth(month).to)

/** What a merchant's books of a closed month say otherwise now; undefined where nothing differs. */
export async function compareWithClosed(
  ledger: Ledger,
  month: ClosedMonth,
  totals: Totals,
): Promise<MonthChange | undefined> {
  const { to } = daysOfMonth(month.month)
  const figures = differingFigures(month, ledger.mid, totals)
  const by = await changesSince(ledger, month.closedAt, to)
  if (figures.length > 0 && (await becameDue(ledger, month.closedAt, to))) by.push(NOT_DUE_YET)
  if (figures.length === 0 && by.length === 0) return undefined
  return { closedAt: month.closedAt, closedBy: month.closedBy, figures, by }
}

/** The figures of a merchant, or of ALL, that are not what was stored when the month was closed. */
export function differingFigures(month: ClosedMonth, mid: string, totals: Totals): MonthChange['figures'] {
  const stored = month.figures[mid] ?? figuresOf(totalsFrom(0))
  return Object.entries(figuresOf(totals))
    .map(([figure, is = 0]) => ({ figure, was: stored[figure as keyof Figures] ?? 0, is }))
    .filter(({ was, is }) => was !== is)
}

const NOT_DUE_YET = 'payments that were not due yet'

/** Whether a payment of the days until `to` was not due when the month was closed: a payment is judged after the next bank day. */
async function becameDue({ client, mid, known, bankDays }: Ledger, closedAt: Date, to: string) {
  const dueFrom = (moment: Date) => startOfDay(bankDays.previousBankDay(toIstDay(moment)))
  const { rows } = await client.query(
    `select from payments
      where mid = $1 and coalesce(paid_at, received_at) >= $2 and coalesce(paid_at, received_at) < least($3::timestamptz, $4)
      limit 1`,
    [mid, dueFrom(closedAt), dueFrom(known), boundsOf({ from: to, to })[1]],
  )
  return rows.length > 0
}

/**
 * Names who has changed the merchant's books of the days until `to` after `since`: imports, undos, reports, refunds, exceptions,
 * resolutions, bank holidays. A row that one file brought and changed counts once.
 */
async function changesSince(ledger: Ledger, since: Date, to: string): Promise<string[]> {
  const { client, mid, known } = ledger
  const ofNoOrder = ledger.noOrderSince(since)
  const [, end] = boundsOf({ from: to, to })
  const by = ofNoOrder.map(({ exceptionId, resolvedAt }) =>
    resolvedAt !== null && resolvedAt > since ? `resolution of exception ${exceptionId}` : `exception ${exceptionId}`,
  )
  const told = [by, ofNoOrder.map(({ utr }) => utr)]
  const values = [mid, known, since, end, to, orderIdsBegin(end), ...told]
  const { rows } = await client.query<{ by: string; rows: number }>(CHANGES, values)
  return rows.map(({ by, rows }) => (rows > 1 ? `${by} (${rows})` : by))
}

/** Condition for rows that count on the days, or carry one of their payments that was said to have failed. */
const OF_THE_DAYS = `(initiated_at < $4 or ${CARRIED_UTR} in (
  select upper(i.utr)
    from payment_exceptions e
    join payment_intents i on i.mid = $1 and i.order_id = e.order_id
   where e.mid = $1 and e.kind = 'failure after success' and e.order_id < $6))`

const CHANGES = `
  select by, count(distinct what)::integer as rows
    from (
      select 'import ' || i.import_id as by, s.utr as what
        from settlements s
        join settlement_imports i on i.import_id = s.import_id and i.imported_at > $3
       where s.mid = $1 and s.recorded_at > $3 and s.recorded_at <= $2 and ${OF_THE_DAYS}
       union all
      select case when undone then 'undo of import ' else 'import ' end || replaced_by_import_id, utr
        from settlement_versions
       where mid = $1 and replaced_at > $3 and replaced_at <= $2 and ${OF_THE_DAYS}
       union all
      select 'report by ' || p.source || ' of order ' || p.order_id, p.order_id
        from payments p
       where p.mid = $1 and p.kind <> 'second' and p.received_at > $3 and p.received_at <= $2 and coalesce(p.paid_at, p.received_at) < $4
       union all
      select 'refund ' || r.our_refund_id || ' by ' || r.created_by, r.our_refund_id
        from refunds r
        join payments p on p.mid = $1 and p.utr = r.utr and coalesce(p.paid_at, p.received_at) < $4
       where r.mid = $1 and r.status = 'SUCCESS' and r.ended_at > $3 and r.ended_at <= $2
       union all
      select case when name is null then 'removed' else 'added' end || ' bank holiday ' || to_char(day, 'YYYY-MM-DD') || ' by '
             || changed_by, change::text
        from bank_holiday_changes
       where changed_at > $3 and changed_at <= $2 and day <= $5
       union all
      select 'resolution of difference ' || difference_id, entry::text
        from difference_resolutions
       where mid = $1 and resolved_at > $3 and resolved_at <= $2 and day <= $5 and kind <> 'short payout'
       union all
      select case when r.resolved_at > $3 then 'resolution of ' else '' end || 'exception ' || e.exception_id, e.exception_id
        from payment_exceptions e
        left join payment_resolutions r on r.mid = $1 and r.exception_id = e.exception_id and r.resolved_at <= $2
       where e.mid = $1 and e.received_at <= $2 and (e.received_at > $3 or r.resolved_at > $3)
         and (e.received_at < $4 or e.order_id < $6 or exists (
               select from settlements s
                where s.mid = $1 and ${CARRIED_UTR} = upper(e.utr) and s.initiated_at < $4))
       union all
      select told.by, told.utr
        from unnest($7::text[], $8::text[]) as told (by, utr)
       where exists (
               select from settlements s
                where s.mid = $1 and ${CARRIED_UTR} = told.utr and s.initiated_at < $4)) changed
   group by by
   order by by`
