import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { type Batch, type LineFault, storeBatches } from '../csv.ts'
import type { Queryable } from '../db/pool.ts'
import { SETTLEMENT_FILE, type SettlementStatus } from './csv.ts'

/** Numbers of rows: new ones, ones that were there already, and ones whose status moved on. */
export type ImportResult = { inserted: number; unchanged: number; updated: number }

/** Longest wait for more of the file, which may come through a pipe; then PostgreSQL ends the import. */
const FILE_TIMEOUT = '10min'

/**
 * Stores the settlements of a CSV file, all of them or none, and streams it: the size of the file does not matter.
 * A repeated import changes nothing. Rows that repeat one another, in the file or from an earlier one, are taken in
 * the order of the file. `onProgress` is told how many lines have been read. `client` is
 * in a transaction, which must not be committed when this throws, and limits the time of no query.
 *
 * Throws a CsvFileError when a line is wrong.
 */
export async function importSettlements(
  client: CopyClient,
  csv: Readable,
  { now, onProgress }: { now: Date; onProgress?: ((linesRead: number) => void) | undefined },
): Promise<ImportResult> {
  await prepare(client)
  const result: ImportResult = { inserted: 0, unchanged: 0, updated: 0 }
  let linesRead = 0
  await storeBatches(csv, SETTLEMENT_FILE, async (batch) => {
    const { inserted, updated, faults } = await storeBatch(client, batch, now)
    result.inserted += inserted
    result.updated += updated
    result.unchanged += batch.rowCount - inserted - updated - faults.length
    linesRead += batch.lineCount
    onProgress?.(linesRead)
    return faults
  })
  return result
}

async function prepare(client: Queryable): Promise<void> {
  // Compiling a batch's statement takes longer than running it. An import may wait for another one, and for its file,
  // longer than the operator lets others wait; not for ever, since it holds a lock.
  await client.query(`
    set local jit = off;
    set local statement_timeout = 0;
    set local lock_timeout = 0;
    set local idle_in_transaction_session_timeout = '${FILE_TIMEOUT}'`)
  // Imports take turns: two that hold the same rows in another order would otherwise wait for each other for ever.
  // Whoever reads the list is not held up, and sees the rows when all are there.
  await client.query('lock table settlements in share row exclusive mode')
  await client.query(`
    create temporary table incoming (
      line bigint not null,
      mid text not null,
      utr text collate "C" not null,
      amount numeric(14, 2) not null,
      bank_reference_number text not null,
      status text not null,
      initiated_at timestamptz not null,
      created_at timestamptz
    ) on commit drop`)
}

type Stored = { inserted: number; updated: number; faults: LineFault[] }

async function storeBatch(client: CopyClient, batch: Batch, now: Date): Promise<Stored> {
  if (batch.rowCount === 0) return { inserted: 0, updated: 0, faults: [] }
  await copyIncoming(client, batch.rows)
  const inserted = await insertNew(client, now)
  const { moved, faults } =
    inserted === batch.rowCount ? { moved: [], faults: [] } : separateMoves(await findDifferences(client))
  const updated = await moveOn(client, moved)
  await client.query('truncate incoming')
  return { inserted, updated, faults }
}

type CopyClient = pg.PoolClient

async function copyIncoming(client: CopyClient, rows: string): Promise<void> {
  const incoming = client.query(
    copyFrom(`
      copy incoming (line, mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
      from stdin`),
  )
  await pipeline([rows], incoming)
}

/**
 * Stores every row whose (mid, utr) is new; of those that repeat one another, the first. Returns how many it stored.
 * In the order of the key, because neighbours then share a page: a million rows in no order cost PostgreSQL 26 s of
 * processor time, in the order of the file 31 s. By the bytes of mid, since a locale's order is slow to compare.
 */
async function insertNew(client: Queryable, now: Date): Promise<number> {
  const { rowCount } = await client.query(
    `insert into settlements (mid, utr, amount, bank_reference_number, status, initiated_at, created_at)
     select i.mid, i.utr, i.amount, i.bank_reference_number, i.status, i.initiated_at, coalesce(i.created_at, $1)
       from incoming i
      where exists (select from merchants m where m.mid = i.mid)
      order by i.mid collate "C", i.utr, i.line
         on conflict (mid, utr) do nothing`,
    [now],
  )
  return rowCount ?? 0
}

type Difference = {
  line: number
  mid: string
  utr: string
  status: SettlementStatus
  /** Null when the merchant is unknown, since nothing could be stored for it. */
  storedStatus: SettlementStatus | null
  otherAmount: boolean
  otherReference: boolean
  otherDate: boolean
}

/** Rows that differ from the stored one, and rows whose stored one an earlier row may have changed, in the order of the file. */
async function findDifferences(client: Queryable): Promise<Difference[]> {
  const { rows } = await client.query<Difference>(
    `select i.line::float8 as line, i.mid, i.utr, i.status, s.status as "storedStatus",
            s.amount <> i.amount as "otherAmount",
            s.bank_reference_number <> i.bank_reference_number as "otherReference",
            s.initiated_at <> i.initiated_at as "otherDate"
       from incoming i
       -- Limited to one, which it is anyway, so that every row is one look-up in the index and never a scan of the table.
       left join lateral (
         select s.status, s.amount, s.bank_reference_number, s.initiated_at
           from settlements s
          where s.mid = i.mid and s.utr = i.utr
          limit 1
       ) s on true
      where s.status is null
         or s.status = 'PENDING'
         or (s.status, s.amount, s.bank_reference_number, s.initiated_at)
            <> (i.status, i.amount, i.bank_reference_number, i.initiated_at)
      order by i.line`,
  )
  return rows
}

/** Separates the lines that move a pending settlement on from the faults of lines that contradict what is stored. */
function separateMoves(differences: Difference[]): { moved: number[]; faults: LineFault[] } {
  const moved: number[] = []
  const faults: LineFault[] = []
  const movedTo = new Map<string, SettlementStatus>()
  for (const row of differences) {
    const { line, mid, utr, status, storedStatus } = row
    if (storedStatus === null) {
      faults.push({ line, text: 'mid is not a known merchant' })
      continue
    }
    const others = [
      ...(row.otherAmount ? ['amount'] : []),
      ...(row.otherReference ? ['bank_reference_number'] : []),
      ...(row.otherDate ? ['initiation_date'] : []),
    ]
    if (others.length > 0) {
      faults.push({ line, text: `this mid and utr are known with another ${others.join(' and ')}` })
      continue
    }
    const key = `${mid} ${utr}`
    const current = movedTo.get(key) ?? storedStatus
    if (status === current) continue
    if (current === 'PENDING') {
      movedTo.set(key, status)
      moved.push(line)
    } else {
      faults.push({ line, text: `status cannot go from ${current} to ${status}` })
    }
  }
  return { moved, faults }
}

async function moveOn(client: Queryable, lines: number[]): Promise<number> {
  if (lines.length === 0) return 0
  const { rowCount } = await client.query(
    `update settlements s
        set status = i.status
       from incoming i
      where i.line = any ($1::bigint[]) and s.mid = i.mid and s.utr = i.utr`,
    [lines],
  )
  return rowCount ?? 0
}
