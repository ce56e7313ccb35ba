import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { Metrics } from './metrics.ts'

/**
 * One line and one measurement a request, written when it is over. It names the route and never the address as sent, and holds nothing that
 * a merchant or customer wrote.
 */
export function registerRequestLog(app: FastifyInstance, log: Logger, metrics: Pick<Metrics, 'request'>) {
  app.addHook('onResponse', (request, reply, done) => {
    const route = request.routeOptions.url ?? 'none'
    metrics.request(route, reply.statusCode, reply.elapsedTime)
    log.info(
      {
        id: request.id,
        method: request.method,
        route,
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime * 10) / 10,
        publicKey: request.publicKey,
        mid: request.mid,
      },
      'request',
    )
    done()
  })
}
