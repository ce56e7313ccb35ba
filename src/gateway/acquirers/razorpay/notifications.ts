import * as z from 'zod'
import { badRequest, unsigned } from '../../../errors.ts'
import { errorText } from '../../../platform/fields.ts'
import { bodyCheck } from '../../../platform/http/input.ts'
import { HIGHEST_MAX_RUPEES } from '../../../platform/money.ts'
import { isOrderId } from '../../payments/intent.ts'
import { accountName, type RazorpaySettings } from '../accounts.ts'
import { parseExact } from '../exact-json.ts'
import { textOf } from '../json-request.ts'
import {
  type Fields,
  isSigned,
  type Notification,
  type Notifications,
  namedWithSuccess,
  onlyFields,
  requiredWithSuccess,
} from '../notification.ts'
import { DISPUTE_EVENTS, RazorpayDispute, toDisputeReport } from './disputes.ts'
import { moment, NAME, paymentFields, refundFields, toPaymentReport, toRefundUpdate } from './http.ts'

/** Events of payments and refunds, with the status that the event states. All other events change nothing. */
const PAYMENT_EVENTS = new Map([
  ['payment.captured', 'captured'],
  ['order.paid', 'captured'],
  ['payment.failed', 'failed'],
])
const REFUND_EVENTS = new Map([
  ['refund.created', 'pending'],
  ['refund.processed', 'processed'],
  ['refund.failed', 'failed'],
])

/** The fields read from a payment event. Razorpay also sends customer data, which is never read. */
const PaymentEvent = z
  .object(paymentFields)
  .superRefine(requiredWithSuccess('status', 'captured', ['amount']))
  .superRefine(namedWithSuccess('status', 'captured', ['acquirer_data', 'id']))
const RefundEvent = z.object(refundFields)

const part = (shape: z.core.$ZodLooseShape = {}) => z.looseObject(shape, errorText('must be an object')).nullish()
const entity = part({ entity: part() })

/** The parts that an event may have. The service validates only the parts that it uses. */
const AnyEvent = z.object({
  event: z.string(errorText('must be text')).optional(),
  created_at: moment,
  payload: part({ payment: entity, order: entity, refund: entity, dispute: entity }),
})

const checkEvent = bodyCheck(AnyEvent)
const checkPayment = bodyCheck(PaymentEvent)
const checkRefund = bodyCheck(RefundEvent)
const checkDispute = bodyCheck(RazorpayDispute)

type Entity = { entity?: (Fields & { notes?: Fields | null }) | null } | null
type Event = { payload?: Partial<Record<'payment' | 'order' | 'refund' | 'dispute', Entity>> | null }

/** Returns the orderId that the service sent as a note of the payment and as the order's receipt. */
const receiptOf = ({ payload }: Event) => payload?.payment?.entity?.notes?.receipt ?? payload?.order?.entity?.receipt

/** Returns undefined for an event that changes nothing, and does not validate its fields. */
function readEvent(account: string, fields: Fields): Notification | undefined {
  const { event = '', created_at: createdAt, payload } = checkEvent(fields)
  const { payment, refund, dispute } = (payload ?? {}) as NonNullable<Event['payload']>
  const receipt = textOf(receiptOf(fields)).toLowerCase()
  // An account may also have payments that the service did not create. Razorpay disables a webhook whose events are
  // rejected for a day, so these events are accepted.
  const orderId = isOrderId(receipt) ? receipt : undefined
  const disputeStatus = DISPUTE_EVENTS.get(event)
  if (disputeStatus !== undefined && orderId !== undefined) {
    const checked = checkDispute({ ...dispute?.entity, status: disputeStatus })
    const report = toDisputeReport(checked, { orderId, statedAt: createdAt })
    return report && { dispute: report }
  }
  // The payment of an order that has no payment yet: Razorpay returned it without having captured it.
  const isReturned = REFUND_EVENTS.has(event) && payment?.entity?.captured === false
  const status = isReturned ? 'refunded' : PAYMENT_EVENTS.get(event)
  if (status !== undefined && orderId !== undefined) {
    const checked = checkPayment({ ...payment?.entity, status })
    // A payment is created with its link, before the customer pays. A failed attempt has the time of a status response,
    // which identifies the attempt.
    const paidAt = (status === 'captured' ? createdAt : undefined) ?? checked.created_at
    const report = toPaymentReport(account, orderId, { ...checked, created_at: paidAt })
    return report && { payment: report }
  }
  const refundStatus = REFUND_EVENTS.get(event)
  if (refundStatus === undefined) return undefined
  const update = readRefund({ ...refund?.entity, status: refundStatus }, orderId, payment?.entity)
  return update && { refund: update }
}

/** Returns undefined for a refund that the service did not create, of a payment that the service did not create. */
function readRefund(fields: Fields, orderId: string | undefined, payment: Fields | null = {}) {
  const ourRefundId = textOf(fields.receipt).toLowerCase()
  if (isOrderId(ourRefundId)) return { ...toRefundUpdate(checkRefund(fields)), ourRefundId }
  if (orderId === undefined) return undefined
  const event = checkRefund(fields)
  const update = toRefundUpdate(event)
  const { id, amount = 0 } = update
  if (id === undefined) throw badRequest('id is required for a refund that the service did not create')
  if (amount < 1 || amount > HIGHEST_MAX_RUPEES * 100) throw badRequest(AMOUNT_RULE)
  const utr = paymentFields.acquirer_data.parse(payment?.acquirer_data)
  const names = event.payment_id === undefined ? undefined : { id: event.payment_id }
  return { ...update, orderId, acquirerInitiated: true as const, utr, payment: names }
}

const AMOUNT_RULE = `amount must be paise from 1 to ${HIGHEST_MAX_RUPEES * 100}`

const SIGNATURE = 'Send x-razorpay-signature: the hex HMAC-SHA256 of the body'

/** The fields that are stored from an unreadable notification. All other fields may contain customer data. */
const STORED = [
  ...['event', 'payload', 'payment', 'order', 'refund', 'dispute', 'entity', 'notes', 'rrn', 'arn'],
  ...[paymentFields, refundFields, RazorpayDispute.shape].flatMap(Object.keys),
].filter((name) => !['upi', 'reason_description'].includes(name))

export const razorpayNotifications = ({ account, notificationSecrets }: RazorpaySettings): Notifications => ({
  parse: parseExact,
  // Razorpay's signature covers no time, and a retry is the same notification. A repeated notification changes nothing.
  read: (fields) => readEvent(accountName(NAME, account), fields),
  requireSignature({ headers }, body) {
    const { 'x-razorpay-signature': signature } = headers
    const isHex = typeof signature === 'string' && /^[0-9a-f]{64}$/.test(signature)
    const base64 = isHex && Buffer.from(signature, 'hex').toString('base64')
    if (!isSigned(base64, notificationSecrets, body)) throw unsigned(SIGNATURE)
  },
  orderIdOf: (fields: Event) => receiptOf(fields),
  toStored: (body) => onlyFields(body, STORED),
})
