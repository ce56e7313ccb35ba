import type { PoolClient } from 'pg'
import { type Database, setLocally } from '../db/pool.ts'
import { toIstText } from '../ist.ts'
import { addDays } from './bank-days.ts'
import { causeOf, comparePayouts, type Difference, daysOfPayouts, isNotYetDue, lastOverdueDay } from './differences.ts'
import {
  createMerchantBooks,
  type MerchantBooks,
  type OpenException,
  type PaidDay,
  type SettledDay,
} from './merchant-books.ts'
import type { Days } from './paid-and-settled.ts'

/** Money of one or more days. Sums are in paise. */
export type Sums = {
  paidCount: number
  paid: bigint
  /** How many of them were learned from the acquirer's day file, since no notification came. */
  fromDayFile: number
  settledCount: number
  /** With fee and tax. */
  gross: bigint
  fee: bigint
  tax: bigint
  /** Paid on these days, and settled by nobody yet; where the file has sums only, what is not due yet. */
  open: bigint
  /** How many, those not counted that a person has resolved. */
  differences: number
}

export type Totals = Sums & { openExceptions: number }

/** What the books say, in this order: of each merchant its differences, open exceptions, days and total; then all together. */
export type Finding =
  /** Exceptions of no known order come under an empty `mid`. */
  | { type: 'merchant'; mid: string; file: 'by payment' | 'by sums' }
  | ({ type: 'difference' } & Difference)
  | ({ type: 'exception' } & OpenException)
  | ({ type: 'day'; mid: string; day: string } & Sums)
  | { type: 'total'; mid: string; sums: Totals }
  | { type: 'end'; sums: Totals; balances: boolean; newestImport: { import: number; at: Date } | null }

/** Merchants whose names are read at once. */
const MERCHANTS_READ = 500

/**
 * Compares what was paid with what was settled, merchant after merchant, in one snapshot of the database; where it is spread
 * over servers, in one of each. Merchants of whom there is nothing to tell are left out. Memory does not grow with the number
 * of payments.
 */
export async function* reconcile(
  db: Database,
  { from, to, mid, now }: Days & { mid?: string | undefined; now: Date },
): AsyncGenerator<Finding> {
  const client = await db.connect()
  try {
    // It may take longer than the operator lets others take, and its reader may be a person with a pager.
    await client.query('begin isolation level repeatable read, read only')
    await setLocally(client, ['jit = off', 'statement_timeout = 0', 'idle_in_transaction_session_timeout = 0'])
    const total = noTotals()
    const today = toIstText(now).slice(0, 10)
    for await (const one of mid === undefined ? allMerchants(client) : [mid]) {
      for await (const finding of reconcileMerchant(createMerchantBooks(client, one), one, { from, to, today })) {
        if (finding.type === 'total') add(total, finding.sums)
        yield finding
      }
    }
    const balances = total.differences === 0 && total.openExceptions === 0
    yield { type: 'end', sums: total, balances, newestImport: await findNewestImport(client) }
  } finally {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    )
  }
}

/** The empty one stands for orders that nobody knows. */
async function* allMerchants(client: PoolClient): AsyncGenerator<string> {
  let last = ''
  for (;;) {
    const { rows } = await client.query<{ mid: string }>(
      `select mid from merchants where mid > $1 order by mid limit ${MERCHANTS_READ}`,
      [last],
    )
    for (const { mid } of rows) yield mid
    const next = rows.at(-1)
    if (next === undefined) break
    last = next.mid
  }
  yield ''
}

async function findNewestImport(client: PoolClient): Promise<{ import: number; at: Date } | null> {
  const { rows } = await client.query<{ import: number; at: Date }>(
    `select import_id as import, imported_at as at
       from settlement_imports
      where undone_at is null
      order by import_id desc
      limit 1`,
  )
  return rows[0] ?? null
}

type Asked = Days & { today: string }

async function* reconcileMerchant(books: MerchantBooks, mid: string, asked: Asked): AsyncGenerator<Finding> {
  if (!(await books.isActive(asked))) return
  const { days, differences } = await compare(books, mid, asked)
  const total = noTotals()
  let told = false
  for await (const finding of eachOf(differences, books.openExceptions(asked))) {
    if (!told) yield { type: 'merchant', mid, file: days.file }
    told = true
    if (finding.type === 'exception') total.openExceptions += 1
    else if (finding.resolution === null) at(days.byDay, finding.day).differences += 1
    yield finding
  }
  if (!told && days.byDay.size === 0) return
  if (!told) yield { type: 'merchant', mid, file: days.file }
  for (const [day, sums] of [...days.byDay].sort(([a], [b]) => (a < b ? -1 : 1))) {
    add(total, sums)
    yield { type: 'day', mid, day, ...sums }
  }
  yield { type: 'total', mid, sums: total }
}

