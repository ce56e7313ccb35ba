import { noPaymentHere } from '../../errors.ts'
import { isOrderId } from '../payments/intent.ts'
import type { Checkout, Intents } from '../payments/intents.ts'

/** Path of an order's pay page. The paths of its event stream and QR codes start with it. */
export const ORDER_PATH = '/pay/:orderId'

/** Finds an order by its orderId, also that of a disabled merchant. Rejects an unknown orderId with 404. */
export type FindCheckout = (orderId: string | undefined) => Promise<Checkout>

export function createCheckoutFinder(intents: Pick<Intents, 'findCheckout'>): FindCheckout {
  return async (orderId = '') => {
    const checkout = isOrderId(orderId) ? await intents.findCheckout(orderId) : undefined
    if (!checkout) throw noPaymentHere()
    return checkout
  }
}
