import { randomInt } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance } from 'fastify'
import { unavailable } from '../errors.ts'
import type { Limits } from '../limits.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'
import { createOpenPlaces } from './open-places.ts'
import type { PaymentWatch } from './payment-watch.ts'

/** Server-sent events for the script of open pay pages. */
export function pageEvents(
  app: FastifyInstance,
  { findCheckout, watch, limits }: { findCheckout: FindCheckout; watch: PaymentWatch; limits: Limits['pages'] },
) {
  const places = createOpenPlaces(limits)
  const heartbeatMs = limits.heartbeatLookUps * limits.lookUpIntervalMs

  // No HEAD route: it would run the same handler, and nothing would ever close the stream that this opens.
  const options = { exposeHeadRoute: false }
  app.get<{ Params: { orderId: string } }>(`${ORDER_PATH}/events`, options, async ({ params, ip }, reply) => {
    // Before the look-up, so that a refusal costs the database nothing.
    const leavePlace = places.take(params.orderId, ip)
    if (leavePlace === undefined) throw unavailable()
    reply.raw.once('close', leavePlace)
    const checkout = await findCheckout(params.orderId)
    // Nothing would ever close a stream that is opened now: the look-up took too long, and 503 was sent; or the connection
    // was closed while this request waited behind another one on it.
    if (reply.sent || reply.raw.destroyed) return reply
    const events = new Readable({ read() {} })
    const heartbeat = () => events.push(`event: heartbeat\ndata: ${heartbeatMs}\n\n`)
    events.push(`retry: ${randomInt(limits.comeBackFromMs, limits.comeBackToMs)}\n\n`)
    heartbeat()
    const close = watch.open(checkout, {
      state: (state, utr) => {
        if (utr !== null) events.push(`event: utr\ndata: ${utr}\n\n`)
        events.push(`data: ${state}\n\n`)
      },
      heartbeat,
      over: () => {
        events.push('event: over\ndata:\n\n')
        events.push(null)
      },
      leave: () => events.push(null),
    })
    events.once('close', close)
    // nginx would otherwise hold the events back until its buffer is full.
    return reply.headers({ 'content-type': 'text/event-stream', 'x-accel-buffering': 'no' }).send(events)
  })
}
