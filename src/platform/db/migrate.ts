import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join, parse } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { NUMBER_TYPES } from './number-types.ts'
import { DEADLOCK_DETECTED, hasState, LOCK_NOT_AVAILABLE, UNDEFINED_TABLE } from './outage.ts'
import type { Queryable } from './pool.ts'
import { plannedQuery } from './query.ts'
import { runFile } from './statements.ts'

// The folder `migrations` is three levels above this file. In the bundle, dist, the folder is one level above.
const FOLDER = ['../../../migrations', '../migrations']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync) as string
const CONNECT_TIMEOUT_MS = 10_000

/**
 * Longest wait of one statement for a table lock, during which payments wait behind the statement. The limit is shorter
 * than the deadlock_timeout of 0.2 s that roles.sql sets for the service and than PostgreSQL's default of 1 s: in a
 * deadlock with a payment, the migration is rolled back first, unless the payment had already waited for the difference
 * when the deadlock arose.
 */
const LOCK_TIMEOUT_MS = 100
/** Pause before the next attempt. Because of the pause, payments are delayed for at most a fiftieth of the time. */
const LOCK_PAUSE_MS = 5_000
/**
 * Time after which the command shows a waiting operator the process that holds the lock of another run. Payments do not
 * wait for this lock.
 */
const RUN_TIMEOUT_MS = 5_000

/**
 * The advisory lock that every run acquires. All releases use the same number, so that runs of two releases wait for
 * each other.
 */
const LOCK_ID = 7_241_865_325_823_964

/**
 * The oldest major version of PostgreSQL that the service supports. The tests are run on this version and on the newest
 * version.
 */
const OLDEST_SERVER = 15

let namesInFolder: Promise<string[]> | undefined

/**
 * Brings the schema up to date and returns the names of the migrations applied by this run, in order. Throws an Error
 * with both versions if the server is older than OLDEST_SERVER. Concurrent runs wait for one another, and each migration
 * is applied once.
 *
 * While a statement waits for a table lock, every later query on that table waits behind this statement. The statement
 * therefore waits briefly; then its migration is rolled back and retried after a pause, without limit: pg_dump may hold
 * its locks for hours, and an upgrade must not stop half-way. `onWait` notifies the operator, who may press Ctrl-C.
 */
export async function migrate(
  databaseUrl: string,
  { folder = FOLDER, onWait = silent }: { folder?: string; onWait?: (message: string) => void } = {},
): Promise<string[]> {
  const client = await connectAlone(databaseUrl)
  try {
    await rejectOldServer(client)
    const names = await readNames(folder)
    const applied: string[] = []
    for (;;) {
      await beginAlone(client, onWait)
      try {
        const name = await applyNext(client, folder, names)
        if (name === undefined) return applied
        applied.push(name)
      } catch (error) {
        if (!hasState(error, LOCK_NOT_AVAILABLE, DEADLOCK_DETECTED)) throw error
        await client.query('rollback')
        const holder = describe(await FIND_LONG_HOLDERS(client, { ms: LOCK_TIMEOUT_MS })) ?? 'another transaction'
        onWait(`waiting for a table that ${holder} has locked; next attempt in ${LOCK_PAUSE_MS / 1_000} s`)
        await sleep(LOCK_PAUSE_MS)
      }
    }
  } finally {
    await client.end()
  }
}

/**
 * Begins a transaction that excludes every other run until the transaction is finished. The operator's session limits
 * must not cancel the building of an index or the wait for another run. A session lock is unsuitable, because a session
 * behind PgBouncer outlives its client and would hold the lock forever. A lock on a second connection is also
 * unsuitable, because a pool of one connection has no second connection.
 */
async function beginAlone(client: pg.Client, onWait: (message: string) => void): Promise<void> {
  for (;;) {
    // Each statement sees what the previous run has committed, whatever the operator's default isolation level is.
    await client.query(`
      begin isolation level read committed;
      set local statement_timeout = 0;
      set local idle_in_transaction_session_timeout = 0;
      set local lock_timeout = ${RUN_TIMEOUT_MS}`)
    try {
      await client.query('select pg_advisory_xact_lock($1)', [LOCK_ID])
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
      return
    } catch (error) {
      if (!hasState(error, LOCK_NOT_AVAILABLE)) throw error
      await client.query('rollback')
      const holders = await FIND_RUN(client, { lock: LOCK_ID })
      const end = holders.map(({ pid }) => `select pg_terminate_backend(${pid})`).join('; ')
      if (holders.length === 0) continue
      onWait(
        `waiting for another ops migrate, whose lock is held by ${describe(holders)}. If no ops migrate is running, terminate that process: ${end}`,
      )
    }
  }
}

