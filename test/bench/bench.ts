import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, type Database } from '../../src/db/pool.ts'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { INSTALLED_POSTGRES } from '../support/installed-postgres.ts'
import { killStarted } from './processes.ts'
import { type Finding, progress } from './report.ts'

/** What every section works with. */
export type Bench = {
  /** Temporary: removed with all that lies in it. */
  directory: string
  /** A tenth of the large tables: for working on the benchmark itself, not for its verdict. */
  quick: boolean
  /** The process whose children are the server's. */
  postgresPid: number
  /** A new database with the schema of the service. */
  createDatabase: (name: string) => Promise<BenchDatabase>
  /** Ends the time of preparations: the server is set as it is for everybody, and has nothing left to write. */
  settle: () => Promise<void>
}

/** Prepares what a section needs, side by side with the others, and answers how to measure: one after the other. */
export type Section = (bench: Bench) => Promise<() => Promise<Finding[]>>

export type BenchDatabase = { url: string; db: Database }

/** While tables of ten million rows are filled, fewer checkpoints and larger sorts save a third of the time. */
const FILLING_SETTINGS = new Map([
  ['max_wal_size', '8GB'],
  ['maintenance_work_mem', '512MB'],
])

const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** A durable PostgreSQL server in a temporary directory. Both are gone when this process ends, and what it started too. */
export async function openBench({ quick }: { quick: boolean }): Promise<Bench> {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-bench-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  for (const [signal, code] of Object.entries(SIGNAL_EXIT_CODES)) process.on(signal, () => process.exit(code))

  progress('starting PostgreSQL')
  const server = await startEmbeddedPostgres({ directory, durable: true, installed: INSTALLED_POSTGRES })
  process.prependListener('exit', server.stop)
  process.prependListener('exit', killStarted)

  const admin = poolOf(server.url)
  await requireDurability(admin)
  for (const [setting, value] of FILLING_SETTINGS) await admin.query(`alter system set ${setting} = '${value}'`)
  await admin.query('select pg_reload_conf()')
  const { rows } = await admin.query<{ data_directory: string }>('show data_directory')
  const pidFile = readFileSync(join(rows[0]?.data_directory ?? '', 'postmaster.pid'), 'utf8')

  return {
    directory,
    quick,
    postgresPid: Number(pidFile.split('\n')[0]),
    async createDatabase(name) {
      await admin.query(`create database ${name}`)
      const url = new URL(server.url)
      url.pathname = `/${name}`
      await migrate(url.href)
      return { url: url.href, db: poolOf(url.href) }
    },
    async settle() {
      for (const setting of FILLING_SETTINGS.keys()) await admin.query(`alter system reset ${setting}`)
      await admin.query('select pg_reload_conf()')
      await admin.query('checkpoint')
    },
  }
}

function poolOf(url: string): Database {
  // A query that a lost connection breaks fails by itself; idle ones are lost whenever the server stops.
  const log = { warn: () => undefined }
  const pool = createPool({ url, size: 2, log, queryTimeoutMs: 0 })
  return pool
}

async function requireDurability(admin: Database): Promise<void> {
  for (const setting of ['fsync', 'synchronous_commit', 'full_page_writes']) {
    const { rows } = await admin.query(`show ${setting}`)
    if (rows[0][setting] !== 'on') throw new Error(`${setting} must be on: what is measured is durable`)
  }
}

/** Where a program of PostgreSQL's is installed; undefined when it is not. Debian keeps the server's ones off the PATH. */
export function findProgram(name: string): string | undefined {
  return spawnSync(name, ['--version']).status === 0 ? name : undefined
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
