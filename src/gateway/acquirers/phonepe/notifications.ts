import { createHash, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { unsigned } from '../../../errors.ts'
import { errorText, text } from '../../../platform/fields.ts'
import { bodyCheck } from '../../../platform/http/input.ts'
import type { PhonepeSettings } from '../accounts.ts'
import { type Fields, isSigned, type Notification, type Notifications, onlyFields } from '../notification.ts'

/**
 * Order events with a final status. `checkout.order` events have the same format. Events of single attempts are not
 * final and are ignored.
 */
const ORDER_EVENT = /^(pg|checkout)\.order\.(completed|failed)$/
const REFUND_EVENT = /^pg\.refund\.(accepted|completed|failed)$/

const DISPUTE_EVENT = /^payment\.dispute\.\w+$/

const readType = bodyCheck(z.object({ event: z.string(errorText('must be text')).optional() }))
const readOrder = bodyCheck(z.object({ merchantOrderId: text(63) }))
const readRefund = bodyCheck(z.object({ merchantRefundId: text(63) }))

type Event = { payload?: Fields | null }

/**
 * Reads only the identifier of the order or refund that changed. The body of an SHA webhook is unsigned, so the service
 * then checks the status at PhonePe.
 */
function readEvent(fields: Fields & Event): Notification | undefined {
  const { payload } = fields
  const { event: type = '' } = readType(fields)
  if (ORDER_EVENT.test(type)) return { orderId: readOrder({ ...payload }).merchantOrderId.toLowerCase() }
  if (REFUND_EVENT.test(type)) return { ourRefundId: readRefund({ ...payload }).merchantRefundId }
  // Only the list is believed, because the body of an SHA webhook is unsigned.
  return DISPUTE_EVENT.test(type) ? { readDisputes: true } : undefined
}

const SIGNATURE =
  'Send Authorization: hex SHA-256 of username:password, or x-phonepe-checksum-signature: hex HMAC-SHA256 of the body'

const HEX = /^[0-9a-f]{64}$/
const bytesOf = (header: unknown) => (HEX.test(String(header)) ? Buffer.from(String(header), 'hex') : undefined)

/** The fields that are stored from an unreadable notification. All other fields may contain customer data. */
const STORED = [
  ...['event', 'payload', 'merchantId', 'merchantOrderId', 'orderId', 'state', 'amount'],
  ...['merchantRefundId', 'originalMerchantOrderId', 'refundId'],
]

export const phonepeNotifications = ({ notificationSecrets }: PhonepeSettings): Notifications => ({
  read: readEvent,
  requireSignature({ headers }, body) {
    // Accepts both header names that public receivers of HMAC webhooks use, because PhonePe's pages name no header.
    const { 'x-phonepe-checksum-signature': named, 'phonepe-checksum-signature': signature = named } = headers
    if (isSigned(bytesOf(signature)?.toString('base64'), notificationSecrets, body)) return
    // An SHA webhook sends the hash of its secret, which never changes.
    const word = bytesOf(headers.authorization)
    const isWordOf = (secret: string) => word && timingSafeEqual(word, createHash('sha256').update(secret).digest())
    if (!notificationSecrets.some(isWordOf)) throw unsigned(SIGNATURE)
  },
  orderIdOf: ({ payload }: Event) => payload?.merchantOrderId ?? payload?.originalMerchantOrderId,
  toStored: (body) => onlyFields(body, STORED),
})
