import * as z from 'zod'
import { errorText } from '../../platform/fields.ts'
import { defineList, isInDays } from '../../platform/lists/list.ts'
import { TransactionRecord } from '../payments/fetch-transaction-list.ts'
import { describeList, isoMoment, MerchantRange, merchantList, rupees } from '../tenants/list-operation.ts'

const WIRE_STATUSES = ['OPEN', 'UNDER_REVIEW', 'WON', 'LOST', 'ACCEPTED', 'CLOSED'] as const
const WIRE_STATUS = `replace(upper(d.status), ' ', '_')`

const DISPUTES = defineList({
  fields: [
    ['dispute_id', 'd.dispute_id'],
    ['orderId', 'd.order_id'],
    ['order_id', 'i.merchant_order_id', 'free text'],
    ['merchant_id', 'd.mid'],
    ['UTR', 'd.utr'],
    ['amount', `coalesce(to_char(d.amount_paise * 0.01, 'FM999999999990.00'), '')`],
    ['kind', `coalesce(d.kind, '')`, 'free text'],
    ['status', WIRE_STATUS],
    ['reason_code', `coalesce(d.reason_code, '')`, 'free text'],
    ['reason_text', `coalesce(d.reason_text, '')`, 'free text'],
    ['respond_by', 'd.respond_by', 'moment or null'],
    ['opened_at', 'd.opened_at', 'moment'],
    ['updated_at', 'd.updated_at', 'moment'],
  ],
  from: 'disputes d join payment_intents i on i.mid = d.mid and i.order_id = d.order_id',
  where: `d.mid = {mid} and ${isInDays('d.opened_at')}`,
  filter: `{status} in ('', ${WIRE_STATUS})`,
  order: 'd.opened_at, d.dispute_id',
})

const { orderId, order_id, merchant_id } = TransactionRecord.shape
const orEmpty = <S extends z.ZodType>(schema: S) => z.union([schema, z.literal('')])

export const DisputeRecord = z.strictObject({
  dispute_id: z.string().meta({ description: 'The bank’s identifier of the dispute.' }),
  orderId,
  order_id,
  merchant_id,
  UTR: z.string().meta({ description: 'Unique transaction reference of the disputed payment.' }),
  amount: orEmpty(rupees).meta({
    description: 'The disputed amount in rupees with two decimals, as text. Empty if the bank did not report it.',
  }),
  kind: z.string().meta({ description: 'The bank’s word for the kind, such as `CHARGEBACK`. May be empty.' }),
  status: z.enum(WIRE_STATUSES).meta({
    description:
      '`OPEN` awaits a response. `WON` and `CLOSED` leave you the money; after `LOST` and `ACCEPTED`, the bank returns it.',
  }),
  reason_code: z.string().meta({ description: 'The bank’s code of the reason. May be empty.' }),
  reason_text: z.string().meta({ description: 'The reason in the bank’s words. May be empty.' }),
  respond_by: orEmpty(isoMoment).meta({
    description: 'Until when the bank accepts a response, in UTC. Empty if the bank did not report it.',
  }),
  opened_at: isoMoment.meta({
    description: 'When the dispute was opened, in UTC. The date range applies to this time.',
  }),
  updated_at: isoMoment.meta({ description: 'When the dispute got its `status`, in UTC.' }),
})

const DISPUTE_LIST = describeList({
  name: 'Dispute',
  list: DISPUTES,
  record: DisputeRecord,
  sortedBy: '`opened_at`, oldest first, then by `dispute_id`',
  example: {
    dispute_id: '433475258',
    orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    order_id: 'DEMO-1',
    merchant_id: 'DEMO_MERCHANT',
    UTR: '523504870405',
    amount: '200.00',
    kind: 'CHARGEBACK',
    status: 'OPEN',
    reason_code: '1402',
    reason_text: 'Goods not received',
    respond_by: '2026-10-09T18:29:59.000Z',
    opened_at: '2026-10-06T05:30:00.000Z',
    updated_at: '2026-10-06T05:30:00.000Z',
  },
})

export const fetchDisputeList = merchantList(DISPUTE_LIST, {
  path: '/v1/payments/fetchDisputeList',
  bodyName: 'WhichDisputes',
  schema: MerchantRange.safeExtend({
    status: z
      .enum(WIRE_STATUSES, errorText('must be OPEN, UNDER_REVIEW, WON, LOST, ACCEPTED or CLOSED'))
      .meta({ description: 'Lists only disputes of this status.' })
      .optional(),
  }),
  summary: 'List disputes',
  description:
    'Returns one record per dispute of a payment, such as a chargeback. Both dates are inclusive days in Indian Standard Time and ' +
    'apply to `opened_at`.',
})
