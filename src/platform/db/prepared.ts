import { createHash } from 'node:crypto'
import type pg from 'pg'
import { hasState } from './outage.ts'

/**
 * A statement that PostgreSQL parses and plans once per connection. Its text must be constant, because PostgreSQL
 * caches each text until the connection is closed. The name is a hash of the text, because a connection behind
 * PgBouncer may still have the statement of another version of the service.
 */
export function prepared(text: string): (...values: unknown[]) => pg.QueryConfig<unknown[]> {
  const name = createHash('sha256').update(text).digest('hex').slice(0, 16)
  return (...values) => ({ name, text, values })
}

/**
 * Instruction for the operator if PgBouncer does not support prepared statements, because its version is older than
 * 1.21 or max_prepared_statements is 0.
 */
export const NOT_PREPARED =
  'PgBouncer does not support prepared statements. Set its max_prepared_statements to 100, or set DATABASE_PREPARED_STATEMENTS=off.'

const INVALID_SQL_STATEMENT_NAME = '26000'
const DUPLICATE_PREPARED_STATEMENT = '42P05'
const PROTOCOL_VIOLATION = '08P01'

/**
 * Whether a connection behind PgBouncer lacks a statement that the client has prepared, or has another client's
 * statement under this name.
 */
export const isNotPrepared = (error: unknown) =>
  hasState(error, INVALID_SQL_STATEMENT_NAME, DUPLICATE_PREPARED_STATEMENT) ||
  (hasState(error, PROTOCOL_VIOLATION) && /prepared statement/i.test((error as Error).message))

/**
 * PgBouncer reports an invented process ID. If PgBouncer supports prepared statements, it replaces the statements'
 * names with its own names.
 */
const FIND_NAME = prepared(
  `select exists (select from pg_prepared_statements where name = $1) and pg_backend_pid() <> $2 as "isPassedOn"`,
)

/**
 * Whether `db` connects through a PgBouncer that passes statement names unchanged to connections shared by several
 * clients.
 */
export async function passesNamesOn(db: pg.Pool): Promise<boolean> {
  const client = await db.connect()
  const { processID } = client as unknown as { processID: number }
  try {
    const { rows } = await client.query<{ isPassedOn: boolean }>(FIND_NAME(FIND_NAME().name, processID))
    return rows[0]?.isPassedOn === true
  } catch (error) {
    if (isNotPrepared(error)) return true
    throw error
  } finally {
    client.release()
  }
}
