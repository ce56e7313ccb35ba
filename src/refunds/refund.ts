import { toJsonNumber } from '../money.ts'
import type { PaymentNames } from '../payments/outcome.ts'

/** A success is never undone. */
export type RefundStatus = 'PENDING' | 'SUCCESS' | 'FAIL'

/** Amounts are in paise. */
export type Refund = {
  mid: string
  /** The merchant's own name of the refund; ours for a refund of the operator. */
  refundId: string
  /** Our name of the refund, which is sent to the acquirer: 32 letters and digits. */
  ourRefundId: string
  orderId: string
  merchantOrderId: string
  /** UTR of the refunded payment. */
  utr: string
  amount: number
  /** Null for a request of all that was left. */
  requested: number | null
  note: string
  exceptionId: string | null
  acquirer: string
  acquirerMerchantId: string | null
  madeBy: string
  madeAt: Date
  status: RefundStatus
  /** The bank's reference; empty until it is known. */
  reference: string
  /** The reason of a failure, which stays if the refund succeeds after all; or what is unsure. */
  reason: string | null
  endedAt: Date | null
  acquirerRefundId: string | null
  sentAt: Date | null
  attempts: number
  dueAt: Date | null
}

/** Our name of a refund, and the merchant whose refund it is. */
export type RefundName = Pick<Refund, 'mid' | 'ourRefundId'>

/**
 * A report about a refund, by its acquirer or by the operator. PENDING means that the acquirer has the refund. An undefined field is
 * not compared with the refund.
 */
export type RefundUpdate = {
  status: RefundStatus
  /** The acquirer's word for an unknown status; `status` is PENDING then. */
  unknownStatus?: string | undefined
  /** In paise. */
  amount?: number | undefined
  ourRefundId?: string | undefined
  orderId?: string | undefined
  /** The acquirer's own identifiers of the merchant and of the refund. */
  merchantId?: string | undefined
  id?: string | undefined
  /** The bank's reference; may be empty. */
  reference: string
  reason?: string | undefined
  /** The payment's UTR and its identifiers at the acquirer, if they are reported. */
  utr?: string | undefined
  payment?: PaymentNames | undefined
  /** Set for a refund that the acquirer has made by itself; `orderId`, `id` and `amount` are then given. */
  acquirerInitiated?: true | undefined
}

export const REASON_CHARACTERS = 200

/** The form of a refund in every answer and command. */
export const toRefundData = (refund: Refund) => ({
  refundId: refund.ourRefundId,
  refund_id: refund.refundId,
  orderId: refund.orderId,
  order_id: refund.merchantOrderId,
  amount: toJsonNumber(refund.amount),
  txnStatus: refund.status,
  reference: refund.reference,
  reason: (refund.status === 'FAIL' && refund.reason) || '',
})
