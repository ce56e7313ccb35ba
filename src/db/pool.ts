import type { Socket } from 'node:net'
import type pg from 'pg'
import type { Logger } from 'pino'
import { LIMITS, type Limits } from '../limits.ts'
import { LOST_COMMIT } from './outage.ts'
import { createPreparingPool, goOnWithoutNames, sendsNames } from './prepared.ts'

export type Database = pg.Pool

/** What a burst has opened goes back to the other instances. */
const IDLE_TIMEOUT_MS = 10_000

/** What a repository asks of the database: a pool, or one client inside a transaction. */
export type Queryable = Pick<pg.Pool, 'query'>

/**
 * A pool of at most `size` connections to `url`. Its limits are those of requests unless others are given; a
 * `queryTimeoutMs` of 0 means none. Nothing is connected until the first query.
 * A lost idle connection is logged, never thrown: without this listener the process would die of it.
 */
export function createPool({
  url,
  size,
  log,
  ...limits
}: { url: string; size: number; log: Pick<Logger, 'warn'> } & Partial<Limits['database']>): Database {
  const { connectTimeoutMs, queryTimeoutMs } = { ...LIMITS.database, ...limits }
  const options = {
    connectionString: url,
    max: size,
    connectionTimeoutMillis: connectTimeoutMs,
    idleTimeoutMillis: IDLE_TIMEOUT_MS,
    ...(queryTimeoutMs > 0 && { query_timeout: queryTimeoutMs }),
    keepAlive: true,
  }
  const onNameless = () => log.warn('PgBouncer knows no prepared statements: set its max_prepared_statements to 100')
  const pool = createPreparingPool(options, onNameless)
  const onLost = (error: Error) => log.warn({ error: error.message }, 'database connection lost')
  pool.on('error', onLost)
  // Each client gets a listener too, because the pool does not listen to a client that is checked out.
  pool.on('connect', (client) => client.on('error', onLost))
  closeIdleOnSilence(pool)
  return pool
}

/** A pool for each kind of work, so that none takes the connections of another; `replica` where there is one to read lists from. */
export type Pools = Record<'creates' | 'keys' | 'requests' | 'reports' | 'due' | 'pages' | 'lists', Database> & {
  replica?: Database
}

/** The pools of a service. That of requests is as large as the operator says. */
export function createPools(
  { url, readUrl, requests }: { url: string; readUrl?: string | undefined; requests: number },
  log: Pick<Logger, 'warn'>,
  { database, pools }: Pick<Limits, 'database' | 'pools'> = LIMITS,
): Pools {
  const pool = (size: number, of: Partial<Parameters<typeof createPool>[0]> = {}) =>
    createPool({ url, size, log, ...database, ...of })
  // A list takes as long as its reader, who is cut off if he is too slow.
  const unlimited = { queryTimeoutMs: 0 }
  return {
    creates: pool(pools.creates),
    keys: pool(pools.keys),
    requests: pool(requests),
    reports: pool(pools.reports),
    // The wait for a connection may be ten times as long here: no caller waits for an answer, and 2,000 endpoints that
    // are due at once are taken one after the other.
    due: pool(pools.due, { connectTimeoutMs: 10 * database.connectTimeoutMs }),
    pages: pool(pools.pages),
    lists: pool(pools.lists, unlimited),
    ...(readUrl !== undefined && { replica: pool(pools.lists, { ...unlimited, url: readUrl }) }),
  }
}

/**
 * Closes the idle connections when a statement gets no answer: most likely they are dead too, and each would cost a
 * request its whole time-out. Without it, after a network had dropped its connections, lists failed for 2 s after its
 * return.
 */
function closeIdleOnSilence(pool: pg.Pool) {
  const idle = new Set<pg.PoolClient>()
  pool.on('acquire', (client) => idle.delete(client))
  pool.on('remove', (client) => idle.delete(client))
  pool.on('release', (error, client) => {
    if (!error) idle.add(client)
    // The socket is destroyed because the pool has no method to close idle connections; it removes one that ends.
    else if (isSilence(error)) for (const one of idle) socketOf(one).destroy(new Error(SILENCE))
  })
}

/** What pg says of a statement that got no answer within its time. */
const SILENCE = 'Query read timeout'
const isSilence = (error: unknown): error is Error => error instanceof Error && error.message === SILENCE

const socketOf = (client: pg.PoolClient) => (client as unknown as { connection: { stream: Socket } }).connection.stream

/** How a transaction ends while a caller waits for its result. */
export type Ending<T> = {
  /** Called in the tick in which `commit` is sent. Throws when the caller has been answered: then all is rolled back. */
  claim: () => void
  /** Looks up on another connection whether `result` is stored, after the answer to `commit` was lost. */
  isStored: (result: T) => Promise<boolean>
}

/**
 * Runs `work` in one transaction on one connection: committed when it resolves, rolled back when it throws.
 * `work` is begun once more when PgBouncer turns out to know no prepared statements.
 * A connection whose transaction failed in an unknown state is closed, not handed back. Without `ending` a lost answer to
 * `commit` rejects, whatever the commit did.
 */
export async function inTransaction<T>(
  db: Database,
  work: (client: pg.PoolClient) => Promise<T>,
  ending?: Ending<T>,
): Promise<T> {
  const isNamed = sendsNames(db)
  const client = await db.connect()
  let result: T
  try {
    await client.query('begin')
    result = await work(client)
    ending?.claim()
  } catch (error) {
    // A silent connection is closed without a rollback: it would not answer that either, and the request would wait as
    // long again.
    if (isSilence(error)) client.release(error)
    else await client.query('rollback').then(() => client.release(), client.release)
    if (isNamed && goOnWithoutNames(db, error)) return inTransaction(db, work, ending)
    throw error
  }
  try {
    await commit(client)
    client.release()
  } catch (error) {
    client.release(error as Error)
    // Finding nothing proves nothing: the commit may be under way still.
    if (!(await ending?.isStored(result).catch(() => false))) throw error
  }
  return result
}

/**
 * Commits, and throws when the outcome is unknown: Citus reports a node that is lost at this moment by a warning only,
 * and the commit as a success. A change of rows in more than one step therefore has to run in such a transaction.
 */
async function commit(client: pg.PoolClient): Promise<void> {
  const notices: string[] = []
  const onNotice = ({ message = '' }: { message?: string | undefined }) => notices.push(message)
  client.on('notice', onNotice)
  await client.query('commit').finally(() => client.off('notice', onNotice))
  const lost = notices.find((message) => message.startsWith(LOST_COMMIT))
  if (lost !== undefined) throw new Error(lost)
}

/**
 * Sets `settings` until the end of the transaction, each by its own message: Citus sends the whole message of such a
 * setting to its nodes.
 */
export async function setLocally(client: Queryable, settings: readonly string[]): Promise<void> {
  for (const setting of settings) await client.query(`set local ${setting}`)
}

/**
 * Runs `read` in a transaction whose statements PostgreSQL itself ends after `limitMs`. A statement that only the pool
 * gives up goes on in PostgreSQL.
 */
export function readBriefly<T>(db: Database, limitMs: number, read: (client: pg.PoolClient) => Promise<T>): Promise<T> {
  return inTransaction(db, async (client) => {
    await client.query(`set local statement_timeout = ${limitMs}`)
    return read(client)
  })
}
