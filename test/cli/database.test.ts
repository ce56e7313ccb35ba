import { afterAll, beforeAll, expect, inject, it, onTestFinished } from 'vitest'
import { createTestDatabase, testPool } from '../support/database.ts'
import { asRole, databaseUrl } from '../support/database-url.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'

let database: Awaited<ReturnType<typeof createTestDatabase>>
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

const auditOf = async () => JSON.parse((await runOps(database.url, ['audit', '--json'])).stdout)

it.skipIf(ON_CITUS)('database spread says that there is no Citus, changes nothing, and is in the audit', async () => {
  const refusal = 'this database has no Citus: only a cluster of Citus can hold a database on several servers'
  const outcome = await runOps(database.url, ['database', 'spread', '--by', 'meera'])
  expect(outcome).toEqual({ code: 1, stdout: '', stderr: `ops: ${refusal}\n` })
  expect(await auditOf()).toMatchObject([
    { person: 'meera', command: 'database spread', outcome: 'failed', detail: { fault: refusal } },
  ])
})

it.skipIf(!ON_CITUS)('database spread takes in what a later migration made, and nothing twice', async () => {
  const spreadAgain = async () =>
    JSON.parse((await runOps(database.url, ['database', 'spread', '--json'])).stdout).spread
  expect(await spreadAgain()).toEqual([])
  const pool = testPool(database.url, 1)
  await pool.query('create table refunds (mid text not null, rrn text not null, primary key (mid, rrn))')
  await pool.end()
  const warning = 'ops: warning: refunds is on the coordinator alone: run ops database spread\n'
  expect(await runOps(database.url, ['migrate'])).toEqual({
    code: 0,
    stdout: 'the schema is current\n',
    stderr: warning,
  })
  expect(JSON.parse((await runOps(database.url, ['migrate', '--json'])).stdout)).toEqual({
    applied: [],
    forgotten: ['refunds'],
  })
  expect(await spreadAgain()).toEqual(['refunds'])
  expect(await spreadAgain()).toEqual([])
})

it.skipIf(!ON_CITUS)(
  'a worker is not migrated and not spread, whether the coordinator was or not, and keeps no table',
  {
    timeout: 60_000,
  },
  async () => {
    const { url, drop } = await createTestDatabase({ empty: true })
    onTestFinished(drop)
    const refused = {
      code: 1,
      stdout: '',
      stderr: 'ops: this server is a worker: name the coordinator in DATABASE_MIGRATE_URL\n',
    }
    expect(await runOps(workerUrl(url), ['migrate'])).toEqual(refused)
    const worker = testPool(workerUrl(url), 1)
    const { rows } = await worker.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`)
    await worker.end()
    expect(rows.filter(({ relname }) => !relname.startsWith('citus'))).toEqual([])

    expect(await runOps(workerUrl(database.url), ['migrate'])).toEqual(refused)
    expect(await runOps(workerUrl(database.url), ['database', 'spread'])).toEqual(refused)
  },
)

/** The same database on a worker, as the owner of its tables. */
function workerUrl(url: string): string {
  const worker = inject('adminUrls')[1] as string
  return asRole(databaseUrl(worker, new URL(url).pathname.slice(1)), 'upi_owner')
}

/** Makes an instance that was seen at `seenAt`, and returns its name. */
