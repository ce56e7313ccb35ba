import { expect, it } from 'vitest'
import { isOutage } from '../../src/db/outage.ts'
import { createPool, inTransaction } from '../../src/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

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

it('a commit of which Citus says by a warning that it lost a node is an outage, and not a success', async () => {
  const database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 1, log: { warn: () => undefined } })
  try {
    // What Citus 13 says in this place, after which PostgreSQL answers COMMIT all the same.
    await pool.query(`
      create function lose() returns trigger language plpgsql as $$
      begin raise warning 'failed to commit transaction on 10.0.0.31:5432'; return null; end $$;
      create table lossy (n int);
      create constraint trigger lossy after insert on lossy deferrable initially deferred
        for each row execute function lose()`)
    const lost = inTransaction(pool, (client) => client.query('insert into lossy values (1)'))
    expect(isOutage(await lost.catch((error: unknown) => error))).toBe(true)
    expect(await inTransaction(pool, async () => 'the connection serves on')).toBe('the connection serves on')
  } finally {
    await pool.end()
    await database.drop()
  }
})

it('a transaction whose connection is silent closes the idle ones too, so that the next one is served', async () => {
  const database = await createTestDatabase()
  const network = await startTcpProxy(Number(new URL(database.url).port))
  const url = Object.assign(new URL(database.url), { port: String(network.port) }).href
  const pool = createPool({ url, size: 3, queryTimeoutMs: 500, log: { warn: () => undefined } })
  try {
    const clients = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
    for (const client of clients) client.release()
    const lost = inTransaction(pool, (client) => {
      network.cut('swallowed')
      return client.query('select 1')
    })
    expect(isOutage(await lost.catch((error: unknown) => error))).toBe(true)
    await network.restore()
    await expect.poll(() => pool.totalCount).toBe(0)
    expect((await inTransaction(pool, (client) => client.query('select 2 as two'))).rows).toEqual([{ two: 2 }])
  } finally {
    await pool.end()
    network.close()
    await database.drop()
  }
})
