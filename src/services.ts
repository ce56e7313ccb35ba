import { setTimeout } from 'node:timers/promises'
import type { Logger } from 'pino'
import type { AppConfig } from './config.ts'
import { createAcquirers, statusCheckRulesOf } from './gateway/acquirers/acquirers.ts'
import { createDisputeReader } from './gateway/acquirers/check-disputes.ts'
import { createLinkCloser } from './gateway/acquirers/check-status.ts'
import { openAccounts } from './gateway/acquirers/stored-accounts.ts'
import { createCheckoutFinder } from './gateway/checkout/find-checkout.ts'
import { createDrawQr } from './gateway/checkout/qr.ts'
import { createDisputes } from './gateway/disputes/record-dispute.ts'
import { createIntents } from './gateway/payments/intents.ts'
import { createReports } from './gateway/payments/reports.ts'
import { createStatusChecks, createWaiting } from './gateway/payments/status-checks.ts'
import { createRefundUpdates } from './gateway/refunds/record-update.ts'
import { createAccessKeys } from './gateway/tenants/access-keys.ts'
import { createLogoFinder } from './gateway/tenants/logo.ts'
import { createPartners } from './gateway/tenants/partners.ts'
import { LIMITS, type Limits } from './limits.ts'
import type { Metrics } from './operator/monitoring/metrics.ts'
import { createReadiness } from './operator/monitoring/readiness.ts'
import { cached } from './platform/db/cached.ts'
import type { Pools } from './platform/db/pool.ts'
import { createSerializer } from './platform/http/serialize.ts'
import { createLists } from './platform/lists/lists.ts'
import { createOutboundClient } from './platform/outbound/http-client.ts'

/**
 * The dependencies that the process or a test passes in. `elapsedMs` is a monotonic clock in milliseconds, and `sleep`
 * resolves after `ms` milliseconds on this clock. A draining instance closes each connection after its response.
 */
type Environment = {
  config: AppConfig
  pools: Pools
  log: Logger
  metrics: Metrics
  now: () => Date
  elapsedMs?: () => number
  sleep?: (ms: number) => Promise<unknown>
  isDraining?: () => boolean
  limits?: Limits
}

export type Services = ReturnType<typeof createServices>

/**
 * The stores and clients of the service, each built once. Areas and operations use the stores and clients that their
 * types name.
 */
export function createServices(environment: Environment) {
  const given = { elapsedMs: () => performance.now(), sleep: setTimeout, isDraining: () => false, limits: LIMITS }
  const base = { ...given, ...environment }
  const { config, pools, log, metrics, now, elapsedMs, limits } = base
  const refundListeners = { onException: metrics.reports.onException, log }
  const intents = createIntents(pools, metrics.insertBatch, limits)
  const reports = createReports(pools.reports, metrics.reports, limits.reports)
  const accounts = openAccounts(pools.keys, config, limits.lookUps, elapsedMs)
  const http = createOutboundClient({ allowedNetworks: config.webhooks.allowedNetworks, limits: limits.outbound, now })
  const clients = createAcquirers(accounts, http, {
    log,
    onCall: metrics.acquirerCall,
    limits: limits.acquirers,
    elapsedMs,
  })
  const disputes = createDisputes(pools.reports, refundListeners, limits.reports)
  const disputeReader = createDisputeReader({ disputes, ...clients, namesOf: accounts.listNames, now })
  const accessKeys = createAccessKeys(pools.keys)
  return {
    ...base,
    ...clients,
    publicUrl: config.publicUrl,
    sandbox: config.sandbox,
    expiryMinutes: config.intentExpiryMinutes,
    accounts,
    http,
    intents,
    reports,
    refunds: createRefundUpdates(pools.reports, refundListeners, limits.reports),
    refundListeners,
    disputes,
    disputeReader,
    readDisputesSoon: disputeReader.readSoon,
    statusChecks: createStatusChecks(pools.reports),
    waiting: createWaiting(pools.due, statusCheckRulesOf),
    lists: createLists(pools),
    findKey: cached((publicKey: string) => accessKeys.find(publicKey, now()), limits.lookUps, elapsedMs),
    // Uses the pool for jobs, so that no look-up of a key waits for the write.
    noteUse: createAccessKeys(pools.due).noteUse,
    isLinked: cached(createPartners(pools.keys).isLinked, limits.lookUps, elapsedMs),
    findCheckout: createCheckoutFinder(intents),
    closeLink: createLinkCloser({ clientOf: clients.clientOf, reports, now, log }),
    drawQr: createDrawQr(limits.pages),
    findLogo: createLogoFinder(pools.pages, limits.pages),
    serializeByKey: createSerializer(),
    readiness: createReadiness({ ...base, accounts, db: pools.pages }),
  }
}
