import { listArrivals, recentDays } from '../../books/reconciliation/arrivals.ts'
import { listExcessFees } from '../../books/reconciliation/fees.ts'
import { type JournalLine, journalOf } from '../../books/reconciliation/journal.ts'
import type { WithMerchantOrderId } from '../../books/reconciliation/merchant-order-ids.ts'
import { type OpenItem, openItems } from '../../books/reconciliation/open-items.ts'
import { statementOf } from '../../books/reconciliation/statement.ts'
import { toIstDay } from '../../platform/time.ts'
import { type Context, read } from './command.ts'
import { type InputOf, optional, toggle } from './field.ts'
import { ANY_PERIOD, AS_OF, bothDaysOf, daysOf, knownAt, MID, REPORTED_PERIOD } from './fields.ts'
import { collectErrors, withErrors } from './merchant-errors.ts'
import { requireMerchant } from './merchants.ts'
import { openOnly, payoutList } from './payout-list.ts'
import { document, summed, table } from './result.ts'

const OF_DAYS = { period: REPORTED_PERIOD, mid: optional(MID) }

async function filterOf({ mid, period }: InputOf<typeof OF_DAYS>, { db, now }: Context) {
  await requireMerchant(db, mid)
  return { ...bothDaysOf(period), mid, now }
}

export const listPayouts = read('reconcile payouts', 'List payouts and whether they were received', {
  title: 'Payouts',
  isLong: true,
  note: 'Without days, the list covers the last 31 days.',
  fields: {
    ...{ period: ANY_PERIOD, mid: optional(MID) },
    open: optional(toggle('Only payouts that were not received in full and are not resolved')),
  },
  csv: true,
  async run({ open, mid, period }, { db, now }) {
    await requireMerchant(db, mid)
    const { from, to } = daysOf(period)
    const days = from !== undefined && to !== undefined ? { from, to } : recentDays(now)
    const { rows, failure } = collectErrors(listArrivals(db, { ...days, mid, now }))
    return { data: payoutList(open ? openOnly(rows) : rows), failure }
  },
})

export const bookCommands = [
  listPayouts,

  read('reconcile open', 'List the open items that make up the balance', {
    title: 'Open items',
    isLong: true,
    note: 'The amounts add up to carriedForward of ops reconcile. settledOn is the day on which the item was settled later.',
    fields: { asOf: AS_OF, mid: optional(MID) },
    csv: true,
    async run({ asOf, mid }, { db, now }) {
      await requireMerchant(db, mid)
      const day = asOf ?? toIstDay(now)
      const { rows, failure } = collectErrors(openItems(db, { asOf: day, known: knownAt(asOf, now), now, mid }))
      const columns = 'mid, day, kind, utr, orderId, merchantOrderId, acquirer, differenceId, Σamount, settledOn'
      const views = withErrors<WithMerchantOrderId<OpenItem>, typeof columns>('kind', {
        first: ['mid', 'day', 'kind', 'utr', 'amount', 'settledOn'],
        changes: ({ differenceId }) => (differenceId === null ? [] : [{ difference: differenceId }]),
      })
      return { data: summed('openItems', columns, rows, views), failure }
    },
  }),

  read('reconcile fees', 'List settlement lines with excess fees', {
    title: 'Fees',
    isLong: true,
    fields: OF_DAYS,
    csv: true,
    async run(typed, context) {
      const columns = 'mid, day, settlementUtr, utr, orderId, Σgross, Σfee, Σtax, Σallowed, Σexcess'
      return summed('fees', columns, listExcessFees(context.db, await filterOf(typed, context)))
    },
  }),

  read('reconcile journal', 'Export double-entry postings for accounting', {
    title: 'Journal',
    isLong: true,
    fields: OF_DAYS,
    csv: 'plain',
    async run(typed, context) {
      const { rows, failure } = collectErrors(journalOf(context.db, await filterOf(typed, context)))
      const columns = 'date, voucher, mid, ledger, Σdebit, Σcredit'
      const views = withErrors<JournalLine, typeof columns>('ledger')
      return { data: summed('postings', columns, rows, views), failure }
    },
  }),

  read('reconcile statement', 'Export a merchant’s account statement', {
    title: 'Account statement',
    isLong: true,
    fields: { mid: MID, period: REPORTED_PERIOD },
    csv: 'plain',
    async run({ mid, period }, context) {
      const rows = await statementOf(context.db, { ...(await filterOf({ period, mid }, context)), mid })
      const lines = table('day, kind, orderId, merchantOrderId, reference, ₹amount, ₹balance', rows)
      return document({ lines }, lines)
    },
  }),
]
