import { isForbiddenToRole } from './grants.ts'
import { OldDatabaseError, pendingMigrations } from './migrate.ts'
import { isOutage } from './outage.ts'
import type { Database, Queryable } from './pool.ts'
import { NOT_PREPARED, passesNamesOn } from './prepared.ts'

/** The reason, for the operator, why the service cannot work with this database now; undefined when it can. */
export async function unreadyReason(db: Database): Promise<string | undefined> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length > 0) return `The database schema is behind: run "ops migrate" (missing: ${pending.join(', ')})`
    return (await passesNamesOn(db)) ? NOT_PREPARED : await whyReadOnly(db)
  } catch (error) {
    if (isOutage(error)) return 'The database does not answer'
    if (error instanceof OldDatabaseError) return error.message
    if (isForbiddenToRole(error)) {
      return 'The role of the service has no rights to the tables: run "ops migrate" as their owner'
    }
    throw error
  }
}

/**
 * Why the database accepts no writes, as PostgreSQL reports it without a write; undefined if it accepts them. A full disk shows
 * only where the provider has set the database read-only.
 */
async function whyReadOnly(db: Queryable): Promise<string | undefined> {
  const { rows } = await db.query<{ isReadOnly: boolean; isStandby: boolean }>(
    `select current_setting('transaction_read_only')::boolean as "isReadOnly", pg_is_in_recovery() as "isStandby"`,
  )
  if (!rows[0]?.isReadOnly) return undefined
  return rows[0].isStandby
    ? 'The database is a standby and accepts no writes: let DATABASE_URL name the primary'
    : 'The database accepts no writes, because default_transaction_read_only is on: some providers set it when the disk is full'
}

/** Warnings for the operator when the service's role has more rights than it needs. */
export async function roleWarnings(db: Queryable): Promise<string[]> {
  const { rows } = await db.query<{ role: string }>(
    // pg_has_role is true for a superuser too, who counts as a member of every role.
    `select current_user as role
       from pg_class
      where oid = to_regclass('public.refunds') and pg_has_role(relowner, 'MEMBER')`,
  )
  return rows.map(
    ({ role }) =>
      `The service connects to the database as ${role}, which owns the tables or is a superuser: who breaks in could rewrite what was paid and refunded. Run roles.sql as a superuser, then "ops migrate", and let DATABASE_URL name upi_service`,
  )
}
