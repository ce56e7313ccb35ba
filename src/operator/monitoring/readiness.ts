import type { Config } from '../../config.ts'
import type { Accounts } from '../../gateway/acquirers/acquirers.ts'
import { acquirersOfOpenRefunds } from '../../gateway/refunds/store.ts'
import { createMerchants } from '../../gateway/tenants/merchants.ts'
import type { Limits } from '../../limits.ts'
import { cached } from '../../platform/db/cached.ts'
import type { Database } from '../../platform/db/pool.ts'
import { roleWarnings, unreadyReason } from '../../platform/db/readiness.ts'
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
