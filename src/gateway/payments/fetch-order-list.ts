import * as z from 'zod'
import { errorText } from '../../platform/fields.ts'
import { describeList, isoMoment, MerchantRange, merchantList } from '../tenants/list-operation.ts'
import { FAILURE_REASONS } from './failure-reasons.ts'
import { TransactionRecord } from './fetch-transaction-list.ts'
import { ORDERS, ordersOf, STATUS_RULE, TXN_STATUSES } from './order-list.ts'
import { FINAL_MESSAGES, OPEN_MESSAGES } from './payment-status.ts'

const { orderId, order_id, merchant_id, amount, refunded } = TransactionRecord.shape

const ORDER_LIST = describeList({
  name: 'Order',
  list: { ...ORDERS, fields: ORDERS.fields.slice(0, -1) },
  record: z.strictObject({
    orderId,
    order_id,
    merchant_id,
    amount,
    status: z.enum(TXN_STATUSES).meta({
      description: 'The `txnStatus` that checkPaymentStatus returns at the same time. Only `SUCCESS` is paid.',
    }),
    msg: z.enum([...OPEN_MESSAGES, ...FINAL_MESSAGES]),
    reason: z
      .enum(['', ...FAILURE_REASONS])
      .meta({ description: 'Why the last attempt failed. Empty unless the last report is of a failed attempt.' }),
    UTR: z.string().meta({ description: 'Unique transaction reference of the payment; empty unless `SUCCESS`.' }),
    refunded,
    created_at: isoMoment.meta({
      description: 'When the order was created, in UTC. The date range applies to this time.',
    }),
    expires_at: isoMoment.meta({ description: 'When the payment link expires, in UTC.' }),
    paid_at: z.union([isoMoment, z.literal('')]).meta({
      description:
        'When the order was paid, in UTC, as the bank reports it; otherwise when the report was received. Empty unless `SUCCESS`.',
    }),
  }),
  sortedBy: '`created_at`, oldest first, then by `orderId`',
  example: {
    orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    order_id: 'DEMO-1',
    merchant_id: 'DEMO_MERCHANT',
    amount: '200.00',
    status: 'SUCCESS',
    msg: 'Payment successful',
    reason: '',
    UTR: '523504870405',
    refunded: '88.50',
    created_at: '2026-10-05T04:30:00.000Z',
    expires_at: '2026-10-05T04:45:00.000Z',
    paid_at: '2026-10-05T04:31:00.000Z',
  },
})

export const fetchOrderList = merchantList(ORDER_LIST, {
  path: '/v1/payments/fetchOrderList',
  bodyName: 'WhichOrders',
  schema: MerchantRange.safeExtend({
    status: z
      .enum(TXN_STATUSES, errorText(STATUS_RULE))
      .meta({
        description:
          'Lists only orders of this status. A list of `SUCCESS` or `FAIL` that finds no order within 0.4 s begins with the `msg` ' +
          '`Orders found` and may be empty.',
      })
      .optional(),
  }),
  listOf: ordersOf,
  summary: 'List orders',
  description:
    'Returns one record per order, paid or not, with the status that checkPaymentStatus returns at the same time. Both dates are ' +
    'inclusive days in Indian Standard Time and apply to `created_at`. The list is a report and may lag behind by seconds: before ' +
    'you fulfil an order, check its status or wait for its webhook.',
})
