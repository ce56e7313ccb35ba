import { isForbiddenToRole } from './grants.ts'
import { pendingMigrations } from './migrate.ts'
import { isOutage } from './outage.ts'
import type { Database, Queryable } from './pool.ts'
import { NOT_PREPARED, passesNamesOn } from './prepared.ts'

/**
 * Returns the reason, for the operator, why the service cannot work with this database; undefined if the service can
 * work with this database.
 */
export async function unreadyReason(db: Database): Promise<string | undefined> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length > 0)
      return `The database schema is out of date. Run "ops migrate" (missing: ${pending.join(', ')})`
    return (await passesNamesOn(db)) ? NOT_PREPARED : await whyReadOnly(db)
  } catch (error) {
    if (isOutage(error)) return 'The database does not respond'
    if (isForbiddenToRole(error)) {
      return 'The role of the service has no rights on the tables. Run "ops migrate" as their owner.'
    }
    throw error
  }
}

/**
 * Returns why the database accepts no writes, from PostgreSQL's settings, without a test write; undefined if the
 * database accepts writes. A full disk is detected only if the provider has set the database to read-only.
 */
async function whyReadOnly(db: Queryable): Promise<string | undefined> {
  const { rows } = await db.query<{ isReadOnly: boolean; isStandby: boolean }>(
    `select current_setting('transaction_read_only')::boolean as "isReadOnly", pg_is_in_recovery() as "isStandby"`,
  )
  if (!rows[0]?.isReadOnly) return undefined
  return rows[0].isStandby
    ? 'The database is a standby and accepts no writes. Set DATABASE_URL to the primary.'
    : 'The database accepts no writes because default_transaction_read_only is on. Some providers set it when the disk is full: check the free space.'
}

/** Warns the operator if the service's role has more rights than it needs. */
export async function roleWarnings(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ role: string }>(
    // pg_has_role is also true for a superuser, who is a member of every role.
    `select current_user as role
       from pg_class
      where oid = to_regclass('public.refunds') and pg_has_role(relowner, 'MEMBER')`,
  )
  return rows.map(
    ({ role }) =>
      `The service connects to the database as ${role}, which owns the tables or is a superuser. An attacker who controls the service could change payments and refunds. Run roles.sql as a superuser, then "ops migrate", and set DATABASE_URL to the role upi_service.`,
  )
}
