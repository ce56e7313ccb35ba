import { createHash } from 'node:crypto'
import pg from 'pg'
import { hasState } from './outage.ts'

/**
 * A statement that PostgreSQL parses and plans once on each connection. Its text must be constant, because PostgreSQL
 * caches each text until the connection ends. The name is a hash of the text, because behind PgBouncer a connection may
 * still have the statement of another version of the service.
 */
export function prepared(text: string): (...values: unknown[]) => pg.QueryConfig<unknown[]> {
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return (...values) => ({ name, text, values })
}

/**
 * Pools that send statement names, with their `onNameless`. A pool stops sending names when its PgBouncer, which gives
 * each transaction another connection, knows no prepared statements: before 1.21, or with max_prepared_statements 0.
 */
const named = new WeakMap<pg.Pool, () => void>()

export const sendsNames = (pool: pg.Pool) => named.has(pool)

/**
 * Makes `pool` stop sending statement names when `error` means that PgBouncer does not know them. Returns true when the
 * statement was not executed for this reason, and can be repeated.
 */
export function goOnWithoutNames(pool: pg.Pool, error: unknown): boolean {
  const isUnknown =
    hasState(error, INVALID_SQL_STATEMENT_NAME, DUPLICATE_PREPARED_STATEMENT) ||
    (hasState(error, PROTOCOL_VIOLATION) && /prepared statement/i.test((error as Error).message))
  if (!isUnknown) return false
  named.get(pool)?.()
  named.delete(pool)
  return true
}

/**
 * Makes `pool` stop sending statement names unless `client` is connected to PostgreSQL itself. For a transaction whose results are
 * passed on before its end, and which therefore cannot be repeated. PgBouncer invents the process ID that it reports to a client.
 */
export async function sendNamesOnlyDirectly(pool: pg.Pool, client: pg.PoolClient): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  if (rows[0]?.pid !== (client as unknown as { processID: number }).processID) named.delete(pool)
}

const INVALID_SQL_STATEMENT_NAME = '26000'
const DUPLICATE_PREPARED_STATEMENT = '42P05'
const PROTOCOL_VIOLATION = '08P01'

/** A pool for prepared statements. Behind a PgBouncer without them it sends no names, and calls `onNameless` once. */
export function createPreparingPool(options: pg.PoolConfig, onNameless: () => void): pg.Pool {
  class Client extends pg.Client {
    // biome-ignore lint/suspicious/noExplicitAny: pg.Client.query has a dozen forms, of which only the name is of interest here.
    override query(query: any, ...rest: any[]): any {
      if (query.name !== undefined && !sendsNames(pool)) query.name = undefined
      return super.query(query, ...rest)
    }
  }
  const pool = new pg.Pool({ ...options, Client })
  named.set(pool, onNameless)
  const send = pool.query.bind(pool) as (query: string | pg.QueryConfig, values?: unknown[]) => Promise<pg.QueryResult>
  const query = async (query: string | pg.QueryConfig, values?: unknown[]) => {
    if (typeof query === 'string' || query.name === undefined || !sendsNames(pool)) return send(query, values)
    try {
      return await send(query)
    } catch (error) {
      if (goOnWithoutNames(pool, error)) return send(query)
      throw error
    }
  }
  return Object.assign(pool, { query })
}
