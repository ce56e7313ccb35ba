import { setImmediate as turnOfTheLoop } from 'node:timers/promises'
import { LRUCache } from 'lru-cache'
import { internalError, noPaymentHere, paymentClosed, unavailable } from '../../errors.ts'
import type { Limits } from '../../limits.ts'
import { operation } from '../../platform/http/operation.ts'
import { matchesEtag } from '../../platform/http/request-headers.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { type FindCheckout, ORDER_PATH } from './find-checkout.ts'
import { isPayable } from './page-state.ts'
import { qrPng, qrSvg } from './qr-image.ts'

export const payQrPng = qr('payQrPng', 'png', 'image/png')
export const payQrSvg = qr('payQrSvg', 'svg', 'image/svg+xml')

/** Maximum time for which browsers and proxies cache a QR, so that it disappears soon after its payment is closed. */
const MAX_AGE_SECONDS = 30

type QrFormat = 'png' | 'svg'

export type DrawQr = (format: QrFormat, text: string) => Promise<Buffer>

/**
 * Returns a function that draws the QR of a text. Caches QRs, because browsers, proxies and attackers request the same
 * one again. Drawing blocks the event loop, so each turn of the loop draws at most one QR.
 */
export function createDrawQr({ qrImagesBytes }: Pick<Limits['pages'], 'qrImagesBytes'>): DrawQr {
  const images = new LRUCache<string, Buffer, { format: QrFormat; text: string }>({
    maxSize: qrImagesBytes,
    sizeCalculation: (image) => image.length,
    ignoreFetchAbort: true,
    async fetchMethod(_name, _stale, { context: { format, text } }) {
      const turn = lastDrawing.then(() => turnOfTheLoop())
      lastDrawing = turn
      await turn
      return format === 'png' ? qrPng(text) : Buffer.from(qrSvg(text))
    },
  })
  let lastDrawing = Promise.resolve()

  return (format, text) => images.forceFetch(`${format} ${text}`, { context: { format, text } })
}

type Dependencies = { findCheckout: FindCheckout; drawQr: DrawQr; now: () => Date }

function qr(name: string, format: QrFormat, type: string) {
  return operation({
    name,
    path: `${ORDER_PATH}/qr.${format}`,
    tag: 'Customer',
    summary: `Get the QR code as ${format.toUpperCase()}`,
    description: 'Available until the intent is paid, cancelled or expired; then 410.',
    access: 'anyone',
    errors: [noPaymentHere(), paymentClosed(), internalError(), unavailable()],
    response: {
      description: 'The image.',
      type,
      headers: ['cache-control', 'etag'],
      isCacheable: true,
      toBody: (image: Buffer) => image,
    },
    handle: ({ findCheckout, drawQr, now }: Dependencies) => {
      return async ({ params, headers }, reply) => {
        const checkout = await findCheckout(params.orderId)
        const moment = now()
        if (!isPayable(checkout, moment)) throw paymentClosed()
        const openForMs = checkout.expiresAt.getTime() - moment.getTime()
        const maxAge = Math.min(MAX_AGE_SECONDS, Math.floor(openForMs / 1000))
        // The orderId serves as ETag, because an intent's link, and therefore its QR, never changes.
        const etag = `"${checkout.orderId}"`
        reply.headers({ 'cache-control': `public, max-age=${maxAge}`, etag, 'x-content-type-options': 'nosniff' })
        if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
        reply.type(type)
        return drawQr(format, upiQrLink(checkout))
      }
    },
  })
}
