import type { Config } from '../../config.ts'
import type { Accounts } from '../../gateway/acquirers/acquirers.ts'
import { acquirersOfOpenRefunds } from '../../gateway/refunds/store.ts'
import { createMerchants } from '../../gateway/tenants/merchants.ts'
import type { Limits } from '../../limits.ts'
import { cached } from '../../platform/db/cached.ts'
import { isForbiddenToRole } from '../../platform/db/grants.ts'
import { pendingMigrations } from '../../platform/db/migrate.ts'
import { isOutage } from '../../platform/db/outage.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { NOT_PREPARED, passesNamesOn } from '../../platform/db/prepared.ts'
import { query } from '../../platform/db/query.ts'
import type { Readiness } from '../../platform/http/health.ts'

/** This is a warning instead of an error, because a trial may intentionally run without an acquirer. */
const LEARNS_OF_NO_PAYMENT =
  'No acquirer can notify this service of payments, so every order stays unpaid: set ACQUIRER_SECRETS or the credentials of an acquirer'

type Dependencies = {
  db: Database
  config: Pick<Config, 'production' | 'warnings'>
  accounts: Accounts
  isDraining: () => boolean
  limits: Pick<Limits, 'lookUps'>
}

/** Creates the checks that `/readyz` runs. */
export function createReadiness({ db, config, accounts, isDraining, limits }: Dependencies): Readiness {
  return {
    unreadyReason: async () => (isDraining() ? 'Shutting down' : unreadyReason(db)),
    // Cached, because /readyz is public and has no rate limit, and every check reads all open refunds.
    warnings: cached(
      async () => [
        ...config.warnings,
        ...(config.production && (await accounts.countNotifying()) === 0 ? [LEARNS_OF_NO_PAYMENT] : []),
        ...(config.production ? await roleWarnings(db) : []),
        ...(await accounts.warningsOf(await createMerchants(db).acquirers())),
        ...(await accounts.refundWarnings(await acquirersOfOpenRefunds(db))),
      ],
      limits.lookUps,
    ),
  }
}

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
  const [{ isReadOnly, isStandby }] = (await WRITABILITY(db, {})) as [Writability]
  if (!isReadOnly) return undefined
  return isStandby
    ? 'The database is a standby and accepts no writes. Set DATABASE_URL to the primary.'
    : 'The database accepts no writes because default_transaction_read_only is on. Some providers set it when the disk is full: check the free space.'
}

type Writability = { isReadOnly: boolean; isStandby: boolean }

const WRITABILITY = query<Writability, object>(`
  select current_setting('transaction_read_only')::boolean as is_read_only, pg_is_in_recovery() as is_standby`)

/** Warns the operator if the service's role has more rights than it needs. */
async function roleWarnings(db: Queryable): Promise<string[]> {
  const rows = await OWNER(db, {})
  return rows.map(
    ({ role }) =>
      `The service connects to the database as ${role}, which owns the tables or is a superuser. An attacker who controls the service could change payments and refunds. Run roles.sql as a superuser, then "ops migrate", and set DATABASE_URL to the role upi_service.`,
  )
}

/** Returns the connection's role if it owns the tables. pg_has_role is also true for a superuser. */
const OWNER = query<{ role: string }, object>(`
  select current_user as role
    from pg_class
   where oid = to_regclass('public.refunds') and pg_has_role(relowner, 'MEMBER')`)
