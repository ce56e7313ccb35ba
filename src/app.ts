import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { createAcquirers, refundWarnings } from './acquirer/acquirers.ts'
import { dueRefunds } from './acquirer/carry-out-refunds.ts'
import { paymentNotification } from './acquirer/direct.ts'
import { closeLink, dueEnquiries } from './acquirer/enquire.ts'
import { takeNotifications } from './acquirer/notification.ts'
import { pageEvents } from './checkout/events.ts'
import { createCheckoutFinder } from './checkout/find-checkout.ts'
import { payPage } from './checkout/pay-page.ts'
import { createDrawQr, payQrPng, payQrSvg } from './checkout/qr.ts'
import { type RefundsOf, simulation } from './checkout/simulate.ts'
import type { Config } from './config.ts'
import { cached } from './db/cached.ts'
import { isOutage } from './db/outage.ts'
import type { Pools } from './db/pool.ts'
import { roleWarnings, unreadyReason } from './db/readiness.ts'
import { docsRoutes } from './docs/routes.ts'
import { livez, readyz } from './http/health.ts'
import { createHttpApp } from './http/http-app.ts'
import { registerRateLimits } from './http/rate-limits.ts'
import { createPatience, measureLateness, refuseWhileLate, registerAnswerDeadline } from './http/time-limits.ts'
import { createTurns } from './http/turns.ts'
import { LIMITS, type Limits } from './limits.ts'
import { createLists } from './lists/lists.ts'
import type { Metrics } from './metrics.ts'
import { createOutboundClient } from './outbound/http-client.ts'
import { cancelPayment } from './payments/cancel-payment.ts'
import { checkPaymentStatus } from './payments/check-payment-status.ts'
import { createOrderRequest, createPaymentIntent } from './payments/create.ts'
import { createEnquiries } from './payments/enquiries.ts'
import { fetchTransactionList, fetchTransactionListOfPartner } from './payments/fetch-transaction-list.ts'
import type { PaymentLink } from './payments/intent.ts'
import { createIntents } from './payments/intents.ts'
import { createReports } from './payments/reports.ts'
import { dueComparisons } from './payments/utrs-of-other-merchants.ts'
import { checkRefundStatus } from './refunds/check-refund-status.ts'
import { createRefund, type RefundRequest } from './refunds/create-refund.ts'
import { createDueRefunds } from './refunds/due-refunds.ts'
import { createRefundUpdates } from './refunds/record-update.ts'
import { refundPayment } from './refunds/refund-payment.ts'
import { acquirersOfOpenRefunds, findRefund, listRefunds } from './refunds/store.ts'
import { startScheduler } from './scheduler/scheduler.ts'
import { fetchSettlementList } from './settlements/fetch-settlement-list.ts'
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
    | 'acquirers'
    | 'sandbox'
    | 'trustProxy'
    | 'rateLimitPerSecond'
    | 'webhooks'
    | 'production'
    | 'warnings'
  >
  pools: Pools
  log: Logger
  metrics: Metrics
  now: () => Date
  /** A monotonic clock in milliseconds, for durations. */
  elapsedMs?: () => number
  /** Whether this instance is about to stop: it still serves, and closes each connection after its answer. */
  isDraining?: () => boolean
  limits?: Limits
}

/** For the log: an acquirer says of a refund what we do not know. */
const UNKNOWN_REFUND_STATUS = 'the state of a refund is not known: if it lasts, ask the acquirer'

/** Every operation, grouped by who may call it, in the order of the documents. */
export const OPERATIONS = {
  v1: [
    ...[createPaymentIntent, createOrderRequest, checkPaymentStatus, cancelPayment, refundPayment, checkRefundStatus],
    ...[fetchTransactionList, fetchSettlementList, fetchTransactionListOfPartner],
  ],
  acquirer: [paymentNotification],
  pages: [payPage, payQrPng, payQrSvg],
  health: [livez, readyz],
}

