import type { Server } from 'node:http'
import type { Limits } from '../../limits.ts'

/** Pause between two checks for slow connections: short, because closing many at once blocks the event loop. */
const CHECK_INTERVAL_MS = 100

/**
 * Fastify's options for the limits of a single connection, which Node.js' server enforces. A public service also needs
 * HAProxy in front (balancer/haproxy.cfg), because only HAProxy limits the connections of one client address.
 */
export function connectionOptions(limits: Limits['connections']) {
  return {
    requestTimeout: limits.requestMs,
    keepAliveTimeout: limits.keepAliveMs,
    connectionTimeout: limits.stalledMs,
    http: {
      maxHeaderSize: limits.headersBytes,
      // Equal to requestTimeout, because Node.js takes the longer of the two for the whole request.
      headersTimeout: limits.requestMs,
      connectionsCheckingInterval: CHECK_INTERVAL_MS,
      // Off, because error-handler.ts refuses a missing Host with an envelope; Node.js would refuse it without one.
      requireHostHeader: false,
    },
  }
}

/** Sets limits for which Fastify has no option. A connection beyond `connections` is closed at once. */
export function limitConnections(server: Server, { connections }: Pick<Limits['connections'], 'connections'>) {
  server.maxConnections = connections
  // Off, because error-handler.ts counts headers. Node.js 20 would silently drop further headers, and Node.js 24 would refuse
  // them as too large.
  server.maxHeadersCount = 0
}
