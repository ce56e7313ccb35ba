import * as z from 'zod'
import { defineList, isInDays } from '../../platform/lists/list.ts'
import { describeList, isoMoment, merchantList, rupees } from '../tenants/list-operation.ts'
import { RefundData } from './check-refund-status.ts'

const REFUNDS = defineList({
  fields: [
    ['refundId', 'r.our_refund_id'],
    ['refund_id', 'r.refund_id'],
    ['orderId', 'r.order_id'],
    ['order_id', 'i.merchant_order_id', 'free text'],
    ['merchant_id', 'r.mid'],
    ['amount', 'r.amount_paise', 'paise'],
    ['status', 'r.status'],
    ['reference', 'r.reference', 'free text'],
    ['reason', `case when r.status = 'FAIL' then coalesce(r.reason, '') else '' end`, 'free text'],
    ['created_at', 'r.created_at', 'moment'],
    ['updated_at', 'coalesce(r.ended_at, r.created_at)', 'moment'],
  ],
  from: 'current_refunds r join payment_intents i on i.mid = r.mid and i.order_id = r.order_id',
  where: `r.mid = {mid} and ${isInDays('r.created_at')}`,
  order: 'r.created_at, r.our_refund_id',
})

const { refundId, refund_id, orderId, order_id, txnStatus, reference, reason } = RefundData.shape

const REFUND_LIST = describeList({
  name: 'Refund',
  schemaName: 'ListedRefund',
  list: REFUNDS,
  record: z.strictObject({
    refundId,
    refund_id,
    orderId,
    order_id,
    merchant_id: z.string(),
    amount: rupees.meta({ description: 'The refunded amount in rupees with two decimals, as text.' }),
    status: txnStatus,
    reference,
    reason,
    created_at: isoMoment.meta({
      description: 'When the refund was requested, in UTC. The date range applies to this time.',
    }),
    updated_at: isoMoment.meta({ description: 'When the refund got its `status`, in UTC.' }),
  }),
  sortedBy: '`created_at`, oldest first, then by `refundId`',
  example: {
    refundId: '019ab3c4d5e6f7a8b9c0d1e2f3a4b5c6',
    refund_id: 'DEMO-1-R1',
    orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    order_id: 'DEMO-1',
    merchant_id: 'DEMO_MERCHANT',
    amount: '88.50',
    status: 'SUCCESS',
    reference: '523504870777',
    reason: '',
    created_at: '2026-10-06T05:30:00.000Z',
    updated_at: '2026-10-06T05:31:00.000Z',
  },
})

export const fetchRefundList = merchantList(REFUND_LIST, {
  path: '/v1/payments/fetchRefundList',
  bodyName: 'WhichRefunds',
  summary: 'List refunds',
  description:
    'Returns one record per refund, including refunds by the operator and the acquirer. Both dates are inclusive days in Indian ' +
    'Standard Time and apply to `created_at`.',
})
