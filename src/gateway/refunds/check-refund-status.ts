import * as z from 'zod'
import { badRequest, refundNotFound } from '../../errors.ts'
import type { Pools } from '../../platform/db/pool.ts'
import { matching, text } from '../../platform/fields.ts'
import { jsonResponse, operation, SUCCEEDED } from '../../platform/http/operation.ts'
import { HIGHEST_MAX_RUPEES } from '../../platform/money.ts'
import { mid, orderId } from '../payments/new-payment.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import { REASON_CHARACTERS, toRefundData } from './refund.ts'
import { findRefund } from './store.ts'

const REFUND_ID = /^[A-Za-z0-9_-]{1,40}$/
const REFUND_ID_RULE = 'must be 1 to 40 characters of A-Z a-z 0-9 _ -'

export const refundId = matching(REFUND_ID, REFUND_ID_RULE).meta({
  description: 'Your own identifier of the refund, unique among your refunds.',
})

export const RefundData = z.strictObject({
  refundId: z
    .string()
    .regex(/^[0-9a-f]{32}$/)
    .meta({ description: 'The service’s identifier of the refund, which is sent to the bank.' }),
  refund_id: z
    .string()
    .regex(REFUND_ID)
    .meta({ description: 'Your identifier of the refund, or `refundId` if the operator created it.' }),
  orderId,
  order_id: z.string().meta({ description: 'Your identifier of the order, or `orderId` if you sent none.' }),
  amount: z
    .number()
    .min(0.01)
    .max(HIGHEST_MAX_RUPEES)
    .meta({ description: 'The refunded amount in rupees, as a number, with decimals if it includes paise.' }),
  txnStatus: z
    .enum(['PENDING', 'SUCCESS', 'FAIL'])
    .meta({ description: 'Only `SUCCESS` means that the money was returned.' }),
  reference: z.string().meta({
    description: 'The bank’s reference, by which the customer can identify the refund. Empty until it is known.',
  }),
  reason: text(REASON_CHARACTERS, 0).meta({
    description: 'Why the refund failed, as the bank or the operator states it, for people. Empty unless `FAIL`.',
  }),
})

export const REFUND_EXAMPLE = {
  refundId: '019ab3c4d5e6f7a8b9c0d1e2f3a4b5c6',
  refund_id: 'DEMO-1-R1',
  orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
  order_id: 'DEMO-1',
  amount: 88.5,
  txnStatus: 'PENDING' as const,
  reference: '',
  reason: '',
}

const MESSAGES = { PENDING: 'Refund pending', SUCCESS: 'Refund successful', FAIL: 'Refund failed' } as const

const RefundStatus = z.strictObject({
  status: z.literal(true).meta({ description: 'The refund exists. `txnStatus` is its status.' }),
  statusCode: SUCCEEDED,
  msg: z.enum(MESSAGES),
  data: RefundData,
})

export const checkRefundStatus = operation({
  path: '/v1/payments/checkRefundStatus',
  tag: 'Merchant',
  access: 'status',
  summary: 'Check refund status',
  description:
    '`PENDING` may last for days: check once a day, or use the webhook. A `SUCCESS` becomes `FAIL` only if the customer’s ' +
    'bank returns the money. After `FAIL`, you still have the money; send a new `refund_id` for another attempt.',
  body: {
    name: 'WhichRefund',
    schema: z.object({ mid, refund_id: refundId }),
    example: { mid: 'DEMO_MERCHANT', refund_id: 'DEMO-1-R1' },
  },
  errors: [badRequest('refund_id is required'), refundNotFound()],
  response: jsonResponse({
    description: 'The current status.',
    schema: RefundStatus,
    named: { RefundStatus, Refund: RefundData },
    example: {
      status: true,
      statusCode: 200,
      msg: 'Refund successful',
      data: { ...REFUND_EXAMPLE, txnStatus: 'SUCCESS', reference: '523504870777' },
    },
  }),
  handle: ({ pools }: { pools: Pick<Pools, 'requests'> }) => {
    return async (request) => {
      const { mid } = authorizeMerchant(request)
      const refund = await findRefund(pools.requests, mid, { refundId: request.body.refund_id })
      if (!refund) throw refundNotFound()
      const msg = MESSAGES[refund.status]
      return { status: true as const, statusCode: 200 as const, msg, data: toRefundData(refund) }
    }
  },
})
