import { setTimeout } from 'node:timers/promises'
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

it('a statement without an answer leaves open the idle connections that have answered since it began', async () => {
  const database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 3, queryTimeoutMs: 500, log: { warn: () => undefined } })
  const backends = async (count: number) => {
    const clients = await Promise.all(Array.from({ length: count }, () => pool.connect()))
    const rows = await Promise.all(clients.map((client) => client.query('select pg_backend_pid() as pid')))
    for (const client of clients) client.release()
    return rows.map(({ rows: [{ pid }] }) => pid)
  }
  try {
    await backends(3)
    // As a statement for a node of a cluster that does not answer.
    const lost = pool.query('select pg_sleep(5)').catch((error: unknown) => error)
    await setTimeout(100)
    const answering = await backends(1)
    expect(isOutage(await lost)).toBe(true)
    await expect.poll(() => pool.totalCount).toBe(1)
    expect(await backends(1)).toEqual(answering)
  } finally {
    await pool.end()
    await database.drop()
  }
})

it('a transaction that waits for a lock for too long ends as an outage, and the idle connections stay', async () => {
  const database = await createTestDatabase()
  // As src/db/roles.sql sets it for the service, and less than what a query may take.
  const url = `${database.url}?options=-clock_timeout=200ms`
  const pool = createPool({ url, size: 3, queryTimeoutMs: 5_000, log: { warn: () => undefined } })
  const [holder, ...others] = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
  try {
    for (const client of others) client.release()
    await holder.query('select pg_advisory_lock(1)')
    const refused = inTransaction(pool, (client) => client.query('select pg_advisory_xact_lock(1)'))
    expect(isOutage(await refused.catch((error: unknown) => error))).toBe(true)
    expect(pool.idleCount).toBe(2)
  } finally {
    holder.release(true)
    await pool.end()
    await database.drop()
  }
})

it('a transaction whose process was stopped for longer than PostgreSQL lets it hold its rows is an outage', async () => {
  const database = await createTestDatabase()
  const url = `${database.url}?options=-cidle_in_transaction_session_timeout=100ms`
  const pool = createPool({ url, size: 1, log: { warn: () => undefined } })
  try {
    const ended = inTransaction(pool, async (client) => {
      // The whole process, so that it learns of the end only by its next statement.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
      await client.query('select 1')
    })
    expect(isOutage(await ended.catch((error: unknown) => error))).toBe(true)
  } finally {
    await pool.end()
    await database.drop()
  }
})

it('a statement that PostgreSQL refuses costs no connection, and one that it ends does', async () => {
  const database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 1, log: { warn: () => undefined } })
  const backend = async () => (await pool.query('select pg_backend_pid() as pid')).rows[0].pid
  try {
    const first = await backend()
    await expect(pool.query('select 1 / $1::integer', [0])).rejects.toMatchObject({ code: '22012' })
    await expect(pool.query('set local work_mem = 64; select * from nowhere')).rejects.toMatchObject({ code: '42P01' })
    expect(await backend()).toBe(first)
    await expect(pool.query('select pg_terminate_backend(pg_backend_pid())')).rejects.toMatchObject({ code: '57P01' })
    expect(await backend()).not.toBe(first)
  } finally {
    await pool.end()
    await database.drop()
  }
})
