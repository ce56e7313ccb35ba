import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { answerAll, refuseBrokenHttp } from './broken-http.ts'
import { connectionOptions, limitConnections } from './connections.ts'
import { refuseBadUrl, registerErrorHandling } from './error-handler.ts'
import { NO_JSON_SCHEMA, registerInput } from './input.ts'
import { requestIdOf } from './request-id.ts'
import { createRequestLog } from './request-log.ts'

type Dependencies = {
  log: Logger
  /** Is told of every request that has ended. */
  onRequest: (route: string, status: number, durationMs: number) => void
  isOutage: (error: unknown) => boolean
  /** Whether this instance is about to stop: it still serves, and closes each connection after its answer. */
  isDraining: () => boolean
  trustProxy: string[] | boolean
  limits: Pick<Limits, 'connections' | 'body'>
}

/** What every request meets before it reaches a feature: limits of connections, its line in the log, refusals, the body. */
export function createHttpApp(dependencies: Dependencies): FastifyInstance {
  const { log, onRequest, isOutage, isDraining, trustProxy, limits } = dependencies
  const requestLog = createRequestLog(log, { request: onRequest })
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
    trustProxy,
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
  // Draining is asked here, not in onRequest: a connection whose request came before the drain would stay open and delay the end.
  // A fault in the rest of a chunked body ends the connection, which a proxy may have lent to another client meanwhile: it is not
  // used again.
  app.addHook('onSend', ({ raw, headers }, reply, _payload, done) => {
    const mayBreak = headers['transfer-encoding'] !== undefined && !raw.complete
    if (isDraining() || mayBreak) reply.header('connection', 'close')
    done()
  })
  registerErrorHandling(app, errorHandling)
  registerInput(app, limits.body)
  return app
}
