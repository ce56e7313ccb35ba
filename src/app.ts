import { Readable } from 'node:stream'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { acquirerRoutes } from './acquirer/routes.ts'
import { createAccessKeys } from './auth/access-keys.ts'
import { registerAuthentication } from './auth/authenticate.ts'
import { createKeyFinder } from './auth/find-keys.ts'
import { dynamicQr } from './checkout/dynamic-qr.ts'
import { checkoutRoutes } from './checkout/routes.ts'
import type { Config } from './config.ts'
import { isForbiddenToRole } from './db/grants.ts'
import { pendingMigrations } from './db/migrate.ts'
import { isOutage } from './db/outage.ts'
import type { Database } from './db/pool.ts'
import { rememberBriefly } from './db/remember-briefly.ts'
import { createReadRouter } from './db/replica.ts'
import { docsRoutes } from './docs/routes.ts'
import { registerAnswerDeadline } from './http/answer-deadline.ts'
import { refuseBrokenHttp, refuseConnect, refuseExpectation } from './http/broken-http.ts'
import { CONNECTION_LIMITS, type ConnectionLimits, createHttpServer, streamAlone } from './http/connections.ts'
import { refuseBadUrl, registerErrorHandling } from './http/error-handler.ts'
import { healthRoutes } from './http/health.ts'
import { BODY_LIMIT_BYTES, registerInput } from './http/input.ts'
import type { Metrics } from './http/metrics.ts'
import { LATENESS_LIMITS, type LatenessLimits, measureLateness, refuseWhileLate } from './http/overload.ts'
import { registerPatience } from './http/patience.ts'
import { registerRateLimits } from './http/rate-limits.ts'
import { requestIdOf } from './http/request-id.ts'
import { createRequestLog } from './http/request-log.ts'
import { createPartners } from './merchants/partners.ts'
import { createReports } from './payments/report-repository.ts'
import { createIntents } from './payments/repository.ts'
import { paymentRoutes } from './payments/routes.ts'
import { createSettlements } from './settlements/repository.ts'
import { settlementRoutes } from './settlements/routes.ts'

export type Dependencies = {
  config: Pick<
    Config,
    | 'publicUrl'
    | 'intentExpiryMinutes'
    | 'acquirerSecrets'
    | 'sandbox'
    | 'trustProxy'
    | 'rateLimitPerMinute'
    | 'warnings'
  >
  db: Database
  /** Connections of their own for long lists: a slow reader of one must not stand in the way of payments. */
  listDb: Database
  /** The same to a replica, where there is one. */
  replicaDb?: Database | undefined
  log: Logger
  metrics: Metrics
  now: () => Date
  /** Whether this instance is on its way out: it serves on, and asks everybody to go elsewhere. */
  isDraining?: () => boolean
  connectionLimits?: ConnectionLimits
  latenessLimits?: LatenessLimits
}

