import { randomBytes } from 'node:crypto'
import pg from 'pg'
import { inject } from 'vitest'
import { createPool, type Database } from '../../src/db/pool.ts'
import { databaseUrl, TEMPLATE } from './database-url.ts'

/** A migrated, empty database of its own for a test file. With `empty` it is not even migrated. */
export async function createTestDatabase(
  options: { empty?: boolean } = {},
): Promise<{ url: string; drop: () => Promise<void> }> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await asAdmin(`create database ${name} template ${options.empty ? 'template0' : TEMPLATE}`)
  return {
    url: databaseUrl(inject('adminUrl'), name),
    drop: () => asAdmin(`drop database ${name} with (force)`),
  }
}

/** A test's own connections, without the limits of requests: a busy machine takes seconds for a new one. */
export function testPool(url: string, size: number): Database {
  return createPool({ url, size, log: { warn: () => undefined }, queryTimeoutMs: 0, connectTimeoutMs: 30_000 })
}

async function asAdmin(sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: inject('adminUrl') })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
