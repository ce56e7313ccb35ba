import * as z from 'zod'
import { badRequest, unsigned } from '../../../errors.ts'
import { errorText, text } from '../../../platform/fields.ts'
import { bodyCheck } from '../../../platform/http/input.ts'
import { HIGHEST_MAX_RUPEES } from '../../../platform/money.ts'
import { isOrderId } from '../../payments/intent.ts'
import type { RefundUpdate } from '../../refunds/refund.ts'
import { accountName, type CashfreeSettings } from '../accounts.ts'
import { parseExact } from '../exact-json.ts'
import { orAbsent } from '../json-request.ts'
import {
  bankReference,
  type Fields,
  isSigned,
  type Notification,
  type Notifications,
  namedWithSuccess,
  onlyFields,
  requiredWithSuccess,
} from '../notification.ts'
import { CashfreeDispute, toDisputeReport } from './disputes.ts'
import { NAME, PAYMENT_ENDS, paymentFields, refundFields, toPaymentReport, toRefundUpdate } from './http.ts'

/** The fields read from a payment event. Cashfree also sends customer data, which is never read. */
const PaymentEvent = z
  .object(paymentFields)
  .superRefine(requiredWithSuccess('payment_status', 'SUCCESS', ['payment_amount']))
  .superRefine(namedWithSuccess('payment_status', 'SUCCESS', ['bank_reference', 'cf_payment_id']))

const RefundEvent = z.object({
  refund_id: orAbsent(text(64)),
  refund_type: orAbsent(z.string(errorText('must be text'))),
  bank_reference: bankReference,
  cf_payment_id: paymentFields.cf_payment_id,
  ...refundFields,
})

const part = (shape: z.core.$ZodLooseShape = {}) => z.looseObject(shape, errorText('must be an object')).nullish()

/** The parts that an event may have. The service validates only the parts that it uses. */
const AnyEvent = z.object({
  type: z.string(errorText('must be text')).optional(),
  data: part({
    order: part(),
    payment: part({ payment_status: z.string(errorText('must be text')).nullish() }),
    refund: part(),
    auto_refund: part(),
    dispute: part(),
    order_details: part(),
  }),
})

const checkEvent = bodyCheck(AnyEvent)
const checkPayment = bodyCheck(PaymentEvent)
const checkRefund = bodyCheck(RefundEvent)
const checkDispute = bodyCheck(CashfreeDispute)

type Part = 'order' | 'payment' | 'refund' | 'auto_refund' | 'error_details' | 'dispute' | 'order_details'
type Event = { data?: Partial<Record<Part, Fields>> }

/** Returns undefined for an event that changes nothing, and does not validate its fields. */
function readEvent(account: string, fields: Fields): Notification | undefined {
  const { data } = checkEvent(fields) as Event
  const refund = data?.refund ?? data?.auto_refund
  if (refund) return { refund: readRefund(refund, data?.auto_refund !== undefined) }
  if (data?.dispute) {
    const event = { updated_at: fields.event_time, ...data.order_details, ...data.dispute }
    const dispute = toDisputeReport(checkDispute(event))
    return dispute && { dispute }
  }
  if (!PAYMENT_ENDS.has(data?.payment?.payment_status)) return undefined
  const event = checkPayment({ ...data?.payment, order_id: data?.order?.order_id, error_details: data?.error_details })
  const payment = toPaymentReport(account, event.order_id, event)
  return payment && { payment }
}

function readRefund(fields: Fields, isAutomatic: boolean): RefundUpdate {
  const event = checkRefund({ ...fields })
  const { bank_reference: utr, cf_payment_id: paymentId, refund_type: type = 'MERCHANT_INITIATED' } = event
  const update = toRefundUpdate(event)
  // The refund_id of a refund created in Cashfree's dashboard does not have the format of the service's identifiers, so
  // the service did not create the refund.
  const ourRefundId = (event.refund_id ?? '').toLowerCase()
  if (!isAutomatic && type === 'MERCHANT_INITIATED' && isOrderId(ourRefundId)) return { ...update, ourRefundId }
  const { orderId, id, amount = 0 } = update
  if (orderId === undefined || id === undefined) throw badRequest(UNNAMED)
  if (amount < 1 || amount > HIGHEST_MAX_RUPEES * 100) throw badRequest(AMOUNT_RULE)
  const payment = paymentId === undefined ? undefined : { id: paymentId }
  return { ...update, acquirerInitiated: true, utr, payment }
}

const UNNAMED = 'order_id and cf_refund_id are required for a refund that the service did not create'
const AMOUNT_RULE = `refund_amount must be rupees from 0.01 to ${HIGHEST_MAX_RUPEES}`

const SIGNATURE =
  'Send x-webhook-signature: the base64 HMAC-SHA256 of x-webhook-timestamp followed by the body, without a separator'

/**
 * The fields that are stored from an unreadable notification. All other fields, and a reason in words, may contain
 * customer data.
 */
const STORED = [
  ...['type', 'event_time', 'data', 'order', 'payment', 'refund', 'auto_refund', 'order_amount'],
  ...['dispute', 'order_details', ...Object.keys(PaymentEvent.shape), ...Object.keys(RefundEvent.shape)],
  ...Object.keys(CashfreeDispute.shape),
].filter((name) => !['payment_message', 'error_details', 'reason_description'].includes(name))

export const cashfreeNotifications = ({ account, notificationSecrets }: CashfreeSettings): Notifications => ({
  parse: parseExact,
  // Accepts notifications of any age, because Cashfree does not document whether a retry has a new time. A repeated
  // notification changes nothing.
  read: (fields) => readEvent(accountName(NAME, account), fields),
  requireSignature({ headers }, body) {
    const { 'x-webhook-signature': signature, 'x-webhook-timestamp': at } = headers
    if (typeof at !== 'string' || !isSigned(signature, notificationSecrets, at, body)) throw unsigned(SIGNATURE)
  },
  orderIdOf({ data }: Event) {
    return (data?.order ?? data?.refund ?? data?.auto_refund ?? data?.order_details)?.order_id
  },
  toStored: (body) => onlyFields(body, STORED),
})
