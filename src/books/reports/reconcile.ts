import { orderIdsBegin } from '../../gateway/payments/intent.ts'
import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { type Balances, balancesBefore } from '../closing/brought-forward.ts'
import { type ClosedBase, readClosedBase } from '../closing/closed-items.ts'
import {
  ALL,
  type ClosedMonth,
  changesSince,
  closedMonthOf,
  daysOfMonth,
  differingFigures,
  type MonthChange,
  readClosedMonths,
} from '../closing/closed-months.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import { type Discrepancy, dayOfDiscrepancy } from '../ledger/discrepancies.ts'
import { addSums, addTotals, type Balance, carriedBy, type Sums, type Totals, totalsFrom } from '../ledger/sums.ts'
import { type Book, judgeDays, readBook } from '../reading/book.ts'
import {
  type MerchantSnapshot,
  readMerchant,
  type WithMerchantOrderId,
  withMerchantOrderIds,
} from '../reading/merchant.ts'
import {
  IMPORT_AS_KNOWN,
  inSnapshot,
  isMerchantError,
  type MerchantError,
  type Merchants,
  readMids,
  readOne,
  readSnapshot,
} from '../reading/snapshot.ts'

/** The reconciliation of one merchant. Exceptions for unknown orders come last, under an empty `mid`. */
export type MerchantBook = Pick<Book, 'form' | 'unlisted'> & {
  mid: string
  discrepancies: WithMerchantOrderId<Discrepancy>[]
  exceptions: WithMerchantOrderId<OpenException>[]
  /** Each day with its opening and closing balance. */
  days: ({ day: string } & Sums & Balance)[]
  /** The opening and closing balance of each acquirer account that has one. */
  accounts: AccountBalance[]
  total: Totals
  /** Changes since the month was closed; null if nothing has changed, or if the days are not a closed month. */
  changed: MonthChange | null
}

type AccountBalance = { account: string; broughtForward: Paise; carriedForward: Paise }

/**
 * The totals of the merchants that could be reconciled; `errors` is the number of the other merchants. `changed` contains
 * the figures that differ from the figures of the closed month, unless a merchant is missing in the totals.
 */
export type End = {
  total: Totals
  errors: number
  balances: boolean
  changed: MonthChange['figures']
  newestImport: Import | null
}

type Import = { import: number; at: Date }

export type Requested = Days & Merchants & { now: Date }

/**
 * Yields the reconciliation of each merchant, followed by the totals, from one database snapshot. Skips merchants with
 * nothing to report, and ignores facts stored after `now`. A merchant that cannot be added to the totals is an error too.
 */
export async function* reconcile(
  db: Database,
  requested: Requested,
): AsyncGenerator<MerchantBook | MerchantError | End> {
  yield* inSnapshot(db, requested.now, async function* (snapshot) {
    const { client } = snapshot
    const closed = await readClosedBase(snapshot, requested.from)
    const month = closedMonthOf(requested, await readClosedMonths(client, snapshot))
    let [all, errors] = [totalsFrom(0), 0]
    for (const mid of await readMids(client, requested)) {
      const book = await readOne(snapshot, mid, async () => {
        const read = await readMerchantBook(await readMerchant(snapshot, mid), requested, { closed, month })
        if (read !== undefined) all = addTotals(all, read.total)
        return read
      })
      if (book === undefined) continue
      if (isMerchantError(book)) errors += 1
      yield book
    }
    const isAll = requested.mid === undefined && requested.pid === undefined
    yield {
      ...{ total: all, errors },
      balances: errors + all.differences + all.openExceptions === 0,
      changed: isAll && errors === 0 && month ? differingFigures(month, ALL, all) : [],
      newestImport: (await NEWEST_IMPORT(client, { mid: requested.mid, known: snapshot.known }))[0] ?? null,
    }
  })
}

export const isEnd = (one: MerchantBook | MerchantError | End): one is End => 'balances' in one

type Closed = { closed: ClosedBase | undefined; month: ClosedMonth | undefined }

/**
 * Returns the reconciliation of one merchant, or undefined if the merchant has nothing to report. Does not judge today
 * or later days.
 */
async function readMerchantBook(
  merchant: MerchantSnapshot,
  days: Days,
  { closed, month }: Closed,
): Promise<MerchantBook | undefined> {
  const { mid } = merchant
  const { form, byDay, discrepancies, unlisted } = await readBook(merchant, days)
  const exceptions = await openExceptions(merchant, days)
  const brought = await balancesBefore(merchant, days.from, closed)
  const total = totalsFrom(brought.sum)
  total.openExceptions = exceptions.length
  const ofDays = [...byDay]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([day, sums]) => {
      const brought = total.carried
      addSums(total, sums)
      total.carried = carriedBy(brought, sums)
      return { day, ...sums, brought, carried: total.carried }
    })
  const isEmpty = discrepancies.length + exceptions.length + ofDays.length === 0 && total.brought === 0
  const changed =
    isEmpty && month?.figures[mid] === undefined ? undefined : month && (await changesSince(merchant, month, total))
  if (isEmpty && changed === undefined) return undefined
  const carried = await balancesBefore(merchant, addDays(days.to, 1), closed)
  return {
    ...{ mid, form, unlisted, days: ofDays, total, changed: changed ?? null, accounts: betweenOf(brought, carried) },
    discrepancies: await withMerchantOrderIds(merchant, discrepancies),
    exceptions: await withMerchantOrderIds(merchant, exceptions),
  }
}

