import * as z from 'zod'
import { toJsonNumber } from '../../../platform/money.ts'
import type { RefundOrder, Refunds } from '../client.ts'
import { codeOf, type JsonResponse, known, notBelieved, readBody, throwUnsure } from '../json-request.ts'
import { type CashfreeRequest, noteOf, refundFields, toRefundUpdate } from './http.ts'

/** The request names the refund, so Cashfree's ids are only compared. */
const RefundResponse = z.object({ refund_id: known(z.string()), ...refundFields })

const ONLY_ITS_OWN =
  'Cashfree refunds only the payment that paid its order. Refund the duplicate payment in the Cashfree dashboard.'

/** HTTP statuses with which Cashfree rejects a refund. A proxy's response with such a status is not a rejection. */
const REJECTED = [400, 404, 409, 422]

export function cashfreeRefunds(request: CashfreeRequest): Refunds {
  function updateOf(response: JsonResponse, { ourRefundId }: RefundOrder) {
    const message = 'Cashfree returned a refund in an unknown format'
    const refund = readBody(RefundResponse, response, message, { ourRefundId })
    return { ...toRefundUpdate(refund), ourRefundId: refund.refund_id }
  }

  async function getRefund(order: RefundOrder, signal: AbortSignal | undefined) {
    const path = `orders/${order.orderId}/refunds/${order.ourRefundId}`
    const response = await request({ method: 'GET', path }, signal, [200, 404])
    if (response.status === 200) return updateOf(response, order)
    // Only a 404 with one of Cashfree's own codes means that the refund is unknown, because a proxy may also return
    // 404.
    if (codeOf(response) !== undefined) return undefined
    throw notBelieved(response, "Cashfree's 404 is not in its own format: check CASHFREE_API_URL")
  }

  return {
    async refund(order, signal) {
      const { orderId, ourRefundId, amount, note, isSecond } = order
      // A refund request to Cashfree names only the order and refunds its first payment, so the service must not send
      // the refund of a duplicate payment.
      if (isSecond) return { status: 'FAIL', reference: '', reason: ONLY_ITS_OWN }
      const refund = { refund_id: ourRefundId, refund_amount: toJsonNumber(amount), refund_speed: 'STANDARD' }
      const body = { ...refund, refund_note: noteOf(note, 100) }
      const path = `orders/${orderId}/refunds`
      const response = await request({ method: 'POST', path, body }, signal, [200, ...REJECTED])
      if (response.status === 200) return updateOf(response, order)
      // Checks the refund's status, because Cashfree may reject a repeated request after the first request created the
      // refund.
      const existing = await getRefund(order, signal).catch(throwUnsure)
      if (existing) return existing
      const code = codeOf(response)
      // A 409 is not a rejection: a 409 means that the refund exists, even if the status check above did not find the
      // refund.
      const isRejected = code !== undefined && response.status !== 409
      if (isRejected) return { status: 'FAIL', reference: '', reason: `refused: ${code}` }
      throw notBelieved(response, `Cashfree's response ${response.status} leaves a refund without a final status`, {
        ourRefundId,
      })
    },
    getRefund,
    repeatsRefunds: true,
  }
}
