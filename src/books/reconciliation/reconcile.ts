import type { PoolClient } from 'pg'
import type { Database } from '../../platform/db/pool.ts'
import { createBankDays, type Days } from '../ledger/bank-days.ts'
import { holidaysOf } from '../ledger/bank-holidays.ts'
import { type Difference, dayOfDifference } from '../ledger/differences.ts'
import { createLedger, readSettledOfNoOrder, type Snapshot } from '../ledger/read-ledger.ts'
import { settlementsKnown } from '../ledger/sql.ts'
import { readClosedBase } from './closed-items.ts'
import {
  ALL,
  closedMonthOf,
  compareWithClosed,
  daysOfMonth,
  differingFigures,
  type MonthChange,
  readClosedMonths,
} from './closed-months.ts'
import { differencesOfDays, type MerchantFinding, reconcileMerchant } from './reconcile-merchant.ts'
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
 * Reads the ledger of one merchant after another, in one snapshot of the database.
 * Merchants with nothing to report are left out. Memory does not grow with the number of payments.
 */
export async function* reconcile(db: Database, asked: Asked): AsyncGenerator<Finding> {
  yield* inSnapshot(db, asked.now, async function* (newSnapshot) {
    const closed = await readClosedBase(newSnapshot.client, newSnapshot.known, asked.from)
    const snapshot = { ...newSnapshot, closed }
    const all = totalsFrom(0)
    const month = closedMonthOf(asked, await readClosedMonths(snapshot))
    for await (const mid of midsOf(snapshot.client, asked)) {
      const ledger = createLedger(snapshot, mid)
      let isReported = false
      for await (const finding of reconcileMerchant(ledger, asked)) {
        isReported = true
        if (finding.type === 'total') {
          addTotals(all, finding.sums)
          const changed = month && (await compareWithClosed(ledger, month, finding.sums))
          if (changed) yield { type: 'changed', mid, ...changed }
        }
        yield finding
      }
      // A merchant who had something when the month was closed, and has nothing now.
      if (isReported || month?.figures[mid] === undefined) continue
      const changed = await compareWithClosed(ledger, month, totalsFrom(0))
      if (changed === undefined) continue
      yield { type: 'merchant', mid, file: 'by payment' }
      yield { type: 'changed', mid, ...changed }
      yield { type: 'total', mid, sums: totalsFrom(0) }
    }
    const isAll = asked.mid === undefined && asked.pid === undefined
    yield {
      type: 'end',
      sums: all,
      balances: all.differences === 0 && all.openExceptions === 0,
      changed: isAll && month ? differingFigures(month, ALL, all) : [],
      newestImport: await findNewestImport(snapshot, asked.mid),
    }
  })
}

/**
 * The difference of this name, as it is known at `now`; undefined when there is none. Reads its day, and if that names none its month:
 * rows of other days may decide how the payout of a day without rows is judged.
 */
export async function findDifference(db: Database, id: string, now: Date): Promise<Difference | undefined> {
  const day = dayOfDifference(id)
  if (day === undefined) return undefined
  const found = inSnapshot(db, now, async function* (snapshot) {
    for (const days of [{ from: day, to: day }, daysOfMonth(day.slice(0, 7))]) {
      for await (const mid of midsOf(snapshot.client, {})) yield* differencesOfDays(createLedger(snapshot, mid), days)
    }
  })
  for await (const difference of found) if (difference.id === id) return difference
  return undefined
}

/**
 * Yields what `read` finds in one snapshot. There are no time limits: the reading may take longer than the operator
 * allows others, and its reader may be a person with a pager.
 */
export async function* inSnapshot<T>(
  db: Database,
  known: Date,
  read: (snapshot: Snapshot) => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const client = await db.connect()
  try {
    await client.query(`
      begin isolation level repeatable read read only;
      set local jit = off;
      set local statement_timeout = 0;
      set local idle_in_transaction_session_timeout = 0`)
    yield* read(await snapshotOf(client, known))
  } finally {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    )
  }
}

/** What the transaction of `client` sees. */
export async function snapshotOf(client: PoolClient, known: Date): Promise<Snapshot> {
  const ofNoOrder = await readSettledOfNoOrder(client, known)
  return { client, known, bankDays: createBankDays(await holidaysOf(client, known)), ofNoOrder }
}

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
