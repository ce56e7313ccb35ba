import { createHash } from 'node:crypto'
import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { nextDay, startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import { formatSums, type Totals, totalsFrom } from '../ledger/sums.ts'
import type { MerchantSnapshot } from '../reading/merchant.ts'

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
  /** SHA-256 of the text of `figures` as stored, in hex. */
  sha256: string
  figures: Readonly<Record<string, Figures>>
}

/**
 * Changes in a month since the month was closed: the figures that differ, and the ledger rows that explain the
 * differences. Rows dated after the month are listed last, and only if a figure differs.
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
  return { from: `${month}-01`, to: addDays(`${nextMonth(month)}-01`, -1) }
}

/** Returns the month after the month `YYYY-MM`. */
export const nextMonth = (month: string): string => addDays(`${month}-28`, 4).slice(0, 7)

/**
 * Returns the figures to store for a closed month. Omits `awaited`, which changes with every later payout, and the two
 * parts of `resolved`.
 */
export function figuresOf(totals: Totals) {
  const { awaited, resolvedPlus, resolvedMinus, ...figures } = formatSums(totals)
  return figures
}

/** Returns the months that were closed by the time `known`, newest first. */
export const readClosedMonths = query<ClosedMonth, { known: Date }>(`
  select month, closed_at, closed_by, sha256, figures
    from closed_months
   where closed_at <= :known
   order by month desc`)

/** Returns the SHA-256 of the text under which the figures are stored, in hex. */
export const sha256Of = (figures: ClosedMonth['figures']) =>
  createHash('sha256').update(JSON.stringify(figures)).digest('hex')

/**
 * Stores a month's figures. A month is closed only once, so every later call returns the figures of the first close.
 * `isNew` is true only for the first call.
 */
export async function closeMonth(
  db: Queryable,
  { figures, ...closing }: Omit<ClosedMonth, 'sha256'>,
): Promise<{ stored: ClosedMonth; isNew: boolean }> {
  const text = JSON.stringify(figures)
  const inserted = await INSERT(db, { ...closing, sha256: sha256Of(figures), figures: text })
  return { stored: (await findClosedMonth(db, closing.month)) as ClosedMonth, isNew: inserted.length > 0 }
}

const INSERT = query<object, Omit<ClosedMonth, 'figures'> & { figures: string }>(`
  insert into closed_months (month, closed_at, closed_by, sha256, figures)
  values (:month, :closedAt, :closedBy, :sha256, :figures)
  on conflict do nothing
  returning 1`)

/** Returns the closed month, or undefined if the month is not closed. */
export async function findClosedMonth(db: Queryable, month: string): Promise<ClosedMonth | undefined> {
  const [found] = await CLOSED_MONTH(db, { month })
  return found
}

const CLOSED_MONTH = query<ClosedMonth, { month: string }>(`
  select month, closed_at, closed_by, sha256, figures from closed_months where month = :month`)

/** Returns the months that were closed by the time `known`, oldest first, without their figures. */
export const readCloses = query<Pick<ClosedMonth, 'month' | 'closedAt'>, { known: Date }>(`
  select month, closed_at from closed_months where closed_at <= :known order by month`)

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
  merchant: MerchantSnapshot,
  closed: ClosedMonth,
  totals: Totals,
): Promise<MonthChange | undefined> {
  const { client, mid, known, unknownOrders } = merchant
  const { month, closedAt, closedBy } = closed
  const { to } = daysOfMonth(month)
  const figures = differingFigures(closed, mid, totals)
  const explained = unknownOrders.map(({ utr }) => utr)
  const rows = await CHANGES(client, { mid, known, closedAt, explained, end: boundsOf({ from: to, to }).end, to })
  if (figures.length > 0) rows.push(...(await readLaterChanges(merchant, closed, MOST_CHANGES - rows.length)))
  return figures.length + rows.length === 0 ? undefined : { closedAt, closedBy, figures, rows }
}

/** Largest number of changes listed for one month. */
const MOST_CHANGES = 1_000

/**
 * Returns changed movements that are dated after the month and may change discrepancies of days that were judged when the
 * month was closed.
 */
