import { internalError, paymentClosed, unavailable } from '../errors.ts'
import { matchesEtag } from '../http/etag.ts'
import { operation } from '../http/operation.ts'
import type { Limits } from '../limits.ts'
import type { Intent } from '../payments/intent.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { type FindCheckout, noPaymentHere, ORDER_PATH } from './find-checkout.ts'
import { isPayable, pageState } from './page.ts'
import { qrPng, qrSvg } from './qr-image.ts'
import { type QrMemory, qrName } from './qr-memory.ts'

export const payQrPng = qr({ name: 'payQrPng', form: 'PNG', type: 'image/png', draw: qrPng })

export const payQrSvg = qr({
  name: 'payQrSvg',
  form: 'SVG',
  type: 'image/svg+xml',
  draw: (text) => Buffer.from(qrSvg(text)),
})

type Dependencies = { findCheckout: FindCheckout; images: QrMemory; now: () => Date; limits: Limits['pages'] }

/** Makes the QR of an intent as PNG, for merchants whose dynamicQR is the picture itself. */
export function createQrImage(images: QrMemory) {
  return (intent: Intent) => images(qrName(intent.orderId, 'image/png'), () => qrPng(upiQrLink(intent)))
}

function qr({ name, form, type, draw }: { name: string; form: string; type: string; draw: (text: string) => Buffer }) {
  return operation({
    name,
    path: `${ORDER_PATH}/qr.${form.toLowerCase()}`,
    tag: 'Customer',
    summary: `The QR as ${form}`,
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
    handle: ({ findCheckout, images, now, limits: { qrMaxAgeSeconds } }: Dependencies) => {
      return async ({ params, headers }, reply) => {
        const checkout = await findCheckout(params.orderId)
        const asked = now()
        if (!isPayable(pageState(checkout, asked))) throw paymentClosed()
        const openForMs = checkout.expiresAt.getTime() - asked.getTime()
        const maxAge = Math.min(qrMaxAgeSeconds, Math.floor(openForMs / 1000))
        // An intent's link never changes, so its name is all that the tag needs.
        const etag = `"${checkout.orderId}"`
        reply.headers({ 'cache-control': `public, max-age=${maxAge}`, etag, 'x-content-type-options': 'nosniff' })
        if (matchesEtag(headers['if-none-match'], etag)) return reply.code(304).send()
        reply.type(type)
        return images(qrName(checkout.orderId, type), () => draw(upiQrLink(checkout)))
      }
    },
  })
}
