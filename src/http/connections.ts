import type { Server } from 'node:http'
import type { Limits } from '../limits.ts'

/** How often slow connections are looked for. Closing one takes 0.2 ms: with 1,750 of them at once others waited 0.3 s. */
const CHECK_INTERVAL_MS = 100

/**
 * Returns Fastify's options for the limits on a single connection, which Node.js' server enforces. A public address
 * also needs HAProxy in front, see balancer/haproxy.cfg: only HAProxy limits what one address or one key may hold.
 */
export function connectionOptions(limits: Limits['connections']) {
  return {
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionTimeout: limits.stalledMs,
    http: {
      maxHeaderSize: limits.headersBytes,
      // Equal to requestTimeout, because Node.js limits the whole request by the longer of the two.
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // A missing Host would be answered by Node.js without an envelope; error-handler.ts refuses it.
      requireHostHeader: false,
    },
  }
}

/** Sets the limits for which Fastify has no option. A connection beyond `connections` is closed at once. */
export function limitConnections(server: Server, { connections }: Pick<Limits['connections'], 'connections'>) {
  server.maxConnections = connections
  // 0 switches this limit off: error-handler.ts counts headers instead. Beyond it Node.js 20 would silently drop
  // headers, and Node.js 24 would refuse them as too large.
  server.maxHeadersCount = 0
}
