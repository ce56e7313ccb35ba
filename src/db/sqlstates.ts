/** PostgreSQL's error codes that this code knows, under PostgreSQL's own names: its documentation, appendix A. */
export const READ_ONLY_SQL_TRANSACTION = '25006'
export const IDLE_IN_TRANSACTION_SESSION_TIMEOUT = '25P03'
export const INVALID_PASSWORD = '28P01'
export const INVALID_CATALOG_NAME = '3D000'
export const DEADLOCK_DETECTED = '40P01'
export const FOREIGN_KEY_VIOLATION = '23503'
export const UNIQUE_VIOLATION = '23505'
export const INSUFFICIENT_PRIVILEGE = '42501'
export const UNDEFINED_COLUMN = '42703'
export const UNDEFINED_TABLE = '42P01'
export const LOCK_NOT_AVAILABLE = '55P03'
export const QUERY_CANCELED = '57014'

/** Whether `error` carries one of these codes. */
export function hasState(error: unknown, ...states: string[]): boolean {
  return states.includes((error as { code?: string } | null)?.code ?? '')
}

/** Classes 22 and 23: the data of a row is wrong, as opposed to the state of the database. */
export function isRefusedRow(error: unknown): boolean {
  return /^2[23]/.test(String((error as { code?: unknown }).code))
}
