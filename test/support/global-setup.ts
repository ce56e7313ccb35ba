import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { migrate } from '../../src/db/migrate.ts'
import { startEmbeddedPostgres } from '../../src/dev/embedded-postgres.ts'
import { databaseUrl, TEMPLATE } from './database-url.ts'

declare module 'vitest' {
  interface ProvidedContext {
    adminUrl: string
  }
}

/** One PostgreSQL server for the whole run, and in it one migrated database that every test file clones. */
export default async function setup(project: TestProject): Promise<() => void> {
  const directory = mkdtempSync(join(tmpdir(), 'upi-payments-test-'))
  const remove = () => rmSync(directory, { recursive: true, force: true })
  const { url, stop } = await startEmbeddedPostgres({ directory, durable: false }).catch((error) => {
    remove()
    throw error
  })
  const stopAndRemove = () => {
    stop()
    remove()
  }
  // Also when the run is broken off, where vitest does not call the returned function.
  process.once('exit', stopAndRemove)
  const admin = new pg.Client({ connectionString: url })
  await admin.connect()
  await admin.query(`create database ${TEMPLATE}`)
  await admin.end()
  await migrate(databaseUrl(url, TEMPLATE))
  project.provide('adminUrl', url)
  return stopAndRemove
}
