import type { Intent } from '../payments/intent.ts'
import { upiQrLink } from '../payments/upi-links.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { qrPng } from './qr-image.ts'
import { type QrMemory, qrName } from './qr-memory.ts'

/** Makes the field dynamicQR by the setting of `merchant`: a link below `publicUrl`, or the image itself as a data URL. */
export function createDynamicQr(publicUrl: string, images: QrMemory) {
  return async (intent: Intent, merchant: Merchant): Promise<string> => {
    if (merchant.dynamicQr === 'link') return `${publicUrl}/pay/${intent.orderId}/qr.png`
    const image = await images(qrName(intent.orderId, 'image/png'), () => qrPng(upiQrLink(intent)))
    return `data:image/png;base64,${image.toString('base64')}`
  }
}
