import type { Merchant } from '../merchants/merchants.ts'
import type { Intent } from '../payments/intent.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import { qrPng } from './qr-image.ts'

/** The field dynamicQR as `merchant` is set: a link to the image under `publicUrl`, or the image itself as a data URL. */
export function dynamicQr(intent: Intent, merchant: Merchant, publicUrl: string): string {
  if (merchant.dynamicQr === 'link') return `${publicUrl}/pay/${intent.orderId}/qr.png`
  return `data:image/png;base64,${qrPng(upiQrLink(intent)).toString('base64')}`
}