/** Returns the balances of each account before and after a period. */
const betweenOf = (brought: Balances, carried: Balances): AccountBalance[] =>
  [...new Set([...brought.accounts.keys(), ...carried.accounts.keys()])].sort().map((account) => ({
    account,
    broughtForward: brought.accounts.get(account) ?? 0,
    carriedForward: carried.accounts.get(account) ?? 0,
  }))

/**
 * Returns the discrepancy with the id `id` as known at `now`, or undefined if no discrepancy has this id. Passes the
 * merchants whose discrepancies cannot be read to `onError`.
 */
export async function findDiscrepancy(
  db: Database,
  id: string,
  now: Date,
  onError: (error: MerchantError) => void = () => undefined,
): Promise<Discrepancy | undefined> {
  const day = dayOfDiscrepancy(id)
  if (day === undefined) return undefined
  return readSnapshot(db, now, async (snapshot) => {
    let found: Discrepancy | undefined
    for (const mid of await readMids(snapshot.client, {})) {
      const error = await readOne(snapshot, mid, async () =>
        judgeDays(await readMerchant(snapshot, mid), { from: day, to: day }, (some) => {
          found ??= some.find((one) => one.id === id)
        }),
      )
      if (found) break
      if (isMerchantError(error)) onError(error)
    }
    return found
  })
}

/**
 * Returns the newest import of a settlement file that was not undone. With `mid`, returns the newest one that added or
 * changed a settlement of this merchant.
 */
const NEWEST_IMPORT = query<Import, { mid: string | undefined; known: Date }>(`
  with file as (
    select import_id, imported_at
      from settlement_imports
     where ${IMPORT_AS_KNOWN} and sha256 is not null
  )
  select import_id as import, imported_at as at
    from file
   where :mid::text is null
      or import_id = (select max(import_id) from settlement_lines join file using (import_id)
                       where mid = :mid and (recorded_at <= :known) is true)
   order by import_id desc
   limit 1`)

/**
 * An exception that no operator has resolved. `mid` is empty if the order is unknown. `amount` is in paise; null means
 * an unreadable notification.
 */
export type OpenException = {
  mid: string
  exceptionId: string
  kind: string
  orderId: string
  utr: string
  amount: Paise | null
  receivedAt: Date
}

/** Returns the open exceptions that were received on these days, or whose order was created on these days. */
export function openExceptions({ client, mid, known }: MerchantSnapshot, days: Days): Promise<OpenException[]> {
  const { begin, end } = boundsOf(days)
  const orders = { firstOrder: orderIdsBegin(begin), nextOrder: orderIdsBegin(end) }
  return OPEN_EXCEPTIONS(client, { mid, known, begin, end, ...orders })
}

const OPEN_EXCEPTIONS = query<
  OpenException,
  { mid: string; known: Date; begin: Date; end: Date; firstOrder: string; nextOrder: string }
>(`
  select mid, exception_id, kind, order_id, utr, case when kind <> 'unreadable' then amount_paise end as amount, received_at
    from payment_exceptions e
   where mid = :mid and received_at <= :known
     and (received_at >= :begin and received_at < :end or mid <> '' and order_id >= :firstOrder and order_id < :nextOrder)
     and not exists (
           select from payment_resolutions r
            where r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= :known)
   order by received_at, order_id, exception_id`)

type ChangedMonth = Omit<ClosedMonth, 'figures'> & {
  changed: (({ mid: string } & Pick<MonthChange, 'figures' | 'rows'>) | MerchantError)[]
}

/**
 * Returns the closed months, newest first, with each merchant's changes since the month was closed. Reconciles every
 * closed month again, which may be slow.
 */
export async function changesOfClosedMonths(db: Database, now: Date): Promise<ChangedMonth[]> {
  const months: ChangedMonth[] = []
  for (const { figures: _, ...closed } of await readClosedMonths(db, { known: now })) {
    const changed: ChangedMonth['changed'] = []
    for await (const book of reconcile(db, { ...daysOfMonth(closed.month), now })) {
      if (isEnd(book)) continue
      if (isMerchantError(book)) changed.push(book)
      else if (book.changed) changed.push({ mid: book.mid, figures: book.changed.figures, rows: book.changed.rows })
    }
    months.push({ ...closed, changed })
  }
  return months
}
