import { toPlainText } from '../../platform/money.ts'
import type { HttpRequest } from '../../platform/outbound/http-client.ts'
import type { EventType } from '../payments/outbox.ts'
import type { FinalStatus } from '../payments/outcome.ts'
import { signatureHeaders } from './signature.ts'

/** A change of a payment or the end of a refund, with all data of its webhook. */
export type PaymentEvent = {
  mid: string
  orderId: string
  merchantOrderId: string
  /** Number of the change among the changes of its payment order: 1, 2, … as they were stored. */
  sequence: number
  type: EventType
  /** The status that checkPaymentStatus answers after the event; for a refund, the status of the refund. */
  txnStatus: 'PENDING' | FinalStatus
  /** Amount in paise. */
  amount: number
  /** The UTR of a payment, the reference of a refund. */
  utr: string | null
  /** The service's identifier of the refund, then the merchant's; null for an event of a payment. */
  ourRefundId: string | null
  refundId: string | null
  /** Why a refund, or the last attempt to pay, has failed. */
  reason: string | null
  occurredAt: Date
}

/** A receiver recognises a repeated message by its `id`. */
type Message = { id: string; body: string }

/**
 * Makes the message of an event: the same bytes for every attempt, because a receiver may compare them, and no data of
 * the customer. The amount is text, as createPaymentIntent answers it, because JSON readers turn numbers into floats.
 */
export function toMessage(event: PaymentEvent): Message {
  const { type, occurredAt, mid, orderId, ourRefundId, refundId, reason, txnStatus, utr, sequence } = event
  const order = { mid, orderId, order_id: event.merchantOrderId }
  const outcome = { txnStatus, amount: toPlainText(event.amount) }
  const refund = { refundId: ourRefundId, refund_id: refundId }
  const data =
    ourRefundId === null
      ? { ...order, ...outcome, UTR: utr, ...(reason !== null && { reason }), sequence }
      : { ...order, ...refund, ...outcome, reference: utr ?? '', reason: reason ?? '', sequence }
  return {
    id: `msg_${orderId}_${sequence}`,
    body: JSON.stringify({ type, timestamp: occurredAt.toISOString(), data }),
  }
}

/** The request for a webhook, signed with each of `secrets`. */
export function toRequest(
  { id, body }: Message,
  { url, secrets, sentAt }: { url: string; secrets: readonly string[]; sentAt: Date },
): HttpRequest {
  const headers = { 'content-type': 'application/json', ...signatureHeaders({ id, sentAt, body, secrets }) }
  return { kind: 'webhook', url, headers, body }
}

/** Whether a receiver confirms the message: by an HTTP status from 200 to 299. */
export const isTaken = (status: number): boolean => status >= 200 && status < 300
