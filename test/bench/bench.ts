import type { Database } from '../../src/platform/db/pool.ts'
import { createDatabase, openWorkspace, type Workspace, type WorkspaceDatabase } from '../support/workspace.ts'
import type { Finding } from './report.ts'

/** What every section works with. */
export type Bench = Workspace & {
  /** A tenth of the large tables: for working on the benchmark itself, not for its verdict. */
  quick: boolean
  /** A new database with the schema of the service. */
  createDatabase: (name: string) => Promise<WorkspaceDatabase>
  /** Ends the preparations: gives the server its usual settings, and waits until it has nothing left to write. */
  settle: () => Promise<void>
}

/** Prepares what a section needs, side by side with the others, and returns how to measure: one after the other. */
export type Section = (bench: Bench) => Promise<() => Promise<Finding[]>>

/** While tables of ten million rows are filled, fewer checkpoints and larger sorts save a third of the time. */
const FILLING_SETTINGS = new Map([
  ['max_wal_size', '8GB'],
  ['maintenance_work_mem', '512MB'],
])

/** A workspace whose server is durable, and set for filling large tables until `settle`. */
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
    if (rows[0][setting] !== 'on') throw new Error(`${setting} must be on: what is measured is durable`)
  }
}

/** How psql and pgbench are told where to connect, without a password among their arguments. */
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