/** The service, ready to listen: the table of contents of all that it answers. */
export async function buildApp({
  config,
  pools,
  log,
  metrics,
  now,
  elapsedMs = () => performance.now(),
  isDraining = () => false,
  limits = LIMITS,
}: Dependencies): Promise<FastifyInstance> {
  const { publicUrl, sandbox } = config
  const { sealingKey, allowedNetworks } = config.webhooks
  const intents = createIntents(pools, metrics.insertBatch, limits)
  const reports = createReports(pools.reports, metrics.reports, limits.reports)
  const onRefundUpdate = {
    ...metrics.reports,
    onUnknownStatus: (facts: object) => log.error(facts, UNKNOWN_REFUND_STATUS),
  }
  const refunds = createRefundUpdates(pools.reports, onRefundUpdate)
  const findKey = cached(createAccessKeys(pools.keys).find, limits.lookUps)
  const http = createOutboundClient({ allowedNetworks, limits: limits.outbound, now })
  const acquirers = createAcquirers(config.acquirers, http, {
    log,
    onCall: metrics.acquirerCall,
    limits: limits.acquirers,
    elapsedMs,
  })
  const { clients } = acquirers

  const app = await createHttpApp({
    log,
    onRequest(route, status, durationMs) {
      metrics.request(route, status, durationMs)
      if (route.startsWith('/acquirer/')) metrics.notification(status, now())
    },
    isOutage,
    isDraining,
    trustProxy: config.trustProxy,
    limits,
  })
  const answerMs = ({ caller }: FastifyRequest) => {
    // Requests of a merchant whose acquirer makes the links may call that acquirer, so they get its time-out on top.
    const asksAcquirer = caller?.kind === 'merchant' && clients.has(caller.merchant.acquirer)
    return limits.answer.ms + (asksAcquirer ? limits.acquirers.requestMs : 0)
  }
  const deadlineOf = registerAnswerDeadline(app, answerMs, limits.answer, elapsedMs)
  const latenessMs = measureLateness(app)

  const health = {
    unreadyReason: async () => (isDraining() ? 'Shutting down' : unreadyReason(pools.pages)),
    // Anybody may ask at any rate, and all open refunds are read.
    warnings: cached(
      async () => [
        ...config.warnings,
        ...(config.production ? await roleWarnings(pools.pages) : []),
        ...acquirers.warningsOf(await createMerchants(pools.pages).acquirers()),
        ...refundWarnings(await acquirersOfOpenRefunds(pools.pages), config.acquirers),
      ],
      limits.lookUps,
    ),
  }
  app.addHook('onListen', async () => {
    for (const warning of await health.warnings().catch(() => config.warnings)) log.warn(warning)
  })
  for (const operation of OPERATIONS.health) operation.register(app, health)

  const drawQr = createDrawQr(limits.pages)
  await app.register(async (pages) => {
    refuseWhileLate(pages, latenessMs, limits.lateness.pagesMs)
    const makerOf = ({ acquirer }: PaymentLink) => clients.get(acquirer)
    const findCheckout = createCheckoutFinder(intents)
    const refundsOf: RefundsOf = ({ mid, orderId }) => listRefunds(pools.pages, { mid, orderId, acquirer: 'direct' })
    const ofOrders = { findCheckout, intents, reports, refunds, refundsOf }
    const checkout = { ...ofOrders, drawQr, now, log, makerOf, sandbox, limits: limits.pages }
    for (const operation of OPERATIONS.pages) operation.register(pages, checkout)
    pageEvents(pages, checkout)
    if (sandbox) simulation(pages, checkout)
    // True when an acquirer may send notifications in our own form. Only then the documents describe them.
    const takesNotifications = config.acquirers.direct.length > 0
    const operations = Object.values({ ...OPERATIONS, ...(!takesNotifications && { acquirer: [] }) }).flat()
    docsRoutes(pages, { publicUrl, operations, takesNotifications, sandbox })
  })

  metrics.acquirersConfigured(acquirers.notifications.length)
  for (const notifications of acquirers.notifications) {
    await app.register(async (acquirer) => {
      takeNotifications(acquirer, notifications, { reports, refunds, now, fieldLimit: limits.body.fields })
    })
  }

  await app.register(async (v1) => {
    refuseWhileLate(v1, latenessMs, limits.lateness.operationsMs)
    const rateLimits = await registerRateLimits(v1, config.rateLimitPerSecond, limits.rates, elapsedMs)
    const patiently = createPatience(isOutage, limits.patience, elapsedMs)
    // By the connections of jobs, so that no look-up of a key waits behind it.
    const { noteUse } = createAccessKeys(pools.due)
    await registerAuthentication(v1, { findKey, noteUse, limits: rateLimits, patiently, now })
    const ofMerchantsAndPartners = {
      intents,
      refunds: {
        create: (refund: RefundRequest, now: Date, claim: () => void) =>
          createRefund(pools.requests, refund, now, claim),
        find: (mid: string, name: { refundId: string }) => findRefund(pools.requests, mid, name),
      },
      now,
      linkMs: limits.acquirers.requestMs,
      expiryMinutes: config.intentExpiryMinutes,
      publicUrl,
      drawQr,
      lists: createLists(pools),
      longListReaders: new Set<string>(),
      listLimits: limits.lists,
      patiently,
      deadlineOf,
      inTurn: createTurns(),
      isLinked: cached(createPartners(pools.keys).isLinked, limits.lookUps),
      findKey,
      clientOf: acquirers.clientOf,
      closeLink(orderId: string, paymentLink: PaymentLink) {
        const client = clients.get(paymentLink.acquirer)
        if (client === undefined) return
        closeLink({ orderId, paymentLink }, { client, reports, now }).catch((err) =>
          log.error({ err, orderId }, 'whether a cancelled order is paid could not be stored: it is asked again'),
        )
      },
    }
    for (const operation of OPERATIONS.v1) operation.register(v1, ofMerchantsAndPartners)
  })

  const deliveries = { deliveries: createDeliveries(pools.due), http, sealingKey, metrics: metrics.webhooks }
  const atAcquirers = { clients, now, limits: limits.acquirers }
  const scheduler = startScheduler(
    [
      dueDeliveries({ ...deliveries, log, now, limits: limits.webhooks }),
      ...dueEnquiries({ enquiries: createEnquiries(pools.due), reports, ...atAcquirers }),
      ...dueRefunds({
        due: createDueRefunds(pools.due),
        updates: createRefundUpdates(pools.due, onRefundUpdate),
        ...atAcquirers,
      }),
      dueExpiries({ db: pools.due, now, limits: limits.webhooks }),
      dueComparisons(pools.due, now, metrics.reports.onException),
    ],
    { log, limits: limits.webhooks },
  )
  app.addHook('preClose', scheduler.stop)
  return app
}
