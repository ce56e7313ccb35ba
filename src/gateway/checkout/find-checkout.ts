import { noPaymentHere, paymentClosed } from '../../errors.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Checkout, Intents } from '../payments/intents.ts'

/** Path of an order's pay page. The paths of its event stream and QR codes start with it. */
export const ORDER_PATH = '/pay/:orderId'

/** Finds an order by its orderId. Rejects with 404 for an unknown orderId and with 410 for a disabled merchant. */
export type FindCheckout = (orderId: string | undefined) => Promise<Checkout>

export function createCheckoutFinder(intents: Pick<Intents, 'findCheckout'>): FindCheckout {
  return async (orderId = '') => {
    const checkout = isOrderId(orderId) ? await intents.findCheckout(orderId) : undefined
    if (!checkout) throw noPaymentHere()
    if (checkout.merchantDisabled) throw paymentClosed()
    return checkout
  }
}