function readLaterChanges(
  { client, mid, known, bankDays, refunds, matched }: MerchantSnapshot,
  { month, closedAt }: ClosedMonth,
  limit: number,
): Promise<LedgerChange[]> {
  const { from, to } = daysOfMonth(month)
  const { end } = boundsOf({ from, to })
  const unjudged = bankDays.previousBankDay(toIstDay(closedAt))
  const isJudged = unjudged > to
  const deducted = refunds.flatMap(({ refundId, day }) => {
    const row = matched.rowOf.get(refundId)
    return row !== undefined && row.day > to && day >= from && day <= to && day < unjudged ? [row.item] : []
  })
  return LATER_CHANGES(client, {
    ...{ mid, known, closedAt, end, deducted, limit },
    // The month's first payout covers payments since the bank day before, and its last payout is due after the month.
    begin: startOfDay(bankDays.previousBankDay(from)),
    judgedEnd: isJudged ? end : startOfDay(unjudged),
    payoutEnd: isJudged ? nextDay(startOfDay(bankDays.nextBankDay(to))) : end,
  })
}

/** Columns of a changed movement in the ledger. */
const CHANGE = `
  case when replaced_at <= :known then replaced_at else recorded_at end as changed_at,
  case when replaced_at <= :known then 'replaced' else 'recorded' end as change,
  day, kind, name as reference, order_id, amount_paise,
  case when replaced_at <= :known then replaced_by_import_id else import_id end as import_id`

/** SQL condition that a line or movement was recorded or replaced after the month was closed. */
export const IS_TOUCHED =
  '(recorded_at > :closedAt and recorded_at <= :known or replaced_at > :closedAt and replaced_at <= :known)'

/** SQL condition that a movement is valid now or was valid when the month was closed, but not both. */
export const IS_CHANGED = `
  (recorded_at > :closedAt and recorded_at <= :known and replaced_at > :known
   or recorded_at <= :closedAt and replaced_at > :closedAt and replaced_at <= :known)`

/** SQL expression for the kind of a movement or exception. */
const KIND = `case kind when 'second' then 'duplicate payment' else kind end`

/** SQL condition that the movements of an item do not add up to 0. A resolution may hide a balance. */
const HAS_BALANCE = `(sum(amount_paise) <> 0 or sum(amount_paise) filter (where kind <> 'resolution') <> 0)`

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
  select changed_at, change, day, ${KIND} as kind, reference, order_id, amount_paise as amount, import_id, exception_id
    from (select ${CHANGE}, null as exception_id
            from ledger
           where mid = :mid and at < :end and ${IS_CHANGED}
           union all
          select case when resolved_at <= :known then resolved_at else received_at end,
                 case when resolved_at <= :known then 'resolved' else 'recorded' end, day, kind, utr, order_id, amount_paise,
                 null, exception_id
            from reported e
           where day <= :to::date or exists (select from ledger l where l.mid = :mid and l.item = e.utr and l.at < :end)) each
   order by changed_at, day, reference
   limit ${MOST_CHANGES}`)

type Later = { mid: string; known: Date; closedAt: Date; begin: Date; judgedEnd: Date; end: Date; payoutEnd: Date } & {
  deducted: readonly string[]
  limit: number
}

/**
 * Lists changed movements from :end of three kinds of items: items of the month with a balance when the month was
 * closed, items of lines that deduct a refund of the month (:deducted), and items of changed lines that decide the form
 * of the month's last payout (before :payoutEnd). A resolution clears no balance, because the item may change
 * afterwards. A movement that was replaced after the close clears no balance, because the item changed then.
 */
const LATER_CHANGES = query<LedgerChange, Later>(`
  with moved as materialized (
    select item
      from ledger
     where mid = :mid and at >= :begin and at < :judgedEnd and recorded_at <= :closedAt and replaced_at > :known
     group by item
    having ${HAS_BALANCE}
  ), open as (
    select item
      from ledger
     where mid = :mid and item = any (array(select item from moved)) and recorded_at <= :closedAt and replaced_at > :known
     group by item
    having ${HAS_BALANCE}
  ), touched as (
    select item from open
     union
    select item collate "C" from unnest(:deducted::text[]) as item
     union
    select item from ledger where mid = :mid and at >= :end and at < :payoutEnd and kind = 'settlement' and ${IS_CHANGED}
  )
  select changed_at, change, day, ${KIND} as kind, reference, order_id, amount_paise as amount, import_id, null as exception_id
    from (select ${CHANGE}
            from ledger
           where mid = :mid and item = any (array(select item from touched)) and at >= :end and kind <> 'resolution'
             and ${IS_CHANGED}) each
   order by changed_at, day, reference
   limit :limit`)
