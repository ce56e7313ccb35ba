/** SQLSTATE classes and codes that say "not now" and not "wrong": the same request may succeed a moment later. */
const OUTAGE_STATES = [
  /^08/, // connection exceptions
  /^53/, // insufficient resources: too many connections, disk full, out of memory
  /^57P0/, // shutting down, crashed, starting up
  /^57014$/, // statement cancelled: its time was up
  /^25006$/, // read-only: the primary has moved
  /^40/, // deadlock, serialization failure
  /^42P01$|^42703$/, // a table or column is missing: not migrated yet
  /^3D000$|^28/, // no such database, refused log-in: the database is being set up or the password rotated
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
  'ENOENT', // the unix socket of a stopped server
])

/** The message of our own error for a look-up without an answer. */
export const LOOK_UP_TIMEOUT = 'Look-up timeout'

/** The message of our own error for a pool for whose connections too many wait already. */
export const POOL_CROWDED = 'Too many wait for a connection'

// pg reports all but the last two without any code.
const OUTAGE_MESSAGES =
  /^(Connection terminated|Query read timeout|timeout exceeded when trying to connect|timeout expired|Client has encountered a connection error|Client was closed|Look-up timeout|Too many wait for a connection)/

/** Whether `error` says that the database is away or overloaded, as opposed to a fault of ours. */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  if (OUTAGE_ERRNOS.has(code) || OUTAGE_MESSAGES.test(error.message)) return true
  // The severity tells a PostgreSQL answer from a five-letter code of somebody else.
  return 'severity' in error && OUTAGE_STATES.some((state) => state.test(code))
}
