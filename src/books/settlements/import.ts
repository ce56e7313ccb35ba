import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import {
  type Batch,
  CsvFileError,
  hashed,
  type LineError,
  type OnWarning,
  storeBatches,
} from '../../platform/csv/csv.ts'
import type { Layout } from '../../platform/csv/layouts.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { counted, type Paise } from '../../platform/money.ts'
import { type Changing, storeChanges } from './changes.ts'
import { SETTLEMENT_COLUMNS, settlementFile } from './csv.ts'
import { nameDeductions, nextDeductions, prepareDeductions, setDeductionsAside } from './deductions.ts'
import { lockSettlements, nextImportId, storeImport } from './imports.ts'
import { matchReferences } from './match-references.ts'
import { namePayments, preparePaymentNames } from './payments-of-rows.ts'

/**
 * `import` is the number with which the operator can undo the import. `inserted` is the number of new rows, and
 * `unchanged` the number of rows already stored. `updated` is the number of rows with a new status, or with a value for
 * a field that earlier imports left empty, such as a fee. `matched` is the number of rows of earlier imports whose
 * payment this import found by its bank reference. `amount` is the sum of all rows in paise, and `insertedAmount` the
 * sum of new rows.
 */
export type ImportResult = { import: number } & Counts
type Counts = Record<'inserted' | 'unchanged' | 'updated' | 'matched', number> &
  Record<'amount' | 'insertedAmount', Paise>

/**
 * `person` is the operator who imports `file` (a name without folder). `account` is the acquirer account that paid out
 * the rows. `layout` describes a bank's own file format. `onProgress` receives the number of lines read so far,
 * `onWarning` suspicious content, and `onNote` remarks about the rows.
 */
export type Importing = {
  now: Date
  person: string
  file: string
  account?: string | undefined
  layout?: Layout | undefined
  onProgress?: ((linesRead: number) => void) | undefined
  onWarning?: OnWarning
  onNote?: OnWarning
}

/**
 * Stores the settlements in a CSV file, either all or none. The file is streamed, so its size does not matter, and
 * importing the same file again changes nothing. Rows with the same UTR apply in file order; rows with a negative
 * amount apply after all others. `client` must be in a transaction without a statement timeout, which the caller rolls
 * back if this function throws.
 *
 * Throws a `CsvFileError` if a line is invalid.
 */
export async function importSettlements(
  client: pg.ClientBase,
  csv: Readable,
  { onProgress, onWarning, onNote, layout, ...importing }: Importing,
): Promise<ImportResult> {
  await lockSettlements(client)
  const counts: Counts = { inserted: 0, unchanged: 0, updated: 0, matched: 0, amount: 0, insertedAmount: 0 }
  const importId = await nextImportId(client, 'settlement_imports')
  const { now, account = null } = importing
  const running: Running = { importId, now, account, bases: new Set(), counts, deductions: 0, unnamed: [] }
  counts.matched = await matchReferences(client, running)
  await prepare(client)
  const sha256 = createHash('sha256')
  const store = async (batch: Batch) => {
    const errors = await storeBatch(client, batch, running)
    linesRead += batch.lineCount
    onProgress?.(linesRead)
    if (batch.isLast && running.deductions > 0) errors.push(...(await storeDeductions(client, running)))
    return errors
  }
  let linesRead = 0
  const hashedCsv = Readable.from(hashed(csv, sha256), { objectMode: false })
  const { format, notes } = settlementFile(layout)
  await storeBatches(hashedCsv, format, store, (text) => onWarning?.(`${text}; ${TRAILER}`))
  await client.query(ADD_INSTRUMENTS)
  if (running.unnamed.length > 0) onWarning?.(unnamedText(running.unnamed))
  for (const note of notes()) onNote?.(note)
  await storeImport(client, { ...running, ...importing, sha256: sha256.digest('hex'), ...counts })
  return { import: running.importId, ...counts }
}

/** Counts the settlements of unknown payments that an import stored, without deductions. */
export const countUnknown = query<{ unknown: number }, { importId: number }>(`
  select count(*) as unknown
    from settlements s
    join settlement_imports i on i.import_id = :importId and i.import_id = s.import_id and s.recorded_at >= i.imported_at
   where s.amount_paise > 0
     and not exists (select from payments p where p.mid = s.mid and p.utr = upper(coalesce(s.payment_utr, s.utr)))`)

const TRAILER = "check it against the bank's trailer with --rows and --total"

const TOO_MUCH = 'the amounts add up to more than 90 lakh crore rupees: check which column is read as the amount'

const unnamedText = ([first, ...more]: readonly number[]) =>
  `${counted(more.length + 1, 'row names', 'rows name')} an unknown payment by order_id or acquirer_payment_id, first in line ${first}: stored under a generated UTR`

async function prepare(client: Queryable): Promise<void> {
  await client.query(`
    create temporary table incoming (
      line bigint not null,
      mid text not null,
      amount_paise bigint not null,
      utr text collate "C",
      bank_reference_number text not null,
      status text not null,
      initiated_at timestamptz not null,
      created_at timestamptz,
      fee_paise bigint,
      tax_paise bigint,
      payment_utr text collate "C",
      value_date date,
      order_id text,
      acquirer_payment_id text,
      event text,
      instrument text,
      -- The payment_utr in the file, before the stored UTR of a known payment replaced it.
      given_payment_utr text collate "C"
    ) on commit drop`)
  await client.query(`
    create temporary table paid_accounts (line bigint primary key, account text) on commit drop;
    create temporary table instruments (mid text, utr text collate "C", instrument text) on commit drop`)
  await prepareDeductions(client)
  await preparePaymentNames(client)
}

