import * as z from 'zod'
import type { Intent } from '../../payments/intent.ts'
import { EXPIRY_GRACE_MINUTES } from '../../payments/outcome.ts'
import { accountName, type RazorpaySettings } from '../accounts.ts'
import type { Links } from '../client.ts'
import { notBelieved, orAbsent, paise, readBody, reportedId, throwUndone, throwUnmade } from '../json-request.ts'
import { readPaymentLink } from '../payment-link.ts'
import { failedCall, isDescribed, NAME, RazorpayList, type RazorpayRequest, razorpayId } from './http.ts'

/** Razorpay accepts no shorter time to capture a payment. */
const SHORTEST_CAPTURE_MINUTES = 12

/** An order that existed before the request proves by its amount and currency that it is the requested one. */
const ExistingOrder = z.object({
  id: razorpayId,
  receipt: z.unknown().optional(),
  amount: paise,
  currency: z.literal('INR'),
})

/** The request determines these fields of a new order, so they are only compared. */
const NewOrder = ExistingOrder.extend({
  amount: orAbsent(ExistingOrder.shape.amount),
  currency: orAbsent(ExistingOrder.shape.currency),
})

const Created = z.object({ link: z.string() })

export function razorpayLinks({ account }: RazorpaySettings, request: RazorpayRequest): Links {
  /**
   * Creates the order at Razorpay, and returns its id. Reads the existing order if the receipt is already used, because
   * a proxy may have repeated the request.
   */
  async function makeOrder(intent: Intent, signal: AbortSignal | undefined): Promise<string> {
    const { orderId, amount } = intent
    const body = { amount, currency: 'INR', receipt: orderId, payment: capturing(intent) }
    const created = await request({ method: 'POST', path: 'orders', body }, signal, [200, 400])
    const isKnown = created.status === 400 && isDescribed(created, /receipt should be unique/i)
    if (created.status === 400 && !isKnown) throw failedCall(created)
    const path = `orders?receipt=${orderId}`
    const response = isKnown ? await request({ method: 'GET', path }, signal, [200]) : created
    const { data: order } = isKnown
      ? ExistingOrder.safeParse(RazorpayList.safeParse(response.body).data?.items[0])
      : NewOrder.safeParse(response.body)
    const isOurs = order && reportedId(order.receipt, orderId) === orderId && (order.amount ?? amount) === amount
    if (isOurs) return order.id
    throw notBelieved(response, 'Razorpay created an order that does not match the request', { orderId })
  }

  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId, amount, customer } = intent
      // An order without a payment cannot be paid, so a failed request changed nothing.
      const id = await makeOrder(intent, signal).catch(throwUndone)
      const body = {
        amount,
        currency: 'INR',
        order_id: id,
        email: customer.email,
        contact: /^[6-9]/.test(customer.mobile) ? customer.mobile : '9999999999',
        method: 'upi',
        upi: { flow: 'intent' },
        notes: { receipt: orderId },
      }
      // The IP address, referer and user agent of the customer are unknown: the merchant's server sends the request. An
      // error with one of Razorpay's own codes means that no payment was created.
      const response = await request({ method: 'POST', path: 'payments/create/upi', body }, signal, [200]).catch(
        throwUnmade((code) => code !== undefined),
      )
      const { link } = readBody(Created, response, 'Razorpay returned a payment without a link', { orderId })
      const { reference, payeeVpa } = readPaymentLink({ link, requestId: response.requestId }, intent, payees)
      return { paymentLink: { acquirer: accountName(NAME, account), merchantId, id, reference, link }, payeeVpa }
    },

    /** Razorpay has no call to close an order or a payment. */
    closeLink: async () => 'unknown',
  }
}

/**
 * Razorpay captures a payment as long as the order can be paid, and returns a payment that is authorized after the
 * order's final status.
 */
function capturing({ createdAt, expiresAt }: Intent) {
  const openMinutes = Math.ceil((expiresAt.getTime() - createdAt.getTime()) / 60_000) + EXPIRY_GRACE_MINUTES
  const minutes = Math.max(openMinutes, SHORTEST_CAPTURE_MINUTES)
  return {
    capture: 'automatic',
    capture_options: { automatic_expiry_period: minutes, manual_expiry_period: minutes, refund_speed: 'normal' },
  }
}
