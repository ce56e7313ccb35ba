import { cpSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { describe, expect, inject, it, onTestFinished, vi } from 'vitest'
import { migrate } from '../../src/platform/db/migrate.ts'
import { notification, notify } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { databaseUrl, testPool } from '../support/database-url.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { hasPgbouncer, startPgbouncer } from '../support/pgbouncer.ts'
import { startServerProcess } from '../support/server-process.ts'
import { basic, CREATE, form, intentFields, newMerchant, post, startService } from '../support/service.ts'

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))
/** How long the lock is held. A migration that waited in the lock's queue would stop payments for all this time. */
const HELD_MS = 10_000
const CREATE_EVERY_MS = 40
const LOCK_TIMEOUT_MS = 100
const WAITING = /waiting for a table that process \d+ \(pg_dump\)( or process \d+.*)? has locked; next attempt in 5 s/

/** A folder with the migrations, and a pending one that locks the table of intents. */
function migrationsAndOne(sql = 'alter table payment_intents add column probe integer;'): string {
  const folder = mkdtempSync(join(inject('runDirectory'), 'migrations-'))
  cpSync(MIGRATIONS, folder, { recursive: true })
  writeFileSync(join(folder, '9999_needs_the_table.sql'), sql)
  return folder
}

/** Locks the table of intents until it is released; by default with the lock that pg_dump takes. */
async function holdLock(url: string, mode = 'access share') {
  const client = new pg.Client({ connectionString: url, application_name: 'pg_dump' })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query(`begin; lock table payment_intents in ${mode} mode`)
  const waiting = `select from pg_locks where not granted and relation = 'payment_intents'::regclass`
  return {
    release: () => client.query('rollback'),
    isWaitedFor: async () => (await client.query(waiting)).rowCount === 1,
  }
}

/** Reads a shard of the table of intents on its worker until its connection is closed. */
async function readShard(url: string): Promise<pg.Client> {
  const coordinator = new pg.Client({ connectionString: url })
  await coordinator.connect()
  const { rows } = await coordinator.query<{ name: string; port: number }>(
    `select shard_name as name, nodeport as port
       from citus_shards
      where table_name = 'payment_intents'::regclass
      order by 1
      limit 1`,
  )
  await coordinator.end()
  const [shard] = rows as [{ name: string; port: number }]
  const worker = inject('adminUrls').find((node) => new URL(node).port === String(shard.port)) as string
  const reader = new pg.Client({ connectionString: databaseUrl(worker, new URL(url).pathname.slice(1)) })
  // The test's database may be dropped first.
  reader.on('error', () => undefined)
  await reader.connect()
  await reader.query(`begin; select from ${shard.name}`)
  return reader
}

it('a migration that waits for a lock delays no payment, and completes once the migration acquires the lock', {
  timeout: 90_000,
}, async () => {
  const database = await createTestDatabase()
  const db = new pg.Pool({ connectionString: database.url, max: 1 })
  const { mid, key } = await newMerchant(db)
  await db.end()
  const server = await startServerProcess(database.url)
  onTestFinished(async () => {
    await server.stop()
  })
  const folder = migrationsAndOne()

  const create = async () => {
    const response = await fetch(server.url + CREATE, {
      method: 'POST',
      headers: { authorization: basic(key), 'content-type': 'application/x-www-form-urlencoded' },
      body: form(intentFields(mid)),
    })
    return response.status
  }
  const lock = await holdLock(database.url)
  const said: string[] = []
  const migrating = migrate(database.url, { folder, onWait: (message) => said.push(message) })
  const creates: Promise<number>[] = []
  const timer = setInterval(() => creates.push(create()), CREATE_EVERY_MS)
  onTestFinished(() => clearInterval(timer))
  await sleep(HELD_MS)
  await lock.release()
  expect(await migrating).toEqual(['9999_needs_the_table'])
  clearInterval(timer)

  const statuses = await Promise.all(creates)
  const failed = statuses.filter((status) => status !== 200).length
  // None fails on an idle machine; all would fail if they waited behind a lock that waits.
  expect(failed).toBeLessThan(statuses.length / 2)
  expect(said[0]).toMatch(WAITING)
})

it('ops migrate names the lock that ops migrate waits for, and continues once the lock is released', {
  timeout: 90_000,
}, async () => {
  const database = await createTestDatabase({ empty: true })
  const first = mkdtempSync(join(inject('runDirectory'), 'migrations-'))
  for (const file of ['0001_tenants.sql', '0002_payments.sql', '0003_refunds.sql']) {
    cpSync(join(MIGRATIONS, file), join(first, file))
  }
  await migrate(database.url, { folder: first })
  // The next migration has a foreign key to the table.
  const lock = await holdLock(database.url, 'row exclusive')
  const migrating = runOps(database.url, ['migrate', '--json'])
  await vi.waitUntil(lock.isWaitedFor, { timeout: 20_000 })
  await sleep(LOCK_TIMEOUT_MS + 200)
  await lock.release()
  const { code, stdout, stderr } = await migrating
  expect({ code, applied: JSON.parse(stdout).applied[0] }).toEqual({ code: 0, applied: '0004_webhooks' })
  expect(stderr).toMatch(new RegExp(`^(ops: ${WAITING.source}\n)+$`))
})

