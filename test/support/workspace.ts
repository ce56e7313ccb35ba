import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/platform/db/migrate.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'
import { killStarted, run } from './processes.ts'

/** The working directory and database server of bench, fault, attack and deployment runs. */
export type Workspace = {
  /** Temporary: removed with all its content. */
  directory: string
  postgres: PostgresServer
}

/** A migrated database of its own. */
export type WorkspaceDatabase = { name: string; url: string; db: Database }

const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/**
 * Starts a durable PostgreSQL server in a temporary directory. Both are removed when this process exits, with all
 * processes that it started.
 */
export async function openWorkspace(): Promise<Workspace> {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  for (const [signal, code] of Object.entries(SIGNAL_EXIT_CODES)) process.on(signal, () => process.exit(code))
  progress('starting PostgreSQL')
  const postgres = await startPostgresServer(directory)
  process.prependListener('exit', killStarted)
  return { directory, postgres }
}

export async function createDatabase(postgres: PostgresServer, name: string): Promise<WorkspaceDatabase> {
  const admin = postgres.poolOf('postgres')
  await admin.query(`create database ${name}`)
  await admin.end()
  const url = postgres.urlOf(name)
  await migrate(url)
  return { name, url, db: postgres.poolOf(name) }
}

/** Builds the service as shipped. */
export async function build(): Promise<void> {
  progress('building')
  await run('npm', ['run', '--silent', 'build'])
}

export function progress(text: string): void {
  process.stderr.write(`${new Date().toISOString().slice(11, 19)} ${text}\n`)
}
