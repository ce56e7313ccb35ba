import { readdirSync } from 'node:fs'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { migrate, pendingMigrations } from '../../src/db/migrate.ts'
import { createTestDatabase } from '../support/database.ts'

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

  test('are none pending afterwards, and another run applies nothing', async () => {
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })

  test('unknown to this code do not disturb it: an older instance runs on beside a newer schema', async () => {
    await pool.query("insert into schema_migrations (name, run_on) values ('9999_from_the_future', now())")
    expect(await pendingMigrations(pool)).toEqual([])
    expect(await migrate(database.url)).toEqual([])
  })
})

test('migrations of a database that cannot be reached fail with the reason', async () => {
  await expect(migrate('postgres://nobody@127.0.0.1:1/none')).rejects.toThrow('ECONNREFUSED')
})
