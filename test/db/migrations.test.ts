import { copyFileSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { migrate, pendingMigrations } from '../../src/platform/db/migrate.ts'
import { unreadyReason } from '../../src/platform/db/readiness.ts'
import { splitStatements } from '../../src/platform/db/statements.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'

const FOLDER = join(import.meta.dirname, '../../migrations')
const ALL = readdirSync(FOLDER)
  .map((file) => file.replace(/\.sql$/, ''))
  .sort()
const OLD_DATABASE =
  'This database was created before the first release. It was not changed. Run the version tagged before-baseline to read it, or use another database.'

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

  test('reports all migrations as pending in an empty database', async () => {
    expect(await pendingMigrations(pool)).toEqual(ALL)
  })

  test('applies each migration exactly once when five instances migrate concurrently, and none fails', async () => {
    const applied = await Promise.all(Array.from({ length: 5 }, () => migrate(database.url)))
    expect(applied.flat().sort()).toEqual(ALL)
    const { rows } = await pool.query('select name from schema_migrations order by id')
    expect(rows.map(({ name }) => name)).toEqual(ALL)
  })

  test('reports no pending migrations in a migrated database, and applies nothing in another run', async () => {
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })

  test('ignores migrations from newer versions, so that an older instance continues to work', async () => {
    await pool.query("insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())")
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })
})

test('ops migrate sends migrations and grants one statement at a time, because a distributed database rejects several statements in one message', async () => {
  const database = await createTestDatabase({ empty: true })
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const [text] = args
    // In the extended protocol, PostgreSQL itself rejects several statements. Settings of the session may be sent
    // together.
    const asOne = typeof text === 'string' && !/^\s*(begin|set) /.test(text)
    return query.apply(this, asOne ? [{ text, queryMode: 'extended' }, ...args.slice(1)] : args)
  } as never)
  onTestFinished(() => spy.mockRestore())
  expect(await migrate(database.url)).toEqual(ALL)
  await applyGrants(database.url)
})

test('an upgrade holds no other lock while it builds an index, because building an index takes minutes on a large table', () => {
  const upgrades = ALL.filter((name) => name > '0009').map((name) => {
    const statements = splitStatements(readFileSync(join(FOLDER, `${name}.sql`), 'utf8'))
    return { name, statements: statements.map((sql) => sql.replace(/^--.*\n/gm, '').trim()) }
  })
  const withIndex = upgrades.filter(({ statements }) => statements.some((sql) => /^create (unique )?index/.test(sql)))
  expect(withIndex.length).toBeGreaterThan(0)
  expect(withIndex.filter(({ statements }) => statements.length > 1).map(({ name }) => name)).toEqual([])
})

/** Creates a database with the migrations before `next`, such as `0009`. */
async function createEarlierDatabase(next: string) {
  const database = await createTestDatabase({ empty: true })
  const folder = mkdtempSync(join(tmpdir(), 'migrations-'))
  for (const name of ALL.filter((one) => one < next))
    copyFileSync(join(FOLDER, `${name}.sql`), join(folder, `${name}.sql`))
  await migrate(database.url, { folder })
  const pool = new pg.Pool({ connectionString: database.url, max: 1 })
  onTestFinished(() => pool.end())
  return { database, pool }
}

test('an upgrade gives existing keys the rights that they had, and earlier instances still read the right to refund', async () => {
  const { database, pool } = await createEarlierDatabase('0011')
  await pool.query(`
    insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
    values ('M1', 'Chai Point', 'chai@examplebank', '5814', 'link', '2026-01-01');
    insert into partners (pid, name, created_at) values ('P1', 'Acme', '2026-01-01');
    insert into access_keys (public_key, secret_hash, mid, pid, may_refund, created_at)
    values ('pk_1', sha256('1'), 'M1', null, false, '2026-01-01'), ('pk_2', sha256('2'), 'M1', null, true, '2026-01-01'),
           ('pk_3', sha256('3'), null, 'P1', false, '2026-01-01')`)
  await migrate(database.url)
  const { rows } = await pool.query(
    'select public_key, rights, expires_on, may_refund from access_keys order by public_key',
  )
  const USUAL = ['create', 'status', 'cancel', 'list']
  expect(rows).toEqual([
    { public_key: 'pk_1', rights: USUAL, expires_on: null, may_refund: false },
    { public_key: 'pk_2', rights: [...USUAL, 'refund'], expires_on: null, may_refund: true },
    { public_key: 'pk_3', rights: ['list'], expires_on: null, may_refund: false },
  ])
})

