import * as z from 'zod'
import type { WithMerchantOrderId } from '../../books/reading/merchant.ts'
import { listArrivals, recentDays } from '../../books/reports/arrivals.ts'
import { type JournalLine, journalOf } from '../../books/reports/journal.ts'
import { type OpenItem, openItems } from '../../books/reports/open-items.ts'
import { statementOf } from '../../books/reports/statement.ts'
import { errorText } from '../../platform/fields.ts'
import { toIstDay } from '../../platform/time.ts'
import { type Context, read } from './command.ts'
import { flag, offering, oneOf, optional, toggle } from './field.ts'
import { ANY_PERIOD, AS_OF, bothDaysOf, daysOf, inOrder, knownAt, MID, REPORTED, REPORTED_PERIOD } from './fields.ts'
import { collectErrors, withErrors } from './merchant-errors.ts'
import { requireMerchant } from './merchants.ts'
import { openOnly, payoutList } from './payout-list.ts'
import { document, summed, table } from './result.ts'
import { exportTally, TALLY } from './tally.ts'

const SPLIT = ['supplier', 'split'] as const
const charges = z.enum(SPLIT, errorText('must be supplier or split')).default('supplier')
const CHARGES = offering(
  flag(charges, SPLIT.join('|'), 'Fees and tax', 'in one ledger of the supplier, or split; default: supplier'),
  SPLIT,
)

/** A period, or the closed month of which Tally’s XML is written. */
const JOURNAL_PERIOD = oneOf([...REPORTED, TALLY], inOrder)

const OF_DAYS = { period: REPORTED_PERIOD, mid: optional(MID) }

type Filter = { period: Parameters<typeof bothDaysOf>[0]; mid: string | undefined; asOf?: string | undefined }

async function filterOf({ mid, period, asOf }: Filter, { db, now }: Context) {
  await requireMerchant(db, mid)
  return { ...bothDaysOf(period), mid, now: knownAt(asOf, now) }
}

export const listPayouts = read('reconcile payouts', 'List payouts and whether they were received', {
  title: 'Payouts',
  isLong: true,
  note: 'Without days, the list covers the last 31 days.',
  fields: {
    ...{ period: ANY_PERIOD, mid: optional(MID), asOf: AS_OF },
    open: optional(toggle('Only payouts that were not received in full and are not resolved')),
  },
  csv: true,
  async run({ open, mid, period, asOf }, { db, now }) {
    await requireMerchant(db, mid)
    const { from, to } = daysOf(period)
    const known = knownAt(asOf, now)
    const days = from !== undefined && to !== undefined ? { from, to } : recentDays(known)
    const { rows, failure } = collectErrors(listArrivals(db, { ...days, mid, now: known }))
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

  read('reconcile journal', 'Export double-entry postings for accounting', {
    title: 'Journal',
    isLong: true,
    note: 'A closed month is posted as it was known at its close. Later changes are posted in the first month that was open then.',
    fields: { ...OF_DAYS, period: JOURNAL_PERIOD, charges: CHARGES, asOf: AS_OF },
    check: ({ mid, period }) => (period.tally && mid === undefined ? '--tally requires --mid' : undefined),
    csv: 'plain',
    async run({ charges, ...typed }, context) {
      const { mid, period } = typed
      const filter = { ...(await filterOf(typed, context)), charges }
      const journal = journalOf(context.db, filter)
      if (period.tally && mid !== undefined) return exportTally(context, journal, { ...filter, ...period, mid })
      const { rows, failure } = collectErrors(journal)
      const columns = 'date, voucherId, reference, originalDay, mid, account, ledger, Σdebit, Σcredit'
      const first = ['date', 'reference', 'ledger', 'debit', 'credit', 'originalDay'] as const
      const views = withErrors<JournalLine, typeof columns>('ledger', { first })
      return { data: summed('postings', columns, rows, views), failure }
    },
  }),

  read('reconcile statement', 'Export a merchant’s account statement', {
    title: 'Account statement',
    isLong: true,
    fields: { mid: MID, period: REPORTED_PERIOD, asOf: AS_OF },
    csv: 'plain',
    async run({ mid, ...typed }, context) {
      const statement = await statementOf(context.db, { ...(await filterOf({ ...typed, mid }, context)), mid })
      const columns = 'day, kind, account, orderId, merchantOrderId, reference, originalDay, ₹amount, ₹balance'
      const first = ['day', 'kind', 'account', 'reference', 'amount', 'balance'] as const
      const lines = table(columns, statement.lines, { first })
      const accounts = table('account, ₹opening, ₹closing', statement.accounts, { title: 'By acquirer account' })
      return document({ lines, accounts }, lines, ...(statement.accounts.length > 1 ? [accounts] : []))
    },
  }),
]
