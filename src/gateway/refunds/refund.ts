import { type Paise, toJsonNumber } from '../../platform/money.ts'
import type { PaymentNames } from '../payments/outcome.ts'

/** The status of a refund. SUCCESS may follow FAIL, and is undone only if the bank returns a refund of `direct`. */
export type RefundStatus = 'PENDING' | 'SUCCESS' | 'FAIL'

export type Refund = {
  mid: string
  /**
   * The merchant's identifier for the refund; for a refund by the operator or the acquirer, the service's identifier.
   */
  refundId: string
  /** The service's identifier for the refund, 32 hex digits, which is sent to the acquirer. */
  ourRefundId: string
  orderId: string
  merchantOrderId: string
  /** The UTR of the refunded payment. */
  utr: string
  amount: Paise
  /** The amount in the request; null if the whole remaining amount was requested. */
  requested: Paise | null
  note: string
  exceptionId: string | null
  acquirer: string
  acquirerMerchantId: string | null
  createdBy: string
  createdAt: Date
  status: RefundStatus
  /** The bank's reference for the refund; empty until the reference is known. */
  reference: string
  /**
   * The reason of a failure, which is retained if the refund succeeds later, the reason why the bank returned the refund,
   * or the reason why the refund is unsure.
   */
  reason: string | null
  endedAt: Date | null
  /** Null until the acquirer returns its identifier. Some responses of acquirers contain none. */
  acquirerRefundId: string | null
  sentAt: Date | null
  /** When the acquirer first reported the refund as pending. */
  acceptedAt: Date | null
  attempts: number
  dueAt: Date | null
  /** The time of success and the return, if the bank has returned the refund. `endedAt` is then the time of the return. */
  succeededAt: Date | null
  returnReference: string | null
  returnedBy: string | null
}

/** The key of a refund: the merchant and the service's identifier for the refund. */
export type RefundName = Pick<Refund, 'mid' | 'ourRefundId'>

/**
 * A report about a refund by its acquirer or by the operator. PENDING means that the acquirer has the refund. An
 * undefined field is not compared with the refund.
 */
export type RefundUpdate = {
  status: RefundStatus
  /** The acquirer's text for a status that the service does not know. `status` is then PENDING. */
  unknownStatus?: string | undefined
  amount?: Paise | undefined
  ourRefundId?: string | undefined
  orderId?: string | undefined
  /** The acquirer's identifier for the merchant. */
  merchantId?: string | undefined
  /** The acquirer's identifier for the refund. */
  id?: string | undefined
  /** The bank's reference for the refund; may be empty. */
  reference: string
  reason?: string | undefined
  /** The refunded payment's UTR; undefined if the update contains no UTR. */
  utr?: string | undefined
  /** The refunded payment's identifiers at the acquirer; undefined if the update contains no such identifier. */
  payment?: PaymentNames | undefined
  /** True for a refund that the acquirer has initiated. `orderId`, `id` and `amount` are then defined. */
  acquirerInitiated?: true | undefined
}

export const REASON_CHARACTERS = 200

/** A refund in the form of all responses and commands. */
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
