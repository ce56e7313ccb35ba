import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { utrOfId } from '../../../platform/fields.ts'
import type { RefundOrder, Refunds } from '../client.ts'
import { codeOf, type JsonResponse, notBelieved, readBody, textOf, throwUndone, throwUnsure } from '../json-request.ts'
import { isDescribed, paymentsOf, RazorpayList, type RazorpayRequest, refundFields, toRefundUpdate } from './http.ts'

const Refund = z.object(refundFields)

/** HTTP statuses with which Razorpay rejects a refund. A proxy's response with such a status is not a rejection. */
const REJECTED = [400, 404, 422]
/** Razorpay returns at most this number of refunds per call. The service sends at most as many refunds of a payment. */
const MOST_REFUNDS = 100

export function razorpayRefunds(request: RazorpayRequest): Refunds {
  /** Finds Razorpay's id of a payment whose report contained only the bank reference. */
  async function findPayment({ payment, paymentLink, utr, ourRefundId }: RefundOrder, signal: AbortSignal | undefined) {
    if (payment) return payment
    const { response, payments } = await paymentsOf(request, paymentLink.id, signal)
    const id = payments.find((one) => one?.acquirer_data === utr || utrOfId(one?.id ?? '') === utr)?.id
    if (id) return { id }
    throw notBelieved(response, 'Razorpay did not return the refunded payment', { ourRefundId })
  }

  async function getRefund(order: RefundOrder, signal: AbortSignal | undefined) {
    const { ourRefundId } = order
    const payment = await findPayment(order, signal)
    const path = `payments/${payment.id}/refunds?count=${MOST_REFUNDS}`
    const response = await request({ method: 'GET', path }, signal, [200])
    const { items } = readBody(RazorpayList, response, UNREADABLE, { ourRefundId })
    const isOurs = (one: unknown) => textOf(Object(one).receipt).toLowerCase() === ourRefundId
    const body = items.find(isOurs)
    return body === undefined ? undefined : { ...updateOf({ ...response, body }, order), payment }
  }

  return {
    async refund(order, signal) {
      const { ourRefundId, amount } = order
      const payment = await findPayment(order, signal).catch(throwUndone)
      const headers = { 'x-refund-idempotency': ourRefundId }
      const body = { amount, speed: 'normal', receipt: ourRefundId }
      const path = `payments/${payment.id}/refund`
      const response = await request({ method: 'POST', path, headers, body }, signal, [200, 409, ...REJECTED])
      if (response.status === 200) return { ...updateOf(response, order), payment }
      if (response.status === 409) {
        throw new AcquirerError('unavailable', 'Razorpay is still processing this refund', { ourRefundId })
      }
      // Checks the refund's status, because Razorpay may reject a repeated request after the first request created the
      // refund.
      const known = await getRefund({ ...order, payment }, signal).catch(throwUnsure)
      if (known) return known
      const code = codeOf(response)
      const isRejected = code !== undefined && !isDescribed(response, /same idempotency key/i)
      if (isRejected) return { status: 'FAIL', reference: '', reason: `refused: ${code}`, payment }
      throw notBelieved(response, `Razorpay's response ${response.status} leaves a refund without a final status`, {
        ourRefundId,
      })
    },
    getRefund,
    repeatsRefunds: true,
  }
}

const UNREADABLE = 'Razorpay returned a refund in an unknown format'

function updateOf(response: JsonResponse, { ourRefundId }: RefundOrder) {
  const refund = readBody(Refund, response, UNREADABLE, { ourRefundId })
  return { ...toRefundUpdate(refund), ourRefundId: refund.receipt }
}
