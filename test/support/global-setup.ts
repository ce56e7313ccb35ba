import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { applyGrants } from '../../src/db/grants.ts'
import { migrate } from '../../src/db/migrate.ts'
import { asRole, databaseUrl, ROLE_PASSWORD, TEMPLATE } from './database-url.ts'
import { startPostgresOwner } from './postgres-owner.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's connection to the server of this run. */
    adminUrl: string
    /** Removed after the run, with all that lies in it. */
    runDirectory: string
  }
}

/**
 * One PostgreSQL server for the whole run, and in it one migrated database that every test file clones: made as an
 * installation makes it, with an owner of the tables and a role of the service.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-test-'))
  const owner = await startPostgresOwner(directory, { removesDirectory: true })
  const template = databaseUrl(owner.url, TEMPLATE)
  await query(owner.url, `create database ${TEMPLATE}`)
  await query(template, readFileSync(join(import.meta.dirname, '../../src/db/roles.sql'), 'utf8'))
  for (const role of ['upi_owner', 'upi_service'])
    await query(template, `alter role ${role} password '${ROLE_PASSWORD}'`)
  await migrate(asRole(template, 'upi_owner'))
  await applyGrants(asRole(template, 'upi_owner'))
  project.provide('adminUrl', owner.url)
  project.provide('runDirectory', directory)
  return owner.leave
}

async function query(url: string, sql: string): Promise<void> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    await client.query(sql)
  } finally {
    await client.end()
  }
}
