import type { PoolClient } from 'pg'
import { type Database, setLocally } from '../db/pool.ts'
import { toIstText } from '../ist.ts'
import { addDays } from './bank-days.ts'
import { comparePayouts, type Difference, daysOfPayouts, isNotYetDue, lastOverdueDay } from './differences.ts'
import { createMerchantBooks, type MerchantBooks, type OpenException } from './merchant-books.ts'
import type { Days } from './paid-and-settled.ts'

const COUNTS = [
  'paidCount',
  /** How many of them were learned from the acquirer's day file, since no notification came. */
  'fromDayFile',
  'settledCount',
  /** Number of differences, without those that a person has resolved. */
  'differences',
] as const

const AMOUNTS = [
  'paid',
  /** Settled, with fee and tax. */
  'gross',
  'fee',
  'tax',
  /** Paid on these days and not settled yet. Where the bank's file has sums only: paid, and not due yet. */
  'open',
] as const

/** Money of one or more days. Amounts are in paise. */
export type Sums = Record<(typeof COUNTS)[number], number> & Record<(typeof AMOUNTS)[number], bigint>

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
 * Compares payments with settlements, merchant after merchant, in one snapshot of the database (in a Citus cluster, one
 * of each server). Merchants with nothing to report are left out. Memory does not grow with the number of payments.
 */
export async function* reconcile(
  db: Database,
  { from, to, mid, now }: Days & { mid?: string | undefined; now: Date },
): AsyncGenerator<Finding> {
  const client = await db.connect()
  try {
    // No time limits: the comparison may take longer than the operator allows others, and its reader may be a person
    // with a pager.
    await client.query('begin isolation level repeatable read, read only')
    await setLocally(client, ['jit = off', 'statement_timeout = 0', 'idle_in_transaction_session_timeout = 0'])
    const total = noTotals()
    const today = toIstText(now).slice(0, 10)
    for await (const one of mid === undefined ? allMerchants(client) : [mid]) {
      for await (const finding of reconcileMerchant(client, one, { from, to, today })) {
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

/** Every mid, and at last an empty one, which stands for orders that nobody knows. */
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

async function* reconcileMerchant(client: PoolClient, mid: string, asked: Asked): AsyncGenerator<Finding> {
  const books = createMerchantBooks(client, mid)
  if (!(await books.isActive(asked))) return
  const isByPayment = await books.isByPayment(asked)
  const { byDay, differences } = await (isByPayment ? compareByPayment : compareBySums)(books, asked)
  const merchant = { type: 'merchant', mid, file: isByPayment ? 'by payment' : 'by sums' } as const
  const total = noTotals()
  let told = false
  for await (const finding of eachOf(differences, books.openExceptions(asked))) {
    if (!told) yield merchant
    told = true
    if (finding.type === 'exception') total.openExceptions += 1
    else if (finding.resolution === null) at(byDay, finding.day).differences += 1
    yield finding
  }
  if (!told && byDay.size === 0) return
  if (!told) yield merchant
  for (const [day, sums] of [...byDay].sort(([a], [b]) => (a < b ? -1 : 1))) {
    add(total, sums)
    yield { type: 'day', mid, day, ...sums }
  }
  yield { type: 'total', mid, sums: total }
}

type Compared = { byDay: Map<string, Sums>; differences: AsyncIterable<Difference> | Iterable<Difference> }

async function compareByPayment(books: MerchantBooks, asked: Asked): Promise<Compared> {
  const byDay = sumsByDay(await books.paidDays(asked), await books.settledDays(asked))
  return { byDay, differences: books.differences(asked, lastOverdueDay(asked.today)) }
}

async function compareBySums(books: MerchantBooks, asked: Asked): Promise<Compared> {
  const { firstPaid, firstSettled } = daysOfPayouts(asked.from)
  const paid = await books.paidDays({ from: firstPaid, to: asked.to })
  const settled = await books.settledDays({ from: firstSettled, to: asked.to })
  const isAsked = ({ day }: { day: string }) => day >= asked.from
  const byDay = sumsByDay(paid.filter(isAsked), settled.filter(isAsked))
  // Payments whose payout comes after `to` count as open: that payout is judged with its own days.
  const judgedUntil = asked.to < asked.today ? addDays(asked.to, 1) : asked.today
  for (const [day, sums] of byDay) sums.open = isNotYetDue(day, judgedUntil) ? sums.paid : 0n
  return { byDay, differences: comparePayouts(books.mid, paid, settled, asked) }
}

async function* eachOf(
  differences: Compared['differences'],
  exceptions: AsyncIterable<OpenException>,
): AsyncGenerator<Extract<Finding, { type: 'difference' | 'exception' }>> {
  for await (const difference of differences) yield { type: 'difference', ...difference }
  for await (const exception of exceptions) yield { type: 'exception', ...exception }
}

function sumsByDay(...days: (readonly (Partial<Sums> & { day: string })[])[]): Map<string, Sums> {
  const byDay = new Map<string, Sums>()
  for (const { day, ...sums } of days.flat()) Object.assign(at(byDay, day), sums)
  return byDay
}

/** The sums of a day, which begin with nothing. */
function at(byDay: Map<string, Sums>, day: string): Sums {
  const sums = byDay.get(day) ?? noSums()
  byDay.set(day, sums)
  return sums
}

const noSums = (): Sums => ({
  ...(Object.fromEntries(COUNTS.map((name) => [name, 0])) as Record<(typeof COUNTS)[number], number>),
  ...(Object.fromEntries(AMOUNTS.map((name) => [name, 0n])) as Record<(typeof AMOUNTS)[number], bigint>),
})

const noTotals = (): Totals => ({ ...noSums(), openExceptions: 0 })

function add(total: Totals, sums: Sums & { openExceptions?: number }): void {
  for (const name of COUNTS) total[name] += sums[name]
  for (const name of AMOUNTS) total[name] += sums[name]
  total.openExceptions += sums.openExceptions ?? 0
}
