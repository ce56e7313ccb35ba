import * as z from 'zod'
import { defineList, isInDays } from '../../platform/lists/list.ts'
import { describeList, isoMoment, merchantList, partnerList, rupees } from '../tenants/list-operation.ts'
import { INSTRUMENTS } from './instrument.ts'
import { orderId } from './new-payment.ts'

/** SQL for the refunded paise of the payment `p`. */
export const REFUNDED = `coalesce((select sum(r.amount_paise)
                   from current_refunds r
                  where r.mid = {mid} and r.order_id = p.order_id and r.utr = p.utr and r.status = 'SUCCESS'), 0)`

/** The instrument of the payment `p`. */
export const INSTRUMENT_FIELD = ['instrument', `coalesce(p.instrument, '')`] as const

/** The list contains no second payments of an order, because the operator refunds them. */
const TRANSACTIONS = defineList({
  fields: [
    ['amount', 'p.amount_paise', 'paise'],
    ['UTR', 'p.utr'],
    ['orderId', 'p.order_id'],
    ['order_id', 'i.merchant_order_id', 'free text'],
    ['merchant_id', 'p.mid'],
    ['status', `'SUCCESS'`],
    ['refunded', REFUNDED, 'paise'],
    ['created_at', 'i.created_at', 'moment'],
    ['paid_at', 'coalesce(p.paid_at, p.received_at)', 'moment'],
    INSTRUMENT_FIELD,
  ],
  from: `payments p join payment_intents i on i.mid = p.mid and i.order_id = p.order_id and p.kind <> 'second'`,
  where: `p.mid = {mid} and ${isInDays('coalesce(p.paid_at, p.received_at)')}`,
  order: 'coalesce(p.paid_at, p.received_at), p.utr',
})

export const TransactionRecord = z.strictObject({
  amount: rupees.meta({ description: 'Rupees with two decimals, as text. Do not parse it as a float.' }),
  UTR: z.string().meta({ description: 'Unique transaction reference of the payment.' }),
  orderId,
  order_id: z
    .string()
    .meta({ description: 'The merchant’s identifier of the order, or `orderId` if the merchant sent none.' }),
  merchant_id: z.string(),
  status: z.literal('SUCCESS'),
  refunded: rupees.meta({ description: 'The sum of the successful refunds of this payment.' }),
  created_at: isoMoment.meta({ description: 'When the order was created, in UTC.' }),
  paid_at: isoMoment.meta({
    description:
      'When the order was paid, in UTC, as the bank reports it; otherwise when the report was received. The date range applies to this time.',
  }),
  instrument: z.enum(['', ...INSTRUMENTS]).meta({
    description:
      'The account or credit that the customer paid with; empty if the bank has not reported it. The value may become known later.',
  }),
})

const TRANSACTION_LIST = describeList({
  name: 'Transaction',
  list: TRANSACTIONS,
  record: TransactionRecord,
  sortedBy: 'time, oldest first, then by UTR',
  example: {
    amount: '200.00',
    UTR: '523504870405',
    orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    order_id: 'DEMO-1',
    merchant_id: 'DEMO_MERCHANT',
    status: 'SUCCESS',
    refunded: '88.50',
    created_at: '2026-10-05T04:30:00.000Z',
    paid_at: '2026-10-05T04:31:00.000Z',
    instrument: 'bank account',
  },
})

const TEXTS = {
  summary: 'List transactions',
  description:
    'Returns one record per paid order. Both dates are inclusive days in Indian Standard Time and apply to `paid_at`. A payment ' +
    'that is reported later appears on the day on which it was paid.',
}

export const fetchTransactionList = merchantList(TRANSACTION_LIST, {
  path: '/v1/payments/fetchTransactionList',
  bodyName: 'WhichOwnTransactions',
  ...TEXTS,
})

export const fetchTransactionListOfPartner = partnerList(TRANSACTION_LIST, {
  path: '/v1/partner/fetchTransactionList',
  name: 'fetchTransactionListOfPartner',
  bodyName: 'WhichTransactions',
  ...TEXTS,
})
