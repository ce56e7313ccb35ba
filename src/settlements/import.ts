import { createHash, type Hash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type Batch, type LineFault, storeBatches } from '../csv.ts'
import { type Queryable, setLocally } from '../db/pool.ts'
import { SETTLEMENT_FILE } from './csv.ts'
import { lockSettlements, nextImportId, storeImport } from './imports.ts'
import type { SettlementStatus } from './settlements.ts'

/**
 * The number of the import, by which it can be undone, and counts of rows: `inserted` are new, `unchanged` were stored
 * already, `updated` have a new status, or a fee, tax or payment UTR that earlier files did not have.
 */
export type ImportResult = { import: number; inserted: number; unchanged: number; updated: number }

/** `person` imports the file of this name, without its folder; `onProgress` is told how many lines have been read. */
export type Importing = {
  now: Date
  person: string
  file: string
  onProgress?: ((linesRead: number) => void) | undefined
}

/**
 * Stores the settlements of a CSV file, all of them or none. The file is streamed, so its size does not matter. A
 * repeated import changes nothing. Rows that repeat one another, in the file or from an earlier one, are taken in the
 * order of the file. `client` must be in a transaction that is not committed when this throws, and must not limit the
 * time of a query.
 *
 * Throws a CsvFileError when a line is wrong.
 */
export async function importSettlements(
  client: pg.ClientBase,
  csv: Readable,
  { onProgress, ...importing }: Importing,
): Promise<ImportResult> {
  await lockSettlements(client)
  const running = { importId: await nextImportId(client), now: importing.now, bases: new Set<number>() }
  await prepare(client)
  const sha256 = createHash('sha256')
  const counts = { inserted: 0, unchanged: 0, updated: 0 }
  let linesRead = 0
  await storeBatches(Readable.from(hashed(csv, sha256), { objectMode: false }), SETTLEMENT_FILE, async (batch) => {
    const { inserted, updated, faults } = await storeBatch(client, batch, running)
    counts.inserted += inserted
    counts.updated += updated
    counts.unchanged += batch.rowCount - inserted - updated - faults.length
    linesRead += batch.lineCount
    onProgress?.(linesRead)
    return faults
  })
  await storeImport(client, { ...running, ...importing, sha256: sha256.digest('hex'), ...counts })
  return { import: running.importId, ...counts }
}

async function* hashed(csv: Readable, hash: Hash): AsyncGenerator<Buffer | string> {
  for await (const chunk of csv) {
    hash.update(chunk)
    yield chunk
  }
}

async function prepare(client: Queryable): Promise<void> {
  await client.query(`
    create temporary table incoming (
      line bigint not null,
      mid text not null,
      amount numeric(14, 2) not null,
      utr text collate "C" not null,
      bank_reference_number text not null,
      status text not null,
      initiated_at timestamptz not null,
      created_at timestamptz,
      fee numeric(14, 2),
      tax numeric(14, 2),
      payment_utr text collate "C"
    ) on commit drop`)
}

/** The state of an import. `bases` are the earlier imports whose settlements it has repeated or changed so far. */
type Running = { importId: number; now: Date; bases: Set<number> }
type Stored = { inserted: number; updated: number; faults: LineFault[] }

async function storeBatch(client: pg.ClientBase, batch: Batch, running: Running): Promise<Stored> {
  if (batch.rowCount === 0) return { inserted: 0, updated: 0, faults: [] }
  await pipeline([batch.rows], client.query(copyFrom('copy incoming from stdin')))
  const inserted = await insertNew(client, running)
  const isAllNew = inserted === batch.rowCount
  const unknown = isAllNew ? [] : await findUnknown(client)
  const differences = isAllNew ? [] : await findDifferences(client, running)
  for (const { storedBy } of differences)
    if (storedBy !== null && storedBy !== running.importId) running.bases.add(storedBy)
  const { changed, updated, faults } = separateChanges(differences)
  await change(client, changed, running)
  await client.query('truncate incoming')
  return { inserted, updated, faults: [...unknown, ...faults].sort((a, b) => a.line - b.line) }
}

/**
 * Stores every row whose (mid, utr) is new; of rows that repeat one another, the first. Returns how many it stored.
 * Rows are stored in the order of the key, because neighbours then share a page: a million rows in random order cost
 * PostgreSQL 26 s of processor time, and 31 s in the order of the file. mid is sorted by its bytes, because the order
 * of a locale is slow to compare.
 */
async function insertNew(client: Queryable, { importId, now }: Running): Promise<number> {
  const { rows } = await client.query<{ inserted: number }>(
    // The statement counts its rows itself, because Citus returns a wrong row count when some rows conflict with
    // others.
    `with inserted as (
       insert into settlements
         (mid, utr, amount, bank_reference_number, status, initiated_at, created_at, fee, tax, payment_utr, import_id)
       select i.mid, i.utr, i.amount, i.bank_reference_number, i.status, i.initiated_at, coalesce(i.created_at, $1),
              i.fee, i.tax, i.payment_utr, $2
         from incoming i
        where exists (select from merchants m where m.mid = i.mid)
        order by i.mid collate "C", i.utr, i.line
           on conflict (mid, utr) do nothing
       returning mid
     )
     select count(*)::integer as inserted from inserted`,
    [now, importId],
  )
  return rows[0]?.inserted ?? 0
}

