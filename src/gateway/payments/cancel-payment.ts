import { badRequest, orderNotFound, paymentSuccessful } from '../../errors.ts'
import { operation } from '../../platform/http/operation.ts'
import type { SerializeByKey } from '../../platform/http/serialize.ts'
import type { DeadlineOf } from '../../platform/http/time-limits.ts'
import type { LinkedOrder } from '../acquirers/client.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import type { Intents } from './intents.ts'
import { PAYMENT_STATUS, reportPaymentStatus, type StatusReporting, WHICH_PAYMENT } from './payment-status.ts'

export const cancelPayment = operation({
  path: '/v1/payments/cancelPayment',
  tag: 'Merchant',
  access: 'cancel',
  summary: 'Cancel a payment',
  description:
    'Closes an unpaid order. Cancel the first order before you create a second one for the same purchase, otherwise your ' +
    'customer may pay both. The pay page and the QR close immediately. The response is that of checkPaymentStatus: `FAIL` with ' +
    '`Payment cancelled`, also when you repeat the request. An order that is already final returns its own status; a paid order ' +
    'returns 409. A payment in progress may still succeed: checkPaymentStatus then returns `SUCCESS`, and the operator is notified.',
  body: WHICH_PAYMENT,
  errors: [badRequest('order_id is required'), orderNotFound(), paymentSuccessful()],
  response: PAYMENT_STATUS,
  handle: ({ intents, now, closeLink, serializeByKey, deadlineOf }: Dependencies) => {
    return async (request, reply) => {
      const { order_id } = request.body
      const { mid } = authorizeMerchant(request)
      const payment = await serializeByKey(`${mid} ${order_id}`, deadlineOf(request, reply), (claim) =>
        intents.cancel(mid, order_id, now(), claim),
      )
      if (!payment) throw orderNotFound()
      if (payment.toClose) void closeLink({ orderId: payment.orderId, paymentLink: payment.toClose })
      if (payment.status === 'SUCCESS') throw paymentSuccessful()
      return reportPaymentStatus(reply, { intents, now }, payment, order_id)
    }
  },
})

type Dependencies = StatusReporting & {
  intents: Pick<Intents, 'cancel'>
  /**
   * Closes the acquirer's link. The promise never rejects, because the response to the merchant does not wait for the
   * result.
   */
  closeLink: (order: LinkedOrder) => Promise<void>
  serializeByKey: SerializeByKey
  deadlineOf: DeadlineOf
}
