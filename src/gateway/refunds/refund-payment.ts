import { badRequest, orderNotFound, refundRejected } from '../../errors.ts'
import type { Pools } from '../../platform/db/pool.ts'
import { operation, success } from '../../platform/http/operation.ts'
import type { SerializeByKey } from '../../platform/http/serialize.ts'
import type { DeadlineOf } from '../../platform/http/time-limits.ts'
import { HIGHEST_MAX_RUPEES, lenientRefund, orderAmount } from '../../platform/money.ts'
import type { Intents } from '../payments/intents.ts'
import { note } from '../payments/new-payment.ts'
import { WHICH_PAYMENT } from '../payments/payment-status.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import { REFUND_EXAMPLE, RefundData, refundId } from './check-refund-status.ts'
import { createRefund } from './create-refund.ts'
import { toRefundData } from './refund.ts'

const NewRefund = WHICH_PAYMENT.schema.extend({
  refund_id: refundId,
  // The merchant's current maximum amount does not apply: only the paid amount limits a refund.
  amount: orderAmount(HIGHEST_MAX_RUPEES)
    .meta({
      description:
        'Amount in rupees: whole, or from 0.01 for a merchant with the input `shop`. If it is absent, the whole remaining amount ' +
        'is refunded, including paise. An empty or null amount is rejected.',
      example: '100',
    })
    .optional(),
  note: note(100, 3).meta({ description: 'The reason for the refund. Line breaks become spaces.' }),
})

const LenientRefund = NewRefund.extend({ amount: lenientRefund.optional() })

const EXAMPLE = { ...WHICH_PAYMENT.example, refund_id: 'DEMO-1-R1', note: 'One cup was cold' }

export const refundPayment = operation({
  path: '/v1/payments/refundPayment',
  tag: 'Merchant',
  access: 'refund',
  summary: 'Refund a payment',
  description:
    'Store the `refund_id` before you send the request. If ' +
    'no response arrives, repeat the request unchanged: the money is refunded once, and the response contains the refund’s status. ' +
    'The same `refund_id` with other fields returns 409. Several refunds of one order never exceed the paid amount. After a 503, ' +
    'also repeat the request unchanged, whether or not the refund was stored. The refund is processed afterwards: call ' +
    'checkRefundStatus, or use the webhook.',
  body: {
    name: 'NewRefund',
    schema: NewRefund,
    schemaFor: ({ caller }) =>
      caller.kind === 'merchant' && caller.merchant.input === 'shop' ? LenientRefund : NewRefund,
    // An empty amount is rejected, because it may be an error in the merchant's server, and an absent amount refunds
    // the whole payment.
    notEmpty: 'amount',
    example: EXAMPLE,
  },
  errors: [
    badRequest('refund_id is required; note must be text of 3 to 100 characters, without control characters'),
    orderNotFound(),
    ...(['not successful', 'disputed', 'exceeds', 'too many', 'refund_id exists'] as const).map(refundRejected),
  ],
  response: success('Refund accepted', {
    description: 'The refund is stored and will be processed. A repeat returns its current status.',
    name: 'RefundAccepted',
    dataName: 'Refund',
    data: RefundData,
    example: REFUND_EXAMPLE,
  }),
  handle: ({ pools, intents, now, serializeByKey, deadlineOf }: Dependencies) => {
    return async (request, reply) => {
      const { mid } = authorizeMerchant(request)
      const { order_id, refund_id, amount, note } = request.body
      const order = await intents.findStatus(mid, order_id)
      if (!order) throw orderNotFound()
      const refund = { mid, orderId: order.orderId, refundId: refund_id, amount, note, createdBy: 'merchant' }
      const created = await serializeByKey(`${mid} ${order.orderId}`, deadlineOf(request, reply), (claim) =>
        createRefund(pools.requests, refund, now(), claim),
      )
      if ('refund' in created) return toRefundData(created.refund)
      if (created.rejected === 'unknown order') throw orderNotFound()
      throw refundRejected(created.rejected)
    }
  },
})

type Dependencies = {
  pools: Pick<Pools, 'requests'>
  intents: Pick<Intents, 'findStatus'>
  now: () => Date
  serializeByKey: SerializeByKey
  deadlineOf: DeadlineOf
}