/** The service, ready to listen: the table of contents of all that it answers. */
export async function buildApp(dependencies: Dependencies): Promise<FastifyInstance> {
  const { config, db, listDb, replicaDb, log, metrics, now, isDraining = () => false } = dependencies
  const { connectionLimits = CONNECTION_LIMITS, latenessLimits = LATENESS_LIMITS } = dependencies
  const intents = createIntents(db, metrics.insertBatch)
  const reports = createReports(db, metrics.paymentException)
  const isLinked = rememberBriefly(createPartners(db).isLinked)
  const readFromReplica = replicaDb && createReadRouter({ primary: db, replica: replicaDb })
  const findKey = rememberBriefly(createKeyFinder(createAccessKeys(db)))

  const requestLog = createRequestLog(log, metrics)
  const errorHandling = { log, requestLog, isOutage }

  const app = fastify({
    bodyLimit: BODY_LIMIT_BYTES,
    serverFactory: (handle) =>
      createHttpServer({ request: handle, unknownExpectation: refuseExpectation({ requestLog }) }, connectionLimits).on(
        'connect',
        refuseConnect({ requestLog }),
      ),
    trustProxy: config.trustProxy,
    // While it closes it answers what still comes on open connections, instead of refusing it.
    return503OnClosing: false,
    genReqId: requestIdOf,
    exposeHeadRoutes: true,
    clientErrorHandler: (error, socket) => refuseBrokenHttp(error, socket, errorHandling),
    frameworkErrors: (error, request, reply) => refuseBadUrl(error, request, reply, errorHandling),
  })

  app.decorateRequest('caller')
  app.decorateRequest('publicKey', undefined)
  app.decorateRequest('mid', undefined)
  app.decorateRequest('orderId', undefined)
  app.decorateRequest('refusal', undefined)
  // Hooks by callback: an async one costs every request a promise.
  app.addHook('onRequest', (request, reply, done) => {
    requestLog.follow(request, reply)
    reply.header('x-request-id', request.id).header('cache-control', 'no-store')
    done()
  })
  // As late as this: a connection whose request came before the drain would stay open, and hold up the end.
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isDraining()) reply.header('connection', 'close')
    if (payload instanceof Readable) streamAlone(reply.raw)
    done()
  })
  registerErrorHandling(app, errorHandling)
  registerPatience(app, isOutage)
  registerAnswerDeadline(app)
  await registerInput(app)

  const latenessMs = measureLateness(app)
  healthRoutes(app, {
    unreadyReason: async () => (isDraining() ? 'Shutting down' : unreadyReason(db)),
    warnings: config.warnings,
  })
  await app.register(async (pages) => {
    refuseWhileLate(pages, latenessMs, latenessLimits.pagesMs)
    checkoutRoutes(pages, {
      intents,
      reports,
      now,
      sandbox: config.sandbox,
      onWatchError: (error) => log.warn({ error: (error as Error).message }, 'open pages were not looked up'),
    })
  })

  docsRoutes(app, {
    publicUrl: config.publicUrl,
    takesNotifications: config.acquirerSecrets.length > 0,
    sandbox: config.sandbox,
  })

  metrics.acquirersConfigured(config.acquirerSecrets.length > 0 ? 1 : 0)
  if (config.acquirerSecrets.length > 0) {
    await app.register(async (acquirer) => {
      acquirerRoutes(acquirer, { reports, secrets: config.acquirerSecrets, now })
    })
  }

  await app.register(
    async (v1) => {
      refuseWhileLate(v1, latenessMs, latenessLimits.operationsMs)
      const limits = await registerRateLimits(v1, config.rateLimitPerMinute)
      await registerAuthentication(v1, { findKey, limits })
      paymentRoutes(v1, {
        intents,
        now,
        expiryMinutes: config.intentExpiryMinutes,
        publicUrl: config.publicUrl,
        dynamicQr: (intent, merchant) => dynamicQr(intent, merchant, config.publicUrl),
      })
      settlementRoutes(v1, {
        read: (work) => {
          // Slow readers of long lists may hold every connection of theirs; a short list is a query like any other.
          const onDatabase = (database: Database) =>
            work(database === db ? createSettlements(listDb, db) : createSettlements(database))
          return readFromReplica ? readFromReplica(onDatabase) : onDatabase(db)
        },
        isLinked,
        findKey,
      })
    },
    { prefix: '/v1' },
  )

  return app
}

async function unreadyReason(db: Database): Promise<string | undefined> {
  try {
    const pending = await pendingMigrations(db)
    return pending.length === 0
      ? undefined
      : `The database schema is behind: run "ops migrate" (missing: ${pending.join(', ')})`
  } catch (error) {
    if (isOutage(error)) return 'The database does not answer'
    if (isForbiddenToRole(error)) {
      return 'The role of the service has no rights to the tables: run "ops migrate" as their owner'
    }
    throw error
  }
}
