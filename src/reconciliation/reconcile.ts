import type { PoolClient } from 'pg'
import { type Database, setLocally } from '../db/pool.ts'
import { toIstDay } from '../ist.ts'
import { addDays, type BankDays, createBankDays } from '../ledger/bank-days.ts'
import { holidaysOf } from '../ledger/bank-holidays.ts'
import {
  ALL,
  type ClosedMonth,
  changesSince,
  closedMonthOf,
  compareWithClosed,
  daysOfMonth,
  differingFigures,
  type MonthChange,
  readClosedMonths,
} from './closed-months.ts'
import { type Difference, dayOfDifference } from './differences.ts'
import { TELLS_OF_MONEY } from './exceptions-of-no-order.ts'
import { createMerchantBooks, type MerchantBooks, type Snapshot } from './merchant-books.ts'
import { CREATE_READ_DAYS, type Days, settlementsKnown } from './paid-and-settled.ts'
import { type MerchantFinding, type ReportedDays, reconcileMerchant } from './reconcile-merchant.ts'
import { addTotals, type Totals, totalsFrom } from './sums.ts'

/** What the books say of each merchant, where the month was closed what has changed, and its total; then all together. */
export type Finding =
  | MerchantFinding
  | ({ type: 'changed'; mid: string } & MonthChange)
  /** `changed` are the figures of all merchants together that are not those of the closed month. */
  | { type: 'end'; sums: Totals; balances: boolean; changed: MonthChange['figures']; newestImport: Import | null }

type Import = { import: number; at: Date }

/** Which merchants are compared: one, those of a partner, or all. What was stored after `now` is not known. */
export type Asked = Days & Merchants & { now: Date }
export type Merchants = { mid?: string | undefined; pid?: string | undefined }

/**
 * Compares payments with settlements, merchant after merchant, in one snapshot of the database (in a Citus cluster, one
 * of each server). Merchants with nothing to report are left out. Memory does not grow with the number of payments.
 */
export async function* reconcile(db: Database, asked: Asked): AsyncGenerator<Finding> {
  yield* inSnapshot(db, asked.now, async function* (snapshot, bankDays) {
    const all = totalsFrom(0n)
    const days = { ...asked, today: toIstDay(asked.now), bankDays }
    const closed = await readClosedMonths(snapshot)
    const month = closedMonthOf(asked, closed)
    for await (const mid of midsOf(snapshot.client, asked)) {
      const books = createMerchantBooks(snapshot, mid)
      let isReported = false
      for await (const finding of reconcileMerchant(books, days, await broughtForward(books, days, closed))) {
        isReported = true
        if (finding.type === 'total') {
          addTotals(all, finding.sums)
          const changed = month && (await compareWithClosed(books, month, finding.sums, bankDays))
          if (changed) yield { type: 'changed', mid, ...changed }
        }
        yield finding
      }
      // A merchant who had something when the month was closed, and has nothing now.
      if (isReported || month?.figures[mid] === undefined) continue
      const changed = await compareWithClosed(books, month, totalsFrom(0n), bankDays)
      if (changed === undefined) continue
      yield { type: 'merchant', mid, file: 'by payment' }
      yield { type: 'changed', mid, ...changed }
      yield { type: 'total', mid, sums: totalsFrom(0n) }
    }
    const balances = all.differences === 0 && all.openExceptions === 0
    const isAll = asked.mid === undefined && asked.pid === undefined
    const figures = isAll && month ? differingFigures(month, ALL, all) : []
    yield {
      type: 'end',
      sums: all,
      balances,
      changed: figures,
      newestImport: await findNewestImport(snapshot, asked.mid),
    }
  })
}

/** The difference of this name, as it is known at `now`; undefined when there is none. */
export async function findDifference(db: Database, id: string, now: Date): Promise<Difference | undefined> {
  const day = dayOfDifference(id)
  if (day === undefined) return undefined
  const findings = inSnapshot(db, now, async function* (snapshot, bankDays) {
    const days = { from: day, to: day, today: toIstDay(now), bankDays }
    for await (const mid of midsOf(snapshot.client, {})) {
      yield* reconcileMerchant(createMerchantBooks(snapshot, mid), days, 0n)
    }
  })
  for await (const finding of findings) {
    if (finding.type === 'difference' && finding.id === id) return finding
  }
  return undefined
}

/**
 * Yields what `read` finds in one snapshot. There are no time limits: the comparison may take longer than the operator
 * allows others, and its reader may be a person with a pager.
 */
