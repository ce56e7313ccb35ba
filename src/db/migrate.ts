import { existsSync } from 'node:fs'
import { readdir, readFile } from 'node:fs/promises'
import { parse } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import type { MigrationBuilder } from 'node-pg-migrate'
import pg from 'pg'
import { hasState, LOCK_NOT_AVAILABLE, UNDEFINED_TABLE } from './outage.ts'
import type { Queryable } from './pool.ts'
import { splitStatements } from './statements.ts'

// The migrations lie two folders up from this file. In the bundle, dist, they lie one folder up.
const FOLDER = ['../../migrations', '../migrations']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync) as string
const TABLE = 'schema_migrations'
const CONNECT_TIMEOUT_MS = 10_000

/**
 * Longest wait of one statement for a lock. Payments wait behind the statement, and get 503 after about twice as long.
 * Below PostgreSQL's deadlock_timeout of 1 s: in a deadlock with a payment the migration ends, not the payment.
 */
const LOCK_TIMEOUT_MS = 500
/** Pause before the next try, ten times as long: payments are delayed for at most a tenth of the time. */
const LOCK_PAUSE_MS = 5_000

/** The oldest major version of PostgreSQL that the service supports. The tests run on this one and the newest. */
const OLDEST_SERVER = 15

let namesInFolder: Promise<string[]> | undefined

/**
 * Brings the schema up to date and returns the names of the migrations that were applied now, in order. Throws an Error
 * with both versions when the server is older than OLDEST_SERVER. Simultaneous runs wait for one another, and each
 * migration is applied once.
 *
 * While a statement waits for a lock on a table, every later query of that table waits behind it. The statement
 * therefore waits briefly; then its migration is rolled back and tried again after a pause, without limit: pg_dump may
 * hold its locks for hours, and an upgrade must not stay half done. `onWait` tells the operator, who may press Ctrl-C.
 */
export async function migrate(
  databaseUrl: string,
  { folder = FOLDER, onWait }: { folder?: string; onWait?: (message: string) => void } = {},
): Promise<string[]> {
  // node-pg-migrate is loaded here, because the service only needs `pendingMigrations`, which does without it.
  const { PG_MIGRATE_LOCK_ID, runner } = await import('node-pg-migrate')
  const client = await connectAlone(databaseUrl)
  try {
    await refuseOldServer(client)
    // The operator's limits for sessions must not end the building of an index, or the wait for another migration.
    await client.query('set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0')
    // One lock for all migrations, released with the session: the runner's own lock ends with each call of the runner.
    await client.query('select pg_advisory_lock($1)', [PG_MIGRATE_LOCK_ID])
    const { processID } = client as unknown as { processID: number }
    const applied: string[] = []
    for (;;) {
      try {
        const [migration] = await runner({
          dbClient: client,
          dir: folder,
          ignorePattern: '(?!.*\\.sql$).*',
          migrationLoaderStrategies: [{ extensions: ['.sql'], loader: loadFiles }],
          direction: 'up',
          count: 1,
          migrationsTable: TABLE,
          migrationsSchema: 'public',
          noLock: true,
          logger: { debug: silent, info: silent, warn: silent, error: silent },
        })
        if (migration === undefined) return applied
        applied.push(migration.name)
      } catch (error) {
        if (!hasState(error, LOCK_NOT_AVAILABLE)) throw error
        await client.query('rollback')
        const who = `select pg_blocking_pids(${processID}) during a try names who holds it`
        onWait?.(`waiting for a lock; next try in ${LOCK_PAUSE_MS / 1_000} s (${who})`)
        await sleep(LOCK_PAUSE_MS)
      }
    }
  } finally {
    await client.end()
  }
}

/** Connects outside the service's pools, for changes of the schema. */
export async function connectAlone(databaseUrl: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  })
  // A lost connection fails the next statement; without a listener for its error event it would end the process.
  client.on('error', silent)
  await client.connect()
  return client
}

const silent = () => undefined

/** Loads each file as single statements. The runner's own loader sends a file in one message, which Citus refuses. */
function loadFiles(files: string[]) {
  return Promise.all(
    files.map(async (file) => {
      const statements = splitStatements(await readFile(file, 'utf8'))
      const up = (migration: MigrationBuilder) => {
        // `set local`, because Citus sends only settings of the transaction to its workers.
        migration.sql(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`)
        for (const statement of statements) migration.sql(statement)
      }
      return { id: file, filePaths: [file], actions: { up, down: false as const } }
    }),
  )
}

/** Compares server_version_num, such as 150018; server_version is such as `15.18 (Debian 15.18-0+deb12u1)`. */
async function refuseOldServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ number: number; text: string }>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as text`,
  )
  const [{ number, text } = { number: 0, text: 'unknown' }] = rows
  if (number >= OLDEST_SERVER * 10_000) return
  throw new Error(`this database is PostgreSQL ${text}, and the service needs ${OLDEST_SERVER} or newer`)
}

/** Names of the migrations that this code expects and the database lacks, in order. */
export async function pendingMigrations(db: Queryable): Promise<string[]> {
  namesInFolder ??= readNames()
  const [expected, applied] = await Promise.all([namesInFolder, appliedMigrations(db)])
  return expected.filter((name) => !applied.has(name))
}

export async function appliedMigrations(db: Queryable): Promise<Set<string>> {
  try {
    const { rows } = await db.query<{ name: string }>('select name from public.schema_migrations')
    return new Set(rows.map(({ name }) => name))
  } catch (error) {
    if (hasState(error, UNDEFINED_TABLE)) return new Set()
    throw error
  }
}

async function readNames(): Promise<string[]> {
  const files = (await readdir(FOLDER)).map((file) => parse(file))
  return files.flatMap(({ ext, name }) => (ext === '.sql' ? [name] : [])).sort()
}
