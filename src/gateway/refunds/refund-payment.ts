import { badRequest, mayNotRefund, orderNotFound, refundRefused } from '../../errors.ts'
import type { Pools } from '../../platform/db/pool.ts'
import { operation, success } from '../../platform/http/operation.ts'
import type { DeadlineOf } from '../../platform/http/time-limits.ts'
import type { InTurn } from '../../platform/http/turns.ts'
import { HIGHEST_MAX_RUPEES, orderAmount, shopRefund } from '../../platform/money.ts'
import type { Intents } from '../payments/intents.ts'
import { note } from '../payments/new-payment.ts'
import { WHICH_PAYMENT } from '../payments/payment-status.ts'
import { authorizeRefunds } from '../tenants/authorize.ts'
import { REFUND_EXAMPLE, RefundData, refundId } from './check-refund-status.ts'
import { createRefund } from './create-refund.ts'
import { toRefundData } from './refund.ts'

const NewRefund = WHICH_PAYMENT.schema.extend({
  refund_id: refundId,
  // The merchant's present limit of amounts does not apply: a refund is only limited by what was paid.
  amount: orderAmount(HIGHEST_MAX_RUPEES)
    .meta({
      description:
        'Rupees, as your input spells them: whole, or from 0.01 for a merchant set to `shop`. Left out, all that is left goes ' +
        'back, paise too; sent empty or as null, it is refused.',
    })
    .optional(),
  note: note(100, 3).meta({ description: 'Why it goes back. Line breaks become blanks.' }),
})

const ShopRefund = NewRefund.extend({ amount: shopRefund.optional() })

const EXAMPLE = { ...WHICH_PAYMENT.example, refund_id: 'DEMO-1-R1', note: 'One cup was cold' }

export const refundPayment = operation({
  path: '/v1/payments/refundPayment',
  tag: 'Merchant',
  summary: 'Send money of a paid order back to its customer',
  description:
    'Needs a key with the right to refund, which the operator gives. Store the `refund_id` first, and when no answer arrives repeat ' +
    'the request unchanged: money goes back once, and the answer says what has become of it. The same `refund_id` with other ' +
    'fields is 409. Several refunds of one order never exceed what was paid. After a 503 repeat the request ' +
    'unchanged too: mostly nothing was stored, and where the commit’s answer was lost the repeat says what is. The refund is carried ' +
    'out afterwards: ask checkRefundStatus, or take the webhook.',
  body: {
    name: 'NewRefund',
    schema: NewRefund,
    schemaFor: ({ caller }) =>
      caller.kind === 'merchant' && caller.merchant.input === 'shop' ? ShopRefund : NewRefund,
    // An empty amount is refused, because it may be a bug of the shop and would refund the whole payment.
    notEmpty: 'amount',
    example: EXAMPLE,
  },
  refusals: [
    badRequest('refund_id is required; note must be text of 3 to 100 characters, without control characters'),
    mayNotRefund(),
    orderNotFound(),
    ...(['not successful', 'exceeds', 'too many', 'refund_id exists'] as const).map(refundRefused),
  ],
  answer: success('Refund accepted', {
    description: 'It is stored, and will be carried out; or, of a repeat, what has become of it.',
    name: 'RefundAccepted',
    dataName: 'Refund',
    data: RefundData,
    example: REFUND_EXAMPLE,
  }),
  handle: ({ pools, intents, now, inTurn, deadlineOf }: Dependencies) => {
    return async (request, reply) => {
      const { body, caller } = request
      const { mid } = authorizeRefunds(caller, body.mid)
      const { refund_id, amount, note } = body
      const order = await intents.findStatus(mid, body.order_id)
      if (!order) throw orderNotFound()
      const refund = { mid, orderId: order.orderId, refundId: refund_id, amount, note, madeBy: 'merchant' }
      const made = await inTurn(`${mid} ${order.orderId}`, deadlineOf(request, reply), (claim) =>
        createRefund(pools.requests, refund, now(), claim),
      )
      if ('refund' in made) return toRefundData(made.refund)
      if (made.refused === 'unknown order') throw orderNotFound()
      throw refundRefused(made.refused)
    }
  },
})

type Dependencies = {
  pools: Pick<Pools, 'requests'>
  intents: Pick<Intents, 'findStatus'>
  now: () => Date
  inTurn: InTurn
  deadlineOf: DeadlineOf
}
