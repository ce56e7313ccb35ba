import * as z from 'zod'
import { toJsonNumber } from '../../../platform/money.ts'
import type { RefundOrder, Refunds } from '../client.ts'
import { codeOf, type JsonAnswer, notBelieved, readBody } from '../json-request.ts'
import { type CashfreeRequest, noteOf, refundFields, toRefundUpdate } from './http.ts'

const RefundAnswer = z.object({ refund_id: z.string(), ...refundFields })

const ONLY_ITS_OWN =
  'Cashfree takes refunds of the payment that an order was paid by: send a second one back in its dashboard'

/** HTTP statuses by which Cashfree may refuse a refund. Such a status from a proxy does not count as a refusal. */
const REFUSED = [400, 404, 409, 422]

export function cashfreeRefunds(request: CashfreeRequest): Refunds {
  function updateOf(answer: JsonAnswer, { ourRefundId }: RefundOrder) {
    const message = 'Cashfree told of a refund in a form that is not known'
    const refund = readBody(RefundAnswer, answer, message, { ourRefundId })
    return { ...toRefundUpdate(refund), ourRefundId: refund.refund_id }
  }

  async function getRefund(order: RefundOrder, signal: AbortSignal | undefined) {
    const path = `orders/${order.orderId}/refunds/${order.ourRefundId}`
    const answer = await request({ method: 'GET', path }, signal, [200, 404])
    if (answer.status === 200) return updateOf(answer, order)
    // Only a 404 of Cashfree itself, with a code, means that the refund is unknown; a proxy may answer 404 too.
    if (codeOf(answer) !== undefined) return undefined
    throw notBelieved(answer, 'Cashfree answered 404 in a form that is not its own')
  }

  return {
    async refund(order, signal) {
      const { orderId, ourRefundId, amount, note, isSecond } = order
      // A second payment is not refunded here, because Cashfree's refund names only the order and returns its first
      // one.
      if (isSecond) return { status: 'FAIL', reference: '', reason: ONLY_ITS_OWN }
      const refund = { refund_id: ourRefundId, refund_amount: toJsonNumber(amount), refund_speed: 'STANDARD' }
      const body = { ...refund, refund_note: noteOf(note, 100) }
      const path = `orders/${orderId}/refunds`
      const answer = await request({ method: 'POST', path, body }, signal, [200, ...REFUSED])
      if (answer.status === 200) return updateOf(answer, order)
      // Cashfree may refuse a repeated request because the first request has created the refund.
      const known = await getRefund(order, signal)
      if (known) return known
      const code = codeOf(answer)
      // A 409 says that the refund exists, even if the query above did not find it.
      const isRefused = code !== undefined && answer.status !== 409
      if (isRefused) return { status: 'FAIL', reference: '', reason: `refused: ${code}` }
      throw notBelieved(answer, `an answer ${answer.status} of Cashfree is no end of a refund`, { ourRefundId })
    },
    getRefund,
    repeatsRefunds: true,
  }
}
