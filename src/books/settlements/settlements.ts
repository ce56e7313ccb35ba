import { defineList, isInDays } from '../../platform/lists/list.ts'

export type SettlementStatus = 'SUCCESS' | 'PENDING' | 'FAILED'

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
