import { randomInt } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from 'fastify'
import type * as z from 'zod'
import { notFound, paymentClosed, unavailable } from '../errors.ts'
import { holds } from '../http/etag.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Reports } from '../payments/report-repository.ts'
import type { Checkout, Intents } from '../payments/repository.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { createOpenPlaces } from './open-places.ts'
import { messagePage, PAGE_HEADERS, pageState, payPage } from './page.ts'
import { createPaymentWatch } from './payment-watch.ts'
import { qrPng, qrSvg } from './qr-image.ts'
import { createQrMemory } from './qr-memory.ts'
import { Simulation, simulate } from './simulate.ts'

/** How long a browser or proxy may keep a QR, so that an expired one is not shown for much longer. */
const QR_MAX_AGE_SECONDS = 30
/**
 * How soon a browser whose connection was lost asks again, spread over this range: when an instance stops, 10,000 pages
 * would otherwise come to another one in the same moment.
 */
const COME_BACK_MS = { from: 1_000, to: 4_000 }

/**
 * Look-ups of orders under way at once for pages, QRs and events. Anybody may ask for them, and beyond it they would take the
 * connections of payments: 1,280 at once left 50 % of creates without one.
 */
const LOOK_UPS_LIMIT = 100

/** How soon a browser loads a page again that was refused because the service was briefly away. */
const REFUSED_PAGE_RELOAD_SECONDS = 5

export type CheckoutRoutes = {
  intents: Pick<Intents, 'findCheckout' | 'findStates' | 'expire'>
  reports: Reports
  now: () => Date
  /** Whether pages carry a control that pays without money. */
  sandbox: boolean
  onWatchError: (error: unknown) => void
}

type PayRequest = FastifyRequest<{ Params: { orderId: string } }>

/** What the customer sees: the pay page, its events and its QR. */
export function checkoutRoutes(app: FastifyInstance, { intents, reports, now, sandbox, onWatchError }: CheckoutRoutes) {
  let lookUps = 0
  const watch = createPaymentWatch({ intents, now, onError: onWatchError })
  const places = createOpenPlaces()
  app.addHook('preClose', async () => watch.close())

  const asPage = {
    config: { refusalPage: { headers: PAGE_HEADERS, html: messagePage } },
    // The page of a customer without JavaScript loads itself again and again, and must not end at the first 503.
    onSend: (_request, reply, payload, done) => {
      if (reply.statusCode === 503) reply.header('refresh', REFUSED_PAGE_RELOAD_SECONDS)
      done(null, payload)
    },
  } satisfies RouteShorthandOptions
  app.get('/pay/:orderId', asPage, async (request: PayRequest, reply) => {
    const checkout = await findCheckout(request)
    const moment = now()
    // For the page's own script, which asks by HEAD while it gets no events.
    reply.headers({
      ...PAGE_HEADERS,
      'x-payment-state': pageState(checkout, moment),
      'x-payment-utr': checkout.utr ?? '',
    })
    return reply.send(payPage(checkout, { now: moment, sandbox }))
  })

  // Without a HEAD: it would open a page that nothing ever closes.
  app.get('/pay/:orderId/events', { exposeHeadRoute: false }, async (request: PayRequest, reply) => {
    // Before the look-up: what is refused costs the database nothing.
    const leavePlace = places.take(request.params.orderId, request.ip)
    if (leavePlace === undefined) throw unavailable()
    reply.raw.once('close', leavePlace)
    const checkout = await findCheckout(request)
    // Answered already, since the look-up took too long: nothing would ever close what is opened now.
    if (reply.sent) return reply
    const events = new Readable({ read() {} })
    events.push(`retry: ${randomInt(COME_BACK_MS.from, COME_BACK_MS.to)}\n\n`)
    const close = watch.open(checkout, {
      state: (state, utr) => {
        if (utr !== null) events.push(`event: utr\ndata: ${utr}\n\n`)
        events.push(`data: ${state}\n\n`)
      },
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

  const images = createQrMemory()
  app.get('/pay/:orderId/qr.png', (request: PayRequest, reply) => sendQr(request, reply, 'image/png', qrPng))
  app.get('/pay/:orderId/qr.svg', (request: PayRequest, reply) =>
    sendQr(request, reply, 'image/svg+xml', (text) => Buffer.from(qrSvg(text))),
  )

  if (sandbox) {
    app.post('/pay/:orderId/simulate', { schema: { body: Simulation } }, async (request: PayRequest, reply) => {
      const checkout = await findCheckout(request)
      await simulate(checkout, request.body as z.output<typeof Simulation>, { intents, reports, now })
      return reply.redirect(`../${checkout.orderId}`, 303)
    })
  }

  async function findCheckout({ params: { orderId } }: PayRequest): Promise<Checkout> {
    const checkout = isOrderId(orderId) ? await lookUp(orderId) : undefined
    if (!checkout) throw notFound('There is no payment at this address')
    if (checkout.merchantDisabled) throw paymentClosed()
    return checkout
  }

  async function lookUp(orderId: string): Promise<Checkout | undefined> {
    if (lookUps >= LOOK_UPS_LIMIT) throw unavailable()
    lookUps++
    try {
      return await intents.findCheckout(orderId)
    } finally {
      lookUps--
    }
  }

  async function sendQr(request: PayRequest, reply: FastifyReply, type: string, draw: (text: string) => Buffer) {
    const checkout = await findCheckout(request)
    const openForMs = checkout.expiresAt.getTime() - now().getTime()
    if (openForMs <= 0 || checkout.status === 'SUCCESS') throw paymentClosed()
    const maxAge = Math.min(QR_MAX_AGE_SECONDS, Math.floor(openForMs / 1000))
    // An intent's link never changes, so its name is all that the tag needs.
    const etag = `"${checkout.orderId}"`
    reply.headers({ 'cache-control': `public, max-age=${maxAge}`, etag, 'x-content-type-options': 'nosniff' })
    if (holds(request.headers['if-none-match'], etag)) return reply.code(304).send()
    const image = await images.imageOf(`${checkout.orderId} ${type}`, () => draw(upiQrLink(checkout)))
    return reply.type(type).send(image)
  }
}
