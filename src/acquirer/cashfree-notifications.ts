import * as z from 'zod'
import { badRequest, unsigned } from '../errors.ts'
import { errorText, text } from '../fields.ts'
import { bodyCheck } from '../http/input.ts'
import { bankAmount, HIGHEST_MAX_RUPEES } from '../money.ts'
import { isOrderId } from '../payments/intent.ts'
import type { CashfreeSettings } from './cashfree-account.ts'
import { cashfreeId, NAME, PAYMENT_ENDS, refundFields, toRefundTold } from './cashfree-http.ts'
import { parseExact } from './exact-json.ts'
import {
  bankReference,
  type Fields,
  isoTime,
  isSigned,
  keepFields,
  type News,
  type Notifications,
  routeOfOwnForm,
} from './notification.ts'

/** What Cashfree tells by itself of payments and refunds. */

export const NOTIFICATIONS = '/acquirer/cashfree/notification'

/** A form that is not known hides it, since the payment counts all the same. */
const paymentId = cashfreeId.optional().catch(undefined)

/** What an event must say of a payment. Customer data beside it is not read. */
const PaymentEvent = z
  .object({
    order_id: text(64),
    payment_status: z.string(errorText('must be text')),
    payment_amount: bankAmount,
    payment_currency: z.literal('INR', errorText('must be INR')).optional(),
    bank_reference: bankReference,
    payment_time: isoTime.optional(),
    cf_payment_id: paymentId,
  })
  .superRefine(({ payment_status: status, ...event }, context) => {
    for (const name of ['bank_reference', 'payment_time'] as const) {
      if (status !== 'SUCCESS' || event[name] !== undefined) continue
      context.addIssue({ code: 'custom', path: [name], message: 'is required with SUCCESS' })
    }
  })

const RefundEvent = z.object({
  refund_id: text(64).optional(),
  refund_type: z.string(errorText('must be text')).optional(),
  bank_reference: bankReference,
  cf_payment_id: paymentId,
  ...refundFields,
})

const checkPayment = bodyCheck(PaymentEvent)
const checkRefund = bodyCheck(RefundEvent)

/** The parts of an event. */
type Event = { data?: Partial<Record<'order' | 'payment' | 'refund' | 'auto_refund', Fields>> }

/** The news in an event; undefined for one that tells nothing that counts, whose fields are not checked. */
function readEvent({ data }: Event): News | undefined {
  const refund = data?.refund ?? data?.auto_refund
  if (refund) return readRefund(refund, data?.auto_refund !== undefined)
  const status = PAYMENT_ENDS.get(data?.payment?.payment_status)
  if (status === undefined) return undefined
  const event = checkPayment({ ...data?.payment, order_id: data?.order?.order_id })
  const {
    order_id: orderId,
    payment_amount: amount,
    bank_reference: utr,
    payment_time: paidAt,
    cf_payment_id: id,
  } = event
  const names = id === undefined ? undefined : { id }
  return { orderId, status, utr, amount, paidAt, acquirer: { name: NAME, id: orderId }, names }
}

function readRefund(fields: Fields, isOwn: boolean): News {
  const event = checkRefund({ ...fields })
  const { strangeStatus, names: _, ...told } = toRefundTold(event)
  const word = { ...told, by: 'notification' }
  const {
    order_id: orderId,
    refund_id: name = '',
    refund_type: type = 'MERCHANT_INITIATED',
    bank_reference: utr,
    cf_payment_id: paymentId,
  } = event
  // One that a person has made in Cashfree's dashboard has a name that is not in the form of ours.
  const ourRefundId = name.toLowerCase()
  const isOurs = !isOwn && type === 'MERCHANT_INITIATED' && isOrderId(ourRefundId)
  if (!isOurs && (word.amount < 1 || word.amount > HIGHEST_MAX_RUPEES * 100)) throw badRequest(AMOUNT_RULE)
  const names = isOurs ? { ourRefundId } : { orderId, utr, paymentId }
  return { acquirer: NAME, ...names, word, strangeStatus }
}

const AMOUNT_RULE = `refund_amount must be rupees from 0.01 to ${HIGHEST_MAX_RUPEES}`

const SIGNATURE =
  'Send x-webhook-signature: base64 of the HMAC-SHA256 of x-webhook-timestamp and the body, nothing between them'

/** The fields that say which payment or refund it is about; Cashfree sends the customer beside them. */
const KEPT = [
  ...['type', 'event_time', 'data', 'order', 'payment', 'refund', 'auto_refund', 'order_amount'],
  ...[...Object.keys(PaymentEvent.shape), ...Object.keys(RefundEvent.shape)],
]

export const cashfreeNotifications = ({ notificationSecrets }: CashfreeSettings): Notifications => ({
  // Whether a repeat has a new time is not documented, so none is refused by its age. Repeats change nothing, in any order.
  register: routeOfOwnForm(NOTIFICATIONS, (_, body) => readEvent(exactly(body))),
  requireSignature({ headers }, body) {
    const { 'x-webhook-signature': signature, 'x-webhook-timestamp': at } = headers
    if (typeof at !== 'string' || !isSigned(signature, notificationSecrets, at, body)) throw unsigned(SIGNATURE)
  },
  orderIdOf: ({ data }) => orderIdOf(data as Event['data']),
  keep: (body) => keepFields(body, KEPT),
})

const orderIdOf = (data: Event['data']) => (data?.order ?? data?.refund ?? data?.auto_refund)?.order_id

/** The fields of a body that was found to be JSON. */
function exactly(body: Buffer): Event {
  try {
    return parseExact(body.toString('utf8')) as Event
  } catch {
    throw badRequest('Every field must be sent once')
  }
}
