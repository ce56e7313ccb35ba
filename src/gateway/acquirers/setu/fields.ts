import * as z from 'zod'
import { errorText } from '../../../platform/fields.ts'
import { toDecimalText } from '../../../platform/money.ts'
import { readFailure } from '../../payments/failure-reasons.ts'
import type { FinalStatus, PaymentReport } from '../../payments/outcome.ts'
import type { RefundUpdate } from '../../refunds/refund.ts'
import { orAbsent, paise, shortText } from '../json-request.ts'
import { bankReference, isoTime, paymentId } from '../notification.ts'

/** The fields that Setu's answers and notifications have in common. */

export const NAME = 'setu'

export const ACQUIRER_ID = /^[A-Za-z0-9_-]{1,64}$/

export const acquirerId = z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be an identifier of Setu')

/** A time in RFC 3339. Its zone may be written without the colon (+0530), as in the examples of Setu's guides. */
const moment = z.preprocess(
  (time) => (typeof time === 'string' ? time.replace(/([+-]\d{2})(\d{2})$/, '$1:$2') : time),
  isoTime,
)

export const paymentFields = {
  productInstanceId: acquirerId,
  amount: paise,
  rrn: bankReference,
  txnTs: orAbsent(moment),
  id: paymentId,
  txnId: paymentId,
  reason: z.unknown().optional(),
}

type Payment = z.output<z.ZodObject<typeof paymentFields>>

/** Returns undefined while the payment is under way. `account` is the name of our account. */
export function toPaymentReport(
  account: string,
  orderId: string,
  status: FinalStatus,
  payment: Payment,
): PaymentReport | undefined {
  const failure = status === 'SUCCESS' ? undefined : failureOf(payment.reason)
  if (failure === 'under way') return undefined
  return {
    orderId,
    status,
    utr: payment.rrn,
    amount: toDecimalText(payment.amount),
    paidAt: payment.txnTs,
    acquirer: { name: account, id: payment.productInstanceId },
    names: payment.id === undefined ? undefined : { id: payment.id, txnId: payment.txnId },
    failure,
  }
}

/** Setu's document requires no field of a reason. NPCI's category TD is a technical failure of a bank. */
function failureOf(reason: unknown) {
  const { npciRespCode, npciErrCode, npciErrCategory } = (reason ?? {}) as Record<string, unknown>
  return readFailure([npciRespCode, npciErrCode], npciErrCategory === 'TD' ? 'bank_unavailable' : undefined)
}

/** Setu's document requires neither `crn` nor `reason` of a refund. */
export const refundFields = { id: acquirerId, crn: z.unknown().optional(), reason: z.unknown().optional() }

type SetuRefund = z.output<z.ZodObject<typeof refundFields>> &
  Pick<RefundUpdate, 'status' | 'unknownStatus' | 'amount' | 'merchantId'> & { referenceId?: string | undefined }

export const toRefundUpdate = ({ crn, reason, referenceId, ...update }: SetuRefund): RefundUpdate => ({
  ...update,
  ourRefundId: referenceId,
  reference: shortText(crn) ?? '',
  reason: reasonOf(reason),
})

/** Setu's and NPCI's codes for the failure of a refund. */
function reasonOf(reason: unknown): string | undefined {
  const { errCode, npciErrCode } = (reason ?? {}) as Record<string, unknown>
  const codes = [errCode, npciErrCode].map(shortText).filter((code) => code !== undefined)
  return codes.length > 0 ? codes.join(', ') : undefined
}