/**
 * The state of a running import. `deductions` is the number of negative rows, which are stored after all other rows.
 * `unnamed` lists the lines whose `order_id` or `acquirer_payment_id` matches no known payment.
 */
type Running = Changing & { counts: Counts; deductions: number; unnamed: number[] }

async function storeBatch(client: pg.ClientBase, batch: Batch, running: Running): Promise<LineError[]> {
  if (batch.rowCount === 0) return []
  await pipeline([batch.rows], client.query(copyFrom(COPY)))
  const { errors, unnamed } = await namePayments(client)
  running.unnamed.push(...unnamed)
  const [{ deductions, amount }] = (await setDeductionsAside(client, {})) as [{ deductions: number; amount: Paise }]
  await client.query(NAMED_INSTRUMENTS)
  running.deductions += deductions
  running.counts.amount += amount
  if (!Number.isSafeInteger(running.counts.amount)) throw new CsvFileError([{ line: 1, text: TOO_MUCH }], 1)
  return [...errors, ...(await storeIncoming(client, batch.rowCount - deductions, running))]
}

const NAMED_INSTRUMENTS = `
  insert into instruments
  select mid, upper(coalesce(payment_utr, utr)), instrument from incoming where instrument is not null and status = 'SUCCESS'`

/**
 * Adds the instruments of all rows to their payments, last, because the update locks the payments. A payment keeps its
 * instrument, and rows that contradict each other add none.
 */
const ADD_INSTRUMENTS = `
  update payments p
     set instrument = i.instrument
    from (select mid, utr, min(instrument) as instrument
            from instruments
           group by mid, utr
          having min(instrument) = max(instrument)) i
   where p.mid = i.mid and p.utr = i.utr and p.instrument is null`

const STORED_AS: Readonly<Record<string, string>> = {
  amount: 'amount_paise',
  fee: 'fee_paise',
  tax: 'tax_paise',
  initiation_date: 'initiated_at',
}
const COPY = `copy incoming (line, ${SETTLEMENT_COLUMNS.map((name) => STORED_AS[name] ?? name)}) from stdin`

async function storeDeductions(client: Queryable, running: Running): Promise<LineError[]> {
  const errors = await nameDeductions(client)
  for (let after = 0; ; ) {
    const [next] = await nextDeductions(client, { after })
    if (!next || next.rowCount === 0) return errors
    errors.push(...(await storeIncoming(client, next.rowCount, running)))
    after = next.last
  }
}

/** Stores the rows in `incoming`, adds them to the counts, and empties `incoming`. */
async function storeIncoming(client: Queryable, rowCount: number, running: Running): Promise<LineError[]> {
  await client.query(PAID_ACCOUNTS)
  const [{ inserted, amount }] = (await insertNew(client, running)) as [Inserted]
  const isAllNew = inserted === rowCount
  const unknown = isAllNew ? [] : await findUnknown(client, {})
  const { updated, errors } = isAllNew ? { updated: 0, errors: [] } : await storeChanges(client, running)
  await client.query('truncate incoming, paid_accounts')
  errors.push(...unknown.map(({ line }) => ({ line, text: UNKNOWN_MID })))
  const { counts } = running
  counts.inserted += inserted
  counts.insertedAmount += amount
  counts.updated += updated
  counts.unchanged += rowCount - inserted - updated - errors.length
  return errors
}

/** Finds the acquirer accounts of the payments that rows in `incoming` settle, as far as the payments are recorded. */
const PAID_ACCOUNTS = `
  insert into paid_accounts (line, account)
  select i.line, p.acquirer
    from incoming i
    join payments p on p.mid = i.mid and p.utr = upper(coalesce(i.payment_utr, i.utr))`

/**
 * Inserts each row whose (mid, utr) is new; if several rows share a new key, inserts the first. Inserts in key order,
 * so that neighbouring rows share an index page: for a million rows in random order, PostgreSQL then needs 26 s of CPU
 * time instead of 31 s. Sorts `mid` by bytes, because comparing by a locale's collation is slow.
 */
const insertNew = plannedQuery<Inserted, Changing>(`
  with inserted as (
    insert into settlements
      (mid, utr, amount_paise, bank_reference_number, status, initiated_at, created_at, fee_paise, tax_paise, payment_utr,
       value_date, account, paid_account, event, import_id, recorded_at)
    select i.mid, i.utr, i.amount_paise, i.bank_reference_number, i.status, i.initiated_at, coalesce(i.created_at, :now),
           i.fee_paise, i.tax_paise, i.payment_utr, i.value_date, :account, a.account, i.event, :importId, :now
      from incoming i
      left join paid_accounts a using (line)
     where exists (select from merchants m where m.mid = i.mid)
     order by i.mid collate "C", i.utr, i.line
        on conflict (mid, utr) do nothing
    returning amount_paise
  )
  select count(*) as inserted, coalesce(sum(amount_paise), 0)::bigint as amount from inserted`)

type Inserted = { inserted: number; amount: Paise }

/** Returns the lines whose merchant does not exist. */
const findUnknown = plannedQuery<{ line: number }, object>(
  'select i.line from incoming i where not exists (select from merchants m where m.mid = i.mid)',
)

const UNKNOWN_MID = 'mid is not a known merchant: correct it, or add the merchant first'
