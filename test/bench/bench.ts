import type { Database } from '../../src/platform/db/pool.ts'
import { createDatabase, openWorkspace, type Workspace, type WorkspaceDatabase } from '../support/workspace.ts'
import type { Finding } from './report.ts'

/** Shared by all sections. */
export type Bench = Workspace & {
  /** Fills tables of a tenth of the size, for work on the benchmark itself. Its results are no verdict. */
  quick: boolean
  /** Creates a database with the service's schema. */
  createDatabase: (name: string) => Promise<WorkspaceDatabase>
  /** Ends the preparation: restores the server's usual settings and waits until PostgreSQL has no pending writes. */
  settle: () => Promise<void>
}

/**
 * Prepares a section's data concurrently with other sections, and returns a function that measures. Measurements run
 * one after the other.
 */
export type Section = (bench: Bench) => Promise<() => Promise<Finding[]>>

/** Fewer checkpoints and larger sorts fill tables of ten million rows in a third less time. */
const FILLING_SETTINGS = new Map([
  ['max_wal_size', '8GB'],
  ['maintenance_work_mem', '512MB'],
])

/** Starts a durable PostgreSQL server with settings for filling large tables, which apply until `settle`. */
export async function openBench({ quick }: { quick: boolean }): Promise<Bench> {
  const workspace = await openWorkspace()
  const { postgres } = workspace
  const admin = postgres.poolOf('postgres')
  await requireDurability(admin)
  for (const [setting, value] of FILLING_SETTINGS) await admin.query(`alter system set ${setting} = '${value}'`)
  await admin.query('select pg_reload_conf()')
  return {
    ...workspace,
    quick,
    createDatabase: (name) => createDatabase(postgres, name),
    async settle() {
      for (const setting of FILLING_SETTINGS.keys()) await admin.query(`alter system reset ${setting}`)
      await admin.query('select pg_reload_conf()')
      await admin.query('checkpoint')
    },
  }
}

async function requireDurability(admin: Database): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await admin.query(`show ${setting}`)
    if (rows[0][setting] !== 'on')
      throw new Error(`${setting} is off. The benchmark needs a durable database: turn it on.`)
  }
}

/**
 * Connects psql and pgbench through environment variables, because other processes can read a password among the
 * arguments.
 */
export function connectionEnvironment(databaseUrl: string): NodeJS.ProcessEnv {
  const { hostname, port, username, password, pathname } = new URL(databaseUrl)
  return {
    PATH: process.env.PATH,
    PGHOST: hostname,
    PGPORT: port,
    PGUSER: username,
    PGPASSWORD: decodeURIComponent(password),
    PGDATABASE: pathname.slice(1),
  }
}
