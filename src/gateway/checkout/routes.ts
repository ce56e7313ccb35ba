import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { unavailable } from '../../errors.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'
import { createPaymentWatch } from './payment-watch.ts'
import { simulation } from './simulate.ts'

type Watching = Omit<Parameters<typeof createPaymentWatch>[0], 'onError'> & { findCheckout: FindCheckout; log: Logger }

type Dependencies = Watching & Parameters<typeof simulation>[1] & { sandbox: boolean }

/**
 * Registers routes that are not documented operations: the pay page's events and, in a sandbox, its simulation form.
 */
export function pageRoutes(app: FastifyInstance, dependencies: Dependencies) {
  pageEvents(app, dependencies)
  if (dependencies.sandbox) simulation(app, dependencies)
}

/**
 * Sends server-sent events to open pay pages. A page whose event stream is rejected polls its state every few seconds.
 */
function pageEvents(app: FastifyInstance, { findCheckout, log, ...watched }: Watching) {
  const onError = (error: Error) =>
    log.warn({ error: error.message }, 'the payment states of open pay pages could not be read')
  const watch = createPaymentWatch({ ...watched, onError })
  app.addHook('preClose', async () => watch.close())
  // HEAD is not supported: Fastify would run the same handler and open a stream that is never closed.
  const options = { exposeHeadRoute: false }
  type Request = { Params: { orderId: string }; Querystring: { back?: string } }
  app.get<Request>(`${ORDER_PATH}/events`, options, async ({ params, query, headers }, reply) => {
    // A browser that reconnects repeats the URL with this header, so `?back` alone does not prove that the customer
    // returned.
    const cameBack = query.back !== undefined && headers['last-event-id'] === undefined
    const checkout = await findCheckout(params.orderId)
    // Opens no stream after the deadline's 503 or after the client disconnected, because it would never be closed.
    if (reply.sent || reply.raw.destroyed) return reply
    const events = watch.open(checkout, cameBack)
    if (events === undefined) throw unavailable()
    // Without this header nginx buffers events until its buffer is full.
    return reply.headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }).send(events)
  })
}
