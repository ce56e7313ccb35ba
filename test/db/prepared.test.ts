import { afterEach, beforeEach, expect, it } from 'vitest'
import { reconcile } from '../../src/books/reconciliation/reconcile.ts'
import { createPool, inTransaction } from '../../src/platform/db/pool.ts'
import { prepared } from '../../src/platform/db/prepared.ts'
import { createTestDatabase } from '../support/database.ts'

const ADD = prepared('insert into notes (text) values ($1)')
const NAMES = 'select count(*)::integer as names from pg_prepared_statements'

let database: Awaited<ReturnType<typeof createTestDatabase>>
let pool: ReturnType<typeof createPool>
let warnings: unknown[]
beforeEach(async () => {
  database = await createTestDatabase()
  warnings = []
  pool = createPool({ url: database.url, size: 1, log: { warn: (text: unknown) => void warnings.push(text) } })
  await pool.query('create table notes (text text not null)')
})
afterEach(async () => {
  await pool.end()
})

const names = async () => (await pool.query(NAMES)).rows[0].names
const notes = async () => (await pool.query('select text from notes order by text')).rows.map(({ text }) => text)
/** What PgBouncer does that knows no prepared statements: the connection behind it is another one, without the names. */
const loseNames = () => pool.query('deallocate all')

it('a statement is prepared once on each connection', async () => {
  for (const text of ['a', 'b', 'c']) await pool.query(ADD(text))
  expect([await names(), await notes()]).toEqual([1, ['a', 'b', 'c']])
})

it('a statement whose prepared name is lost runs once all the same, and the pool goes on without names', async () => {
  await pool.query(ADD('a'))
  await loseNames()
  await pool.query(ADD('b'))
  await pool.query(ADD('c'))
  expect([await names(), await notes()]).toEqual([0, ['a', 'b', 'c']])
  expect(warnings).toEqual(['PgBouncer knows no prepared statements: set its max_prepared_statements to 100'])
})

it('a transaction in which a prepared name is lost is begun again, and its changes are stored once', async () => {
  await pool.query(ADD('a'))
  await loseNames()
  const result = await inTransaction(pool, async (client) => {
    await client.query(`insert into notes (text) values ('first')`)
    await client.query(ADD('second'))
    return 'stored'
  })
  expect([result, await names(), await notes()]).toEqual(['stored', 0, ['a', 'first', 'second']])
})

it('a prepared statement that fails by its own error is not repeated', async () => {
  await expect(pool.query(ADD(null))).rejects.toMatchObject({ code: '23502' })
  await pool.query(ADD('a'))
  expect(await names()).toBe(1)
})

it('a report whose connection PgBouncer shares sends no names, which another client of it may have prepared or lost', async () => {
  const report = async () => {
    const days = { from: '2026-10-01', to: '2026-10-02', mid: 'M1', now: new Date('2026-11-01T00:00:00Z') }
    const found = []
    for await (const finding of reconcile(pool, days)) found.push(finding)
    return found
  }
  const direct = await report()
  expect(await names()).toBeGreaterThan(5)
  const { rows } = await pool.query('select name from pg_prepared_statements order by name')
  await loseNames()
  for (const { name } of rows.slice(0, 3)) await pool.query(`prepare "${name}" as select 1`)
  const client = await pool.connect()
  // PgBouncer invents the process ID that it reports.
  Object.assign(client, { processID: 0 })
  client.release()
  expect(await report()).toEqual(direct)
  expect(await names()).toBe(3)
})
