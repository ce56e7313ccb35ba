import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type Batch, hashed, type LineError, type OnWarning, storeBatches } from '../../platform/csv/csv.ts'
import type { Layout } from '../../platform/csv/layouts.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays, type Days } from '../ledger/bank-days.ts'
import { lockForImport, nextImportId } from '../settlements/imports.ts'
import type { Proved } from './balance-chain.ts'
import { type KnownPayouts, type Moved, statementFile } from './format.ts'
import { comparable } from './references.ts'

/** Number of bank days after which the service deletes a line that matches no payout. */
const RETAINED_BANK_DAYS = 10
/** An acquirer may list a payout up to this number of days before or after the transfer. */
const LISTED_WITHIN_DAYS = 31
/** Longest gap without lines between two statements if the second begins with the closing balance of the first. */
const ADJOINS_WITHIN_DAYS = 31

/**
 * A bank statement to import. `from` and `to` are the first and last day for which the operator requested the
 * statement. `mids` are the merchants whose payouts are paid into the bank account. `account` is the acquirer account
 * that pays into the bank account, null for all acquirer accounts. `opening` and `closing` are the balances in paise
 * before and after these days, as the bank's website shows them.
 */
type ImportingStatement = {
  now: Date
  person: string
  file: string
  layout: Layout
  mids: readonly string[]
  account: string | null
  from: string
  to: string
  opening?: Paise | undefined
  closing?: Paise | undefined
  bankDays: BankDays
  onProgress?: ((linesRead: number) => void) | undefined
  onWarning?: OnWarning
}

/**
 * `kept` is the number of stored lines. The days from `coversFrom` to `coversTo` are covered, which means that a payout
 * expected on such a day was not received if the payout matches no line. `coversTo` is null if no day is covered.
 * `proved` is undefined if a line lacks a balance.
 */
export type ImportedStatement = {
  /** The number with which the operator can undo the import. */
  statement: number
  kept: number
  coversFrom: string
  coversTo: string | null
  proved: Proved | undefined
  moved: Moved
}

/**
 * Stores the statement lines that may be payouts, either all or none, and deletes earlier lines that no payout has
 * matched in time. `client` must be in a transaction. Throws a `CsvFileError` if a line is invalid, or if the balances
 * show that a line is missing.
 */
export async function importStatement(
  client: pg.ClientBase,
  csv: Readable,
  { now, person, file, layout, mids, account, from, to, opening, closing, bankDays, ...watching }: ImportingStatement,
): Promise<ImportedStatement> {
  await lockForImport(client, 'statement_imports')
  const importId = await nextImportId(client, 'statement_imports')
  const matchedBefore = retainedSince(now, bankDays)
  const known = await knownPayouts(client, mids, from)
  const { format, balances, moved } = statementFile(layout, { importId, from, to, known, matchedBefore })
  const sha256 = createHash('sha256')
  let [stored, linesRead] = [0, 0]
  let proved: Proved | undefined

  const store = async (batch: Batch): Promise<LineError[]> => {
    linesRead += batch.lineCount
    stored += batch.rowCount
    watching.onProgress?.(linesRead)
    if (batch.rowCount > 0) await pipeline([batch.rows], client.query(copyFrom(COPY)))
    // The balances beside a line that cannot be read break for this reason alone.
    if (!batch.isWholeFile || !balances) return []
    const end = balances.end({ opening, closing })
    proved = end.proved
    return end.errors
  }
  await storeBatches(Readable.from(hashed(csv, sha256), { objectMode: false }), format, store, watching.onWarning)
  const coversFrom =
    proved && opening === undefined ? await firstCovered(client, { mids, account, from }, proved) : from
  // A file may be truncated at its end, so its newest day is not covered without a closing balance. If the file starts
  // with its newest line, the truncated days are the oldest days, which `firstCovered` excludes.
  const until = proved && (closing === undefined ? addDays(proved.newestDay, -1) : to)
  const coversTo = until !== undefined && until >= coversFrom ? until : null
  const { newestDay, closing: closingPaise } = proved ?? {}
  await insertStatement(client, {
    ...{ importId, now, person, file, account, coversFrom, coversTo, newestDay, closingPaise },
    ...{ mids: [...mids].sort(), kept: stored, sha256: sha256.digest('hex') },
  })
  const [references, amounts] = [[...known.references], [...known.amounts]]
  await deleteUnmatched(client, { mids, before: matchedBefore, references, amounts })
  return { statement: importId, kept: stored, coversFrom, coversTo, proved, moved }
}

type NewStatement = Omit<StoredStatement, 'at' | 'undoneAt' | 'undoneBy'> & {
  now: Date
  newestDay: string | undefined
  closingPaise: Paise | undefined
}

const insertStatement = query<object, NewStatement>(`
  insert into statement_imports
    (import_id, imported_at, imported_by, file, sha256, mids, account, covers_from, covers_to, stored, closing_day, closing_paise)
  values (:importId, :now, :person, :file, :sha256, :mids, :account, :coversFrom, :coversTo, :kept, :newestDay, :closingPaise)`)

