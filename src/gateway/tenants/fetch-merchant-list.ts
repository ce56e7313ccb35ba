import * as z from 'zod'
import { badRequest } from '../../errors.ts'
import { defineList } from '../../platform/lists/list.ts'
import { authorizePartner } from './authorize.ts'
import { describeList, isoMoment, listOperation, pid } from './list-operation.ts'

const MERCHANTS = defineList({
  fields: [
    ['merchant_id', 'm.mid'],
    ['name', 'm.name', 'free text'],
    ['status', `case when m.disabled_at is null then 'ACTIVE' else 'DISABLED' end`],
    ['linked_at', 'l.linked_at', 'moment'],
  ],
  from: 'partner_merchants l join merchants m on m.mid = l.mid',
  where: 'l.pid = {pid}',
  order: 'm.mid collate "C"',
})

const MERCHANT_LIST = describeList({
  name: 'Merchant',
  list: MERCHANTS,
  record: z.strictObject({
    merchant_id: z.string().meta({ description: 'Merchant identifier (`mid`).' }),
    name: z.string().meta({ description: 'The merchant’s name on pay pages and in UPI apps.' }),
    status: z
      .enum(['ACTIVE', 'DISABLED'])
      .meta({ description: 'A `DISABLED` merchant accepts no payments; you can still read its lists.' }),
    linked_at: isoMoment.meta({ description: 'When the operator linked the merchant to you, in UTC.' }),
  }),
  sortedBy: '`merchant_id` in byte order',
  example: {
    merchant_id: 'DEMO_MERCHANT',
    name: 'Demo Merchant',
    status: 'ACTIVE',
    linked_at: '2026-10-01T04:30:00.000Z',
  },
})

export const fetchMerchantList = listOperation(MERCHANT_LIST, {
  path: '/v1/partner/fetchMerchantList',
  tag: 'Partner',
  summary: 'List merchants',
  description: 'Returns the merchants that the operator has linked to you, including disabled merchants.',
  body: { name: 'WhichMerchants', schema: z.object({ pid }), example: { pid: 'DEMO_PARTNER' } },
  invalid: badRequest('pid is required'),
  toValues: (body) => body,
  authorize: authorizePartner,
})
