import * as z from 'zod'
import type { DescribedWebhook } from '../../platform/http/operation.ts'
import { DisputeRecord } from '../disputes/fetch-dispute-list.ts'
import { FAILURE_REASONS } from '../payments/failure-reasons.ts'
import { mid, orderId } from '../payments/new-payment.ts'
import type { EventType } from '../payments/outbox.ts'
import { FINAL_STATUSES } from '../payments/outcome.ts'
import { RefundData } from '../refunds/check-refund-status.ts'
import { isoMoment } from '../tenants/list-operation.ts'

const { refundId, refund_id, order_id, reference, reason } = RefundData.shape

const order = { mid, orderId, order_id }

const txnStatus = z.enum(['PENDING', ...FINAL_STATUSES])

const amount = z
  .string()
  .regex(/^\d{1,6}(\.\d{2})?$/)
  .meta({ description: 'Amount in rupees, as text: `200`, or `588.82` if it includes paise.' })

const sequence = z.int().min(1).meta({
  description: 'Number of the event within its order. If two events of a payment differ, the higher one is valid.',
})

/** The data of an event of a payment. Each type of event narrows it. */
export const PaymentEventData = z.strictObject({
  ...order,
  txnStatus,
  amount,
  UTR: z.string().nullable().meta({ description: 'Unique transaction reference of the payment or of the attempt.' }),
  reason: z.enum(FAILURE_REASONS).meta({ description: 'Why the last attempt failed.' }).optional(),
  sequence,
})

/** The data of an event of a refund. Each type of event narrows it. */
export const RefundEventData = z.strictObject({
  ...order,
  refundId,
  refund_id,
  txnStatus,
  amount,
  reference,
  reason,
  sequence,
})

const { UTR, dispute_id, status: disputeStatus, reason_text, respond_by } = DisputeRecord.shape

/** The data of an event of a dispute. Unknown values are empty. */
const DisputeEventData = z.strictObject({
  ...order,
  UTR,
  dispute_id,
  amount: z.union([amount, z.literal('')]).meta({ description: 'Disputed amount in rupees, as in the other events.' }),
  status: disputeStatus,
  reason_text,
  respond_by,
  sequence,
})

const IDS = { mid: 'DEMO_MERCHANT', orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3', order_id: 'DEMO-1' }
const PAID = { ...IDS, amount: '200', UTR: '523504870405' }
const UNPAID = { ...IDS, amount: '200', UTR: null }
const REFUNDED = {
  ...IDS,
  refundId: '019ab3c4d5e6f7a8b9c0d1e2f3a4b5c6',
  refund_id: 'DEMO-1-R1',
  amount: '88.50',
  reference: '523504870777',
  reason: '',
}

const DISPUTED = {
  ...IDS,
  UTR: '523504870405',
  dispute_id: '433475258',
  amount: '200',
  reason_text: 'Goods not received',
  respond_by: '2026-11-24T18:29:59.000Z',
}

/** Every event that the service sends. Tests check the sent events against these schemas. */
export const WEBHOOKS: readonly DescribedWebhook[] = [
  event('payment.succeeded', {
    description:
      'The order is paid. Fulfil the order. A late payment can follow `payment.expired` or `payment.cancelled`.',
    data: PaymentEventData.omit({ reason: true }).extend({
      txnStatus: z.literal('SUCCESS'),
      UTR: z.string().meta({ description: 'Unique transaction reference of the payment.' }),
    }),
    example: { ...PAID, txnStatus: 'SUCCESS', sequence: 1 },
  }),
  event('payment.attempt_failed', {
    description: 'An attempt to pay failed. The customer can try again, so leave the order open.',
    data: PaymentEventData.extend({
      txnStatus: z.literal('PENDING'),
      reason: PaymentEventData.shape.reason.unwrap(),
    }),
    example: { ...UNPAID, txnStatus: 'PENDING', reason: 'wrong_pin', sequence: 1 },
  }),
  event('payment.cancelled', {
    description: 'You cancelled the order with cancelPayment.',
    data: PaymentEventData.omit({ reason: true }).extend({ txnStatus: z.literal('FAIL') }),
    example: { ...UNPAID, txnStatus: 'FAIL', sequence: 1 },
  }),
  event('payment.expired', {
    description: 'The order was not paid within 10 minutes after its expiry, so its status is final.',
    data: PaymentEventData.extend({ txnStatus: z.enum(['FAIL', 'REJECT']) }),
    example: { ...UNPAID, txnStatus: 'FAIL', reason: 'insufficient_funds', sequence: 2 },
  }),
  event('refund.succeeded', {
    description:
      'A refund returned the money to the customer. The status of the payment is unchanged: do not fulfil an order.',
    data: RefundEventData.extend({ txnStatus: z.literal('SUCCESS') }),
    example: { ...REFUNDED, txnStatus: 'SUCCESS', sequence: 2 },
  }),
  event('refund.failed', {
    description:
      'A refund failed, or the customer’s bank returned the money after `refund.succeeded`. The order is still paid.',
    data: RefundEventData.extend({ txnStatus: z.literal('FAIL') }),
    example: { ...REFUNDED, txnStatus: 'FAIL', reference: '', reason: 'The account is closed', sequence: 2 },
  }),
  event('dispute.opened', {
    description:
      'A customer disputes the payment. Send your evidence to the operator until `respond_by`, and do not refund the payment.',
    data: DisputeEventData,
    example: { ...DISPUTED, status: 'OPEN', sequence: 2 },
  }),
  event('dispute.updated', {
    description:
      'The status of a dispute, its amount or `respond_by` changed. After `LOST` and `ACCEPTED`, the bank returns the money.',
    data: DisputeEventData,
    example: { ...DISPUTED, status: 'WON', sequence: 3 },
  }),
]

type Event<Data extends z.ZodObject> = { description: string; data: Data; example: z.output<Data> }

function event<Data extends z.ZodObject>(
  type: EventType,
  { description, data, example }: Event<Data>,
): DescribedWebhook {
  const schema = z.strictObject({
    type: z.literal(type),
    timestamp: isoMoment.meta({ description: 'Time of the change, in UTC.' }),
    data,
  })
  return { type, description, schema, example: { type, timestamp: '2026-11-21T10:10:12.345Z', data: example } }
}
