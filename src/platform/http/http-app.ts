import type { Server } from 'node:http'
import fastify, { type FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { improperHost, invalidUrl } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { rejectBrokenHttp, respondAll } from './broken-http.ts'
import { fail } from './envelope.ts'
import { hasProperHost, registerErrorHandling, rejectBadUrl } from './error-handler.ts'
import { NO_JSON_SCHEMA, registerInput } from './input.ts'
import { createRequestLog, type OnRequest, requestIdOf } from './request-log.ts'

/**
 * Interval between two checks for slow connections. The interval is short, because closing many connections in one
 * check blocks the event loop.
 */
const CHECK_INTERVAL_MS = 100

type Dependencies = {
  log: Logger
  onRequest: OnRequest
  isOutage: (error: unknown) => boolean
  /**
   * Whether this instance is shutting down. A draining instance still serves requests, but closes each connection after
   * the response.
   */
  isDraining: () => boolean
  trustProxy: string[] | boolean
  limits: Pick<Limits, 'connections' | 'body'>
}

/**
 * Creates an app with the limits of connections and the check of the host only, for pages that only operators open.
 * `requestMs` is the longest time for a whole request, if a body may take longer than headers.
 */
export function createOperatorApp({ connections }: Pick<Limits, 'connections'>, requestMs?: number): FastifyInstance {
  const app = fastify({
    ...connectionOptions(connections, requestMs),
    schemaController: NO_JSON_SCHEMA,
    // Sent here, because a path that cannot be decoded is rejected before any hook.
    frameworkErrors(_error, _request, { raw }) {
      const failure = invalidUrl()
      raw.writeHead(failure.statusCode, { 'content-type': 'application/json; charset=utf-8', ...failure.headers })
      raw.end(JSON.stringify(fail(failure)))
    },
  })
  limitConnections(app.server, connections)
  app.addHook('onRequest', async ({ raw }) => {
    if (!hasProperHost(raw)) throw improperHost()
  })
  return app
}

/** Creates the app without routes: connection limits, request log, error handling, body parsing. */
export async function createHttpApp(dependencies: Dependencies): Promise<FastifyInstance> {
  const { log, onRequest, isOutage, isDraining, trustProxy, limits } = dependencies
  const requestLog = createRequestLog(log, onRequest)
  const errorHandling = { log, requestLog, isOutage, limits }
  const app = fastify({
    ...connectionOptions(limits.connections),
    bodyLimit: limits.body.bytes,
    trustProxy,
    // A closing app still serves requests on open connections, and must not reject these requests with 503.
    return503OnClosing: false,
    genReqId: requestIdOf,
    schemaController: NO_JSON_SCHEMA,
    exposeHeadRoutes: true,
    clientErrorHandler: (error, socket) => rejectBrokenHttp(error, socket, requestLog),
    frameworkErrors: (error, request, reply) => rejectBadUrl(error, request, reply, errorHandling),
  })
  limitConnections(app.server, limits.connections)
  respondAll(app.server, requestLog)

  app.decorateRequest('caller')
  app.decorateRequest('publicKey', undefined)
  app.decorateRequest('mid', undefined)
  app.decorateRequest('orderId', undefined)
  app.decorateRequest('acquirerAccount', undefined)
  app.decorateRequest('accountKind', undefined)
  app.decorateRequest('refusal', undefined)
  const errorOf = registerErrorHandling(app, errorHandling)
  // Hooks use callbacks, because an async hook costs every request a promise. Errors are sent from this early hook,
  // because Fastify reads the body before later hooks run, even for an unknown path.
  app.addHook('onRequest', (request, reply, done) => {
    requestLog.track(request, reply)
    reply.header('x-request-id', request.id).header('cache-control', 'no-store')
    // A pipelined request, whose socket still belongs to the previous response, is disconnected, because many pipelined
    // requests would block the event loop. Browsers and proxies send one request at a time.
    if (reply.raw.socket === null) request.raw.socket.destroy()
    else done(errorOf(request))
  })
  // isDraining is called when the response is sent, not in onRequest, because the request may have arrived before the
  // drain, and its open connection would delay the shutdown. A response sent before a chunked body has been read
  // completely also closes the connection: an error in the rest of the body would break the connection later, when a
  // proxy may already use the connection for another client.
  app.addHook('onSend', ({ raw, headers }, reply, _payload, done) => {
    const mayBreak = headers['transfer-encoding'] !== undefined && !raw.complete
    if (isDraining() || mayBreak) reply.header('connection', 'close')
    done()
  })
  await registerInput(app, limits.body)
  return app
}

/**
 * Returns Fastify's options for the limits of a single connection. Node.js' server enforces these limits. `requestMs`
 * is the longest time for a whole request, and `limits.requestMs` that for its headers. A public service also needs
 * HAProxy in front (src/operator/deploy/haproxy.cfg), because only HAProxy limits the connections per client address.
 */
function connectionOptions(limits: Limits['connections'], requestMs = limits.requestMs) {
  return {
    requestTimeout: requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionTimeout: limits.stalledMs,
    http: {
      maxHeaderSize: limits.headersBytes,
      // At most requestTimeout, because Node.js applies the longer of the two to the whole request.
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // The check is off, because error-handler.ts rejects a missing Host header with an envelope, whereas Node.js
      // would reject the request without an envelope.
      requireHostHeader: false,
    },
  }
}

/** Sets limits for which Fastify has no option. A connection beyond `connections` is closed immediately. */
function limitConnections(server: Server, { connections }: Pick<Limits['connections'], 'connections'>) {
  server.maxConnections = connections
  // The limit is off, because error-handler.ts counts headers. Node.js 20 would silently drop excess headers, and
  // Node.js 24 would reject the request as too large.
  server.maxHeadersCount = 0
}
