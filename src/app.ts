import fastify, { type FastifyInstance, type FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { createAcquirers } from './acquirer/acquirers.ts'
import { paymentNotification } from './acquirer/direct.ts'
import { dueEnquiries } from './acquirer/enquire.ts'
import { takeNotifications } from './acquirer/notification.ts'
import { pageEvents } from './checkout/events.ts'
import { createCheckoutFinder } from './checkout/find-checkout.ts'
import { payPage } from './checkout/pay-page.ts'
import { createPaymentWatch } from './checkout/payment-watch.ts'
import { createDrawQr, payQrPng, payQrSvg } from './checkout/qr.ts'
import { simulation } from './checkout/simulate.ts'
import type { Config } from './config.ts'
import { isForbiddenToRole } from './db/grants.ts'
import { pendingMigrations } from './db/migrate.ts'
import { isOutage } from './db/outage.ts'
import type { Pools } from './db/pool.ts'
import { rememberBriefly } from './db/remember-briefly.ts'
import { isWorker } from './db/spread.ts'
import { docsRoutes } from './docs/routes.ts'
import { startClock } from './due/clock.ts'
import { registerAnswerDeadline } from './http/answer-deadline.ts'
import { answerAll, refuseBrokenHttp } from './http/broken-http.ts'
import { connectionOptions, limitConnections } from './http/connections.ts'
import { refuseBadUrl, registerErrorHandling } from './http/error-handler.ts'
import { livez, readyz } from './http/health.ts'
import { NO_JSON_SCHEMA, registerInput } from './http/input.ts'
import { measureLateness, refuseWhileLate } from './http/overload.ts'
import { createPatience } from './http/patience.ts'
import { registerRateLimits } from './http/rate-limits.ts'
import { requestIdOf } from './http/request-id.ts'
import { createRequestLog } from './http/request-log.ts'
import { LIMITS, type Limits } from './limits.ts'
import type { Metrics } from './metrics.ts'
import { createCaller } from './outside/call.ts'
import { cancelPayment } from './payments/cancel-payment.ts'
import { checkPaymentStatus } from './payments/check-payment-status.ts'
import { createOrderRequest, createPaymentIntent } from './payments/create.ts'
import { createEnquiries } from './payments/enquiries.ts'
import type { IssuedLink } from './payments/intent.ts'
import { createIntents } from './payments/intents.ts'
import { createReports } from './payments/reports.ts'
import { fetchSettlementList } from './settlements/fetch-settlement-list.ts'
import { createSettlements } from './settlements/settlements.ts'
import { createAccessKeys } from './tenants/access-keys.ts'
import { registerAuthentication } from './tenants/authenticate.ts'
import { createMerchants } from './tenants/merchants.ts'
import { createPartners } from './tenants/partners.ts'
import { dueDeliveries } from './webhooks/deliver.ts'
import { createDeliveries } from './webhooks/deliveries.ts'
import { dueExpiries } from './webhooks/expiries.ts'

export type Dependencies = {
  config: Pick<
    Config,
    | 'publicUrl'
    | 'intentExpiryMinutes'
    | 'acquirerSecrets'
    | 'setu'
    | 'sandbox'
    | 'trustProxy'
    | 'rateLimitPerSecond'
    | 'webhooks'
    | 'warnings'
  >
  pools: Pools
  log: Logger
  metrics: Metrics
  now: () => Date
  /** Milliseconds by a clock that nobody sets, for durations. */
  elapsedMs?: () => number
  /** Whether this instance is about to stop: it still serves, and closes each connection after its answer. */
  isDraining?: () => boolean
  limits?: Limits
}

/** Every operation, grouped by who may call it, in the order of the documents. */
export const OPERATIONS = {
  v1: [createPaymentIntent, createOrderRequest, checkPaymentStatus, cancelPayment, fetchSettlementList],
  acquirer: [paymentNotification],
  pages: [payPage, payQrPng, payQrSvg],
  health: [livez, readyz],
}

/** The service, ready to listen: the table of contents of all that it answers. */
export async function buildApp(dependencies: Dependencies): Promise<FastifyInstance> {
  const {
    config,
    pools,
    log,
    metrics,
    now,
    elapsedMs = () => performance.now(),
    isDraining = () => false,
    limits = LIMITS,
  } = dependencies
  const intents = createIntents(pools, metrics.insertBatch, limits)
  const listeners = {
    onException: metrics.paymentException,
    onPayment: metrics.payment,
    onSurplusAttempt: metrics.surplusAttempt,
  }
  const reports = createReports(pools.reports, listeners, limits)
  const isLinked = rememberBriefly(createPartners(pools.keys).isLinked, limits.lookUps)
  const findKey = rememberBriefly(createAccessKeys(pools.keys).find, limits.lookUps)

  const { sealingKey, allowedNetworks } = config.webhooks
  const call = createCaller({ allowedNetworks, limits: limits.outside, now })
  const acquirers = createAcquirers({ direct: config.acquirerSecrets, setu: config.setu }, call, {
    log,
    onCall: metrics.acquirerCall,
    limits: limits.acquirers,
    elapsedMs,
  })
  const { issuers } = acquirers
  const deliveries = {
    deliveries: createDeliveries(pools.due),
    call,
    sealingKey,
    metrics: metrics.webhooks,
  }
  const enquiries = createEnquiries(pools.due)
  const clock = startClock(
    [
      dueDeliveries({ ...deliveries, log, now, limits: limits.webhooks }),
      dueEnquiries({ enquiries, issuers, reports, now, limits: limits.acquirers }),
      dueExpiries({ db: pools.due, now, limits: limits.webhooks }),
    ],
    { log, limits: limits.webhooks },
  )
  const watch = createPaymentWatch({
    intents,
    now,
    limits: limits.pages,
    onError: (error) => log.warn({ error: error.message }, 'open pages were not looked up'),
  })
  const requestLog = createRequestLog(log, {
    request(route, status, durationMs) {
      metrics.request(route, status, durationMs)
      if (route.startsWith('/acquirer/')) metrics.notification(status, now())
    },
  })
  const errorHandling = {
    log,
    requestLog,
    isOutage,
    headerLimit: limits.connections.headers,
    bodyLimitBytes: limits.body.bytes,
  }

  const app = fastify({
    ...connectionOptions(limits.connections),
    bodyLimit: limits.body.bytes,
    trustProxy: config.trustProxy,
    // While it closes, requests on open connections are still served instead of refused.
    return503OnClosing: false,
    genReqId: requestIdOf,
    schemaController: NO_JSON_SCHEMA,
    exposeHeadRoutes: true,
    clientErrorHandler: (error, socket) => refuseBrokenHttp(error, socket, requestLog),
    frameworkErrors: (error, request, reply) => refuseBadUrl(error, request, reply, errorHandling),
  })
  limitConnections(app.server, limits.connections)
  answerAll(app.server, requestLog)

  app.decorateRequest('caller')
  app.decorateRequest('publicKey', undefined)
  app.decorateRequest('mid', undefined)
  app.decorateRequest('orderId', undefined)
  app.decorateRequest('refusal', undefined)
  app.decorateRequest('patientUntil', 0)
  // Hooks with a callback, because an async hook costs every request a promise.
  app.addHook('onRequest', (request, reply, done) => {
    requestLog.track(request, reply)
    reply.header('x-request-id', request.id).header('cache-control', 'no-store')
    done()
  })
  // Not in onRequest: a connection whose request came before the drain would stay open and delay the end.
  // Nor may the connection be used again where the rest of a chunked body has yet to come: a fault in it ends the connection, which a
  // proxy may have lent to another client meanwhile.
  app.addHook('onSend', ({ raw, headers }, reply, _payload, done) => {
    const mayBreak = headers['transfer-encoding'] !== undefined && !raw.complete
    if (isDraining() || mayBreak) reply.header('connection', 'close')
    done()
  })
  app.addHook('preClose', async () => {
    watch.close()
    await clock.stop()
  })
  registerErrorHandling(app, errorHandling)
  const patiently = createPatience(isOutage, limits.patience, elapsedMs)
  // A merchant's acquirer may have to be asked for a link.
  const asksAcquirer = ({ caller }: FastifyRequest) =>
    caller?.kind === 'merchant' && issuers.has(caller.merchant.acquirer)
  const answerMs = (request: FastifyRequest) =>
    limits.answer.ms + (asksAcquirer(request) ? limits.acquirers.requestMs : 0)
  registerAnswerDeadline(app, answerMs, elapsedMs)
  await registerInput(app, limits.body)

  const checkout = {
    findCheckout: createCheckoutFinder(intents),
    drawQr: createDrawQr(limits.pages),
    watch,
    intents,
    reports,
    now,
    makerOf: ({ acquirer }: IssuedLink) => issuers.get(acquirer),
    sandbox: config.sandbox,
    limits: limits.pages,
  }
  // In our own form, which its sender reads about in our documents.
  const takesNotifications = config.acquirerSecrets.length > 0
  const latenessMs = measureLateness(app, limits.lateness)

  const health = {
    unreadyReason: async () => (isDraining() ? 'Shutting down' : unreadyReason(pools.pages)),
    warnings: async () => [...config.warnings, ...acquirers.warningsOf(await createMerchants(pools.pages).acquirers())],
  }
  for (const operation of OPERATIONS.health) operation.register(app, health)

  await app.register(async (pages) => {
    refuseWhileLate(pages, latenessMs, limits.lateness.pagesMs)
    for (const operation of OPERATIONS.pages) operation.register(pages, checkout)
    pageEvents(pages, checkout)
    if (config.sandbox) simulation(pages, checkout)
    // A file of 1.5 MB takes about 1 ms to hand to the system, so a few hundred readers could keep payments waiting.
    docsRoutes(pages, {
      publicUrl: config.publicUrl,
      operations: Object.values({ ...OPERATIONS, ...(!takesNotifications && { acquirer: [] }) }).flat(),
      takesNotifications,
      sandbox: config.sandbox,
    })
  })

  metrics.acquirersConfigured(acquirers.notifications.length)
  for (const notifications of acquirers.notifications) {
    await app.register(async (acquirer) => {
      takeNotifications(acquirer, notifications, { reports, now, fieldLimit: limits.body.fields })
    })
  }

  await app.register(async (v1) => {
    refuseWhileLate(v1, latenessMs, limits.lateness.operationsMs)
    const rateLimits = await registerRateLimits(v1, config.rateLimitPerSecond, limits.rates, elapsedMs)
    const patientUntil = () => elapsedMs() + limits.patience.ms
    await registerAuthentication(v1, { findKey, limits: rateLimits, patiently, patientUntil })
    const { publicUrl } = config
    const ofMerchantsAndPartners = {
      intents,
      now,
      elapsedMs,
      expiryMinutes: config.intentExpiryMinutes,
      publicUrl,
      drawQr: checkout.drawQr,
      settlements: createSettlements(pools),
      listLimits: limits.lists,
      patiently,
      isLinked,
      findKey,
      issuerOf: acquirers.issuerOf,
      closeIssued: (link: IssuedLink) => issuers.get(link.acquirer)?.close(link),
    }
    for (const operation of OPERATIONS.v1) operation.register(v1, ofMerchantsAndPartners)
  })

  return app
}

async function unreadyReason(db: Pools['pages']): Promise<string | undefined> {
  try {
    const pending = await pendingMigrations(db)
    if (pending.length === 0) return undefined
    // A worker has no table before the spreading.
    const toRun = (await isWorker(db)) ? '"ops migrate" and "ops database spread"' : '"ops migrate"'
    return `The database schema is behind: run ${toRun} (missing: ${pending.join(', ')})`
  } catch (error) {
    if (isOutage(error)) return 'The database does not answer'
    if (isForbiddenToRole(error)) {
      return 'The role of the service has no rights to the tables: run "ops migrate" as their owner'
    }
    throw error
  }
}
