import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { stopAtEnd } from './at-end.ts'
import { createCitusDatabase, query, spreadDatabase } from './citus.ts'
import { databaseUrl, TEMPLATE, testPool } from './database-url.ts'
import { ON_CITUS } from './installed-postgres.ts'

export type TestDatabase = {
  url: string
  /** The test's own connections, which close at the end of the test file. */
  db: Database
}

const CONNECTIONS = 10

/** Creates a migrated, empty database for a test file; with `empty`, one without migrations. */
export async function createTestDatabase(options: { empty?: boolean } = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const adminUrls = inject('adminUrls')
  const url = databaseUrl(inject('adminUrl'), name)
  if (ON_CITUS && options.empty) await createCitusDatabase(adminUrls, name)
  // Copying the template's files takes half the time of writing them to the WAL.
  else
    await onEach(
      adminUrls,
      `create database ${name} template ${options.empty ? 'template0' : TEMPLATE} strategy file_copy`,
    )
  // The settings of the template database are not cloned.
  if (ON_CITUS && !options.empty) await spreadDatabase(url)
  // Otherwise the database is removed with the server, because dropping it costs a checkpoint.
  if (ON_CITUS || inject('isWatching')) stopAtEnd(() => onEach(adminUrls, `drop database ${name} with (force)`))
  return connect(url)
}

/** Opens a test file's connections to an existing database. */
export function connect(url: string): TestDatabase {
  const db = testPool(url, CONNECTIONS)
  stopAtEnd(() => db.end())
  return { url, db }
}

async function onEach(urls: string[], sql: string): Promise<void> {
  for (const url of urls) await query(url, sql)
}
