import { setTimeout } from 'node:timers/promises'
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { createAcquirers, enquiryRulesOf, LINKING_NAMES } from './acquirer/acquirers.ts'
import { paymentNotification } from './acquirer/direct.ts'
import { createLinkCloser } from './acquirer/enquire.ts'
import { routesOfOwnForm, takeNotifications } from './acquirer/notification.ts'
import { openAccounts } from './acquirer/stored-accounts.ts'
import { pageEvents } from './checkout/events.ts'
import { createCheckoutFinder } from './checkout/find-checkout.ts'
import { createDrawQr } from './checkout/qr.ts'
import { simulation } from './checkout/simulate.ts'
import type { AppConfig } from './config.ts'
import { cached } from './db/cached.ts'
import { isOutage } from './db/outage.ts'
import type { Pools } from './db/pool.ts'
import { docsRoutes } from './docs/routes.ts'
import { createHttpApp } from './http/http-app.ts'
import { registerRateLimits } from './http/rate-limits.ts'
import type { OnRequest } from './http/request-log.ts'
import { measureLateness, refuseWhileLate, registerTimeLimits } from './http/time-limits.ts'
import { createTurns } from './http/turns.ts'
import { startJobs } from './jobs.ts'
import { LIMITS, type Limits } from './limits.ts'
import { createLists } from './lists/lists.ts'
import type { Metrics } from './metrics.ts'
import { documentedOperations, OPERATIONS } from './operations.ts'
import { createOutboundClient } from './outbound/http-client.ts'
import { createEnquiries, createWaiting } from './payments/enquiries.ts'
import { createIntents } from './payments/intents.ts'
import { createReports } from './payments/reports.ts'
import { createReadiness } from './readiness.ts'
import { createRefundUpdates } from './refunds/record-update.ts'
import { createAccessKeys } from './tenants/access-keys.ts'
import { registerAuthentication } from './tenants/authenticate.ts'
import { createPartners } from './tenants/partners.ts'

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
