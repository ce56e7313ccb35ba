import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { utrOfId } from '../../../platform/fields.ts'
import type { PaymentNames } from '../../payments/outcome.ts'
import { transactionNote } from '../../payments/upi-links.ts'
import type { RefundStatus } from '../../refunds/refund.ts'
import type { AcquirerClient, RefundOrder, Refunds } from '../client.ts'
import { type JsonResponse, orAbsent, paise, readBody, refundStatus, shortText, throwUndone } from '../json-request.ts'
import { refundFields, type SetuRequest, toRefundUpdate } from './http.ts'

/** Setu documents `amount` and `referenceId` of a refund as optional. */
const RefundResponse = z.object({
  ...refundFields,
  status: z.string().max(40),
  amount: orAbsent(paise),
  referenceId: orAbsent(z.string()),
})

const RefundsResponse = z.object({ refunds: z.array(z.unknown()) })

const REFUND_STATES = new Map<string, RefundStatus>([
  ['pending', 'PENDING'],
  ['initiated', 'PENDING'],
  ['success', 'SUCCESS'],
  ['failed', 'FAIL'],
])

/**
 * HTTP statuses with which Setu finally rejects a refund. A proxy's response with such a status is not a rejection.
 */
const REJECTED = [400, 404, 422]
const ErrorResponse = z.object({ code: z.string().min(1), detail: z.unknown() })

/** `getPayments` finds Setu's identifiers of a payment whose report contained none. */
export function setuRefunds(request: SetuRequest, getPayments: AcquirerClient['getPayments']): Refunds {
  /**
   * Finds Setu's identifiers of a payment whose report contained none. Setu returns only the last
   * payment for a link.
   */
  async function namesOfPayment(order: RefundOrder, signal?: AbortSignal): Promise<PaymentNames> {
    if (order.payment?.txnId) return order.payment
    const [last] = await getPayments(order, signal)
    const { id, txnId } = last?.names ?? {}
    const isIt = last?.status === 'SUCCESS' && id !== undefined && [last.utr, utrOfId(id)].includes(order.utr)
    if (isIt && txnId !== undefined) return { id, txnId }
    throw new AcquirerError(
      'bad answer',
      'Setu does not return the identifiers of the refunded payment: contact Setu',
      {
        ourRefundId: order.ourRefundId,
      },
    )
  }

  return {
    // Setu has no idempotency key for refunds and finds a refund only by its payment, so a repeated request could
    // refund twice.
    async refund(order, signal) {
      const { ourRefundId, amount, note } = order
      const { merchantId } = order.paymentLink
      // A failed search for the payment's identifiers sends no refund, so the error is marked as having changed
      // nothing.
      const payment = await namesOfPayment(order, signal).catch(throwUndone)
      const remarks = transactionNote(note)
      const body = { paymentId: payment.id, amount, referenceId: ourRefundId, remarks, type: 'online' }
      const response = await request({ method: 'POST', path: 'refunds', merchantId, body }, signal, [201, ...REJECTED])
      if (response.status !== 201) return { status: 'FAIL', reference: '', reason: errorOf(response), payment }
      const message = 'Setu returned a created refund in an unknown format'
      return { ...updateOf(readBody(RefundResponse, response, message, { ourRefundId })), payment }
    },

    async getRefund(order, signal) {
      const { ourRefundId, paymentLink } = order
      const payment = await namesOfPayment(order, signal)
      const path = `refunds/${payment.txnId}/payment`
      const response = await request({ method: 'GET', path, merchantId: paymentLink.merchantId }, signal, [200, 404])
      if (response.status === 404 && errorOf(response)) return undefined
      const message = 'Setu returned a list of refunds in an unknown format'
      const ours = readBody(RefundsResponse, response, message, { ourRefundId })
        .refunds.flatMap((refund) => RefundResponse.safeParse(refund).data ?? [])
        .filter(({ referenceId }) => referenceId === ourRefundId)
        .map(updateOf)
      // Setu may list a refund twice if the operator has requested another attempt. A successful refund takes
      // precedence, then a pending refund.
      const byStatus = ['SUCCESS', 'PENDING', 'FAIL'].map((status) => ours.find((update) => update.status === status))
      const update = byStatus.find((found) => found !== undefined)
      return update && { ...update, payment }
    },
  }
}

const updateOf = ({ status, ...refund }: z.output<typeof RefundResponse>) =>
  toRefundUpdate({ ...refund, ...refundStatus(REFUND_STATES, status) })

/** Returns Setu's reason for a rejection. Throws for a proxy's response, because Setu may have accepted the refund. */
function errorOf(response: JsonResponse): string {
  const { code } = readBody(ErrorResponse, response, `Setu's response ${response.status} is not in its own format`)
  return `refused: ${shortText(code) ?? response.status}`
}
