import * as z from 'zod'
import { unsigned } from '../../../errors.ts'
import { errorText, text } from '../../../platform/fields.ts'
import { bodyCheck } from '../../../platform/http/input.ts'
import { accountName, type SetuSettings } from '../accounts.ts'
import { orAbsent, paise, textOf } from '../json-request.ts'
import {
  type Fields,
  isSigned,
  type Notification,
  type Notifications,
  namedWithSuccess,
  onlyFields,
  requiredWithSuccess,
} from '../notification.ts'
import { acquirerId, NAME, paymentFields, refundFields, toPaymentReport, toRefundUpdate } from './http.ts'

const PAYMENT_EVENTS = { 'payment.success': 'SUCCESS', 'payment.failed': 'FAIL' } as const
const REFUND_EVENTS = { 'refund.pending': 'PENDING', 'refund.successful': 'SUCCESS', 'refund.failed': 'FAIL' } as const

/** The fields that are read from final payment events. Setu's customer data is never read. */
const PaymentEvent = z
  .object({
    eventType: z.enum(['payment.success', 'payment.failed'], errorText('must be text')),
    merchantReferenceId: text(255),
    ...paymentFields,
  })
  .superRefine(requiredWithSuccess('eventType', 'payment.success', ['amount']))
  .superRefine(namedWithSuccess('eventType', 'payment.success', ['rrn', 'id']))

const RefundEvent = z.object({
  eventType: z.enum(['refund.pending', 'refund.successful', 'refund.failed']),
  referenceId: text(255),
  merchantId: orAbsent(acquirerId),
  amount: orAbsent(paise),
  ...refundFields,
})

const checkPayment = bodyCheck(PaymentEvent)
const checkRefund = bodyCheck(RefundEvent)

/** Returns undefined for an event that changes nothing, and does not validate its fields. */
function readEvent(account: string, fields: Fields): Notification | undefined {
  const type = textOf(fields.eventType)
  if (Object.hasOwn(REFUND_EVENTS, type)) {
    const { eventType, ...refund } = checkRefund(fields)
    return { refund: toRefundUpdate({ ...refund, status: REFUND_EVENTS[eventType] }) }
  }
  if (typeof fields.eventType === 'string' && !Object.hasOwn(PAYMENT_EVENTS, type)) return undefined
  const { eventType, merchantReferenceId, ...payment } = checkPayment(fields)
  const report = toPaymentReport(account, merchantReferenceId, PAYMENT_EVENTS[eventType], payment)
  return report && { payment: report }
}

const SIGNATURE = 'Send x-setu-signature: the base64 HMAC-SHA256 of the body'

/**
 * The fields that are stored from an unreadable notification. All other fields, and a reason in words, may contain
 * customer data.
 */
const STORED = [
  ...Object.keys(PaymentEvent.shape),
  'eventId',
  'refId',
  'referenceId',
  'paymentId',
  'status',
  'crn',
].filter((name) => !['reason', 'customerAccountType'].includes(name))

export const setuNotifications = ({ account, notificationSecrets }: SetuSettings): Notifications => ({
  // Setu's signature covers no time, so a copied notification stays valid forever. The copy is harmless, because a
  // repeated notification changes nothing.
  read: (fields) => readEvent(accountName(NAME, account), fields),
  requireSignature({ headers }, body) {
    if (!isSigned(headers['x-setu-signature'], notificationSecrets, body)) throw unsigned(SIGNATURE)
  },
  orderIdOf: ({ merchantReferenceId }) => merchantReferenceId,
  toStored: (body) => onlyFields(body, STORED),
})
