import { expect, inject, it } from 'vitest'
import { distribute } from '../../src/operator/commands/database.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { createTestDatabase } from '../support/database.ts'
import { asRole, databaseUrl, testPool } from '../support/database-url.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { newMerchant } from '../support/tenants.ts'

const database = await createTestDatabase()

const auditOf = async () => JSON.parse((await runOps(database.url, ['audit', '--json'])).stdout)

it.skipIf(ON_CITUS)('database spread fails without Citus, and stores the error in the audit', async () => {
  const errorResponse =
    'the extension Citus is not installed: only a Citus cluster can distribute a database over several servers'
  const outcome = await runOps(database.url, ['database', 'spread', '--by', 'meera'])
  expect(outcome).toEqual({ code: 1, stdout: '', stderr: `ops: ${errorResponse}\n` })
  expect(await auditOf()).toMatchObject([
    { person: 'meera', command: 'database spread', outcome: 'failed', detail: { fault: errorResponse } },
  ])
})

it.skipIf(!ON_CITUS)('database spread distributes each table once, including tables of later migrations', async () => {
  const spreadAgain = async () =>
    JSON.parse((await runOps(database.url, ['database', 'spread', '--json'])).stdout).spread
  expect(await spreadAgain()).toEqual([])
  await database.db.query('create table disputes (mid text not null, rrn text not null, primary key (mid, rrn))')
  const warning = 'ops: warning: only the coordinator has disputes: run ops database spread\n'
  expect(await runOps(database.url, ['migrate'])).toEqual({
    code: 0,
    stdout: 'The schema is up to date.\n',
    stderr: warning,
  })
  expect(JSON.parse((await runOps(database.url, ['migrate', '--json'])).stdout)).toEqual({
    applied: [],
    forgotten: ['disputes'],
  })
  expect(await spreadAgain()).toEqual(['disputes'])
  expect(await spreadAgain()).toEqual([])
})

it.skipIf(!ON_CITUS)(
  'ops migrate and database spread reject a Citus worker and create no table on the worker',
  { timeout: 60_000 },
  async () => {
    const { url } = await createTestDatabase({ empty: true })
    const rejected = {
      code: 1,
      stdout: '',
      stderr: 'ops: this server is a Citus worker: set DATABASE_MIGRATE_URL to the coordinator\n',
    }
    expect(await runOps(workerUrl(url), ['migrate'])).toEqual(rejected)
    const worker = testPool(workerUrl(url), 1)
    const { rows } = await worker.query(`select relname from pg_class where relnamespace = 'public'::regnamespace`)
    await worker.end()
    expect(rows.filter(({ relname }) => !relname.startsWith('citus'))).toEqual([])

    expect(await runOps(workerUrl(database.url), ['migrate'])).toEqual(rejected)
    expect(await runOps(workerUrl(database.url), ['database', 'spread'])).toEqual(rejected)
  },
)

/** URL of the same database on a worker, for the owner of the tables. */
function workerUrl(url: string): string {
  const worker = inject('adminUrls')[1] as string
  return asRole(databaseUrl(worker, new URL(url).pathname.slice(1)), 'upi_owner')
}

const END_RUN = `select pg_terminate_backend(pid) from pg_locks where locktype = 'advisory' and pid <> pg_backend_pid()
  and database = (select oid from pg_database where datname = current_database())`

it.skipIf(!ON_CITUS)(
  'database spread completes an earlier run that was killed, and leaves no copies of rows',
  { timeout: 60_000 },
  async () => {
    const { url, db } = await createTestDatabase({ empty: true })
    await migrate(url)
    const { mid } = await newMerchant(db)
    await db.query(
      `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
       values ($1, 'UTR1', 'order', 100, now(), 'first', 'direct', 'notification')`,
      [mid],
    )
    const killed = distribute(url, (step) => {
      if (step === 'distributing payments') void db.query(END_RUN)
    })
    await expect(killed).rejects.toThrow(/terminat/)

    expect(JSON.parse((await runOps(url, ['database', 'spread', '--json'])).stdout).spread).toContain('payments')
    const { rows: copies } = await db.query(
      'select logicalrelid from pg_dist_partition where pg_relation_size(logicalrelid) > 0',
    )
    expect(copies).toEqual([])
    expect((await db.query('select mid, utr from payments')).rows).toEqual([{ mid, utr: 'UTR1' }])
    await expect(db.query('delete from payments where mid = $1', [mid])).rejects.toThrow('append-only')
  },
)

it.skipIf(!ON_CITUS)(
  'database spread succeeds in two concurrent runs, of which one distributes every table',
  { timeout: 60_000 },
  async () => {
    const { url } = await createTestDatabase({ empty: true })
    await migrate(url)
    const outcomes = await Promise.all([1, 2].map(() => distribute(url, () => undefined)))
    expect(outcomes.sort((a, b) => a.length - b.length)).toEqual([
      [],
      expect.arrayContaining(['merchants', 'payment_intents', 'audit_commands']),
    ])
  },
)
