import type { Server } from 'node:http'
import type { Limits } from '../../limits.ts'

/**
 * Interval between two checks for slow connections. The interval is short, because closing many connections in one
 * check blocks the event loop.
 */
const CHECK_INTERVAL_MS = 100

/**
 * Returns Fastify's options for the limits of a single connection. Node.js' server enforces these limits. `requestMs`
 * is the longest time for a whole request, and `limits.requestMs` that for its headers. A public service also needs HAProxy in front (src/operator/deploy/haproxy.cfg), because only HAProxy limits the connections
 * per client address.
 */
export function connectionOptions(limits: Limits['connections'], requestMs = limits.requestMs) {
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
export function limitConnections(server: Server, { connections }: Pick<Limits['connections'], 'connections'>) {
  server.maxConnections = connections
  // The limit is off, because error-handler.ts counts headers. Node.js 20 would silently drop excess headers, and
  // Node.js 24 would reject the request as too large.
  server.maxHeadersCount = 0
}