type Compared = {
  days: { file: 'by payment' | 'by sums'; byDay: Map<string, Sums> }
  differences: AsyncIterable<Difference> | Iterable<Difference>
}

async function compare(books: MerchantBooks, mid: string, asked: Asked): Promise<Compared> {
  return (await books.isByPayment(asked)) ? compareByPayment(books, asked) : compareBySums(books, mid, asked)
}

async function compareByPayment(books: MerchantBooks, asked: Asked): Promise<Compared> {
  const paid = await books.paidDays(asked)
  const settled = await books.settledDays(asked)
  const unsettled = await books.unsettledDays(asked)
  const byDay = putTogether(paid, settled)
  for (const [day, sum] of unsettled) at(byDay, day).open = sum
  return { days: { file: 'by payment', byDay }, differences: explained(books, asked) }
}

async function* explained(books: MerchantBooks, asked: Asked): AsyncGenerator<Difference> {
  for await (const found of books.differences(asked, lastOverdueDay(asked.today))) {
    const { fee, tax, otherUtr, otherStatus, otherDay, exceptionKind, initiatedAt, ...difference } = found
    yield { ...difference, cause: causeOf(found) }
  }
}

async function compareBySums(books: MerchantBooks, mid: string, asked: Asked): Promise<Compared> {
  const { firstPaid, firstSettled } = daysOfPayouts(asked.from)
  const paid = await books.paidDays({ from: firstPaid, to: asked.to })
  const settled = await books.settledDays({ from: firstSettled, to: asked.to })
  const isAsked = ({ day }: { day: string }) => day >= asked.from
  const byDay = putTogether(paid.filter(isAsked), settled.filter(isAsked))
  // The payout of the last days may lie behind them, and is judged there.
  const judgedUntil = asked.to < asked.today ? addDays(asked.to, 1) : asked.today
  for (const [day, sums] of byDay) if (isNotYetDue(day, judgedUntil)) sums.open = sums.paid
  const gross = settled.map(({ day, gross }) => ({ day, sum: gross }))
  return { days: { file: 'by sums', byDay }, differences: comparePayouts(mid, paid, gross, asked) }
}

async function* eachOf(
  differences: Compared['differences'],
  exceptions: AsyncIterable<OpenException>,
): AsyncGenerator<Extract<Finding, { type: 'difference' | 'exception' }>> {
  for await (const difference of differences) yield { type: 'difference', ...difference }
  for await (const exception of exceptions) yield { type: 'exception', ...exception }
}

function putTogether(paid: readonly PaidDay[], settled: readonly SettledDay[]): Map<string, Sums> {
  const byDay = new Map<string, Sums>()
  for (const { day, count, sum, fromDayFile } of paid) {
    Object.assign(at(byDay, day), { paidCount: count, paid: sum, fromDayFile })
  }
  for (const { day, count, ...sums } of settled) Object.assign(at(byDay, day), { settledCount: count, ...sums })
  return byDay
}

/** The sums of a day, which begin with nothing. */
function at(byDay: Map<string, Sums>, day: string): Sums {
  const sums = byDay.get(day) ?? noSums()
  byDay.set(day, sums)
  return sums
}

const noSums = (): Sums => ({
  paidCount: 0,
  paid: 0n,
  fromDayFile: 0,
  settledCount: 0,
  gross: 0n,
  fee: 0n,
  tax: 0n,
  open: 0n,
  differences: 0,
})

const noTotals = (): Totals => ({ ...noSums(), openExceptions: 0 })

function add(total: Totals, sums: Sums & { openExceptions?: number }): void {
  total.paidCount += sums.paidCount
  total.paid += sums.paid
  total.fromDayFile += sums.fromDayFile
  total.settledCount += sums.settledCount
  total.gross += sums.gross
  total.fee += sums.fee
  total.tax += sums.tax
  total.open += sums.open
  total.differences += sums.differences
  total.openExceptions += sums.openExceptions ?? 0
}