/**
 * Returns the first day whose lines are certainly complete. Lines may be missing at the start, up to the day of the
 * oldest line. If an earlier statement for the bank account ends with this statement's opening balance, no line after
 * the earlier statement's newest day is missing.
 */
async function firstCovered(
  client: Queryable,
  { mids, account, from }: Pick<ImportingStatement, 'mids' | 'account' | 'from'>,
  { oldestDay, opening }: Proved,
): Promise<string> {
  const days = { from: addDays(oldestDay, -ADJOINS_WITHIN_DAYS), to: oldestDay }
  const [before] = await readAdjoining(client, { ...days, mids: [...mids].sort(), account, opening })
  const day = addDays(before?.day ?? oldestDay, 1)
  return day > from ? day : from
}

type Adjoining = Days & Pick<Proved, 'opening'> & { mids: string[]; account: string | null }

const readAdjoining = query<{ day: string | null }, Adjoining>(`
  select max(closing_day) as day
    from statement_imports
   where mids = :mids and account is not distinct from :account and undone_at is null and closing_paise = :opening
     and closing_day between :from and :to`)

const COPY = 'copy statement_lines (line, import_id, day, amount_paise, refs) from stdin'

/**
 * Returns the first day from which an import at `now` stores all lines. Before this day, the import stores only lines
 * that match known payouts.
 */
export function retainedSince(now: Date, { previousBankDay }: BankDays): string {
  return Array.from({ length: RETAINED_BANK_DAYS }).reduce<string>(previousBankDay, toIstDay(now))
}

/**
 * Returns the payouts to these merchants that may match lines in the new statement, or stored lines that match no
 * payout yet.
 */
async function knownPayouts(client: Queryable, mids: readonly string[], from: string): Promise<KnownPayouts> {
  const [{ day }] = (await readOldestDay(client, { mids, from })) as [{ day: string }]
  const payouts = await readPayouts(client, { mids, since: startOfDay(addDays(day, -LISTED_WITHIN_DAYS)) })
  return {
    references: new Set(payouts.flatMap(({ reference, utr }) => [reference, utr ?? reference].map(comparable))),
    amounts: new Set(payouts.map(({ amount }) => amount)),
  }
}

const readPayouts = plannedQuery<
  { reference: string; utr: string | null; amount: Paise },
  { mids: readonly string[]; since: Date }
>(`
  select bank_reference_number as reference, sum(amount_paise)::bigint as amount, case when count(*) = 1 then min(utr) end as utr
    from settlements
   where mid = any (:mids) and status = 'SUCCESS' and initiated_at >= :since
   group by bank_reference_number`)

const readOldestDay = query<{ day: string }, { mids: readonly string[]; from: string }>(`
  select least(:from::date, min(day)) as day
    from statement_lines
    join statement_imports using (import_id)
   where mids = :mids and matched_payout is null`)

type Unmatched = { mids: readonly string[]; before: string; references: string[]; amounts: Paise[] }

const deleteUnmatched = plannedQuery<object, Unmatched>(`
  delete from statement_lines l
   using statement_imports i
   where i.import_id = l.import_id and i.mids = :mids and l.day < :before and l.matched_payout is null
     and not l.amount_paise = any (:amounts::bigint[]) and not exists (select from unnest(l.refs) r where r = any (:references))`)

/**
 * The stored record of one statement import. `kept` is the number of stored lines. Lines that match no payout are
 * deleted later.
 */
type StoredStatement = {
  importId: number
  at: Date
  person: string
  file: string
  sha256: string
  mids: string[]
  account: string | null
  coversFrom: string
  coversTo: string | null
  kept: number
  undoneAt: Date | null
  undoneBy: string | null
}

/** Returns all statement imports, oldest first. */
export const listStatements = query<StoredStatement, object>(`
  select import_id, imported_at as at, imported_by as person, file, sha256, mids, account, covers_from, covers_to, stored as kept,
         undone_at, undone_by
    from statement_imports
   order by import_id`)

/**
 * Undoes a statement import and deletes its lines. Returns the number of deleted lines, or undefined if the import does
 * not exist or was already undone.
 */
export async function undoStatement(
  client: Queryable,
  importId: number,
  { now, person }: { now: Date; person: string },
): Promise<number | undefined> {
  if ((await setUndone(client, { importId, now, person })).length === 0) return undefined
  return (await deleteLines(client, { importId })).length
}

const setUndone = query<{ importId: number }, { importId: number; now: Date; person: string }>(`
  update statement_imports set undone_at = :now, undone_by = :person where import_id = :importId and undone_at is null
  returning import_id`)

const deleteLines = query<{ line: number }, { importId: number }>(
  'delete from statement_lines where import_id = :importId returning line',
)
