import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../src/db/migrate.ts'
import { databaseUrl, TEMPLATE } from './database-url.ts'
import { startServerOwner } from './server-owner.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** A superuser's connection to the server of this run. */
    adminUrl: string
    /** Removed after the run, with all that lies in it. */
    runDirectory: string
  }
}

/** One PostgreSQL server for the whole run, and in it one migrated database that every test file clones. */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-test-'))
  const owner = await startServerOwner(directory, { removesDirectory: true })
  const admin = new pg.Client({ connectionString: owner.url })
  await admin.connect()
  await admin.query(`create database ${TEMPLATE}`)
  await admin.end()
  await migrate(databaseUrl(owner.url, TEMPLATE))
  project.provide('adminUrl', owner.url)
  project.provide('runDirectory', directory)
  return owner.leave
}
