import { toPlainText } from '../money.ts'
import type { EventType } from '../payments/events.ts'
import type { FinalStatus } from '../payments/outcome.ts'

/** A change of a payment, as a webhook tells it. */
export type PaymentEvent = {
  mid: string
  orderId: string
  merchantOrderId: string
  /** 1, 2, … within the order, in the order in which its changes were stored. */
  sequence: number
  type: EventType
  /** What checkPaymentStatus tells from then on. */
  txnStatus: 'PENDING' | FinalStatus
  /** In paise. */
  amount: number
  utr: string | null
  occurredAt: Date
}

/**
 * What is sent, the same bytes in every attempt: a receiver may compare them. Nothing of the customer. The amount is text
 * as in the answer of createPaymentIntent, because JSON readers turn numbers into floats.
 */
export function toMessage(event: PaymentEvent): { id: string; body: string } {
  const { type, occurredAt, mid, orderId, merchantOrderId, txnStatus, amount, utr, sequence } = event
  const data = { mid, orderId, order_id: merchantOrderId, txnStatus, amount: toPlainText(amount), UTR: utr, sequence }
  return {
    id: `msg_${orderId}_${sequence}`,
    body: JSON.stringify({ type, timestamp: occurredAt.toISOString(), data }),
  }
}