it.skipIf(!ON_CITUS)(
  'a migration that waits for a reader on a Citus worker reports the reader, and completes once the reader has disconnected',
  {
    timeout: 90_000,
  },
  async () => {
    const database = await createTestDatabase()
    const reader = await readShard(database.url)
    const said: string[] = []
    const migrating = migrate(database.url, { folder: migrationsAndOne(), onWait: (message) => said.push(message) })
    await vi.waitUntil(() => said.length > 0, { timeout: 20 * LOCK_TIMEOUT_MS })
    // The coordinator does not see the reader, which has locked the shard on the worker.
    expect(said[0]).toBe('waiting for a table that another transaction has locked; next attempt in 5 s')
    await reader.end()
    expect(await migrating).toEqual(['9999_needs_the_table'])
  },
)

it.skipIf(ON_CITUS)(
  'PostgreSQL rolls back the migration and stores the payment if the migration and the payment deadlock',
  {
    timeout: 30_000,
  },
  async () => {
    const service = await startService({ asServiceRole: true })
    const { mid, key } = await newMerchant(service.db)
    const created = await post(service.app, CREATE, form(intentFields(mid)), key)
    const { orderId } = (created.body as { data: { orderId: string } }).data
    // Locks the tables in the opposite order of a payment, once a payment has locked its order and waits for the table
    // of payments. The next attempt finds the payment stored.
    const isWaiting = `exists (select from pg_locks where not granted and relation = 'payments'::regclass)`
    const folder = migrationsAndOne(`
    lock table payments in access exclusive mode;
    do $$ begin for i in 1..2000 loop exit when ${isWaiting} or exists (select from payments);
      perform pg_sleep(0.005); end loop; end $$;
    alter table payment_intents add column probe integer;`)
    const said: string[] = []
    const migrating = migrate(service.databaseUrl, { folder, onWait: (message) => said.push(message) })
    const locked = `select from pg_locks where granted and relation = 'payments'::regclass and mode = 'AccessExclusiveLock'`
    await vi.waitUntil(async () => (await service.db.query(locked)).rowCount === 1, { interval: 5, timeout: 10_000 })
    const paid = await notify(service, notification(orderId))
    expect(paid.status).toBe(200)
    expect(await migrating).toEqual(['9999_needs_the_table'])
    expect(said).toHaveLength(1)
  },
)

describe.skipIf(ON_CITUS || !hasPgbouncer())('ops migrate through PgBouncer in transaction mode', () => {
  it('ops migrate needs one pooled connection of PgBouncer, and leaves neither a lock nor a setting on the connection', async () => {
    const database = await createTestDatabase({ empty: true })
    // A limit of the operator, which a session setting would replace.
    const direct = testPool(database.url, 1)
    await direct.query(`alter database ${new URL(database.url).pathname.slice(1)} set statement_timeout = '7s'`)
    const pooled = await startPgbouncer(inject('runDirectory'), database.url)
    onTestFinished(async () => {
      await direct.end()
      await pooled.stop()
    })
    for (const applied of [true, false]) {
      const { code, stdout, stderr } = await runOps(pooled.url, ['migrate', '--json'])
      expect([code, stderr, JSON.parse(stdout).applied.length > 0]).toEqual([0, '', applied])
    }
    const { rows: locks } = await direct.query(`select pid from pg_locks where locktype = 'advisory'`)
    expect(locks).toEqual([])
    const viaPool = testPool(pooled.url, 1)
    onTestFinished(() => viaPool.end())
    expect((await viaPool.query('show statement_timeout')).rows).toEqual([{ statement_timeout: '7s' }])
  })
})

it('ops migrate names the process that holds the lock of another run, and continues once the process is terminated', {
  timeout: 30_000,
}, async () => {
  const database = await createTestDatabase({ empty: true })
  const left = new pg.Client({ connectionString: database.url, application_name: 'left behind' })
  left.on('error', () => undefined)
  await left.connect()
  const { rows } = await left.query('select pg_advisory_lock($1), pg_backend_pid() as pid', [7_241_865_325_823_964])
  const [{ pid }] = rows
  const said: string[] = []
  const migrating = migrate(database.url, { onWait: (message) => said.push(message) })
  await vi.waitUntil(() => said.length > 0, { timeout: 20_000 })
  expect(said[0]).toBe(
    `waiting for another ops migrate, whose lock is held by process ${pid} (left behind). If no ops migrate is running, terminate that process: select pg_terminate_backend(${pid})`,
  )
  const direct = testPool(database.url, 1)
  await direct.query(`select pg_terminate_backend(${pid})`)
  await direct.end()
  expect((await migrating).length).toBeGreaterThan(0)
})
