import { createHash } from 'node:crypto'
import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import type { MerchantSnapshot } from './merchant.ts'
import { formatSums, type Totals, totalsFrom } from './sums.ts'

export type Figures = Readonly<ReturnType<typeof figuresOf>>

/** Key for the figures of all merchants together. All other keys are `mid`s. */
export const ALL = '*'

/**
 * A closed month. `month` is `YYYY-MM`. `figures` contains the figures of each merchant by `mid`, and of all merchants
 * under `ALL`.
 */
export type ClosedMonth = {
  month: string
  closedAt: Date
  closedBy: string
  /** SHA-256 of the figures' JSON, in hex. */
  sha256: string
  figures: Readonly<Record<string, Figures>>
}

/**
 * Changes in a month since the month was closed: the figures that differ, and the ledger rows that explain the
 * differences.
 */
export type MonthChange = {
  closedAt: Date
  closedBy: string
  figures: { figure: string; was: string | number; is: string | number }[]
  rows: LedgerChange[]
}

/**
 * A ledger row or exception that was recorded, replaced or resolved after the month was closed. `amount` is in paise,
 * positive if the bank owes the amount. `importId` is the import that recorded or replaced the row.
 */
export type LedgerChange = {
  changedAt: Date
  change: 'recorded' | 'replaced' | 'resolved'
  day: string
  kind: string
  reference: string
  orderId: string | null
  amount: Paise
  importId: number | null
  exceptionId: string | null
}

/** Returns the first and last day of the month `YYYY-MM`. */
export function daysOfMonth(month: string): Days {
  const next = addDays(`${month}-28`, 4).slice(0, 7)
  return { from: `${month}-01`, to: addDays(`${next}-01`, -1) }
}

/**
 * Returns the figures to store for a closed month. Omits `awaited`, which changes with every later payout, and the two
 * parts of `resolved`.
 */
export function figuresOf(totals: Totals) {
  const { awaited, resolvedPlus, resolvedMinus, ...figures } = formatSums(totals)
  return figures
}

/** Returns the months that were closed by the time `known`, newest first. */
export const readClosedMonths = ({ client, known }: { client: Queryable; known: Date }): Promise<ClosedMonth[]> =>
  CLOSED_MONTHS(client, { known })

const CLOSED_MONTHS = query<ClosedMonth, { known: Date }>(`
  select month, closed_at, closed_by, sha256, figures
    from closed_months
   where closed_at <= :known
   order by month desc`)

/**
 * Stores a month's figures. A month is closed only once, so every later call returns the figures of the first close.
 * `isNew` is true only for the first call.
 */
export async function closeMonth(
  db: Queryable,
  { figures, ...closing }: Omit<ClosedMonth, 'sha256'>,
): Promise<{ stored: ClosedMonth; isNew: boolean }> {
  const text = JSON.stringify(figures)
  const sha256 = createHash('sha256').update(text).digest('hex')
  const inserted = await INSERT(db, { ...closing, sha256, figures: text })
  const [stored] = await CLOSED_MONTH(db, closing)
  return { stored: stored as ClosedMonth, isNew: inserted.length > 0 }
}

const INSERT = query<object, Omit<ClosedMonth, 'figures'> & { figures: string }>(`
  insert into closed_months (month, closed_at, closed_by, sha256, figures)
  values (:month, :closedAt, :closedBy, :sha256, :figures)
  on conflict do nothing
  returning 1`)

const CLOSED_MONTH = query<ClosedMonth, { month: string }>(`
  select month, closed_at, closed_by, sha256, figures from closed_months where month = :month`)

/**
 * Returns whether a month has no payment, settlement or import, which suggests that the operator mistyped the month.
 */
export async function isEmptyMonth(db: Queryable, month: string, { [ALL]: all }: ClosedMonth['figures']) {
  if (all && all.payments + all.settlements > 0) return false
  return (await IMPORTS(db, boundsOf(daysOfMonth(month)))).length === 0
}

const IMPORTS = query<object, { begin: Date; end: Date }>(`
  select 1 as found from settlement_imports where imported_at >= :begin and imported_at < :end
   union all
  select 1 from statement_imports where imported_at >= :begin and imported_at < :end
   limit 1`)

/** Returns the closed month that consists of exactly these days, or undefined. */
export const closedMonthOf = ({ from, to }: Days, closed: readonly ClosedMonth[]): ClosedMonth | undefined =>
  closed.find(({ month }) => from === daysOfMonth(month).from && to === daysOfMonth(month).to)

/** Returns the figures of a merchant, or of `ALL`, that differ from the figures stored when the month was closed. */
export function differingFigures(month: ClosedMonth, mid: string, totals: Totals): MonthChange['figures'] {
  const stored = month.figures[mid] ?? figuresOf(totalsFrom(0))
  const figures: [string, string | number | undefined][] = Object.entries(figuresOf(totals))
  return figures
    .map(([figure, is = 0]) => ({ figure, was: stored[figure as keyof Figures] ?? is, is }))
    .filter(({ was, is }) => was !== is)
}

/** Returns the changes to a merchant's figures since the month was closed, or undefined if nothing has changed. */
export async function changesSince(
  { client, mid, known, unknownOrders }: MerchantSnapshot,
  closed: ClosedMonth,
  totals: Totals,
): Promise<MonthChange | undefined> {
  const { month, closedAt, closedBy } = closed
  const { to } = daysOfMonth(month)
  const figures = differingFigures(closed, mid, totals)
  const explained = unknownOrders.map(({ utr }) => utr)
  const rows = await CHANGES(client, { mid, known, closedAt, explained, end: boundsOf({ from: to, to }).end, to })
  return figures.length + rows.length === 0 ? undefined : { closedAt, closedBy, figures, rows }
}

/** Largest number of changes listed for one month. */
const MOST_CHANGES = 1_000

/**
 * Lists a merchant's movements before :end, and its exceptions, if they were recorded, replaced or resolved after the
 * month was closed.
 */
const CHANGES = query<
  LedgerChange,
  { mid: string; known: Date; closedAt: Date; explained: readonly string[]; end: Date; to: string }
>(`
  -- Materialized, because Citus would otherwise search for the movements of a merchant on the shard of unknown orders.
  with reported as materialized (
    select day, kind, utr, order_id, amount_paise, received_at, resolved_at, exception_id
      from money_exceptions
     where (mid = :mid or mid = '' and utr = any (:explained::text[])) and received_at <= :known
       and (received_at > :closedAt or resolved_at > :closedAt and resolved_at <= :known)
  )
  select changed_at, change, day, case kind when 'second' then 'duplicate payment' else kind end as kind, reference, order_id,
         amount_paise as amount, import_id, exception_id
    from (select case when replaced_at <= :known then replaced_at else recorded_at end as changed_at,
                 case when replaced_at <= :known then 'replaced' else 'recorded' end as change,
                 day, kind, name as reference, order_id, amount_paise,
                 case when replaced_at <= :known then replaced_by_import_id else import_id end as import_id, null as exception_id
            from ledger
           where mid = :mid and at < :end
             and (recorded_at > :closedAt and recorded_at <= :known and replaced_at > :known
                  or recorded_at <= :closedAt and replaced_at > :closedAt and replaced_at <= :known)
           union all
          select case when resolved_at <= :known then resolved_at else received_at end,
                 case when resolved_at <= :known then 'resolved' else 'recorded' end, day, kind, utr, order_id, amount_paise,
                 null, exception_id
            from reported e
           where day <= :to::date or exists (select from ledger l where l.mid = :mid and l.item = e.utr and l.at < :end)) each
   order by changed_at, day, reference
   limit ${MOST_CHANGES}`)
