import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { migrate, pendingMigrations } from '../../src/platform/db/migrate.ts'
import { splitStatements } from '../../src/platform/db/statements.ts'
import { createTestDatabase } from '../support/database.ts'
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
  const mixesIndexes = (name: string) => {
    const statements = splitStatements(readFileSync(join(FOLDER, `${name}.sql`), 'utf8'))
    const isIndex = (sql: string) => /^create (unique )?index/.test(sql.replace(/^--.*\n/gm, '').trim())
    return statements.length > 1 && statements.some(isIndex)
  }
  expect(mixesIndexes('0002_payments')).toBe(true)
  expect(ALL.filter((name) => name > '0009_operator_keys' && mixesIndexes(name))).toEqual([])
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
