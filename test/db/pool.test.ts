import { expect, it } from 'vitest'
import { isOutage } from '../../src/platform/db/outage.ts'
import { createPool, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'

it('the connection pool reports a commit as an outage, not as a success, if Citus warns that the commit lost a node', async () => {
  const database = await createTestDatabase()
  const pool = createPool({ url: database.url, size: 1, log: { warn: () => undefined } })
  try {
    // Citus 13 raises this warning here, after which PostgreSQL still confirms COMMIT.
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
  }
})

it.each([
  [
    'a Citus node lost during a statement as an outage',
    'terminating connection due to unexpected postmaster exit',
    true,
  ],
  [
    'any other internal PostgreSQL error as an internal error of the service, not as an outage',
    'could not find block containing chunk',
    false,
  ],
])('the connection pool reports %s', async (_name, message, outage) => {
  const database = await createTestDatabase({ empty: true })
  const pool = createPool({ url: database.url, size: 1, log: { warn: () => undefined } })
  try {
    // Citus 13 passes a worker's last messages on with this code.
    const failed = pool.query(`do $$ begin raise exception using errcode = 'XX000', message = '${message}'; end $$`)
    expect(isOutage(await failed.catch((error: unknown) => error))).toBe(outage)
  } finally {
    await pool.end()
  }
})

it('the connection pool closes idle connections if a transaction’s connection does not respond, so that the next transaction succeeds', async () => {
  const database = await createTestDatabase()
  const network = await startTcpProxy(Number(new URL(database.url).port))
  const url = Object.assign(new URL(database.url), { port: String(network.port) }).href
  const pool = createPool({ url, size: 3, queryTimeoutMs: 300, log: { warn: () => undefined } })
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
  }
})

it('the connection pool reports a transaction that waits too long for a lock as an outage, and leaves idle connections open', async () => {
  const database = await createTestDatabase()
  // As src/operator/deploy/roles.sql sets it for the service, and less than the limit of a query.
  const url = `${database.url}?options=-clock_timeout=200ms`
  const pool = createPool({ url, size: 3, queryTimeoutMs: 5_000, log: { warn: () => undefined } })
  const [holder, ...others] = await Promise.all([pool.connect(), pool.connect(), pool.connect()])
  try {
    for (const client of others) client.release()
    await holder.query('select pg_advisory_lock(1)')
    const rejected = inTransaction(pool, (client) => client.query('select pg_advisory_xact_lock(1)'))
    expect(isOutage(await rejected.catch((error: unknown) => error))).toBe(true)
    expect(pool.idleCount).toBe(2)
  } finally {
    holder.release(true)
    await pool.end()
  }
})

it('the connection pool reports a transaction as an outage if PostgreSQL terminated the transaction while the process was paused', async () => {
  const database = await createTestDatabase()
  const url = `${database.url}?options=-cidle_in_transaction_session_timeout=100ms`
  const pool = createPool({ url, size: 1, log: { warn: () => undefined } })
  try {
    const ended = inTransaction(pool, async (client) => {
      // Pauses the whole process, so that it notices the termination only at its next statement.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
      await client.query('select 1')
    })
    expect(isOutage(await ended.catch((error: unknown) => error))).toBe(true)
  } finally {
    await pool.end()
  }
})

it('the connection pool returns database integers as numbers, and throws for integers beyond 2^53 and for the type numeric', async () => {
  const { db } = await createTestDatabase({ empty: true })
  const { rows } = await db.query(
    'select 9007199254740991 as most, -5::bigint as few, count(*) as count, null::bigint as none',
  )
  expect(rows).toEqual([{ most: 9_007_199_254_740_991, few: -5, count: 1, none: null }])
  await expect(db.query('select 9007199254740992 as more')).rejects.toThrow(
    'the database returned the integer 9007199254740992, which is beyond 2^53',
  )
  await expect(db.query('select sum(1::bigint) as sum')).rejects.toThrow('returned a numeric: cast it')
  expect((await db.query('select sum(1::bigint)::bigint as sum')).rows).toEqual([{ sum: 1 }])
})
