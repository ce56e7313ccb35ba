import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { migrate, pendingMigrations } from '../../src/platform/db/migrate.ts'
import { spreadDatabase } from '../support/citus.ts'
import { createTestDatabase } from '../support/database.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { runOps } from '../support/ops.ts'

const FOLDER = join(import.meta.dirname, '../../migrations')
const ALL = readdirSync(FOLDER)
  .map((file) => file.replace(/\.sql$/, ''))
  .sort()

describe('migrations of an empty database', () => {
  let database: Awaited<ReturnType<typeof createTestDatabase>>
  let pool: pg.Pool

  beforeAll(async () => {
    database = await createTestDatabase({ empty: true })
    pool = new pg.Pool({ connectionString: database.url, max: 2 })
  })

  afterAll(async () => {
    await pool.end()
  })

  test('all migrations are pending in an empty database', async () => {
    expect(await pendingMigrations(pool)).toEqual(ALL)
  })

  test('of five instances that migrate at once exactly one applies each migration, and none fails', async () => {
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)))
    expect(applied.flat().sort()).toEqual(ALL)
    const { rows } = await pool.query('select name from schema_migrations order by id')
    expect(rows.map(({ name }) => name)).toEqual(ALL)
  })

  test('a migrated database has no pending migrations, and another run applies nothing', async () => {
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })

  test('migrations that this version does not know are ignored, so that an older instance runs on', async () => {
    await pool.query("insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())")
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })
})

test('migrations and grants are sent one statement at a time, since a distributed database refuses several at once', async () => {
  const database = await createTestDatabase({ empty: true })
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [text] = args
    // In the extended protocol PostgreSQL itself refuses several statements. Settings of the session may come together.
    const asOne = typeof text === 'string' && !text.startsWith('set ')
    return query.apply(this, asOne ? [{ text, queryMode: 'extended' }, ...args.slice(1)] : args)
  } as never)
  onTestFinished(() => spy.mockRestore())
  expect(await migrate(database.url)).toEqual(ALL)
  await applyGrants(database.url)
})

test.each([
  ...['payment_changes', 'payment_attempts', 'payment_exceptions', 'payment_resolutions', 'payments'],
  ...['audit_commands', 'audit_outcomes'],
])('the rows of %s can be changed by nobody, not even the owner of the tables', async (table) => {
  const { db } = await createTestDatabase()
  const column = table.startsWith('audit') ? 'audit_id' : 'mid'
  for (const sql of [`update ${table} set ${column} = ''`, `delete from ${table}`, `truncate ${table} cascade`]) {
    await expect(db.query(sql)).rejects.toThrow(`${table} is append-only`)
  }
})

test('migration 0019 widens amounts without reading orders, and the version before it still serves', async () => {
  const database = await createTestDatabase({ empty: true })
  const before = mkdtempSync(join(tmpdir(), 'upi-payments-migrations-'))
  onTestFinished(() => rmSync(before, { recursive: true }))
  for (const name of ALL.filter((name) => name < '0019'))
    cpSync(join(FOLDER, `${name}.sql`), join(before, `${name}.sql`))
  await migrate(database.url, { folder: before })
  const pool = database.db

  if (ON_CITUS) await spreadDatabase(database.url)

  // As the version before writes them.
  const addMerchant = (mid: string) =>
    pool.query(
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
       values ($1, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now())`,
      [mid],
    )
  const addIntent = (mid: string, orderId: string, amount: number, paise = 0) =>
    pool.query(
      `insert into payment_intents (mid, order_id, merchant_order_id, amount, paise, redirect_url, note, customer_name,
         customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       values ($1, $2, $2, $3, $4, 'https://shop.example/', 'Order', 'Asha Rao', 'asha@shop.example', '9876543210',
         'chaipoint@examplebank', 'Chai Point', '5814', now(), now())`,
      [mid, orderId, amount, paise],
    )
  await addMerchant('M1')
  for (const [index, amount] of [1, 200, 100_000].entries()) await addIntent('M1', `old-${index}`, amount)
  await expect(addIntent('M1', 'too-much', 100_001)).rejects.toThrow('payment_intents')
  const rows = async () => (await pool.query('select * from payment_intents order by order_id')).rows
  const old = await rows()

  await migrate(database.url)
  // A later migration may add columns, which the version before does not write.
  expect(await rows()).toEqual(old.map((row) => expect.objectContaining(row)))
  await addMerchant('M2')
  const { rows: merchants } = await pool.query('select mid, payees, max_amount from merchants order by mid')
  expect(merchants).toEqual(['M1', 'M2'].map((mid) => ({ mid, payees: [], max_amount: 100_000 })))
  for (const mid of ['M1', 'M2']) {
    await addIntent(mid, `${mid}-usual`, 100_000)
    await addIntent(mid, `${mid}-largest`, 500_000)
    await addIntent(mid, `${mid}-paise`, 499_999, 99)
    await expect(addIntent(mid, 'refused', 500_001)).rejects.toThrow('payment_intents')
    await expect(addIntent(mid, 'refused', 500_000, 1)).rejects.toThrow('payment_intents_paise_check')
    await expect(addIntent(mid, 'refused', 0, 99)).rejects.toThrow('payment_intents_amount_check')
  }
  await pool.query(`update payment_intents set note = 'still writable' where order_id like 'old-%'`)
  await expect(pool.query('update merchants set max_amount = 500001')).rejects.toThrow('merchants_max_amount_check')
  // A check that is validated reads the whole table under a lock that stops every payment.
  const { rows: checks } = await pool.query(
    `select conname, convalidated from pg_constraint where conrelid = 'payment_intents'::regclass and contype = 'c'
        and conname in ('payment_intents_amount_check', 'payment_intents_paise_check') order by 1`,
  )
  expect(checks.map(({ convalidated }) => convalidated)).toEqual([false, false])
})

test('migrations of a database that cannot be reached fail with the reason', async () => {
  await expect(migrate('postgres://nobody@127.0.0.1:1/none')).rejects.toThrow('ECONNREFUSED')
})

describe('a server older than PostgreSQL 15', () => {
  test('ops migrate refuses a server older than PostgreSQL 15 in one sentence with both versions, and makes nothing', async () => {
    const database = await createTestDatabase({ empty: true })
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    onTestFinished(() => client.end())
    // Makes the server seem older: this function is found before PostgreSQL's own of the same name.
    await client.query(`
      create schema older;
      create function older.current_setting(name text) returns text language sql as
        $$ select case name when 'server_version_num' then '140023' else '14.23' end $$;
      do $$ begin execute format('alter database %I set search_path = older, pg_catalog, public', current_database()); end $$`)
    expect(await runOps(database.url, ['migrate'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: this database is PostgreSQL 14.23, and the service needs 15 or newer\n',
    })
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'")
    expect(rows).toEqual([])
  })
})
