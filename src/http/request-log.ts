import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'

/**
 * One line a request, written when it is over. It names the route and never the address as sent, and holds nothing that
 * a merchant or customer wrote.
 */
export function registerRequestLog(app: FastifyInstance, log: Logger) {
  app.addHook('onResponse', (request, reply, done) => {
    log.info(
      {
        id: request.id,
        method: request.method,
        route: request.routeOptions.url ?? 'none',
        status: reply.statusCode,
        durationMs: Math.round(reply.elapsedTime * 10) / 10,
        publicKey: request.publicKey,
      },
      'request',
    )
    done()
  })
}
