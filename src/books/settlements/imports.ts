import { type Queryable, setLocally } from '../../platform/db/pool.ts'
import { toSumText } from '../../platform/money.ts'

/** Longest wait for more of a file, which may come through a pipe; then PostgreSQL ends the import. */
const FILE_TIMEOUT = '10min'

/** One imported file. Counts are of its rows, amounts decimal text. */
export type StoredImport = {
  importId: number
  at: Date
  person: string
  /** The file's name without its folder, or `-`. */
  file: string
  /** SHA-256 of the file's bytes, in hex. */
  sha256: string
  inserted: number
  unchanged: number
  updated: number
  /** Of all rows, and of new ones. */
  amount: string | null
  insertedAmount: string | null
  undoneAt: Date | null
  undoneBy: string | null
}

/**
 * Why an import cannot be undone. `builtOn` are the later imports that repeated or changed its settlements and still stand, without
 * those that changed nothing at all: nothing of them is lost.
 */
export type NotUndone =
  | { refused: 'unknown' }
  | { refused: 'undone'; at: Date; by: string }
  | { refused: 'built on'; builtOn: number[] }

/**
 * Locks the settlements until the transaction ends, and first waits for any other import or undoing: two with the same
 * rows in a different order would deadlock. Readers of lists do not wait, and see the change only when all of it is
 * there.
 */
export const lockSettlements = (client: Queryable) => lockForImport(client, 'settlements')

/** The same for the imports of another table. */
export async function lockForImport(client: Queryable, table: 'settlements' | 'statement_imports'): Promise<void> {
  // jit is off, because compiling a batch's statement takes longer than running it. An import may wait for another
  // import, and for its file, longer than the operator lets others wait; only the wait for the file has a limit, since
  // the import holds a lock.
  await setLocally(client, [
    'jit = off',
    'statement_timeout = 0',
    'lock_timeout = 0',
    `idle_in_transaction_session_timeout = '${FILE_TIMEOUT}'`,
  ])
  await client.query(`lock table ${table} in share row exclusive mode`)
}

const VERSION =
  'mid utr amount bank_reference_number status initiated_at created_at fee tax payment_utr account value_date import_id known_at'.split(
    ' ',
  )

/**
 * The first half of a statement that keeps settlements `s` as they are before import $1, or its undo, replaces them at $2.
 * It goes on with their `from`. The next version is known at $2 or, since an import that waited for another began earlier, at
 * the moment of the version before it.
 */
export const intoVersions = ({ undone }: { undone: boolean }) =>
  `insert into settlement_versions (${VERSION.join(', ')}, replaced_at, replaced_by, undone)
   select s.${VERSION.join(', s.')}, $2::timestamptz, $1, ${undone}`

/** Returns the number of the next import of this table. Other imports must be locked out. */
export async function nextImportId(
  client: Queryable,
  table: 'settlement_imports' | 'statement_imports',
): Promise<number> {
  const { rows } = await client.query<{ importId: number }>(
    `select coalesce(max(import_id), 0) + 1 as "importId" from ${table}`,
  )
  return (rows[0] as { importId: number }).importId
}

/** Stores the record of an import, after its last row, with the earlier imports on which it is built. */
export async function storeImport(
  client: Queryable,
  { importId, now, person, file, sha256, inserted, unchanged, updated, amount, insertedAmount, bases }: NewImport,
): Promise<void> {
  await client.query(
    `insert into settlement_imports
       (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated, amount, inserted_amount)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
    [importId, now, person, file, sha256, inserted, unchanged, updated, toSumText(amount), toSumText(insertedAmount)],
  )
  await client.query('insert into settlement_import_bases (import_id, on_import_id) select $1, unnest($2::integer[])', [
    importId,
    [...bases],
  ])
}

type NewImport = Omit<StoredImport, 'at' | 'undoneAt' | 'undoneBy' | 'amount' | 'insertedAmount'> & {
  now: Date
  bases: Iterable<number>
  amount: bigint
  insertedAmount: bigint
}

/** Every import, newest last. */
export async function listImports(db: Queryable): Promise<StoredImport[]> {
  const { rows } = await db.query<StoredImport>(
    `select import_id as "importId", imported_at as at, imported_by as person, file, sha256,
            inserted::float8 as inserted, unchanged::float8 as unchanged, updated::float8 as updated,
            amount::text, inserted_amount::text as "insertedAmount", undone_at as "undoneAt", undone_by as "undoneBy"
       from settlement_imports
      order by import_id`,
  )
  return rows
}

/**
 * Removes the settlements that an import stored and restores those that it changed, or says why not. Returns the numbers of
 * both. What it takes away is kept. `client` is in a transaction.
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
  // Restoring comes before removing, because it gives changed settlements the number of their earlier import back.
  const restored = await client.query(
    `update settlements s
        set status = v.status, fee = v.fee, tax = v.tax, payment_utr = v.payment_utr, account = v.account,
            value_date = v.value_date, import_id = v.import_id, known_at = greatest(s.known_at, $2)
       from settlement_versions v
      where v.replaced_by = $1 and not v.undone and s.mid = v.mid and s.utr = v.utr`,
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
                      on l.import_id = b.import_id and l.undone_at is null and l.inserted + l.updated > 0
                   where b.on_import_id = i.import_id
                   order by b.import_id) as "builtOn"
       from settlement_imports i
      where i.import_id = $1`,
    [importId],
  )
  const [found] = rows
  if (found === undefined) return { refused: 'unknown' }
  if (found.undoneAt) return { refused: 'undone', at: found.undoneAt, by: found.undoneBy }
  return found.builtOn.length > 0 ? { refused: 'built on', builtOn: found.builtOn } : undefined
}
