import { type Acquirers, refundWarnings } from './acquirer/acquirers.ts'
import type { Config } from './config.ts'
import { cached } from './db/cached.ts'
import type { Queryable } from './db/pool.ts'
import { roleWarnings, unreadyReason } from './db/readiness.ts'
import type { Readiness } from './http/health.ts'
import type { Limits } from './limits.ts'
import { acquirersOfOpenRefunds } from './refunds/store.ts'
import { createMerchants } from './tenants/merchants.ts'

/** The readiness of this instance, for `/readyz`. */
export function createReadiness(
  db: Queryable,
  config: Pick<Config, 'acquirers' | 'production' | 'warnings'>,
  acquirers: Acquirers,
  isDraining: () => boolean,
  limits: Pick<Limits, 'lookUps'>,
): Readiness {
  return {
    unreadyReason: async () => (isDraining() ? 'Shutting down' : unreadyReason(db)),
    // Cached, because anybody may request /readyz at any rate, and every check reads all open refunds.
    warnings: cached(
      async () => [
        ...config.warnings,
        ...(config.production ? await roleWarnings(db) : []),
        ...acquirers.warningsOf(await createMerchants(db).acquirers()),
        ...refundWarnings(await acquirersOfOpenRefunds(db), config.acquirers),
      ],
      limits.lookUps,
    ),
  }
}
