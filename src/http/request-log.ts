import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Metrics } from './metrics.ts'

/** What nginx calls a client that left before its answer, and what operators therefore look for. It is never sent. */
const CLIENT_GONE = 499

export type RequestLog = {
  /** Writes the line of `request` when its answer is over, or nobody is there any more to take it. */
  follow: (request: FastifyRequest, reply: FastifyReply) => void
  /** Writes the line of an answer to bytes that never became a request. */
  noRequest: (id: string, status: number) => void
}

/**
 * One line and one measurement a request. It names the route and never the address as sent, and holds nothing that
 * a merchant or customer wrote.
 */
export function createRequestLog(log: Logger, metrics: Pick<Metrics, 'request'>): RequestLog {
  return { follow, noRequest }

  function follow(request: FastifyRequest, reply: FastifyReply) {
    const startMs = performance.now()
    const { raw } = reply
    // Not the hook onResponse, which stays silent about a client that went away.
    raw.once('close', () => {
      const durationMs = performance.now() - startMs
      const route = request.routeOptions.url ?? 'none'
      const status = raw.headersSent ? raw.statusCode : CLIENT_GONE
      metrics.request(route, status, durationMs)
      log.info(
        {
          // An answer past the framework, to a request that broke off, has an id of its own.
          id: raw.getHeader('x-request-id') ?? request.id,
          method: request.method,
          route,
          status,
          durationMs: Math.round(durationMs * 10) / 10,
          publicKey: request.publicKey,
          mid: request.mid,
          // An answer that broke off: its status was sent already.
          cut: raw.headersSent && !raw.writableFinished ? true : undefined,
        },
        'request',
      )
    })
  }

  function noRequest(id: string, status: number) {
    metrics.request('none', status, 0)
    log.info({ id, route: 'none', status }, 'no request')
  }
}
