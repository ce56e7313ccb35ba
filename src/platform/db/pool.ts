import type { EventEmitter } from 'node:events'
import type { Socket } from 'node:net'
import pg from 'pg'
import type { Logger } from 'pino'
import { LIMITS, type Limits } from '../../limits.ts'
import { NUMBER_TYPES } from './number-types.ts'
import { LOST_COMMIT } from './outage.ts'
import { isNotPrepared, NOT_PREPARED } from './prepared.ts'

export type Database = pg.Pool

/**
 * Time after which idle connections are closed, so that connections opened during a burst soon become free for other
 * instances.
 */
const IDLE_TIMEOUT_MS = 10_000

/** A pool, or one client inside a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>

/** A pool, or one client inside a transaction, which `inTransaction` joins. */
export type Transactional = Database | pg.PoolClient

type PoolOptions = {
  url: string
  size: number
  log: Pick<Logger, 'warn'>
  preparedStatements?: boolean
} & Partial<Limits['database']>

/**
 * A pool of at most `size` connections to `url`, opened when queries need them. The limits of LIMITS.database are the
 * default; a `queryTimeoutMs` of 0 means no limit.
 */
export function createPool({ url, size, log, preparedStatements = true, ...limits }: PoolOptions): Database {
  const { connectTimeoutMs, queryTimeoutMs } = { ...LIMITS.database, ...limits }
  const pool = new pg.Pool({
    connectionString: url,
    max: size,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    ...(queryTimeoutMs > 0 && { query_timeout: queryTimeoutMs }),
    keepAlive: true,
    types: NUMBER_TYPES,
    ...(!preparedStatements && { Client: NamelessClient }),
  })
  // The pool needs a listener, because without a listener the error of a lost connection would terminate the process.
  const onLost = (error: Error) => log.warn({ error: error.message }, 'Database connection lost')
  pool.on('error', onLost)
  // Each client needs its own listener, because the pool does not listen for errors of a client that is checked out.
  pool.on('connect', (client) => {
    client.on('error', onLost)
    // The listener comes first, so that every later listener logs the error with the name of the option.
    connectionOf(client).prependListener('errorMessage', (error: Error) => {
      if (isNotPrepared(error)) error.message += `. ${NOT_PREPARED}`
    })
  })
  closeIdleOnSilence(pool)
  return pool
}

/** Sends statements without their names, so that PostgreSQL plans each statement again. */
class NamelessClient extends pg.Client {
  // biome-ignore lint/suspicious/noExplicitAny: pg.Client.query has a dozen forms, of which only the name is of interest here.
  override query(query: any, ...rest: any[]): any {
    if (query.name !== undefined) query.name = undefined
    return super.query(query, ...rest)
  }
}

/**
 * One pool per kind of work, so that no kind of work uses the connections of another kind. A `replica`, if configured,
 * serves lists.
 */
export type Pools = Record<'creates' | 'keys' | 'requests' | 'reports' | 'due' | 'pages' | 'lists', Database> & {
  replica?: Database
}

type Connections = { url: string; readUrl?: string | undefined; requests: number; preparedStatements?: boolean }

export function createPools(
  { url, readUrl, requests, preparedStatements = true }: Connections,
  log: Pick<Logger, 'warn'>,
  { database, pools }: Pick<Limits, 'database' | 'pools'> = LIMITS,
): Pools {
  const pool = (size: number, of: Partial<PoolOptions> = {}) =>
    createPool({ url, size, log, preparedStatements, ...database, ...of })
  // Lists have no query time limit, because a list takes as long as its reader needs. send-list.ts disconnects
  // readers that are too slow.
  const unlimited = { queryTimeoutMs: 0 }
  return {
    creates: pool(pools.creates),
    keys: pool(pools.keys),
    requests: pool(requests),
    reports: pool(pools.reports),
    // Jobs may wait ten times as long for a connection, because no caller waits for a response, and up to 2,000 pending
    // queues are claimed one after the other.
    due: pool(pools.due, { connectTimeoutMs: 10 * database.connectTimeoutMs }),
    pages: pool(pools.pages),
    lists: pool(pools.lists, unlimited),
    ...(readUrl !== undefined && { replica: pool(pools.lists, { ...unlimited, url: readUrl }) }),
  }
}

/**
 * Closes all idle connections when a statement gets no response, because the idle connections are probably dead, and a
 * request on a dead connection would wait for the whole time-out.
 */