/** Returns a fault for each line whose merchant does not exist. */
async function findUnknown(client: Queryable): Promise<LineFault[]> {
  const { rows } = await client.query<{ line: number }>(
    `select i.line::float8 as line from incoming i where not exists (select from merchants m where m.mid = i.mid)`,
  )
  return rows.map(({ line }) => ({ line, text: 'mid is not a known merchant' }))
}

/**
 * The fields that a later file may change. Amounts are decimal text with two decimals; null where no file has given one
 * yet.
 */
type Changeable = { status: SettlementStatus; fee: string | null; tax: string | null; payment_utr: string | null }

/** Columns that a file may leave empty, and a later file may fill. */
const ADDED = ['fee', 'tax', 'payment_utr'] as const

type Difference = {
  line: number
  mid: string
  utr: string
  /** The fields in the file's row; null where the file says nothing. */
  said: Changeable
  stored: Changeable
  /** The import that stored or last changed the settlement; null if that was an earlier version of the service. */
  storedBy: number | null
  /** The columns in which the file contradicts the table and that no file may change. */
  others: string[]
}

/**
 * Returns three kinds of rows, in the order of the file: rows that differ from the stored settlement; rows whose
 * settlement is PENDING, so that an earlier row of the batch may change it; and rows whose settlement comes from an
 * import that is not among the bases yet.
 */
async function findDifferences(client: Queryable, { importId, bases }: Running): Promise<Difference[]> {
  // Each settlement is one look-up in the index: a scan for every batch would read a table of millions a hundred times.
  await setLocally(client, ['enable_seqscan = off', 'enable_hashjoin = off', 'enable_mergejoin = off'])
  const changeable = (of: string) =>
    `json_build_object('status', ${of}.status, 'fee', ${of}.fee::text, 'tax', ${of}.tax::text, 'payment_utr', ${of}.payment_utr)`
  const { rows } = await client.query<Difference>(
    `select i.line::float8 as line, i.mid, i.utr, ${changeable('i')} as said, ${changeable('s')} as stored,
            s.import_id as "storedBy",
            array_remove(array[
              case when s.amount <> i.amount then 'amount' end,
              case when s.bank_reference_number <> i.bank_reference_number then 'bank_reference_number' end,
              case when s.initiated_at <> i.initiated_at then 'initiation_date' end], null) as others
       from incoming i
       join settlements s on s.mid = i.mid and s.utr = i.utr
      where s.status = 'PENDING'
         or s.import_id <> all ($1::integer[])
         or (s.status, s.amount, s.bank_reference_number, s.initiated_at)
            <> (i.status, i.amount, i.bank_reference_number, i.initiated_at)
         or i.fee is not null and s.fee is distinct from i.fee
         or i.tax is not null and s.tax is distinct from i.tax
         or i.payment_utr is not null and s.payment_utr is distinct from i.payment_utr
      order by i.line`,
    [[importId, ...bases]],
  )
  return rows
}

type Changed = Changeable & { mid: string; utr: string }

/**
 * Separates lines that change a settlement from lines that contradict what is stored: those become `faults`. `updated`
 * counts the lines that change one. `changed` holds each settlement once, as its last line leaves it.
 */
function separateChanges(differences: Difference[]): { changed: Changed[]; updated: number; faults: LineFault[] } {
  const changed = new Map<string, Changed>()
  const faults: LineFault[] = []
  let updated = 0
  for (const { line, mid, utr, said, stored, others: fixed } of differences) {
    const key = `${mid} ${utr}`
    const current: Changeable = changed.get(key) ?? stored
    const isOther = (field: (typeof ADDED)[number]) =>
      said[field] !== null && current[field] !== null && said[field] !== current[field]
    const others = [...fixed, ...ADDED.filter(isOther)]
    if (others.length > 0) {
      const what = others.includes('payment_utr') ? ': each row needs a utr of its own' : ''
      faults.push({ line, text: `this mid and utr are known with another ${others.join(' and ')}${what}` })
    } else if (said.status !== current.status && current.status !== 'PENDING') {
      faults.push({ line, text: `status cannot go from ${current.status} to ${said.status}` })
    } else if (
      said.status !== current.status ||
      ADDED.some((field) => said[field] !== null && current[field] === null)
    ) {
      const added = Object.fromEntries(ADDED.map((field) => [field, current[field] ?? said[field]]))
      changed.set(key, { ...current, ...added, mid, utr, status: said.status })
      updated += 1
    }
  }
  return { changed: [...changed.values()], updated, faults }
}

/** Changes settlements, and keeps what they were before this import. */
async function change(client: Queryable, changed: Changed[], { importId }: Running): Promise<void> {
  if (changed.length === 0) return
  await client.query(
    `with changed as (
       select *
         from json_to_recordset($2)
              as c (mid text, utr text, status text, fee numeric, tax numeric, payment_utr text)
     ), before as (
       insert into settlement_updates (mid, utr, import_id, stored_import_id, status, fee, tax, payment_utr)
       select s.mid, s.utr, $1, s.import_id, s.status, s.fee, s.tax, s.payment_utr
         from changed c
         join settlements s on s.mid = c.mid and s.utr = c.utr
        where s.import_id is distinct from $1
     )
     update settlements s
        set status = c.status, fee = c.fee, tax = c.tax, payment_utr = c.payment_utr, import_id = $1
       from changed c
      where s.mid = c.mid and s.utr = c.utr`,
    [importId, JSON.stringify(changed)],
  )
}
