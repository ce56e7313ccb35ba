import { toPlainText } from '../money.ts'
import type { HttpRequest } from '../outbound/http-client.ts'
import type { EventType } from '../payments/outbox.ts'
import type { FinalStatus } from '../payments/outcome.ts'
import { signatureHeaders } from './signature.ts'

/** A change of a payment or the end of a refund, as a webhook tells it. */
export type PaymentEvent = {
  mid: string
  orderId: string
  merchantOrderId: string
  /** 1, 2, … within the order, in the order in which its changes were stored. */
  sequence: number
  type: EventType
  /** What checkPaymentStatus tells from then on; of a refund its own status. */
  txnStatus: 'PENDING' | FinalStatus
  /** In paise. */
  amount: number
  /** Of a refund its reference. */
  utr: string | null
  /** The refund that the event tells of: our name and the merchant's. */
  ourRefundId: string | null
  refundId: string | null
  /** Why it has failed, if the event says that. */
  reason: string | null
  occurredAt: Date
}

/** The message of a webhook. A receiver recognises a repeat by its `id`. */
type Message = { id: string; body: string }

/**
 * Makes the message of an event: the same bytes in every attempt, because a receiver may compare them. It contains no
 * customer's data. The amount is text as in the answer of createPaymentIntent, because JSON readers turn numbers into
 * floats.
 */
export function toMessage(event: PaymentEvent): Message {
  const { type, occurredAt, mid, orderId, ourRefundId, refundId, reason, txnStatus, utr, sequence } = event
  const order = { mid, orderId, order_id: event.merchantOrderId }
  const outcome = { txnStatus, amount: toPlainText(event.amount) }
  const refund = { refundId: ourRefundId, refund_id: refundId }
  const data =
    ourRefundId === null
      ? { ...order, ...outcome, UTR: utr, sequence }
      : { ...order, ...refund, ...outcome, reference: utr ?? '', reason: reason ?? '', sequence }
  return {
    id: `msg_${orderId}_${sequence}`,
    body: JSON.stringify({ type, timestamp: occurredAt.toISOString(), data }),
  }
}

/** The request that brings a message to a webhook, signed with each of `secrets`. */
export function toRequest(
  { id, body }: Message,
  { url, secrets, sentAt }: { url: string; secrets: readonly string[]; sentAt: Date },
): HttpRequest {
  const headers = { 'content-type': 'application/json', ...signatureHeaders({ id, sentAt, body, secrets }) }
  return { kind: 'webhook', url, headers, body }
}

/** True for 200 to 299: by these HTTP statuses a receiver says that it has the message. */
export function isTaken(status: number): boolean {
  return status >= 200 && status < 300
}
