import { readdirSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { applyGrants } from '../../src/db/grants.ts'
import { migrate, pendingMigrations } from '../../src/db/migrate.ts'
import { createTestDatabase, testPool } from '../support/database.ts'
import { runOps } from '../support/ops.ts'

const ALL = readdirSync(new URL('../../migrations', import.meta.url))
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
    await database.drop()
  })

  test('are all pending before the first run', async () => {
    expect(await pendingMigrations(pool)).toEqual(ALL)
  })

  test('of twenty processes that migrate at once exactly one applies them, and none fails', async () => {
    const applied = await Promise.all(Array.from({ length: 20 }, () => migrate(database.url)))
    expect(applied.filter((names) => names.length > 0)).toEqual([ALL])
    const { rows } = await pool.query('select name from schema_migrations order by id')
    expect(rows.map(({ name }) => name)).toEqual(ALL)
  })

  test('leave none pending, and another run applies nothing', async () => {
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })

  test('are ignored when this code does not know them, so that an older instance runs on', async () => {
    await pool.query("insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())")
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })
})

test('migrations and grants are sent one statement at a time: a distributed database refuses a message of several', async () => {
  const database = await createTestDatabase({ empty: true })
  onTestFinished(database.drop)
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
])('%s can be rewritten by nobody, the owner of the tables included', async (table) => {
  const database = await createTestDatabase()
  onTestFinished(database.drop)
  // The pool closes the connection of what was refused by itself, which may be cut when the database is dropped.
  const pool = testPool(database.url, 1)
  onTestFinished(() => pool.end())
  const column = table.startsWith('audit') ? 'audit_id' : 'mid'
  for (const sql of [`update ${table} set ${column} = ''`, `delete from ${table}`, `truncate ${table} cascade`]) {
    await expect(pool.query(sql)).rejects.toThrow(`${table} is append-only`)
  }
})

test('migrations of a database that cannot be reached fail with the reason', async () => {
  await expect(migrate('postgres://nobody@127.0.0.1:1/none')).rejects.toThrow('ECONNREFUSED')
})

describe('a server older than PostgreSQL 15', () => {
  test('is refused by ops migrate in one sentence with both versions, and nothing is made in it', async () => {
    const database = await createTestDatabase({ empty: true })
    onTestFinished(database.drop)
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
