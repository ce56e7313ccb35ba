export const TEMPLATE = 'template_migrated'

/** Of both roles that src/operator/deploy/roles.sql makes. */
export const ROLE_PASSWORD = 'of-a-role-in-a-test'

/** The same server and user as `url`, another database. */
export function databaseUrl(url: string, database: string): string {
  const other = new URL(url)
  other.pathname = `/${database}`
  return other.href
}

/** The same database as `url`, connected to as one of the roles that an installation has. */
export function asRole(url: string, role: 'upi_owner' | 'upi_service'): string {
  const other = new URL(url)
  other.username = role
  other.password = ROLE_PASSWORD
  return other.href
}
