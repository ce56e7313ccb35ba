import { afterAll, beforeAll, expect, it } from 'vitest'
import { createTestDatabase, testPool } from '../support/database.ts'
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
  const spread = async () => JSON.parse((await runOps(database.url, ['database', 'spread', '--json'])).stdout).spread
  expect(await spread()).toEqual([])
  const pool = testPool(database.url, 1)
  await pool.query('create table refunds (mid text not null, rrn text not null, primary key (mid, rrn))')
  await pool.end()
  const warning = 'ops: warning: refunds is on the coordinator alone: run ops database spread\n'
  expect(await runOps(database.url, ['migrate'])).toEqual({
    code: 0,
    stdout: 'the schema is current\n',
    stderr: warning,
  })
  expect(await spread()).toEqual(['refunds'])
  expect(await spread()).toEqual([])
})
