import { setTimeout } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { AppConfig } from './config.ts'
import { docsRoutes } from './docs/routes.ts'
import { createAcquirers, enquiryRulesOf, LINKING_NAMES } from './gateway/acquirers/acquirers.ts'
import { paymentNotification } from './gateway/acquirers/direct/notifications.ts'
import { createLinkCloser } from './gateway/acquirers/enquire.ts'
import { routesOfOwnForm, takeNotifications } from './gateway/acquirers/notification.ts'
import { openAccounts } from './gateway/acquirers/stored-accounts.ts'
import { pageEvents } from './gateway/checkout/events.ts'
import { createCheckoutFinder } from './gateway/checkout/find-checkout.ts'
import { createDrawQr } from './gateway/checkout/qr.ts'
import { simulation } from './gateway/checkout/simulate.ts'
import { createEnquiries, createWaiting } from './gateway/payments/enquiries.ts'
import { createIntents } from './gateway/payments/intents.ts'
import { createReports } from './gateway/payments/reports.ts'
import { createRefundUpdates } from './gateway/refunds/record-update.ts'
import { createAccessKeys } from './gateway/tenants/access-keys.ts'
import { registerAuthentication } from './gateway/tenants/authenticate.ts'
import { createPartners } from './gateway/tenants/partners.ts'
import { startJobs } from './jobs.ts'
import { LIMITS, type Limits } from './limits.ts'
import { documentedOperations, OPERATIONS } from './operations.ts'
import type { Metrics } from './operator/monitoring/metrics.ts'
import { createReadiness } from './operator/monitoring/readiness.ts'
import { cached } from './platform/db/cached.ts'
import { isOutage } from './platform/db/outage.ts'
import type { Pools } from './platform/db/pool.ts'
import { createHttpApp } from './platform/http/http-app.ts'
import { registerRateLimits } from './platform/http/rate-limits.ts'
import type { OnRequest } from './platform/http/request-log.ts'
import { measureLateness, refuseWhileLate, registerTimeLimits } from './platform/http/time-limits.ts'
import { createTurns } from './platform/http/turns.ts'
import { createLists } from './platform/lists/lists.ts'
import { createOutboundClient } from './platform/outbound/http-client.ts'

/**
 * `elapsedMs` is a monotonic clock in milliseconds, and `sleep` resolves after `ms` milliseconds of it. A draining
 * instance closes each connection after its answer.
 */
export type Dependencies = {
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

/** Builds the service with all its routes and jobs, ready to listen. */
export async function buildApp(dependencies: Dependencies): Promise<FastifyInstance> {
  const { config, pools, log, metrics, now, elapsedMs = () => performance.now() } = dependencies
  const { sleep = setTimeout, isDraining = () => false, limits = LIMITS } = dependencies
  const { publicUrl, sandbox, intentExpiryMinutes: expiryMinutes } = config
  const refundListeners = { onException: metrics.reports.onException, log }
  const intents = createIntents(pools, metrics.insertBatch, limits)
  const reports = createReports(pools.reports, metrics.reports, limits.reports)
  const refunds = createRefundUpdates(pools.reports, refundListeners, limits.reports)
  const findKey = cached(createAccessKeys(pools.keys).find, limits.lookUps, elapsedMs)
  const http = createOutboundClient({ allowedNetworks: config.webhooks.allowedNetworks, limits: limits.outbound, now })
  const clientOptions = { log, onCall: metrics.acquirerCall, limits: limits.acquirers, elapsedMs }
  const accounts = openAccounts(pools.keys, config, limits.lookUps, elapsedMs)
  const { clientOf, linkersOf, notifierOf } = createAcquirers(accounts, http, clientOptions)
  const waiting = createWaiting(pools.due, enquiryRulesOf)
  const drawQr = createDrawQr(limits.pages)

  const onRequest: OnRequest = (request, durationMs) => metrics.request(request, durationMs, now())
  const app = await createHttpApp({ log, onRequest, isOutage, isDraining, trustProxy: config.trustProxy, limits })
  const { deadlineOf, patiently } = registerTimeLimits(app, limits, isOutage, elapsedMs)
  const latenessMs = measureLateness(app)

  const readiness = createReadiness(pools.pages, config, accounts, isDraining, limits)
  app.addHook('onListen', async () => {
    for (const warning of await readiness.warnings().catch(() => config.warnings)) log.warn(warning)
  })
  for (const operation of OPERATIONS.health) operation.register(app, readiness)

  await app.register(async (pages) => {
    refuseWhileLate(pages, latenessMs, limits.lateness.pagesMs)
    const findCheckout = createCheckoutFinder(intents)
    const stores = { findCheckout, intents, reports, refunds, pools, waiting }
    const checkout = { ...stores, drawQr, now, log, clientOf, sandbox, publicUrl, limits: limits.pages }
    for (const operation of OPERATIONS.pages) operation.register(pages, checkout)
    pageEvents(pages, checkout)
    if (sandbox) simulation(pages, checkout)
    const takesNotifications = config.acquirers.direct.length > 0
    const operations = documentedOperations(takesNotifications)
    docsRoutes(pages, { publicUrl, operations, takesNotifications, sandbox })
  })

  metrics.acquirersConfigured(accounts.countNotifying)
  await app.register(async (acquirer) => {
    const enquiries = createEnquiries(pools.reports)
    const { atOnceOfAccount } = limits.reports
    const notified = { reports, refunds, enquiries, now, fieldLimit: limits.body.fields, atOnceOfAccount }
    takeNotifications(acquirer, notifierOf, notified)
    if (config.acquirers.direct.length > 0) paymentNotification.register(acquirer, notified)
    for (const name of LINKING_NAMES) routesOfOwnForm(acquirer, name, notified)
  })

  await app.register(async (v1) => {
    refuseWhileLate(v1, latenessMs, limits.lateness.operationsMs)
    const rateLimits = await registerRateLimits(v1, config.rateLimitPerSecond, limits.rates, { elapsedMs, sleep })
    // The use of a key is stored through the pool of jobs, so that no look-up of a key waits for the write.
    const { noteUse } = createAccessKeys(pools.due)
    await registerAuthentication(v1, { findKey, noteUse, limits: rateLimits, patiently, now })
    const isLinked = cached(createPartners(pools.keys).isLinked, limits.lookUps, elapsedMs)
    const access = { findKey, isLinked, deadlineOf, patiently, inTurn: createTurns() }
    const closeLink = createLinkCloser({ clientOf, reports, now, log })
    const links = { linkersOf, closeLink, linkTimes: limits.acquirers, onNextAcquirer: metrics.madeByNextAcquirer }
    const lists = { lists: createLists(pools), listLimits: limits.lists }
    const stores = { intents, waiting, pools }
    const v1Dependencies = { ...access, ...links, ...lists, ...stores, now, expiryMinutes, publicUrl, drawQr }
    for (const operation of OPERATIONS.v1) operation.register(v1, v1Dependencies)
  })

  const jobs = startJobs({ db: pools.due, config, clientOf, http, reports, refundListeners, metrics, log, now, limits })
  app.addHook('preClose', jobs.stop)
  return app
}
