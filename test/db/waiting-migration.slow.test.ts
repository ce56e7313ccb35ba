import { cpSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import pg from 'pg'
import { expect, inject, it, onTestFinished, vi } from 'vitest'
import { migrate } from '../../src/db/migrate.ts'
import { createTestDatabase } from '../support/database.ts'
import { databaseUrl } from '../support/database-url.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'
import { startServerProcess } from '../support/server-process.ts'
import { basic, CREATE, form, intentFields, newMerchant } from '../support/service.ts'

const MIGRATIONS = fileURLToPath(new URL('../../migrations', import.meta.url))
/** How long the lock is held: a migration that waited in its queue would stop payments for all this time. */
const HELD_MS = 10_000
const CREATE_EVERY_MS = 40
const LOCK_TIMEOUT_MS = 500
const WAITING = /waiting for a lock; next try in 5 s \(select pg_blocking_pids\(\d+\) during a try names who holds it\)/

/** The migrations, and one that is pending and needs the table of intents for itself. */
function migrationsAndOne(): string {
  const folder = mkdtempSync(join(inject('runDirectory'), 'migrations-'))
  cpSync(MIGRATIONS, folder, { recursive: true })
  writeFileSync(join(folder, '9999_needs_the_table.sql'), 'alter table payment_intents add column probe integer;')
  return folder
}

/** Holds the lock that pg_dump takes on the table of intents until it is released. */
async function holdLockOfPgDump(url: string) {
  const client = new pg.Client({ connectionString: url, application_name: 'pg_dump' })
  await client.connect()
  onTestFinished(() => client.end())
  await client.query('begin; lock table payment_intents in access share mode')
  const waiting = `select from pg_locks where not granted and relation = 'payment_intents'::regclass`
  return {
    release: () => client.query('rollback'),
    isWaitedFor: async () => (await client.query(waiting)).rowCount === 1,
  }
}

/** Reads a shard of the table of intents, on its worker, until its connection ends. */
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

it('a migration that waits for a lock delays no payment, and is done once it gets the lock', {
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
  const lock = await holdLockOfPgDump(database.url)
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
  // None on a machine that has nothing else to do; all while they wait behind a lock that waits.
  expect(failed).toBeLessThan(statuses.length / 2)
  expect(said[0]).toMatch(WAITING)
})

it('ops migrate says which lock it waits for, and goes on', { timeout: 90_000 }, async () => {
  const database = await createTestDatabase({ empty: true })
  const first = mkdtempSync(join(inject('runDirectory'), 'migrations-'))
  cpSync(
    join(MIGRATIONS, '0001_merchants_keys_intents_settlements.sql'),
    join(first, '0001_merchants_keys_intents_settlements.sql'),
  )
  await migrate(database.url, { folder: first })
  const lock = await holdLockOfPgDump(database.url)
  const migrating = runOps(database.url, ['migrate', '--json'])
  await vi.waitUntil(lock.isWaitedFor, { timeout: 20_000 })
  await sleep(LOCK_TIMEOUT_MS + 200)
  await lock.release()
  const { code, stdout, stderr } = await migrating
  expect({ code, applied: JSON.parse(stdout).applied[0] }).toEqual({ code: 0, applied: '0002_payment_states' })
  expect(stderr).toMatch(new RegExp(`^(ops: ${WAITING.source}\n)+$`))
})

it.skipIf(!ON_CITUS)(
  'a migration that waits for a reader on a Citus worker says so, and is done once the reader has left',
  {
    timeout: 90_000,
  },
  async () => {
    const database = await createTestDatabase()
    const reader = await readShard(database.url)
    const said: string[] = []
    const migrating = migrate(database.url, { folder: migrationsAndOne(), onWait: (message) => said.push(message) })
    await vi.waitUntil(() => said.length > 0, { timeout: 20 * LOCK_TIMEOUT_MS })
    expect(said[0]).toMatch(WAITING)
    await reader.end()
    expect(await migrating).toEqual(['9999_needs_the_table'])
  },
)
