import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { AcquirerError } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** The orderId of a signed notification, for the log. */
    orderId: string | undefined
    /** The acquirer account whose notification this is, for the log. */
    acquirerAccount: string | undefined
    /** What that account is, or the account that failed to make a link, for metrics. */
    accountKind: AcquirerError['accountKind']
    /** The `msg` of a refusal, which contains no text of the request. */
    refusal: string | undefined
  }
}

/** Paths called by servers of shops, partners and banks. Customers open others, and their IP address is not logged. */
const CALLED_BY_SERVERS = /^(https?:\/\/[^/?#]*)?\/(v1|acquirer)\//i

/** Routes that containers and balancers request all the time. One request every 10 s is 8,640 log lines a day. */
const HEALTH_CHECKS = new Set(['/livez', '/readyz'])

/** Status in the log, as in nginx', of a request whose client left before the answer; never sent. */
const CLIENT_GONE = 499

/** Called when a request has ended. */
export type OnRequest = (
  request: { route: string; status: number; accountKind?: FastifyRequest['accountKind'] },
  durationMs: number,
) => void

export type RequestLog = ReturnType<typeof createRequestLog>

const SANE_REQUEST_ID = /^[A-Za-z0-9._-]{1,64}$/

/** The caller's own x-request-id if it is safe in a header and a log line, else a new one. */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const sent = headers['x-request-id']
  return typeof sent === 'string' && SANE_REQUEST_ID.test(sent) ? sent : randomUUID()
}

/**
 * Writes a log line and a measurement of each request. The line has the route, not the path, no customer's IP address,
 * and no text of a merchant or customer except x-request-id. Successful health checks are logged at level debug.
 */
export function createRequestLog(log: Logger, onRequest: OnRequest) {
  /** The answer to the latest request of each connection. */
  const latestAnswers = new WeakMap<Duplex, ServerResponse>()
  return { track, noRequest, latestAnswers }

  /** Writes the line once the answer is sent, or the client has left. */
  function track(request: FastifyRequest, reply: FastifyReply) {
    const startMs = performance.now()
    const { raw } = reply
    latestAnswers.set(request.raw.socket, raw)
    const byServer = CALLED_BY_SERVERS.test(request.url)
    // The address is read before the answer, because a closed connection has none.
    const address = byServer ? request.ip : ''
    // The event `close`, because Fastify's hook onResponse is not called after a client has left.
    raw.once('close', () => {
      const durationMs = performance.now() - startMs
      const route = request.routeOptions.url ?? 'none'
      const status = raw.headersSent ? raw.statusCode : CLIENT_GONE
      onRequest({ route, status, accountKind: request.accountKind }, durationMs)
      const level = status === 200 && HEALTH_CHECKS.has(route) ? 'debug' : 'info'
      log[level](
        {
          // An answer from broken-http.ts has an id of its own.
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
          // True for an answer that broke off after its status was sent.
          cut: raw.headersSent && !raw.writableFinished ? true : undefined,
        },
        'request',
      )
    })
  }

  /** Writes the line of an answer to bytes that are not an HTTP request. */
  function noRequest(id: string, status: number) {
    onRequest({ route: 'none', status }, 0)
    log.info({ id, route: 'none', status }, 'no request')
  }
}
