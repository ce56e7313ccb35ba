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
  ...['payment_attempts', 'payment_exceptions', 'payment_resolutions', 'payments'],
  ...['audit_commands', 'audit_outcomes'],
])('the rows of %s can be changed by nobody, not even the owner of the tables', async (table) => {
  const { db } = await createTestDatabase()
  const column = table.startsWith('audit') ? 'audit_id' : 'mid'
  for (const sql of [`update ${table} set ${column} = ''`, `delete from ${table}`, `truncate ${table} cascade`]) {
    await expect(db.query(sql)).rejects.toThrow(`${table} is append-only`)
  }
})

test('migration 0041 moves successes, cancellations and failed attempts of existing databases, and keeps the ids of exceptions', async () => {
  const database = await createTestDatabase({ empty: true })
  const before = mkdtempSync(join(tmpdir(), 'upi-payments-migrations-'))
  onTestFinished(() => rmSync(before, { recursive: true }))
  for (const name of ALL.filter((name) => name < '0040'))
    cpSync(join(FOLDER, `${name}.sql`), join(before, `${name}.sql`))
  await migrate(database.url, { folder: before })
  const { db } = database
  const rowsOf = async (sql: string) => (await db.query(sql)).rows.map((row) => Object.values(row))
  await db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     values ('M1', 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now())`,
  )
  await db.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name,
       customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
     select 'M1', o, o, 200, 'https://shop.example/', 'Order', 'Asha Rao', 'asha@shop.example', '9876543210',
            'chaipoint@examplebank', 'Chai Point', '5814', '2026-11-01 10:00Z', '2026-11-01 10:15Z', status, utr
       from (values ('paid', 'SUCCESS', 'U1'), ('late', 'SUCCESS', 'U2'), ('cancelled', 'CANCELLED', null), ('failed', 'FAIL', null))
            as intents (o, status, utr)`,
  )
  await db.query(
    `insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
     values ('M1', 'U1', 'paid', 20000, null, '2026-11-01 10:01Z', 'first', 'direct'),
            ('M1', 'U2', 'late', 20000, null, '2026-11-01 11:00Z', 'late', 'direct'),
            ('M1', 'U3', 'paid', 20000, null, '2026-11-01 10:02Z', 'second', 'direct')`,
  )
  await db.query(
    `insert into payment_changes (mid, order_id, status, utr, paid_at, reason, told_by, note, changed_at)
     values ('M1', 'paid', 'SUCCESS', 'U1', null, 'operator', 'asha', 'seen', '2026-11-01 10:01Z'),
            ('M1', 'late', 'CANCELLED', null, null, 'merchant', null, null, '2026-11-01 10:05Z'),
            ('M1', 'late', 'SUCCESS', 'U2', null, 'day file', null, null, '2026-11-01 11:00Z'),
            ('M1', 'cancelled', 'CANCELLED', null, null, 'merchant', null, null, '2026-11-01 10:06Z'),
            ('M1', 'failed', 'FAIL', 'F1', '2026-11-01 10:03Z', 'notification', null, null, '2026-11-01 10:04Z')`,
  )
  await db.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, made_by, made_at, status)
     values ('M1', 'R1', '0198c0ffee000000000000000000abcd', 'paid', 'U1', 100, '', 'direct', 'merchant', '2026-11-02 10:00Z', 'PENDING')`,
  )
  await db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount, told_by, note, digest, received_at)
     values ('M1', 'paid', 'double payment', 'U3', 200, 'asha', 'twice', '', now()),
            ('M1', 'paid', 'refund unsure', 'U1', 1, 'enquiry', null, '0198c0ffee000000000000000000abcd', now()),
            ('', '', 'unreadable', '', 0, null, null, 'of a body', now())`,
  )
  const ids = await rowsOf('select kind, exception_id from payment_exceptions order by kind')

  if (ON_CITUS) await spreadDatabase(database.url)
  await migrate(database.url)
  expect(await rowsOf('select utr, source, reported_by, note from payments order by utr')).toEqual([
    ['U1', 'operator', 'asha', 'seen'],
    ['U2', 'day file', null, null],
    ['U3', 'operator', 'asha', 'twice'],
  ])
  expect(
    await rowsOf('select order_id, cancelled_at from payment_intents where cancelled_at is not null order by 1'),
  ).toEqual([
    ['cancelled', new Date('2026-11-01T10:06:00Z')],
    ['late', new Date('2026-11-01T10:05:00Z')],
  ])
  expect(await rowsOf('select order_id, status, attempt, utr, source, received_at from payment_attempts')).toEqual([
    ['failed', 'FAIL', 'F1 2026-11-01T10:03:00.000Z', 'F1', 'notification', new Date('2026-11-01T10:04:00Z')],
  ])
  expect(await rowsOf('select kind, our_refund_id, dedup_key from payment_exceptions order by kind')).toEqual([
    ['double payment', '', ''],
    ['refund unsure', '0198c0ffee000000000000000000abcd', ''],
    ['unreadable', '', 'of a body'],
  ])
  expect(await rowsOf('select kind, exception_id from payment_exceptions order by kind')).toEqual(ids)
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
