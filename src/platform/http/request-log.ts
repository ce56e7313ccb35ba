import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AcquirerError } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The orderId in a signed notification, for the log. */
    orderId: string | undefined
    /** The acquirer account that sent this notification, for the log. */
    acquirerAccount: string | undefined
    /** The kind of the acquirer account that sent the notification or failed to create a link, for metrics. */
    accountKind: AcquirerError['accountKind']
    /** The `msg` of an error response, which contains no text from the request. */
    refusal: string | undefined
  }
}

/**
 * Paths that the servers of merchants, partners and banks call. Customers open all other paths, and the log does not
 * contain customers' IP addresses.
 */
const CALLED_BY_SERVERS = /^(https?:\/\/[^/?#]*)?\/(v1|acquirer)\//i

/**
 * Routes that containers and load balancers request continuously. Successful requests are logged only at level debug,
 * because one request every 10 s would write 8,640 log lines a day.
 */
const HEALTH_CHECKS = new Set(['/livez', '/readyz'])

/** Logged status of a request whose client disconnected before the response, as in nginx. This status is never sent. */
const CLIENT_GONE = 499

/** Called once the response is sent or the client has disconnected. */
export type OnRequest = (
  request: { route: string; status: number; accountKind?: FastifyRequest['accountKind'] },
  durationMs: number,
) => void

export type RequestLog = ReturnType<typeof createRequestLog>

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

/** Returns the caller's own x-request-id if this id is safe in a header and in a log line, otherwise a new id. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers['x-request-id']
  return typeof sent === 'string' && SANE_REQUEST_ID.test(sent) ? sent : randomUUID()
}

/**
 * Writes a log line and a measurement for each request. The line contains the route instead of the path, no customer's
 * IP address, and no text from a merchant or customer except x-request-id. Successful health checks are logged at level
 * debug.
 */
export function createRequestLog(log: Logger, onRequest: OnRequest) {
  /** The response to the latest request of each connection. */
  const latestResponses = new WeakMap<Duplex, ServerResponse>()
  return { track, noRequest, latestResponses }

  /** Writes the log line once the response is sent or the client has disconnected. */
  function track(request: FastifyRequest, reply: FastifyReply) {
    const startMs = performance.now()
    const { raw } = reply
    latestResponses.set(request.raw.socket, raw)
    const byServer = CALLED_BY_SERVERS.test(request.url)
    // Reads the address before the response, because a closed connection has none.
    const address = byServer ? request.ip : ''
    // Uses the event `close`, because Fastify does not call its hook onResponse after a client has disconnected.
    raw.once('close', () => {
      const durationMs = performance.now() - startMs
      const route = request.routeOptions.url ?? 'none'
      const status = raw.headersSent ? raw.statusCode : CLIENT_GONE
      onRequest({ route, status, accountKind: request.accountKind }, durationMs)
      const level = status === 200 && HEALTH_CHECKS.has(route) ? 'debug' : 'info'
      log[level](
        {
          // Prefers the id in the response, because a response from broken-http.ts has its own id.
          id: raw.getHeader('x-request-id') ?? request.id,
          method: request.method,
          route,
          status,
          durationMs: Math.round(durationMs * 10) / 10,
          publicKey: request.publicKey,
          mid: request.mid,
          orderId: request.orderId,
          acquirerAccount: request.acquirerAccount,
          // A proxy may pass on any text in X-Forwarded-For.
          address: isIP(address) ? address : undefined,
          refusal: byServer ? request.refusal : undefined,
          // True for a response that was cut off after its status was sent.
          cut: raw.headersSent && !raw.writableFinished ? true : undefined,
        },
        'Request completed',
      )
    })
  }

  /** Writes the log line for bytes that are not an HTTP request. */
  function noRequest(id: string, status: number) {
    onRequest({ route: 'none', status }, 0)
    log.info({ id, route: 'none', status }, 'Invalid HTTP received')
  }
}