export async function* inSnapshot<T>(
  db: Database,
  known: Date,
  read: (snapshot: Snapshot, bankDays: BankDays) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const client = await db.connect()
  try {
    await client.query('begin isolation level repeatable read')
    const keepsDays = await mayKeepDays(client)
    if (keepsDays) await client.query(CREATE_READ_DAYS)
    await setLocally(client, ['jit = off', 'statement_timeout = 0', 'idle_in_transaction_session_timeout = 0'])
    yield* read(await snapshotOf(client, known, { keepsDays }), createBankDays(await holidaysOf(client)))
  } finally {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    )
  }
}

/** Whether the transaction may make temporary tables. Without them days are read again, which takes longer. */
async function mayKeepDays(client: PoolClient): Promise<boolean> {
  const { rows } = await client.query<{ may: boolean }>(
    `select has_database_privilege(current_database(), 'temporary')
            and current_setting('transaction_read_only') = 'off' as may`,
  )
  return rows[0]?.may ?? false
}

/** What the transaction of `client` sees. Without `keepsDays` nothing is written. */
export const snapshotOf = async (
  client: PoolClient,
  known: Date,
  { keepsDays }: Pick<Snapshot, 'keepsDays'>,
): Promise<Snapshot> => ({
  ...{ client, known, keepsDays },
  isPast: await isBefore(client, known),
  utrsOfNoOrder: await readUtrsOfNoOrder(client, known),
})

/** Every mid, and at last an empty one, which stands for orders that nobody knows; or those that are asked for. */
export async function* midsOf(client: PoolClient, { mid, pid }: Merchants): AsyncGenerator<string> {
  if (mid !== undefined) {
    yield mid
    return
  }
  let last = ''
  for (;;) {
    const { rows } = await client.query<{ mid: string }>(
      `select mid
         from merchants
        where mid > $1 and ($2::text is null or mid in (select mid from partner_merchants where pid = $2))
        order by mid
        limit ${MERCHANTS_READ}`,
      [last, pid],
    )
    for (const { mid } of rows) yield mid
    const next = rows.at(-1)
    if (next === undefined) break
    last = next.mid
  }
  if (pid === undefined) yield ''
}

/** Merchants whose names are read at once. */
const MERCHANTS_READ = 500

/**
 * What the bank owes the merchant before the days. It is added up from the end of the last closed month whose figures
 * still hold, else from his first day.
 */
async function broughtForward(
  books: MerchantBooks,
  { from, today, bankDays }: ReportedDays,
  closed: readonly ClosedMonth[],
): Promise<bigint> {
  let first = await books.firstDay()
  if (first === undefined || first >= from) return 0n
  let brought = 0n
  for (const { month, closedAt, figures } of closed) {
    const { to } = daysOfMonth(month)
    // A month that was closed before its last payments were due says nothing of them yet.
    if (to >= from || to < first || toIstDay(closedAt) <= bankDays.nextBankDay(to)) continue
    if ((await changesSince(books, closedAt, to)).length > 0) continue
    first = addDays(to, 1)
    brought = toPaise(figures[books.mid]?.carriedForward ?? '0.00')
    break
  }
  if (first >= from) return brought
  for await (const finding of reconcileMerchant(
    books,
    { from: first, to: addDays(from, -1), today, bankDays },
    brought,
  )) {
    if (finding.type === 'total') brought = finding.sums.carried
  }
  return brought
}

const toPaise = (rupees: string) => BigInt(rupees.replace('.', ''))

/** UTRs of exceptions of no known order that tell of money: the 10,000 newest. */
async function readUtrsOfNoOrder(client: PoolClient, known: Date): Promise<string[]> {
  const { rows } = await client.query<{ utr: string }>(
    `select upper(e.utr) as utr
       from payment_exceptions e
      where e.mid = '' and e.received_at <= $1 and ${TELLS_OF_MONEY}
      order by e.received_at desc
      limit 10000`,
    [known],
  )
  return rows.map(({ utr }) => utr)
}

async function isBefore(client: PoolClient, known: Date): Promise<boolean> {
  const { rows } = await client.query<{ past: boolean }>(
    'select exists (select 1 from payments where heard_at > $1) as past',
    [known],
  )
  return rows[0]?.past ?? false
}

/** The newest file that still stands; with `mid` the newest that brought or changed one of his settlements. */
async function findNewestImport({ client, known }: Snapshot, mid?: string): Promise<Import | null> {
  const { rows } = await client.query<Import>(
    `select import_id as import, imported_at as at
       from settlement_imports
      where imported_at <= $2 and (undone_at is null or undone_at > $2)
        and ($1::text is null or import_id = (select max(import_id) from (${settlementsKnown('true')}) s))
      order by import_id desc
      limit 1`,
    [mid, known],
  )
  return rows[0] ?? null
}
