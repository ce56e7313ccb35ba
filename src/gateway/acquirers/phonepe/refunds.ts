import * as z from 'zod'
import type { RefundStatus, RefundUpdate } from '../../refunds/refund.ts'
import type { RefundOrder, Refunds } from '../client.ts'
import {
  codeOf,
  type JsonResponse,
  notBelieved,
  orAbsent,
  paise,
  readBody,
  refundStatus,
  shortText,
  throwUnsure,
} from '../json-request.ts'
import { codeFields, find, isRejection, type PhonepeRequest, phonepeId, REJECTED, railFields, utrOf } from './http.ts'

const ONLY_ITS_OWN =
  'PhonePe refunds only the payment that paid its order. Ask PhonePe to refund the duplicate payment.'

export function phonepeRefunds(request: PhonepeRequest): Refunds {
  async function getRefund({ ourRefundId }: RefundOrder, signal: AbortSignal | undefined) {
    const response = await find(request, `payments/v2/refund/${ourRefundId}/status`, signal)
    return response && readRefund(ourRefundId, response)
  }

  return {
    // PhonePe does not document its response to a repeated refund, so a refund is sent at most once.
    async refund(order, signal) {
      const { orderId, ourRefundId, amount, isSecond } = order
      // A refund request to PhonePe names only the order, so the service must not send the refund of a duplicate
      // payment.
      if (isSecond) return { status: 'FAIL', reference: '', reason: ONLY_ITS_OWN }
      const body = { merchantRefundId: ourRefundId, originalMerchantOrderId: orderId, amount }
      const response = await request({ method: 'POST', path: 'payments/v2/refund', body }, signal, [200, ...REJECTED])
      if (response.status === 200) return readRefund(ourRefundId, response)
      // A proxy may have repeated the request, and PhonePe may have rejected only the repeat.
      const known = await getRefund(order, signal).catch(throwUnsure)
      if (known) return known
      const code = codeOf(response)
      if (isRejection(code)) return { status: 'FAIL', reference: '', reason: `refused: ${code}` }
      throw notBelieved(response, `PhonePe's response ${response.status} leaves a refund without a final status`, {
        ourRefundId,
      })
    },
    getRefund,
  }
}

const REFUND_STATES = new Map<string, RefundStatus>([
  ['PENDING', 'PENDING'],
  // CONFIRMED means that PhonePe accepted the refund, which may still fail.
  ['CONFIRMED', 'PENDING'],
  ['COMPLETED', 'SUCCESS'],
  ['FAILED', 'FAIL'],
])

/**
 * The response to sending a refund has only `refundId`, `amount` and `state`. Not every status response has `refundId`.
 * The request names the refund, so only `state` is required.
 */
const Refund = z.object({
  ...railFields,
  ...codeFields,
  refundId: phonepeId,
  amount: orAbsent(paise),
  state: z.string(),
  merchantRefundId: z.string().optional().catch(undefined),
  originalMerchantOrderId: z.string().optional().catch(undefined),
  paymentDetails: z.array(z.object(railFields)).optional().catch(undefined),
})

export function readRefund(ourRefundId: string, response: JsonResponse): RefundUpdate {
  const refund = readBody(Refund, response, 'PhonePe returned a refund in an unknown format', { ourRefundId })
  const { state, errorCode, detailedErrorCode, paymentDetails = [] } = refund
  const read = refundStatus(REFUND_STATES, state)
  return {
    ...read,
    ourRefundId: refund.merchantRefundId,
    orderId: refund.originalMerchantOrderId,
    id: refund.refundId,
    amount: refund.amount,
    reference: utrOf([refund, ...paymentDetails]) ?? '',
    reason: read.status === 'FAIL' ? (shortText(detailedErrorCode) ?? shortText(errorCode) ?? 'FAILED') : undefined,
  }
}
