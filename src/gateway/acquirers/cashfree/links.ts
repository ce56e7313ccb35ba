import { createHash } from 'node:crypto'
import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { bankAmount, toJsonNumber } from '../../../platform/money.ts'
import type { Intent } from '../../payments/intent.ts'
import { accountName, type CashfreeSettings } from '../accounts.ts'
import type { Links } from '../client.ts'
import { notBelieved, orAbsent, reportedId, throwUndone } from '../json-request.ts'
import { notificationPath } from '../notification.ts'
import { readPaymentLink } from '../payment-link.ts'
import { type CashfreeRequest, NAME, noteOf, OrderState } from './http.ts'

/** An order that existed before the request proves by these fields that it is the requested one. */
const ExistingOrder = z.object({
  order_id: z.unknown().optional(),
  order_amount: bankAmount,
  order_currency: z.literal('INR'),
  order_status: z.literal('ACTIVE'),
  payment_session_id: z.string().min(1).max(1_024),
})

/** The request determines these fields of a new order, so they are only compared. */
const NewOrder = ExistingOrder.extend({
  order_amount: orAbsent(ExistingOrder.shape.order_amount),
  order_currency: orAbsent(ExistingOrder.shape.order_currency),
  order_status: orAbsent(ExistingOrder.shape.order_status),
})

const Session = z.object({ data: z.object({ payload: z.object({ default: z.string().max(2_048) }) }) })

export function cashfreeLinks(settings: CashfreeSettings, request: CashfreeRequest): Links {
  const { isSandbox } = settings
  const name = accountName(NAME, settings.account)

  /**
   * Creates the order at Cashfree. After a 409 response, reads the existing order, because a proxy may have repeated
   * the request.
   */
  async function makeOrder(intent: Intent, signal: AbortSignal | undefined): Promise<string> {
    const { orderId, amount, expiresAt } = intent
    const body = {
      order_id: orderId,
      order_amount: toJsonNumber(amount),
      order_currency: 'INR',
      customer_details: customerOf(intent),
      order_meta: { payment_methods: 'upi', notify_url: notifyUrl(settings) },
      order_expiry_time: expiresAt.toISOString(),
      order_note: noteOf(intent.note, 200),
    }
    const created = await request({ method: 'POST', path: 'orders', body }, signal, [200, 409])
    const isKnown = created.status === 409
    const response = isKnown ? await request({ method: 'GET', path: `orders/${orderId}` }, signal, [200]) : created
    const { data: order } = (isKnown ? ExistingOrder : NewOrder).safeParse(response.body)
    const isOurs = order && reportedId(order.order_id, orderId) === orderId && (order.order_amount ?? amount) === amount
    if (isOurs) return order.payment_session_id
    throw notBelieved(response, 'Cashfree created an order that does not match the request', { orderId })
  }

  /**
   * Creates the link of an order. The request contains no credentials, because the payment session authorises
   * it.
   */
  async function requestLink(session: string, signal: AbortSignal | undefined) {
    const body = { payment_session_id: session, payment_method: { upi: { channel: 'link' } } }
    const response = await request({ method: 'POST', path: 'orders/sessions', body, isOpen: true }, signal, [200])
    return { link: Session.safeParse(response.body).data?.data.payload.default ?? '', requestId: response.requestId }
  }

  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId } = intent
      // An order without a link cannot be paid, so a failed request changed nothing.
      const session = await makeOrder(intent, signal).catch(throwUndone)
      const named = { acquirer: name, merchantId, id: orderId, reference: orderId }
      try {
        const created = await requestLink(session, signal)
        const { reference, payeeVpa } = readPaymentLink({ ...created, isSandbox }, intent, payees)
        return { paymentLink: { ...named, reference, link: created.link }, payeeVpa }
      } catch (error) {
        if (error instanceof AcquirerError) error.unsureLink = { ...named, link: '' }
        throw error
      }
    },

    async closeLink({ id }, signal) {
      const body = { order_status: 'TERMINATED' }
      const response = await request({ method: 'PATCH', path: `orders/${id}`, body }, signal, [200, 400, 409, 422])
      const state = response.status === 200 ? OrderState.safeParse(response.body).data?.order_status : undefined
      if (state === 'TERMINATED') return 'closed'
      return state === 'TERMINATION_REQUESTED' ? 'unknown' : 'paid'
    },
  }
}

/**
 * Cashfree accepts only https URLs of at most 250 characters. If the request has no URL, Cashfree uses the URL set in
 * its dashboard.
 */
function notifyUrl({ publicUrl, account }: CashfreeSettings): string | undefined {
  const url = `${publicUrl}${notificationPath(NAME, account)}`
  return url.startsWith('https:') && url.length <= 250 ? url : undefined
}

/**
 * Cashfree requires a customer identifier. The service sends a hash, so that Cashfree does not learn the customer's
 * name.
 */
function customerOf({ mid, customer: { mobile } }: Intent) {
  const id = createHash('sha256').update(`${mid} ${mobile}`).digest('hex').slice(0, 40)
  return { customer_id: id, customer_phone: /^[6-9]/.test(mobile) ? mobile : '9999999999' }
}
