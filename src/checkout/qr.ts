import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { internalError, paymentClosed, unavailable } from '../errors.ts'
import { matchesEtag } from '../http/etag.ts'
import { operation } from '../http/operation.ts'
import type { Limits } from '../limits.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { type FindCheckout, noPaymentHere, ORDER_PATH } from './find-checkout.ts'
import { isPayable, pageState } from './page.ts'
import { qrPng, qrSvg } from './qr-image.ts'

export const payQrPng = qr('payQrPng', 'png', 'image/png')
export const payQrSvg = qr('payQrSvg', 'svg', 'image/svg+xml')

/** How long a browser or proxy may keep a QR, so that one is not shown for much longer than it may be paid. */
const MAX_AGE_SECONDS = 30

type QrFormat = 'png' | 'svg'

/** Returns the QR of a text. */
export type DrawQr = (format: QrFormat, text: string) => Promise<Buffer>

/**
 * Remembers the images that were asked for most recently, because browsers, proxies and attackers ask for the same one
 * again. Drawing one takes 1 to 4 ms in which nothing else is served, so only one is drawn in a turn of the event loop.
 * Whether an image may still be shown is for the caller to ask.
 */
export function createDrawQr({ qrImagesBytes }: Pick<Limits['pages'], 'qrImagesBytes'>): DrawQr {
  const images = new LRUCache<string, Buffer, { format: QrFormat; text: string }>({
    maxSize: qrImagesBytes,
    sizeCalculation: (image) => image.length,
    ignoreFetchAbort: true,
    async fetchMethod(_name, _stale, { context: { format, text } }) {
      const turn = lastTurn.then(() => turnOfTheLoop())
      lastTurn = turn
      await turn
      return format === 'png' ? qrPng(text) : Buffer.from(qrSvg(text))
    },
  })
  let lastTurn = Promise.resolve()

  return (format, text) => images.forceFetch(`${format} ${text}`, { context: { format, text } })
}

type Dependencies = { findCheckout: FindCheckout; drawQr: DrawQr; now: () => Date }

function qr(name: string, format: QrFormat, type: string) {
  return operation({
    name,
    path: `${ORDER_PATH}/qr.${format}`,
    tag: 'Customer',
    summary: `The QR as ${format.toUpperCase()}`,
    description: 'Answers until the intent is paid, cancelled or expired; then 410.',
    access: 'anyone',
    refusals: [noPaymentHere(), paymentClosed(), internalError(), unavailable()],
    answer: {
      description: 'The picture.',
      type,
      headers: ['cache-control', 'etag'],
      mayBeHeld: true,
      toBody: (image: Buffer) => image,
    },
    handle: ({ findCheckout, drawQr, now }: Dependencies) => {
      return async ({ params, headers }, reply) => {
        const checkout = await findCheckout(params.orderId)
        const asked = now()
        if (!isPayable(pageState(checkout, asked))) throw paymentClosed()
        const openForMs = checkout.expiresAt.getTime() - asked.getTime()
        const maxAge = Math.min(MAX_AGE_SECONDS, Math.floor(openForMs / 1000))
        // An intent's link never changes, so its name is all that the tag needs.
        const etag = `"${checkout.orderId}"`
        reply.headers({ 'cache-control': `public, max-age=${maxAge}`, etag, 'x-content-type-options': 'nosniff' })
        if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
        reply.type(type)
        return drawQr(format, upiQrLink(checkout))
      }
    },
  })
}
