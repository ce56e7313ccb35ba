import { toJsonNumber } from '../money.ts'
import type { PaymentNames } from '../payments/outcome.ts'

/** What has become of a refund. A success is never undone. */
export type RefundStatus = 'PENDING' | 'SUCCESS' | 'FAIL'

/** Money that goes back to a customer. Amounts are in paise. */
export type Refund = {
  mid: string
  /** The merchant's own name; ours where the operator made it. */
  refundId: string
  /** Our name, which the acquirer knows: 32 letters and digits. */
  ourRefundId: string
  orderId: string
  merchantOrderId: string
  /** UTR of the payment that goes back. */
  utr: string
  amount: number
  /** Null where all that was left was requested. */
  requested: number | null
  note: string
  exceptionId: string | null
  acquirer: string
  acquirerMerchantId: string | null
  madeBy: string
  madeAt: Date
  status: RefundStatus
  /** The bank's; empty until it is known. */
  reference: string
  /** Why it has failed, which stays if it succeeds after all; or what is unsure. */
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
 * The state of a refund as its acquirer, or the operator for the acquirer, reports it. PENDING says that the acquirer has the
 * refund. A field that is undefined is not compared with the refund.
 */
export type RefundUpdate = {
  status: RefundStatus
  /** The acquirer's word for a state that we do not know; `status` is PENDING then. */
  unknownStatus?: string | undefined
  /** In paise. */
  amount?: number | undefined
  ourRefundId?: string | undefined
  orderId?: string | undefined
  /** The acquirer's own names for the merchant and for the refund. */
  merchantId?: string | undefined
  id?: string | undefined
  /** The bank's; may be empty. */
  reference: string
  reason?: string | undefined
  /** The payment's UTR, and its names at the acquirer, where they are reported. */
  utr?: string | undefined
  payment?: PaymentNames | undefined
  /** A refund that nobody here has made: `orderId`, `id` and `amount` are given then. */
  acquirerInitiated?: true | undefined
}

/** Longest reason of a failed refund. */
export const REASON_CHARACTERS = 200

/** As every operation and command answers it. */
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
