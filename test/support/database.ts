import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { createPool, type Database } from '../../src/db/pool.ts'
import { createCitusDatabase, query, spreadDatabase } from './citus.ts'
import { databaseUrl, TEMPLATE } from './database-url.ts'
import { ON_CITUS } from './installed-postgres.ts'

/** Copies the template's files instead of writing them to the WAL: half the time. */
const FILE_COPY = 'strategy file_copy'

/** A migrated, empty database of its own for a test file. With `empty` it is not even migrated. */
export async function createTestDatabase(
  options: { empty?: boolean } = {},
): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const adminUrls = inject('adminUrls')
  const url = databaseUrl(inject('adminUrl'), name)
  if (ON_CITUS && options.empty) await createCitusDatabase(adminUrls, name)
  else await onEach(adminUrls, `create database ${name} template ${options.empty ? 'template0' : TEMPLATE} ${FILE_COPY}`)
  // Its settings are not cloned.
  if (ON_CITUS && !options.empty) await spreadDatabase(url)
  return { url, drop: () => onEach(adminUrls, `drop database ${name} with (force)`) }
}

async function onEach(urls: string[], sql: string): Promise<void> {
  for (const url of urls) await query(url, sql)
}

/** A test's own connections, without the limits of requests: a busy machine takes seconds for a new one. */
export function testPool(url: string, size: number): Database {
  return createPool({ url, size, log: { warn: () => undefined }, queryTimeoutMs: 0, connectTimeoutMs: 30_000 })
}