function closeIdleOnSilence(pool: pg.Pool) {
  const idle = new Set<pg.PoolClient>()
  pool.on('acquire', (client) => idle.delete(client))
  pool.on('remove', (client) => idle.delete(client))
  pool.on('release', (error, client) => {
    if (!error) idle.add(client)
    // Closes the sockets, because the pool has no method to close idle connections, but removes a connection whose
    // socket is closed.
    else if (isSilence(error)) for (const one of idle) connectionOf(one).stream.destroy(new Error(SILENCE))
  })
}

/** pg's error for a statement whose response did not arrive in time. */
const SILENCE = 'Query read timeout'
const isSilence = (error: unknown): error is Error => error instanceof Error && error.message === SILENCE

const connectionOf = (client: pg.PoolClient) =>
  (client as unknown as { connection: EventEmitter & { stream: Socket } }).connection

/**
 * Returns the pool for one reader. `leave` closes the connections that the reader uses, and opens no more: PostgreSQL then
 * cancels their statements within the `client_connection_check_interval`, also behind PgBouncer.
 */
export function forReader(pool: Database): { db: Database; leave: () => void } {
  const used = new Set<pg.PoolClient>()
  let hasLeft = false
  const connect = async () => {
    const client = await pool.connect()
    const { release } = client
    if (hasLeft) {
      release()
      throw new Error(LEFT)
    }
    client.release = (error) => {
      used.delete(client)
      release(error)
    }
    used.add(client)
    return client
  }
  const query = async (...args: [string, unknown[]]) => {
    const client = await connect()
    return client.query(...args).finally(() => client.release())
  }
  function leave() {
    hasLeft = true
    for (const client of used) connectionOf(client).stream.destroy(new Error(LEFT))
  }
  return { db: Object.create(pool, { connect: { value: connect }, query: { value: query } }), leave }
}

const LEFT = 'The reader has left'

type Ending<T> = {
  /**
   * Called in the tick in which `commit` is sent. Throws, to roll back, if the caller has already received a response.
   */
  claim: () => void
  /** Checks on another connection whether `result` is stored, after the response to `commit` was lost. */
  isStored: (result: T) => Promise<boolean>
}

/**
 * Runs `work` in a transaction, which is rolled back if `work` throws. A connection in an unknown state is closed
 * instead of released. Without `ending`, the promise rejects if the response to `commit` is lost, whether or not the
 * commit succeeded. A client is inside a transaction already: `work` is a part of it, and its caller commits.
 */
export async function inTransaction<T>(
  db: Transactional,
  work: (client: pg.PoolClient) => Promise<T>,
  ending?: Ending<T>,
): Promise<T> {
  if ('release' in db) return work(db)
  const client = await db.connect()
  let result: T
  try {
    await client.query('begin')
    result = await work(client)
    ending?.claim()
  } catch (error) {
    // Closes an unresponsive connection without a rollback, because the request would have to wait for the rollback's
    // time-out too.
    if (isSilence(error)) client.release(error)
    else await client.query('rollback').then(() => client.release(), client.release)
    throw error
  }
  try {
    await commit(client)
    client.release()
  } catch (error) {
    client.release(error as Error)
    // A missing result proves nothing, because the commit may still be in progress.
    if (!(await ending?.isStored(result).catch(() => false))) throw error
  }
  return result
}

/**
 * Commits, and throws if the outcome is unknown: a cluster reports a commit that lost a node as a success with a
 * warning. A change to rows in several steps must therefore use `inTransaction`.
 */
async function commit(client: pg.PoolClient): Promise<void> {
  const notices: string[] = []
  const onNotice = ({ message = '' }: { message?: string | undefined }) => notices.push(message)
  client.on('notice', onNotice)
  await client.query('commit').finally(() => client.off('notice', onNotice))
  const lost = notices.find((message) => message.startsWith(LOST_COMMIT))
  if (lost !== undefined) throw new Error(lost)
}

/** Rolls back the transaction of `client` and begins an empty one, which `inTransaction` then commits. */
export const rollBack = (client: pg.PoolClient) => client.query('rollback and chain')

/**
 * Runs `read` with a time limit that PostgreSQL enforces. The pool's own time-out would leave the statements running in
 * PostgreSQL.
 */
export function readBriefly<T>(db: Database, limitMs: number, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return inTransaction(db, async (client) => {
    await client.query(`set local statement_timeout = ${limitMs}; set local jit = off`)
    return read(client)
  })
}
