import { expect, it } from 'vitest'
import { plannedQuery, query } from '../../src/platform/db/query.ts'
import { createTestDatabase } from '../support/database.ts'

type Params = { first: string; lastDay: string }
const TEXT = `select :first as "first", :lastDay::date as last_day, :first || 'x' as twice, 2::bigint as row_count`

it('a query passes parameters to a statement by name, and returns rows with column names in camelCase', async () => {
  const { db } = await createTestDatabase()
  for (const read of [query<object, Params>(TEXT), plannedQuery<object, Params>(TEXT)]) {
    expect(await read(db, { lastDay: '2026-11-03', first: 'a' })).toEqual([
      { first: 'a', lastDay: '2026-11-03', twice: 'ax', rowCount: 2 },
    ])
  }
})
