import type * as z from 'zod'
import { toPlainText } from '../../platform/money.ts'
import type { HttpRequest } from '../../platform/outbound/http-client.ts'
import type { FailureReason } from '../payments/failure-reasons.ts'
import type { EventType } from '../payments/outbox.ts'
import type { FinalStatus } from '../payments/outcome.ts'
import type { PaymentEventData, RefundEventData } from './events.ts'
import { signatureHeaders } from './signature.ts'

/** A change of a payment or the final status of a refund, with all data of its webhook. */
export type PaymentEvent = {
  mid: string
  orderId: string
  merchantOrderId: string
  /** Sequence number of the change within its order: 1, 2, … in the sequence in which the changes were stored. */
  sequence: number
  type: EventType
  /** The status that checkPaymentStatus returns after the event; for a refund, the refund's status. */
  txnStatus: 'PENDING' | FinalStatus
  /** Amount in paise. */
  amount: number
  /** The UTR of a payment, or the reference of a refund. */
  utr: string | null
  /** The service's identifier for the refund; null for a payment event. */
  ourRefundId: string | null
  /** The merchant's identifier for the refund; null for a payment event. */
  refundId: string | null
  /** Failure reason of the refund or of the last payment attempt. */
  reason: string | null
  /** The JSON of the data of a dispute event, as it was stored; null for other events. */
  disputeData: string | null
  occurredAt: Date
}

/** Receivers recognise a repeated message by its `id`. */
type Message = { id: string; body: string }

/**
 * Formats the message for an event, without customer data. Every attempt sends the same bytes, because a receiver may
 * compare the messages. The amount is text, as in the response of createPaymentIntent, because JSON parsers turn
 * numbers into floats.
 */
export function toMessage(event: PaymentEvent): Message {
  const { type, occurredAt, mid, orderId, ourRefundId, refundId, reason, txnStatus, utr, sequence } = event
  const id = `msg_${orderId}_${sequence}`
  const timestamp = occurredAt.toISOString()
  if (event.disputeData !== null)
    return { id, body: `{"type":"${type}","timestamp":"${timestamp}","data":${event.disputeData}}` }
  const order = { mid, orderId, order_id: event.merchantOrderId }
  const outcome = { txnStatus, amount: toPlainText(event.amount) }
  const details = { reference: utr ?? '', reason: reason ?? '' }
  const data: z.output<typeof PaymentEventData> | z.output<typeof RefundEventData> =
    ourRefundId === null || refundId === null
      ? { ...order, ...outcome, UTR: utr, ...(reason !== null && { reason: reason as FailureReason }), sequence }
      : { ...order, refundId: ourRefundId, refund_id: refundId, ...outcome, ...details, sequence }
  return { id, body: JSON.stringify({ type, timestamp, data }) }
}

/** The request for a webhook, signed with each of `secrets`. */
export function toRequest(
  { id, body }: Message,
  { url, secrets, sentAt }: { url: string; secrets: readonly string[]; sentAt: Date },
): HttpRequest {
  const headers = { 'content-type': 'application/json', ...signatureHeaders({ id, sentAt, body, secrets }) }
  return { kind: 'webhook', url, headers, body }
}

/** Whether the receiver has accepted the message, as any HTTP status from 200 to 299 states. */
export const isAccepted = (status: number): boolean => status >= 200 && status < 300
