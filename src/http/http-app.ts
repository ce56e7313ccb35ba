import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Limits } from '../limits.ts'
import { answerAll, refuseBrokenHttp } from './broken-http.ts'
import { connectionOptions, limitConnections } from './connections.ts'
import { refuseBadUrl, registerErrorHandling } from './error-handler.ts'
import { NO_JSON_SCHEMA, registerInput } from './input.ts'
import { createRequestLog, requestIdOf } from './request-log.ts'

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

/**
 * Creates the app with everything that a request passes before it reaches a feature: limits of connections, its line in
 * the log, refusals, the parsing of its body.
 */
export async function createHttpApp(dependencies: Dependencies): Promise<FastifyInstance> {
  const { log, onRequest, isOutage, isDraining, trustProxy, limits } = dependencies
  const requestLog = createRequestLog(log, onRequest)
  const errorHandling = { log, requestLog, isOutage, limits }
  const app = fastify({
    ...connectionOptions(limits.connections),
    bodyLimit: limits.body.bytes,
    trustProxy,
    // A closing app still serves requests on open connections, instead of refusing them with 503.
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
  const faultOf = registerErrorHandling(app, errorHandling)
  // Hooks with a callback, because an async hook costs every request a promise. Faults of a request are not told in a later hook,
  // which would first read the body, even for an address that does not exist.
  app.addHook('onRequest', (request, reply, done) => {
    requestLog.track(request, reply)
    reply.header('x-request-id', request.id).header('cache-control', 'no-store')
    // Sent before the answer to the one before, to which the socket still belongs. Browsers and proxies send one request at a time,
    // and 100,000 at once blocked the event loop for 3 s.
    if (reply.raw.socket === null) request.raw.socket.destroy()
    else done(faultOf(request))
  })
  // isDraining is called here, not in onRequest: a connection whose request came before the drain would otherwise stay
  // open and delay the end.
  // A connection is also closed when the answer is sent before all of a chunked body has arrived: a fault in the rest
  // would break the connection, which a proxy may have lent to another client by then.
  app.addHook('onSend', ({ raw, headers }, reply, _payload, done) => {
    const mayBreak = headers['transfer-encoding'] !== undefined && !raw.complete
    if (isDraining() || mayBreak) reply.header('connection', 'close')
    done()
  })
  await registerInput(app, limits.body)
  return app
}
