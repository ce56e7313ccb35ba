import type { Queryable } from '../../platform/db/pool.ts'
import type { Paise } from '../../platform/money.ts'

/**
 * Longest wait for more of the file, which may arrive through a pipe. PostgreSQL then aborts the import, because the
 * import's lock blocks all other imports.
 */
const FILE_TIMEOUT = '10min'

/** The stored record of one settlement import. The counts are numbers of rows. */
type StoredImport = {
  importId: number
  at: Date
  person: string
  /** The file's name without folder, or `-` for standard input; `payments import` if that command matched rows. */
  file: string
  /** SHA-256 of the file's bytes, in hex; null if the import has no settlement file. */
  sha256: string | null
  inserted: number
  unchanged: number
  updated: number
  /** Number of rows of earlier imports whose payment the import found by its bank reference. */
  matched: number
  /** Sum of all rows in paise. */
  amount: Paise | null
  /** Sum of the new rows in paise. */
  insertedAmount: Paise | null
  undoneAt: Date | null
  undoneBy: string | null
}

/**
 * The reason why an import cannot be undone. `builtOn` lists later imports that repeated or changed its settlements and
 * were not undone. Later imports that changed nothing are omitted, because undoing this import loses no data from such
 * an import.
 */
export type NotUndone =
  | { rejected: 'unknown' }
  | { rejected: 'undone'; at: Date; by: string }
  | { rejected: 'built on'; builtOn: number[] }

/**
 * Locks the settlements until the end of the transaction, after waiting for any other import or undo. Without the lock,
 * two imports of the same rows in different order would deadlock. Readers do not wait, and see the change only after
 * the commit.
 */
export const lockSettlements = (client: Queryable) => lockForImport(client, 'settlements')

/** Locks the table of imported rows. Settlement imports and statement imports use the same lock mode. */
export async function lockForImport(client: Queryable, table: 'settlements' | 'statement_imports'): Promise<void> {
  // `jit` is off, because compiling a batch's statement takes longer than running the statement. Waiting for another
  // import, or for the file, may exceed the operator's time limits. Only the wait for the file is limited, because the
  // import locks the table meanwhile.
  await client.query(`
    set local jit = off;
    set local statement_timeout = 0;
    set local lock_timeout = 0;
    set local idle_in_transaction_session_timeout = '${FILE_TIMEOUT}'`)
  await client.query(`lock table ${table} in share row exclusive mode`)
}

const VERSION =
  'mid utr amount_paise bank_reference_number status initiated_at created_at fee_paise tax_paise payment_utr account paid_account event value_date import_id recorded_at'.split(
    ' ',
  )

/**
 * The first half of a statement that stores the previous state of the settlements `s`. Import $1, or its undo, replaces
 * the settlements at time $2. The caller adds the `from` clause. The next version is valid from $2. If the import
 * waited for another import, time $2 may be earlier than the start of the previous version; the next version is then
 * valid from that start.
 */
export const intoVersions = ({ undone }: { undone: boolean }) =>
  `insert into settlement_versions (${VERSION.join(', ')}, replaced_at, replaced_by_import_id, undone)
   select s.${VERSION.join(', s.')}, $2::timestamptz, $1, ${undone}`

/**
 * Returns the number of the next import in this table. The caller must hold the import lock, which blocks other
 * imports.
 */
export async function nextImportId(
  client: Queryable,
  table: 'settlement_imports' | 'statement_imports',
): Promise<number> {
  const { rows } = await client.query<{ importId: number }>(
    `select coalesce(max(import_id), 0) + 1 as "importId" from ${table}`,
  )
  return (rows[0] as { importId: number }).importId
}

/**
 * Stores the record of an import after its last row, together with the earlier imports whose settlements it repeats or
 * changes.
 */
export async function storeImport(
  client: Queryable,
  { importId, now, person, file, sha256, amount, insertedAmount, bases, ...counts }: NewImport,
): Promise<void> {
  await client.query(
    `insert into settlement_imports
       (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated, matched, amount_paise,
        inserted_amount_paise)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`,
    [
      ...[importId, now, person, file, sha256, counts.inserted, counts.unchanged, counts.updated, counts.matched],
      ...[amount, insertedAmount],
    ],
  )
  await client.query('insert into settlement_import_bases (import_id, on_import_id) select $1, unnest($2::integer[])', [
    importId,
    [...bases],
  ])
}

type NewImport = Omit<StoredImport, 'at' | 'undoneAt' | 'undoneBy' | 'amount' | 'insertedAmount'> & {
  now: Date
  bases: Iterable<number>
  amount: Paise
  insertedAmount: Paise
}

/** Returns all imports, oldest first. */
export async function listImports(db: Queryable): Promise<StoredImport[]> {
  const { rows } = await db.query<StoredImport>(
    `select import_id as "importId", imported_at as at, imported_by as person, file, sha256,
            inserted, unchanged, updated, matched,
            amount_paise as amount, inserted_amount_paise as "insertedAmount", undone_at as "undoneAt", undone_by as "undoneBy"
       from settlement_imports
      order by import_id`,
  )
  return rows
}

/**
 * Deletes the settlements that an import inserted and restores the settlements that it changed. Returns the numbers of
 * deleted and restored settlements, or the reason why the import cannot be undone. The removed states remain stored as
 * versions. `client` must be in a transaction.
 */
export async function undoImport(
  client: Queryable,
  importId: number,
  { now, person }: { now: Date; person: string },
): Promise<{ removed: number; restored: number } | NotUndone> {
  await lockSettlements(client)
  const why = await findObstacle(client, importId)
  if (why) return why
  await client.query(`${intoVersions({ undone: true })} from settlements s where s.import_id = $1`, [importId, now])
  // Restores before deleting: a restored settlement gets the number of its earlier import, so the delete below does not
  // remove it.
  const restored = await client.query(
    `update settlements s
        set status = v.status, fee_paise = v.fee_paise, tax_paise = v.tax_paise, payment_utr = v.payment_utr, account = v.account,
            paid_account = v.paid_account, event = v.event, value_date = v.value_date, import_id = v.import_id, recorded_at = greatest(s.recorded_at, $2)
       from settlement_versions v
      where v.replaced_by_import_id = $1 and not v.undone and s.mid = v.mid and s.utr = v.utr`,
    [importId, now],
  )
  const removed = await client.query('delete from settlements where import_id = $1', [importId])
  await client.query('update settlement_imports set undone_at = $2, undone_by = $3 where import_id = $1', [
    importId,
    now,
    person,
  ])
  return { removed: removed.rowCount ?? 0, restored: restored.rowCount ?? 0 }
}

async function findObstacle(client: Queryable, importId: number): Promise<NotUndone | undefined> {
  const { rows } = await client.query<{ undoneAt: Date | null; undoneBy: string; builtOn: number[] }>(
    `select i.undone_at as "undoneAt", i.undone_by as "undoneBy",
            array(select b.import_id
                    from settlement_import_bases b
                    join settlement_imports l
                      on l.import_id = b.import_id and l.undone_at is null and l.inserted + l.updated + l.matched > 0
                   where b.on_import_id = i.import_id
                   order by b.import_id) as "builtOn"
       from settlement_imports i
      where i.import_id = $1`,
    [importId],
  )
  const [found] = rows
  if (found === undefined) return { rejected: 'unknown' }
  if (found.undoneAt) return { rejected: 'undone', at: found.undoneAt, by: found.undoneBy }
  return found.builtOn.length > 0 ? { rejected: 'built on', builtOn: found.builtOn } : undefined
}
