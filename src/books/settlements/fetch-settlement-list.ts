import * as z from 'zod'
import { describeList, isoMoment, partnerList } from '../../gateway/tenants/list-operation.ts'
import { SETTLEMENTS } from './settlements.ts'

const SettlementRecord = z.strictObject({
  amount: z
    .string()
    .regex(/^-?\d{1,12}\.\d{2}$/)
    .meta({
      description:
        'Rupees with two decimals, as text: never read it as a float. Negative where the bank took money back.',
    }),
  UTR: z.string().meta({ description: 'Unique transaction reference of the payout.' }),
  bankReferenceNumber: z.string(),
  status: z.enum(['SUCCESS', 'PENDING', 'FAILED']),
  merchant_id: z.string(),
  initiationDate: isoMoment.meta({ description: 'When the bank began it, UTC. The range applies to this moment.' }),
  created_at: isoMoment.meta({ description: 'When the record was made, UTC.' }),
})

const SETTLEMENT_LIST = describeList({
  name: 'Settlement',
  list: SETTLEMENTS,
  record: SettlementRecord,
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

export const fetchSettlementList = partnerList(SETTLEMENT_LIST, {
  path: '/v1/partner/fetchSettlementList',
  bodyName: 'WhichSettlements',
  summary: 'List what was settled to a merchant',
  description: 'Both days are days of India, included, and apply to `initiationDate`.',
})
