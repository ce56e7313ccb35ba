import { afterEach, beforeEach, describe, expect, inject, it, onTestFinished } from 'vitest'
import { reconcile } from '../../src/books/reports/reconcile.ts'
import { unreadyReason } from '../../src/operator/monitoring/readiness.ts'
import { createPool, inTransaction } from '../../src/platform/db/pool.ts'
import { prepared } from '../../src/platform/db/prepared.ts'
import { createTestDatabase } from '../support/database.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'

const ADD = prepared('insert into notes (text) values ($1)')
const NAMES = 'select count(*)::integer as names from pg_prepared_statements'

const log = { warn: () => undefined }

let database: Awaited<ReturnType<typeof createTestDatabase>>
let pool: ReturnType<typeof createPool>
beforeEach(async () => {
  database = await createTestDatabase()
  pool = createPool({ url: database.url, size: 1, log })
  await pool.query('create table notes (text text not null)')
})
afterEach(async () => {
  await pool.end()
})

const names = async () => (await pool.query(NAMES)).rows[0].names
const notes = async () => (await pool.query('select text from notes order by text')).rows.map(({ text }) => text)
/**
 * Imitates a PgBouncer without prepared statements: the connection behind it changes, and the new one lacks the names.
 */
const loseNames = () => pool.query('deallocate all')

it('the database client prepares a statement once per connection', async () => {
  for (const text of ['a', 'b', 'c']) await pool.query(ADD(text))
  expect([await names(), await notes()]).toEqual([1, ['a', 'b', 'c']])
})

it('the database client reports a lost prepared statement with the option that avoids the error, and stores nothing', async () => {
  await pool.query(ADD('a'))
  await loseNames()
  await expect(pool.query(ADD('b'))).rejects.toThrow('DATABASE_PREPARED_STATEMENTS=off')
  expect(await notes()).toEqual(['a'])
})

it('the database client does not repeat a prepared statement that fails because of an error in the statement', async () => {
  await expect(pool.query(ADD(null))).rejects.toMatchObject({ code: '23502' })
  await pool.query(ADD('a'))
  expect(await names()).toBe(1)
})

it('the database client sends no statement names from a pool without prepared statements, and returns the same rows', async () => {
  const report = async (db: typeof pool) => {
    const days = { from: '2026-10-01', to: '2026-10-02', mid: 'M1', now: new Date('2026-11-01T00:00:00Z') }
    const found = []
    for await (const finding of reconcile(db, days)) found.push(finding)
    return found
  }
  const direct = await report(pool)
  expect(await names()).toBeGreaterThan(5)
  const nameless = createPool({ url: database.url, size: 1, log, preparedStatements: false })
  onTestFinished(() => nameless.end())
  await nameless.query(ADD('a'))
  expect(await report(nameless)).toEqual(direct)
  expect((await nameless.query(NAMES)).rows[0].names).toBe(0)
})

it('/readyz reports the service as ready on a direct connection', async () => {
  await pool.query('select 1')
  expect(await unreadyReason(pool)).toBeUndefined()
})

describe.skipIf(!hasPgbouncer())('PgBouncer without support for prepared statements', () => {
  const pooled = async (preparedStatements: boolean) => {
    const pgbouncer = await startPgbouncer(inject('runDirectory'), database.url)
    const pools = [1, 2].map((size) => createPool({ url: pgbouncer.url, size, log, preparedStatements }))
    onTestFinished(async () => {
      await Promise.all(pools.map((one) => one.end()))
      await pgbouncer.stop()
    })
    return pools as [typeof pool, typeof pool]
  }

  it('/readyz names DATABASE_PREPARED_STATEMENTS from the first request on if PgBouncer does not support prepared statements', async () => {
    for (const db of await pooled(true)) {
      expect(await unreadyReason(db)).toContain('DATABASE_PREPARED_STATEMENTS=off')
      expect(await unreadyReason(db)).toContain('DATABASE_PREPARED_STATEMENTS=off')
    }
  })

  it('the service is ready with DATABASE_PREPARED_STATEMENTS=off and runs each statement once', async () => {
    const [one, two] = await pooled(false)
    for (const db of [one, two]) expect(await unreadyReason(db)).toBeUndefined()
    await Promise.all(['a', 'b', 'c', 'd'].map((text, index) => (index % 2 ? one : two).query(ADD(text))))
    await inTransaction(one, (client) => client.query(ADD('e')))
    expect(await notes()).toEqual(['a', 'b', 'c', 'd', 'e'])
  })
})
