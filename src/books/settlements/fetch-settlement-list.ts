import * as z from 'zod'
import { describeList, isoMoment, merchantList, partnerList } from '../../gateway/tenants/list-operation.ts'
import { defineList, isInDays } from '../../platform/lists/list.ts'

/** The list of settlements for partners and merchants. Only settlement imports write the table. */
export const SETTLEMENTS = defineList({
  fields: [
    ['amount', 'amount_paise', 'paise'],
    ['UTR', 'utr'],
    ['bankReferenceNumber', 'bank_reference_number'],
    ['status', 'status'],
    ['merchant_id', 'mid'],
    ['initiationDate', 'initiated_at', 'moment'],
    ['created_at', 'created_at', 'moment'],
  ],
  from: 'settlements',
  where: `mid = {mid} and ${isInDays('initiated_at')}`,
  order: 'initiated_at, utr',
})

const SettlementRecord = z.strictObject({
  amount: z
    .string()
    .regex(/^-?\d{1,12}\.\d{2}$/)
    .meta({
      description:
        'Amount in rupees with two decimals, as text; do not parse it as a float. Negative if the bank deducted money.',
    }),
  UTR: z.string().meta({ description: 'Unique transaction reference of the settlement.' }),
  bankReferenceNumber: z.string().meta({ description: 'Reference of the bank transfer that includes the settlement.' }),
  status: z.enum(['SUCCESS', 'PENDING', 'FAILED']),
  merchant_id: z.string().meta({ description: 'Merchant identifier (`mid`).' }),
  initiationDate: isoMoment.meta({
    description: 'Time at which the bank initiated the settlement, in UTC. The requested range applies to it.',
  }),
  created_at: isoMoment.meta({ description: 'Time at which the record was created, in UTC.' }),
})

const SETTLEMENT_LIST = describeList({
  name: 'Settlement',
  list: SETTLEMENTS,
  record: SettlementRecord,
  sortedBy: 'time, oldest first, then by UTR',
  example: {
    amount: '1999.00',
    UTR: 'DEMON26278000001',
    bankReferenceNumber: 'DEMOBANK-0001',
    status: 'SUCCESS',
    merchant_id: 'DEMO_MERCHANT',
    initiationDate: '2026-10-05T04:30:00.000Z',
    created_at: '2026-10-06T04:30:00.000Z',
  },
})

const DESCRIPTION =
  'Returns settlements whose `initiationDate` is from `s_date` to `e_date` (days in Indian Standard Time, both included), oldest first.'

export const fetchSettlementList = partnerList(SETTLEMENT_LIST, {
  path: '/v1/partner/fetchSettlementList',
  bodyName: 'WhichSettlements',
  summary: 'List settlements of a merchant',
  description: DESCRIPTION,
})

export const fetchSettlementListOfMerchant = merchantList(SETTLEMENT_LIST, {
  path: '/v1/payments/fetchSettlementList',
  name: 'fetchSettlementListOfMerchant',
  bodyName: 'WhichOwnSettlements',
  summary: 'List settlements',
  description: DESCRIPTION,
})
