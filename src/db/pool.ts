import type { Socket } from 'node:net'
import pg from 'pg'
import type { Logger } from 'pino'
import { POOL_CROWDED } from './outage.ts'

export type Database = pg.Pool

/** What a repository asks of the database: a pool, or one client inside a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>

/**
 * Longest wait for a free connection, and for a new one to be made. This and the one below also bound how long the pool is
 * full of connections that are dead: below a second, in which the first success has to follow the database's return.
 */
const CONNECT_TIMEOUT_MS = 700
/** Longest wait for an answer. It is the client's own clock: a silently cut network never answers. */
export const QUERY_TIMEOUT_MS = 900
/**
 * Most requests that wait for a free connection; one more is refused at once. On two busy cores ten connections do not serve
 * as many look-ups in the time that each may wait: whoever came behind them would wait for nothing, and keep memory.
 */
const WAITING_LIMIT = 1_000
/** How long a connection stays open that nobody needs, so that what a burst has opened goes back to the others. */
const IDLE_TIMEOUT_MS = 10_000

/**
 * A pool of at most `size` connections to `url`. Nothing is connected until the first query.
 * A lost idle connection is logged, never thrown: without this listener the process would die of it.
 */
export function createPool(options: {
  url: string
  size: number
  log: Pick<Logger, 'warn'>
  /** 0 for work that may take long: the operator's import, the streamed list, whose first rows have a limit elsewhere. */
  queryTimeoutMs?: number
  /** Longer for the operator's commands, for which nobody waits at a counter. */
  connectTimeoutMs?: number
  waitingLimit?: number
}): Database {
  const { url, size, log, queryTimeoutMs = QUERY_TIMEOUT_MS } = options
  const { connectTimeoutMs = CONNECT_TIMEOUT_MS, waitingLimit = WAITING_LIMIT } = options
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    ...(queryTimeoutMs > 0 && { query_timeout: queryTimeoutMs }),
    keepAlive: true,
  })
  const onLost = (error: Error) => log.warn({ error: error.message }, 'database connection lost')
  pool.on('error', onLost)
  // A checked-out client has no listener of the pool's own.
  pool.on('connect', (client) => client.on('error', onLost))
  closeIdleOnSilence(pool)
  limitWaiting(pool, waitingLimit)
  return pool
}

/** The pool itself would let any number wait. */
function limitWaiting(pool: pg.Pool, limit: number) {
  const connect = pool.connect
  type Callback = Parameters<typeof connect>[0]
  pool.connect = function (this: pg.Pool, callback?: Callback) {
    if (pool.waitingCount < limit) return connect.call(this, callback as Callback)
    const error = new Error(POOL_CROWDED)
    // What the pool calls for its own queries.
    if (callback) return callback(error, undefined, () => undefined)
    return Promise.reject(error)
  } as typeof connect
}

/**
 * Where one connection went silent, the idle ones have most likely died with it, and each would cost a request its whole
 * time-out: after a network that forgot its connections, lists were measured to fail for 2 s after its return.
 */
function closeIdleOnSilence(pool: pg.Pool) {
  const idle = new Set<pg.PoolClient>()
  pool.on('acquire', (client) => idle.delete(client))
  pool.on('remove', (client) => idle.delete(client))
  pool.on('release', (error, client) => {
    if (!error) idle.add(client)
    // The pool finds an idle connection that breaks by itself, and has no other way to be told.
    else if (error.message === SILENCE) for (const it of idle) socketOf(it).destroy(new Error(SILENCE))
  })
}

const SILENCE = 'Query read timeout'

const socketOf = (client: pg.PoolClient) => (client as unknown as { connection: { stream: Socket } }).connection.stream

/**
 * Runs `work` in one transaction on one connection: committed when it resolves, rolled back when it throws.
 * A connection whose transaction failed in an unknown state is closed, not handed back.
 */
export async function inTransaction<T>(db: Database, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  const client = await db.connect()
  try {
    await client.query('begin')
    const result = await work(client)
    await client.query('commit')
    client.release()
    return result
  } catch (error) {
    await client.query('rollback').then(
      () => client.release(),
      () => client.release(true),
    )
    throw error
  }
}
