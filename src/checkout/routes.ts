import { randomInt } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import * as z from 'zod'
import { notFound, paymentClosed, unavailable } from '../errors.ts'
import { holds } from '../http/etag.ts'
import { isOrderId } from '../payments/intent.ts'
import { recordReport } from '../payments/record-report.ts'
import type { Reports } from '../payments/report-repository.ts'
import type { Checkout, Intents } from '../payments/repository.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { messagePage, PAGE_HEADERS, payPage } from './page.ts'
import { createPaymentWatch } from './payment-watch.ts'
import { qrPng, qrSvg } from './qr-image.ts'

/** How long a browser or proxy may keep a QR, so that an expired one is not shown for much longer. */
const QR_MAX_AGE_SECONDS = 30
/** Pages of one instance that wait for their payment; each holds a connection. One more is told to come back. */
const OPEN_PAGES_LIMIT = 10_000
/** Of one order: who knows its address must not take up the places of all other customers. */
const OPEN_PAGES_OF_ORDER_LIMIT = 20

/** How soon a browser whose connection was lost asks again; its own habit is 3 seconds or more. */
const COME_BACK_MS = 1_000

export type CheckoutRoutes = {
  intents: Pick<Intents, 'findCheckout' | 'findStatuses'>
  reports: Reports
  now: () => Date
  /** Whether pages carry a control that pays without money. */
  sandbox: boolean
  onWatchError: (error: unknown) => void
}

type PayRequest = FastifyRequest<{ Params: { orderId: string } }>

/** What the customer sees: contract B13, B14, C4. */
export function checkoutRoutes(app: FastifyInstance, { intents, reports, now, sandbox, onWatchError }: CheckoutRoutes) {
  const watch = createPaymentWatch({ intents, now, onError: onWatchError })
  app.addHook('preClose', async () => watch.close())

  const asPage = { config: { refusalPage: { headers: PAGE_HEADERS, html: messagePage } } }
  app.get('/pay/:orderId', asPage, async (request: PayRequest, reply) => {
    const checkout = await findCheckout(request)
    return reply.headers(PAGE_HEADERS).send(payPage(checkout, { now: now(), sandbox }))
  })

  // Without a HEAD: it would open a page that nothing ever closes.
  app.get('/pay/:orderId/events', { exposeHeadRoute: false }, async (request: PayRequest, reply) => {
    const checkout = await findCheckout(request)
    // Answered already, since the look-up took too long: nothing would ever close what is opened now.
    if (reply.sent) return reply
    if (watch.openPages() >= OPEN_PAGES_LIMIT) throw unavailable()
    if (watch.openPagesOf(checkout.orderId) >= OPEN_PAGES_OF_ORDER_LIMIT) throw unavailable()
    const events = new Readable({ read() {} })
    events.push(`retry: ${COME_BACK_MS}\n\n`)
    const close = watch.open(checkout, {
      state: (state) => events.push(`data: ${state}\n\n`),
      heartbeat: () => events.push(':\n\n'),
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

  app.get('/pay/:orderId/qr.png', (request: PayRequest, reply) => sendQr(request, reply, 'image/png', qrPng))
  app.get('/pay/:orderId/qr.svg', (request: PayRequest, reply) => sendQr(request, reply, 'image/svg+xml', qrSvg))

  if (sandbox) {
    const body = z.object({ status: z.enum(['SUCCESS', 'FAIL']) })
    app.post('/pay/:orderId/simulate', { schema: { body } }, async (request: PayRequest, reply) => {
      const { orderId, amount } = await findCheckout(request)
      const { status } = request.body as z.output<typeof body>
      const utr = String(randomInt(10 ** 11, 10 ** 12))
      const report = { orderId, status, utr, amount: `${amount}.00`, paidAt: now() }
      await recordReport(reports, report, { reason: 'sandbox', now: now() })
      return reply.redirect(`../${orderId}`, 303)
    })
  }

  async function findCheckout({ params: { orderId } }: PayRequest): Promise<Checkout> {
    const checkout = isOrderId(orderId) ? await intents.findCheckout(orderId) : undefined
    if (!checkout) throw notFound('There is no payment at this address')
    if (checkout.merchantDisabled) throw paymentClosed()
    return checkout
  }

  async function sendQr(
    request: PayRequest,
    reply: FastifyReply,
    type: string,
    draw: (text: string) => Buffer | string,
  ) {
    const checkout = await findCheckout(request)
    const openForMs = checkout.expiresAt.getTime() - now().getTime()
    if (openForMs <= 0 || checkout.status === 'SUCCESS') throw paymentClosed()
    const maxAge = Math.min(QR_MAX_AGE_SECONDS, Math.floor(openForMs / 1000))
    // An intent's link never changes, so its name is all that the tag needs.
    const etag = `"${checkout.orderId}"`
    reply.headers({ 'cache-control': `public, max-age=${maxAge}`, etag, 'x-content-type-options': 'nosniff' })
    if (holds(request.headers['if-none-match'], etag)) return reply.code(304).send()
    return reply.type(type).send(draw(upiQrLink(checkout)))
  }
}
