import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type Batch, hashed, type LineFault, type OnWarning, storeBatches } from '../../platform/csv/csv.ts'
import type { Layout } from '../../platform/csv/layouts.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays } from '../ledger/bank-days.ts'
import { lockForImport, nextImportId } from '../settlements/imports.ts'
import type { Proved } from './balance-chain.ts'
import { type KnownPayouts, statementFile } from './format.ts'
import { comparableSql } from './references.ts'

/** Bank days after which a line that no payout has matched is deleted. */
const KEPT_BANK_DAYS = 10
/** A payout may be listed some days before or after its transfer. */
const LISTED_WITHIN_DAYS = 31
/** Days without a line between two statements of which the second begins with the balance that the first one ends with. */
const ADJOINS_WITHIN_DAYS = 31

/**
 * A person's statement of one bank account: of the days that the bank was asked for, both included. `mids` are the merchants who are
 * paid to the account; `account` is the acquirer account that pays to it, null for all. `opening` and `closing` are the balances in
 * paise before these days and after them, as the bank's page shows them.
 */
export type ImportingStatement = {
  now: Date
  person: string
  file: string
  layout: Layout
  mids: readonly string[]
  account: string | null
  from: string
  to: string
  opening?: bigint | undefined
  closing?: bigint | undefined
  bankDays: BankDays
  onProgress?: ((linesRead: number) => void) | undefined
  onWarning?: OnWarning
}

/**
 * `kept` lines are stored. The days from `coversFrom` to `coversTo` are covered: a payout that should have arrived then, and is not
 * among the lines, has not. `coversTo` is null where no day is covered. `proved` is undefined where not every line has a balance.
 */
export type ImportedStatement = {
  import: number
  kept: number
  coversFrom: string
  coversTo: string | null
  proved: Proved | undefined
}

/**
 * Stores what of a statement may be a payout's arrival, all or nothing; and deletes what no payout has matched in time. `client` is in
 * a transaction. Throws a CsvFileError when a line is wrong, or the balances show that one is missing.
 */
export async function importStatement(
  client: pg.ClientBase,
  csv: Readable,
  { now, person, file, layout, mids, account, from, to, opening, closing, bankDays, ...watching }: ImportingStatement,
): Promise<ImportedStatement> {
  await lockForImport(client, 'statement_imports')
  const importId = await nextImportId(client, 'statement_imports')
  const matchedBefore = keptSince(now, bankDays)
  const known = await knownPayouts(client, mids, from)
  const { format, balances } = statementFile(layout, { importId, from, to, known, matchedBefore })
  const sha256 = createHash('sha256')
  let [kept, linesRead] = [0, 0]
  let proved: Proved | undefined

  const store = async (batch: Batch): Promise<LineFault[]> => {
    linesRead += batch.lineCount
    kept += batch.rowCount
    watching.onProgress?.(linesRead)
    if (batch.rowCount > 0) await pipeline([batch.rows], client.query(copyFrom(COPY)))
    if (!batch.isLast || !balances) return []
    const end = balances.end({ opening, closing })
    proved = end.proved
    return end.faults
  }
  await storeBatches(Readable.from(hashed(csv, sha256), { objectMode: false }), format, store, watching.onWarning)
  const coversFrom =
    proved && opening === undefined ? await firstCovered(client, { mids, account, from }, proved) : from
  // The end of a file may be cut: the newest day where the newest line stands there, else the oldest one.
  const until = proved && (closing === undefined ? addDays(proved.newestDay, -1) : to)
  const coversTo = until !== undefined && until >= coversFrom ? until : null
  await client.query(
    `insert into statement_imports
       (import_id, imported_at, imported_by, file, sha256, mids, account, covers_from, covers_to, kept, closing_day, closing_paise)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`,
    [
      ...[importId, now, person, file, sha256.digest('hex'), [...mids].sort(), account, coversFrom, coversTo, kept],
      ...[proved?.newestDay, proved?.closing],
    ],
  )
  await deleteUnmatched(client, mids, matchedBefore, known)
  return { import: importId, kept, coversFrom, coversTo, proved }
}

/**
 * The first day of which the file certainly has every line. Its first lines may be missing: those of the days until its oldest line, or,
 * where an earlier statement of the account ends with the balance that this one begins with, of the days until that one's newest line.
 */
