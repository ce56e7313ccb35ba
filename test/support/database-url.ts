import { createPool, type Database } from '../../src/platform/db/pool.ts'

export const TEMPLATE = 'template_migrated'

/** Password of the roles that src/operator/deploy/roles.sql creates. */
export const ROLE_PASSWORD = 'of-a-role-in-a-test'

export function databaseUrl(url: string, database: string): string {
  const other = new URL(url)
  other.pathname = `/${database}`
  return other.href
}

/** Returns `url` with one of the roles of an installation as its user. */
export function asRole(url: string, role: 'upi_owner' | 'upi_service' | 'upi_console'): string {
  const other = new URL(url)
  other.username = role
  other.password = ROLE_PASSWORD
  return other.href
}

/** A test's own connections, without the time limits of requests, because a busy machine takes seconds to open one. */
export function testPool(url: string, size: number): Database {
  return createPool({ url, size, log: { warn: () => undefined }, queryTimeoutMs: 0, connectTimeoutMs: 30_000 })
}