test('an upgrade adds duplicate payments to the amounts that closed months carry forward', async () => {
  const { database, pool } = await createEarlierDatabase('0009')
  await pool.query(`
    insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
    values ('M1', 'Chai Point', 'chai@examplebank', '5814', 'link', '2026-01-01'), ('M2', 'Tea', 'tea@examplebank', '5814', 'link', '2026-01-01');
    alter table payments disable trigger user;
    insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, source, acquirer)
    select mid, utr, mid || utr, 20000, at::timestamptz, at::timestamptz, kind, 'notification', 'direct'
      from (values ('M1', 'A1', 'first', '2026-10-05T10:00+05:30'), ('M1', 'A2', 'second', '2026-10-31T23:59+05:30'),
                   ('M2', 'B2', 'second', '2026-10-05T10:00+05:30'), ('M2', 'B3', 'second', '2026-11-01T00:00+05:30')) p (mid, utr, kind, at);
    alter table refunds disable trigger user;
    insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
      reference, ended_at)
    values ('M2', 'R1', 'R1', 'M2B2', 'B2', 5000, 'twice', 'direct', 'merchant', '2026-10-06', 'SUCCESS', '', '2026-10-06');
    insert into closed_months (month, closed_at, closed_by, sha256, figures) values ('2026-10', '2026-11-02', 'asha', '', '{}');
    insert into closed_items (mid, month, item, day, balance_paise) values ('M1', '2026-10', '', '2026-10-31', 20000)`)
  await migrate(database.url)
  const { rows } = await pool.query(
    'select mid, item, day::text, balance_paise::text as balance from closed_items order by mid, item',
  )
  expect(rows).toEqual([
    { mid: 'M1', item: '', day: '2026-10-31', balance: '20000' },
    { mid: 'M1', item: 'duplicates', day: '2026-10-31', balance: '20000' },
    { mid: 'M2', item: 'duplicates', day: '2026-10-31', balance: '15000' },
  ])
})

test.each([
  ...['payment_attempts', 'payment_exceptions', 'payment_resolutions', 'payments'],
  ...['audit_commands', 'audit_outcomes'],
])('the database rejects changes to rows of %s, even by the tables’ own role', async (table) => {
  const { db } = await createTestDatabase()
  const column = table.startsWith('audit') ? 'audit_id' : 'mid'
  for (const sql of [`update ${table} set ${column} = ''`, `delete from ${table}`, `truncate ${table} cascade`]) {
    await expect(db.query(sql)).rejects.toThrow(`${table} is append-only`)
  }
})

test('ops and /readyz reject and do not change a database that a version before the baseline created', async () => {
  const { url, db } = await createTestDatabase()
  // Its first migration sorts before the last one of this version.
  await db.query(`update schema_migrations set name = '0001_merchants_keys_intents_settlements' where name = $1`, [
    ALL[0],
  ])
  const read = async () =>
    (
      await db.query(
        'select (select array_agg(name order by id) from schema_migrations), (select count(*) from audit_commands)',
      )
    ).rows
  const before = await read()
  for (const command of [['migrate'], ['database', 'spread'], ['merchants', 'disable', '--mid', 'M1']]) {
    expect(await runOps(url, command)).toEqual({ code: 1, stdout: '', stderr: `ops: ${OLD_DATABASE}\n` })
  }
  expect(await unreadyReason(db)).toBe(OLD_DATABASE)
  expect(await read()).toEqual(before)
})

test('ops migrate reports the reason if the database is unreachable', async () => {
  await expect(migrate('postgres://nobody@127.0.0.1:1/none')).rejects.toThrow('ECONNREFUSED')
})

describe('servers older than PostgreSQL 15', () => {
  test('ops migrate rejects a server older than PostgreSQL 15, names both versions, and creates nothing', async () => {
    const database = await createTestDatabase({ empty: true })
    const client = new pg.Client({ connectionString: database.url })
    await client.connect()
    onTestFinished(() => client.end())
    // Makes the server appear older: this function is found before PostgreSQL's own of the same name.
    await client.query(`
      create schema older;
      create function older.current_setting(name text) returns text language sql as
        $$ select case name when 'server_version_num' then '140023' else '14.23' end $$;
      do $$ begin execute format('alter database %I set search_path = older, pg_catalog, public', current_database()); end $$`)
    expect(await runOps(database.url, ['migrate'])).toEqual({
      code: 1,
      stdout: '',
      stderr: 'ops: this database is PostgreSQL 14.23, but the service needs 15 or newer\n',
    })
    const { rows } = await client.query("select tablename from pg_tables where schemaname = 'public'")
    expect(rows).toEqual([])
  })
})