async function firstCovered(
  client: Queryable,
  { mids, account, from }: Pick<ImportingStatement, 'mids' | 'account' | 'from'>,
  { oldestDay, opening }: Proved,
): Promise<string> {
  const { rows } = await client.query<{ day: string | null }>(
    `select to_char(max(closing_day), 'YYYY-MM-DD') as day
       from statement_imports
      where mids = $1 and account is not distinct from $2 and undone_at is null and closing_paise = $3
        and closing_day between $4 and $5`,
    [[...mids].sort(), account, opening, addDays(oldestDay, -ADJOINS_WITHIN_DAYS), oldestDay],
  )
  const day = addDays(rows[0]?.day ?? oldestDay, 1)
  return day > from ? day : from
}

const COPY = 'copy statement_lines (line, import_id, day, amount_paise, refs) from stdin'

/** Of the days before this one an import at `now` keeps only the lines of payouts that it knows. */
export function keptSince(now: Date, { previousBankDay }: BankDays): string {
  return Array.from({ length: KEPT_BANK_DAYS }).reduce<string>(previousBankDay, toIstDay(now))
}

/** The payouts to these merchants that lines of the statement, or stored ones, may be. */
async function knownPayouts(client: Queryable, mids: readonly string[], from: string): Promise<KnownPayouts> {
  const { rows } = await client.query<{ reference: string; utr: string | null; amount: string }>(
    `select ${comparableSql('bank_reference_number')} as reference, trunc(sum(amount) * 100)::text as amount,
            case when count(*) = 1 then ${comparableSql('min(utr)')} end as utr
       from settlements
      where mid = any ($1) and status = 'SUCCESS' and initiated_at >= $2
      group by bank_reference_number`,
    [mids, startOfDay(addDays(await oldestDay(client, mids, from), -LISTED_WITHIN_DAYS))],
  )
  return {
    references: new Set(rows.flatMap(({ reference, utr }) => [reference, ...(utr === null ? [] : [utr])])),
    amounts: new Set(rows.map(({ amount }) => BigInt(amount))),
  }
}

async function oldestDay(client: Queryable, mids: readonly string[], from: string): Promise<string> {
  const { rows } = await client.query<{ day: string }>(
    `select to_char(least($2::date, min(day)), 'YYYY-MM-DD') as day
       from statement_lines
       join statement_imports using (import_id)
      where mids = $1 and matched_payout is null`,
    [mids, from],
  )
  return (rows[0] as { day: string }).day
}

async function deleteUnmatched(client: Queryable, mids: readonly string[], before: string, known: KnownPayouts) {
  await client.query(
    `delete from statement_lines l
      using statement_imports i
      where i.import_id = l.import_id and i.mids = $1 and l.day < $2 and l.matched_payout is null
        and not l.amount_paise = any ($4::bigint[]) and not exists (select from unnest(l.refs) r where r = any ($3))`,
    [mids, before, [...known.references], [...known.amounts].map(String)],
  )
}

/** A statement that was imported; lines of `kept` that no payout has matched are deleted later. */
export type StoredStatement = {
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

/** Every statement, newest last. */
export async function listStatements(db: Queryable): Promise<StoredStatement[]> {
  const { rows } = await db.query<StoredStatement>(
    `select import_id as "importId", imported_at as at, imported_by as person, file, sha256, mids, account,
            to_char(covers_from, 'YYYY-MM-DD') as "coversFrom", to_char(covers_to, 'YYYY-MM-DD') as "coversTo",
            kept::float8 as kept, undone_at as "undoneAt", undone_by as "undoneBy"
       from statement_imports
      order by import_id`,
  )
  return rows
}

/** Takes a statement back, with its lines. Returns the number of lines; undefined when there is no such statement any more. */
export async function undoStatement(
  client: Queryable,
  importId: number,
  { now, person }: { now: Date; person: string },
): Promise<number | undefined> {
  const { rowCount } = await client.query(
    'update statement_imports set undone_at = $2, undone_by = $3 where import_id = $1 and undone_at is null',
    [importId, now, person],
  )
  if (rowCount === 0) return undefined
  return (await client.query('delete from statement_lines where import_id = $1', [importId])).rowCount ?? 0
}
