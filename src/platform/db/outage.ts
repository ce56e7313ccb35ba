/** Error codes (SQLSTATE) under their names in appendix A of PostgreSQL's documentation. */
export const INVALID_PASSWORD = '28P01'
export const DEADLOCK_DETECTED = '40P01'
export const FOREIGN_KEY_VIOLATION = '23503'
export const UNIQUE_VIOLATION = '23505'
export const INSUFFICIENT_PRIVILEGE = '42501'
export const UNDEFINED_COLUMN = '42703'
export const UNDEFINED_TABLE = '42P01'
export const LOCK_NOT_AVAILABLE = '55P03'
export const QUERY_CANCELED = '57014'

export function hasState(error: unknown, ...states: string[]): boolean {
  return states.includes((error as { code?: string } | null)?.code ?? '')
}

/** Errors while a connection is opened. No statement was sent. */
const UNCONNECTED =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|ENOENT)$|^(timeout exceeded when trying to connect|timeout expired|Connection terminated due to connection timeout)$/

/**
 * Codes for sessions that PostgreSQL terminated, and for the failure of a node. A commit may have succeeded before such
 * an error.
 */
const UNKNOWN_OUTCOME = /^(08|57P0[12]|XX)/

/**
 * Whether a failed transaction has certainly stored nothing, because no connection was opened or PostgreSQL rolled the
 * transaction back.
 */
export function isCertainlyNotStored(error: unknown): boolean {
  const { code = '', message = '' } = error as { code?: string; message?: string }
  if (UNCONNECTED.test(code) || UNCONNECTED.test(message)) return true
  return error instanceof Error && 'severity' in error && !UNKNOWN_OUTCOME.test(code)
}

/** Whether PostgreSQL rejected the data of a row (classes 22 and 23), regardless of the state of the database. */
export const isRejectedRow = (error: unknown): boolean => /^2[23]/.test(String((error as { code?: unknown }).code))

/** Codes of temporary errors, after which the same request may succeed a moment later. */
const OUTAGE_STATES = [
  QUERY_CANCELED, // statement_timeout
  LOCK_NOT_AVAILABLE, // lock_timeout: another transaction has locked a row
  '25P03', // idle_in_transaction_session_timeout: this process was paused for a while
  '25006', // read_only_sql_transaction: another server has become the primary
  UNDEFINED_TABLE, // the database is not migrated yet
  UNDEFINED_COLUMN, // the database is not migrated yet
  '3D000', // invalid_catalog_name: the database is being set up
]

/** Classes of temporary errors, by the first characters of their codes. */
const OUTAGE_CLASSES = [
  /^08/, // connection exceptions
  /^28/, // rejected log-in: the database is being set up, or the password is being changed
  /^40/, // deadlock, serialization failure
  /^53/, // insufficient resources: too many connections, disk full, out of memory
  /^57P0/, // the server is shutting down, has crashed or is starting up
]

const OUTAGE_ERRNOS = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOENT', // the Unix socket of a stopped server
])

/** The start of the warning that a cluster lost a node during a commit. */
export const LOST_COMMIT = 'failed to commit transaction on'

// Messages of pg's errors without a code; the last message is LOST_COMMIT.
const OUTAGE_MESSAGES =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|failed to commit transaction on)/

/** A cluster's messages about an unreachable node. The messages have the code XX000, as every internal error has. */
const NODE_MESSAGES =
  /^(failure on connection marked as essential|server closed the connection unexpectedly|connection to the remote node .* failed|connection not open|postmaster was shut down|terminating connection)/

/** Whether the database is unreachable or overloaded; false for an error in the service itself. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (OUTAGE_ERRNOS.has(code) || OUTAGE_MESSAGES.test(error.message)) return true
  if (code === 'XX000' && NODE_MESSAGES.test(error.message)) return true
  // Only errors of PostgreSQL have a severity. Other libraries use five-letter codes too, such as EPIPE.
  return 'severity' in error && (hasState(error, ...OUTAGE_STATES) || OUTAGE_CLASSES.some((begin) => begin.test(code)))
}
