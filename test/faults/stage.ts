import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { migrate } from '../../src/db/migrate.ts'
import type { Database } from '../../src/db/pool.ts'
import { killStarted } from '../bench/processes.ts'
import { type PostgresServer, startPostgresServer } from './postgres-server.ts'
import { newTenant, type Tenant } from './tenant.ts'

/** What every fault works with. */
export type Stage = {
  /** Temporary: removed with all that lies in it. */
  directory: string
  postgres: PostgresServer
}

/** A migrated database with a tenant of its own, for one fault. */
export type Scene = { database: string; db: Database; tenant: Tenant }

const SIGNAL_EXIT_CODES = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const

/** A durable PostgreSQL server in a temporary directory. Both are gone when this process ends, and what it started too. */
export async function openStage(): Promise<Stage> {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-faults-'))
  process.on('exit', () => rmSync(directory, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  for (const [signal, code] of Object.entries(SIGNAL_EXIT_CODES)) process.on(signal, () => process.exit(code))
  const postgres = await startPostgresServer(directory)
  process.prependListener('exit', killStarted)
  return { directory, postgres }
}

export async function setScene(postgres: PostgresServer, database: string, longListRows?: number): Promise<Scene> {
  const admin = postgres.poolOf('postgres')
  await admin.query(`create database ${database}`)
  await admin.end()
  await migrate(postgres.urlOf(database))
  const db = postgres.poolOf(database)
  return { database, db, tenant: await newTenant(db, 'SHOP', longListRows) }
}
