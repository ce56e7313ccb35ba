import { expect, it } from 'vitest'
import { isOutage } from '../../src/db/outage.ts'
import { createPool } from '../../src/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'

it('a pool lets as many wait as its limit says, refuses one more at once as an outage, and serves those that waited', async () => {
  const database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 2, log: { warn: () => undefined }, waiting: 3 })
  try {
    const held = await Promise.all([pool.connect(), pool.connect()])
    const waiting = Promise.all(Array.from({ length: 3 }, () => pool.query('select 1 as one')))
    const refused = await Promise.all([
      pool.query('select 1').catch((error: unknown) => error),
      pool.connect().catch((error: unknown) => error),
    ])
    expect(pool.waitingCount).toBe(3)
    expect(refused.map(isOutage)).toEqual([true, true])
    for (const client of held) client.release()
    expect((await waiting).map(({ rows }) => rows)).toEqual(Array.from({ length: 3 }, () => [{ one: 1 }]))
    expect((await pool.query('select 2 as two')).rows).toEqual([{ two: 2 }])
  } finally {
    await pool.end()
    await database.drop()
  }
})
