import { toIstText } from '../ist.ts'
import { toPlainText } from '../money.ts'
import type { Intent } from './intent.ts'
import { type UpiLinks, upiLinks } from './upi-links.ts'

/** `data` of createPaymentIntent: contract A2. Every value is text. */
export type PaymentIntentWire = UpiLinks & { dynamicQR: string; expiry: string; amount: string; orderId: string }

export function toWire(intent: Intent, dynamicQR: string): PaymentIntentWire {
  return {
    ...upiLinks(intent),
    dynamicQR,
    expiry: toIstText(intent.expiresAt),
    amount: toPlainText(intent.amount),
    orderId: intent.orderId,
  }
}

/** `data` of createOrderRequest: contract C3. */
export type OrderRequestWire = { orderId: string; payment_url: string }

export function toOrderRequestWire({ orderId }: Intent, publicUrl: string): OrderRequestWire {
  return { orderId, payment_url: `${publicUrl}/pay/${orderId}` }
}
