import type { Server } from 'node:http'
import type { Limits } from '../limits.ts'

/** How often slow connections are looked for. Closing one takes 0.2 ms: with 1,750 of them at once others waited 0.3 s. */
const CHECK_INTERVAL_MS = 100

/**
 * Fastify's options for the limits of Node.js' own server on what a connection may hold. A public address needs HAProxy before
 * it, see balancer/haproxy.cfg: only that limits what an address or a key may hold.
 */
export function connectionOptions(limits: Limits['connections']) {
  return {
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionTimeout: limits.stalledMs,
    http: {
      maxHeaderSize: limits.headersBytes,
      // Node.js lets the longer of the two be the limit of the whole request.
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // A missing Host would be answered by Node.js without an envelope; error-handler.ts refuses it.
      requireHostHeader: false,
    },
  }
}

/** The limits that are no options. One connection more than `connections` is closed at once. */
export function limitConnections(server: Server, { connections }: Pick<Limits['connections'], 'connections'>) {
  server.maxConnections = connections
  // error-handler.ts counts them: Node.js 20 would drop the rest in silence, and 24 calls them too large.
  server.maxHeadersCount = 0
}
