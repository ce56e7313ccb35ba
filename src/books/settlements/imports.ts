import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
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

/** Forces index lookups, because a sequential scan would read a table of millions of rows for each batch. */
export const useIndexes = (client: Queryable) =>
  client.query('set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off')

const VERSION =
  'mid utr amount_paise bank_reference_number status initiated_at created_at fee_paise tax_paise payment_utr account paid_account event value_date import_id recorded_at'.split(
    ' ',
  )

/**
 * The first half of a statement that stores the previous state of the settlements `s`. Import :importId, or its undo,
 * replaces the settlements at time :now. The caller adds the `from` clause. The next version is valid from :now. If the
 * import waited for another import, :now may be earlier than the start of the previous version; the next version is then
 * valid from that start.
 */
export const intoVersions = ({ undone }: { undone: boolean }) =>
  `insert into settlement_versions (${VERSION.join(', ')}, replaced_at, replaced_by_import_id, undone)
   select s.${VERSION.join(', s.')}, :now::timestamptz, :importId, ${undone}`

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
  { bases, ...stored }: NewImport & { bases: Iterable<number> },
): Promise<void> {
  await INSERT(client, stored)
  await INSERT_BASES(client, { importId: stored.importId, bases: [...bases] })
}

type NewImport = Omit<StoredImport, 'at' | 'undoneAt' | 'undoneBy'> & { now: Date }

const INSERT = query<object, NewImport>(`
  insert into settlement_imports
    (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated, matched, amount_paise,
     inserted_amount_paise)
  values (:importId, :now, :person, :file, :sha256, :inserted, :unchanged, :updated, :matched, :amount, :insertedAmount)`)

const INSERT_BASES = query<object, { importId: number; bases: number[] }>(
  'insert into settlement_import_bases (import_id, on_import_id) select :importId, unnest(:bases::integer[])',
)

/** Returns all imports, oldest first. */
export const listImports = query<StoredImport, object>(`
  select import_id, imported_at as at, imported_by as person, file, sha256, inserted, unchanged, updated, matched,
         amount_paise as amount, inserted_amount_paise as inserted_amount, undone_at, undone_by
    from settlement_imports
   order by import_id`)

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
  await STORE_VERSIONS(client, { importId, now })
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
  await SET_UNDONE(client, { importId, now, person })
  return { removed: removed.rowCount ?? 0, restored: restored.rowCount ?? 0 }
}

const STORE_VERSIONS = query<object, { importId: number; now: Date }>(
  `${intoVersions({ undone: true })} from settlements s where s.import_id = :importId`,
)

const SET_UNDONE = query<object, { importId: number; now: Date; person: string }>(
  'update settlement_imports set undone_at = :now, undone_by = :person where import_id = :importId',
)

async function findObstacle(client: Queryable, importId: number): Promise<NotUndone | undefined> {
  const [found] = await FIND_UNDO(client, { importId })
  if (found === undefined) return { rejected: 'unknown' }
  if (found.undoneAt) return { rejected: 'undone', at: found.undoneAt, by: found.undoneBy }
  return found.builtOn.length > 0 ? { rejected: 'built on', builtOn: found.builtOn } : undefined
}

const FIND_UNDO = query<{ undoneAt: Date | null; undoneBy: string; builtOn: number[] }, { importId: number }>(`
  select i.undone_at, i.undone_by,
         array(select b.import_id
                 from settlement_import_bases b
                 join settlement_imports l
                   on l.import_id = b.import_id and l.undone_at is null and l.inserted + l.updated + l.matched > 0
                where b.on_import_id = i.import_id
                order by b.import_id) as built_on
    from settlement_imports i
   where i.import_id = :importId`)
