import { defineList, isInDays } from '../../platform/lists/list.ts'
import { REFUNDED } from './fetch-transaction-list.ts'
import { FINAL_STATUSES } from './outcome.ts'
import { outcomeSql } from './payment-status.ts'
import { failureReason } from './reported-status.ts'

const NOW = 'to_timestamp({now})'
const TXN_STATUS = outcomeSql('txnStatus', NOW)

/** The orders of a merchant that were created in a period, by the time of creation. */
export const ORDERS = defineList({
  fields: [
    ['orderId', 'i.order_id'],
    ['order_id', 'i.merchant_order_id', 'free text'],
    ['merchant_id', 'i.mid'],
    ['amount', 'i.amount_paise', 'paise'],
    ['status', TXN_STATUS],
    ['msg', outcomeSql('msg', NOW)],
    ['reason', `coalesce(${failureReason('{mid}')}, '')`],
    ['UTR', `coalesce(i.utr, '')`],
    ['refunded', `case when i.utr is null then 0 else ${REFUNDED} end`, 'paise'],
    ['created_at', 'i.created_at', 'moment'],
    ['expires_at', 'i.expires_at', 'moment'],
    ['paid_at', 'coalesce(p.paid_at, p.received_at)', 'moment or null'],
  ],
  from: 'payment_intents i left join payments p on p.mid = {mid} and p.utr = i.utr',
  where: `i.mid = {mid} and ${isInDays('i.created_at')} and ({status} = '' or {status} = ${TXN_STATUS})`,
  order: 'i.created_at, i.order_id',
})

export const TXN_STATUSES = ['PENDING', ...FINAL_STATUSES] as const
export const STATUS_RULE = `must be ${TXN_STATUSES.join(', ').replace(/, (?=\w+$)/, ' or ')}`
