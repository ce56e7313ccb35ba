import { existsSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { parse } from 'node:path'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import type { Queryable } from './pool.ts'

// Two folders up from here; one up from dist, where this is bundled into.
const FOLDER = ['../../migrations', '../migrations']
  .map((path) => fileURLToPath(new URL(path, import.meta.url)))
  .find(existsSync) as string
const TABLE = 'schema_migrations'
const CONNECT_TIMEOUT_MS = 10_000
const UNDEFINED_TABLE = '42P01'

const silent = () => undefined

let namesInFolder: Promise<string[]> | undefined

/**
 * Brings the schema up to date and answers the names of the migrations that it applied, in order: none when it was current.
 * Any number of processes may call it at once: they wait for one another, and each migration is applied once.
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  // Loaded here because the service only ever asks what is pending, and should not carry the runner for that.
  const { runner } = await import('node-pg-migrate')
  const client = new pg.Client({
    connectionString: databaseUrl,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
  })
  // A connection lost between two statements is told here; the next statement fails with it, so nothing is hidden.
  client.on('error', silent)
  await client.connect()
  try {
    // The session is its own: others' limits must not end the building of an index, or the wait for another's migration.
    await client.query('set statement_timeout = 0; set lock_timeout = 0; set idle_in_transaction_session_timeout = 0')
    const applied = await runner({
      dbClient: client,
      dir: FOLDER,
      ignorePattern: '(?!.*\\.sql$).*',
      direction: 'up',
      migrationsTable: TABLE,
      migrationsSchema: 'public',
      advisoryLockMode: 'wait',
      logger: { debug: silent, info: silent, warn: silent, error: silent },
    })
    return applied.map(({ name }) => name)
  } finally {
    await client.end()
  }
}

/** The names of the migrations that this code expects and the database does not have yet, in order. */
export async function pendingMigrations(db: Queryable): Promise<string[]> {
  namesInFolder ??= readNames()
  const [expected, applied] = await Promise.all([namesInFolder, appliedNames(db)])
  return expected.filter((name) => !applied.has(name))
}

async function readNames(): Promise<string[]> {
  const files = await readdir(FOLDER)
  return files
    .map((file) => parse(file))
    .filter(({ ext }) => ext === '.sql')
    .map(({ name }) => name)
    .sort()
}

async function appliedNames(db: Queryable): Promise<Set<string>> {
  try {
    const { rows } = await db.query<{ name: string }>('select name from public.schema_migrations')
    return new Set(rows.map(({ name }) => name))
  } catch (error) {
    if ((error as { code?: unknown }).code === UNDEFINED_TABLE) return new Set()
    throw error
  }
}
