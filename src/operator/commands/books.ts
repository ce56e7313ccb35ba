import * as z from 'zod'
import type { Days } from '../../books/ledger/bank-days.ts'
import { listArrivals, recentDays } from '../../books/reconciliation/arrivals.ts'
import { changesOfClosedMonths } from '../../books/reconciliation/changes-of-closed-months.ts'
import { listExcessFees } from '../../books/reconciliation/fees.ts'
import { type JournalLine, journalOf } from '../../books/reconciliation/journal.ts'
import { isMerchantError, merchantErrorText } from '../../books/reconciliation/merchant-errors.ts'
import { statementOf } from '../../books/reconciliation/statement.ts'
import { identifier } from '../../platform/fields.ts'
import { toIstTime } from '../../platform/time.ts'
import { type Context, command } from './command.ts'
import { DAYS, DAYS_USAGE, daysOf, inOrder, requireDays } from './days.ts'
import { collectErrors, failureOf, withErrors } from './merchant-errors.ts'
import { openOnly, payoutList } from './payout-list.ts'
import { requireMerchant } from './reconcile.ts'
import { changeLine, changesTable, figuresText, indented } from './reconcile-report.ts'
import { document, summed, table } from './result.ts'

const Filter = z.object({ ...DAYS, mid: identifier.optional() }).superRefine(inOrder)
const OfDays = Filter.refine(...requireDays)
type Filter = z.output<typeof Filter>

const hasDays = ({ from, to, month }: Filter) => Boolean(from ?? to ?? month)

async function filterOf({ mid, ...typed }: Filter, { db, now }: Context) {
  await requireMerchant(db, mid)
  return { ...(daysOf(typed) as Days), mid, now }
}

export const bookCommands = [
  command('reconcile payouts', 'List payouts and whether they were received', {
    usage: `[${DAYS_USAGE}] [--mid MID] [--open] [--csv]`,
    note: 'Without days, the list covers the last 31 days.',
    schema: Filter.safeExtend({ open: z.literal(true).optional() }).refine(
      (typed) => !hasDays(typed) || requireDays[0](typed),
      requireDays[1],
    ),
    csv: true,
    console: 'read',
    async run({ open, ...typed }, context) {
      const requested = await filterOf(hasDays(typed) ? typed : { ...typed, ...recentDays(context.now) }, context)
      const { rows, failure } = collectErrors(listArrivals(context.db, requested))
      return { data: payoutList(open ? openOnly(rows) : rows), failure }
    },
  }),

  command('reconcile fees', 'List settlement lines with excess fees', {
    usage: `(${DAYS_USAGE}) [--mid MID] [--csv]`,
    schema: OfDays,
    csv: true,
    console: 'read',
    async run(typed, context) {
      const columns = 'mid, day, settlementUtr, utr, orderId, Σgross, Σfee, Σtax, Σallowed, Σexcess'
      return summed('fees', columns, listExcessFees(context.db, await filterOf(typed, context)))
    },
  }),

  command('reconcile journal', 'Export double-entry postings for accounting', {
    usage: `(${DAYS_USAGE}) [--mid MID] [--csv [--for excel]]`,
    schema: OfDays,
    csv: 'plain',
    console: 'read',
    async run(typed, context) {
      const { rows, failure } = collectErrors(journalOf(context.db, await filterOf(typed, context)))
      const columns = 'date, voucher, mid, ledger, Σdebit, Σcredit'
      const views = withErrors<JournalLine, typeof columns>('ledger')
      return { data: summed('postings', columns, rows, views), failure }
    },
  }),

  command('reconcile statement', 'Export a merchant’s account statement', {
    usage: `--mid MID (${DAYS_USAGE}) [--csv [--for excel]]`,
    schema: OfDays.safeExtend({ mid: identifier }),
    csv: 'plain',
    console: 'read',
    async run({ mid, ...typed }, context) {
      const rows = await statementOf(context.db, { ...(await filterOf({ ...typed, mid }, context)), mid })
      const lines = table('day, kind, orderId, merchantOrderId, reference, ₹amount, ₹balance', rows)
      return document({ lines }, lines)
    },
  }),

  command('reconcile closed', 'List closed months and what changed since', {
    async run(_, { db, now }) {
      const months = await changesOfClosedMonths(db, now)
      const data = table('month, closedAt, closedBy, sha256', months, {
        empty: 'No closed months.',
        json: ({ changed, ...month }) => ({
          ...month,
          changed: changed.map((one) => (isMerchantError(one) ? one : { ...one, rows: changesTable(one.rows) })),
        }),
        line: ({ month, closedAt, closedBy, sha256, changed }) =>
          [
            `${month} was closed by ${closedBy} at ${toIstTime(closedAt)}, sha256 ${sha256}`,
            ...changed.flatMap((one) =>
              isMerchantError(one)
                ? indented(merchantErrorText(one))
                : [indented(`${one.mid}: ${figuresText(one)}`), ...one.rows.map(changeLine)],
            ),
            ...(changed.length === 0 ? [indented('no changes since')] : []),
          ].join('\n'),
      })
      return { data, failure: () => failureOf(months.flatMap(({ changed }) => changed.filter(isMerchantError))) }
    },
  }),
]
