import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { notFound, paymentClosed } from '../errors.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Intents } from '../payments/repository.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { qrPng, qrSvg } from './qr-image.ts'

/** How long a browser or proxy may keep a QR, so that an expired one is not shown for much longer. */
const QR_MAX_AGE_SECONDS = 30

export type CheckoutRoutes = { intents: Pick<Intents, 'findOpenPayment'>; now: () => Date }

/** What the customer sees: contract B13, B14. */
export function checkoutRoutes(app: FastifyInstance, { intents, now }: CheckoutRoutes) {
  app.get<{ Params: { orderId: string } }>('/pay/:orderId/qr.png', (request, reply) =>
    sendQr(request, reply, 'image/png', qrPng),
  )
  app.get<{ Params: { orderId: string } }>('/pay/:orderId/qr.svg', (request, reply) =>
    sendQr(request, reply, 'image/svg+xml', qrSvg),
  )

  async function sendQr(
    request: FastifyRequest<{ Params: { orderId: string } }>,
    reply: FastifyReply,
    type: string,
    draw: (text: string) => Buffer | string,
  ) {
    const { orderId } = request.params
    const payment = isOrderId(orderId) ? await intents.findOpenPayment(orderId) : undefined
    if (!payment) throw notFound('There is no payment at this address')
    const openForMs = payment.expiresAt.getTime() - now().getTime()
    if (openForMs <= 0 || payment.merchantDisabled) throw paymentClosed()
    const maxAge = Math.min(QR_MAX_AGE_SECONDS, Math.floor(openForMs / 1000))
    // An intent's link never changes, so its name is all that the tag needs.
    const etag = `"${orderId}"`
    reply.headers({ 'cache-control': `public, max-age=${maxAge}`, etag, 'x-content-type-options': 'nosniff' })
    if (request.headers['if-none-match'] === etag) return reply.code(304).send()
    return reply.type(type).send(draw(upiQrLink(payment)))
  }
}
