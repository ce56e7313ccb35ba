import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import { unavailable } from '../errors.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'
import { createPaymentWatch } from './payment-watch.ts'

type Dependencies = Omit<Parameters<typeof createPaymentWatch>[0], 'onError'> & {
  findCheckout: FindCheckout
  log: Logger
}

/** Server-sent events for the script of open pay pages. A page that is refused asks for its state every few seconds. */
export function pageEvents(app: FastifyInstance, { findCheckout, intents, now, log, limits }: Dependencies) {
  const onError = (error: Error) => log.warn({ error: error.message }, 'open pages were not looked up')
  const watch = createPaymentWatch({ intents, now, limits, onError })
  app.addHook('preClose', async () => watch.close())
  // No HEAD route: it would run the same handler, and nothing would ever close the stream that this opens.
  const options = { exposeHeadRoute: false }
  app.get<{ Params: { orderId: string } }>(`${ORDER_PATH}/events`, options, async ({ params }, reply) => {
    const checkout = await findCheckout(params.orderId)
    // Nothing would ever close a stream that is opened now: the look-up took too long, and 503 was sent, or the client has left.
    if (reply.sent || reply.raw.destroyed) return reply
    const events = watch.open(checkout)
    if (events === undefined) throw unavailable()
    // nginx would otherwise hold the events back until its buffer is full.
    return reply.headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }).send(events)
  })
}