/** Applies the first pending migration of `names` and commits. Returns its name; undefined if none is pending. */
async function applyNext(client: pg.Client, folder: string, names: readonly string[]): Promise<string | undefined> {
  await client.query(
    `create table if not exists public.schema_migrations
       (id serial primary key, name varchar(255) not null, run_on timestamp not null)`,
  )
  const [name] = findPending(names, await appliedMigrations(client))
  if (name !== undefined) {
    await runFile(client, join(folder, `${name}.sql`))
    await client.query('insert into public.schema_migrations (name, run_on) values ($1, now())', [name])
  }
  await client.query('commit')
  return name
}

type Holder = { pid: number; name: string | null }

/** Finds the session that holds the advisory lock. pg_locks shows the lock's number in two halves. */
const FIND_RUN = plannedQuery<Holder, { lock: number }>(`
  select pid, application_name as name
    from pg_locks
    left join pg_stat_activity using (pid)
   where locktype = 'advisory' and granted and objsubid = 1
     and classid = (:lock::bigint >> 32)::oid and objid = (:lock::bigint & 4294967295)::oid
     and database = (select oid from pg_database where datname = current_database())`)

/**
 * Finds the sessions that wait for no lock and have used tables for at least `ms`, oldest first. PostgreSQL may hide the
 * age of another role's session.
 */
const FIND_LONG_HOLDERS = plannedQuery<Holder, { ms: number }>(`
  select pid, application_name as name
    from pg_stat_activity
   where pid <> pg_backend_pid() and wait_event_type is distinct from 'Lock'
     and coalesce(xact_start <= clock_timestamp() - :ms * interval '1 ms', true)
     and pid in (select l.pid
                   from pg_locks l
                   join pg_class c on c.oid = l.relation
                  where l.granted and c.relnamespace = 'public'::regnamespace
                    and l.database = (select oid from pg_database where datname = current_database()))
   order by xact_start nulls last
   limit 3`)

function describe(holders: readonly Holder[]): string | undefined {
  if (holders.length === 0) return undefined
  return holders.map(({ pid, name }) => `process ${pid}${name ? ` (${name})` : ''}`).join(' or ')
}

/** Connects outside the service's pools, for schema changes. */
export async function connectAlone(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    types: NUMBER_TYPES,
  })
  // A lost connection makes the next statement fail. The error event needs a listener, because without a listener the
  // event would terminate the process.
  client.on('error', silent)
  await client.connect()
  return client
}

const silent = () => undefined

/**
 * Throws if the server is too old. Compares server_version_num, such as 150018, because server_version is text such as
 * `15.18 (Debian 15.18-0+deb12u1)`.
 */
async function rejectOldServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: number; text: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as text`,
  )
  const [{ number, text } = { number: 0, text: 'unknown' }] = rows
  if (number >= OLDEST_SERVER * 10_000) return
  throw new Error(`this database is PostgreSQL ${text}, but the service needs ${OLDEST_SERVER} or newer`)
}

/** Names of the migrations that this code expects and the database lacks, in order. */
export async function pendingMigrations(db: Queryable): Promise<string[]> {
  namesInFolder ??= readNames(FOLDER)
  const [expected, applied] = await Promise.all([namesInFolder, appliedMigrations(db)])
  return findPending(expected, applied)
}

/** Ignores unknown names, because a newer version has applied these migrations, and this version still works with them. */
const findPending = (expected: readonly string[], applied: ReadonlySet<string>) =>
  expected.filter((name) => !applied.has(name))

export async function appliedMigrations(db: Queryable): Promise<Set<string>> {
  try {
    const { rows } = await db.query<{ name: string }>('select name from public.schema_migrations')
    return new Set(rows.map(({ name }) => name))
  } catch (error) {
    if (hasState(error, UNDEFINED_TABLE)) return new Set()
    throw error
  }
}

async function readNames(folder: string): Promise<string[]> {
  const files = (await readdir(folder)).map((file) => parse(file))
  return files.flatMap(({ ext, name }) => (ext === '.sql' ? [name] : [])).sort()
}
