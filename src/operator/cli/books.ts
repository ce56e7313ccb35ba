import * as z from 'zod'
import type { Days } from '../../books/ledger/bank-days.ts'
import { isOpenPayout, listArrivals, recentDays } from '../../books/reconciliation/arrivals.ts'
import { changesOfClosedMonths } from '../../books/reconciliation/changes-of-closed-months.ts'
import { listExcessFees } from '../../books/reconciliation/fees.ts'
import { journalOf } from '../../books/reconciliation/journal.ts'
import { statementOf } from '../../books/reconciliation/statement.ts'
import type { Database } from '../../platform/db/pool.ts'
import { identifier } from '../../platform/fields.ts'
import { toIstTime } from '../../platform/time.ts'
import { receivedText } from '../texts.ts'
import { type Context, command } from './command.ts'
import { DAYS, DAYS_USAGE, daysOf, inOrder, requireDays } from './days.ts'
import { UsageError } from './errors.ts'
import { formOf, type WrittenAs, writeList } from './long-list.ts'
import { requireMerchant } from './reconcile.ts'
import { changeLines, formatFigures, line, wireMonth } from './reconcile-report.ts'

const Flags = z.object({ ...DAYS, mid: identifier.optional(), csv: z.literal(true).optional() }).superRefine(inOrder)
/** A list for a program: only with `--for excel` is its CSV one for a spreadsheet. */
const Asked = Flags.safeExtend({ for: z.literal('excel', 'must be excel').optional() })
  .refine(...requireDays)
  .refine((typed) => typed.for === undefined || typed.csv, '--for excel needs --csv')

const hasDays = ({ from, to, month }: z.output<typeof Flags>) => Boolean(from ?? to ?? month)

/** What a list of `Asked` is about. */
async function askedOf({ csv, mid, ...typed }: z.output<typeof Flags>, { db, now, asJson }: Context) {
  const form = formOf(csv, asJson)
  await requireMerchant(db, mid)
  return { asked: { ...(daysOf(typed) as Days), mid, now }, form, forSpreadsheets: csv }
}

type AskedPayouts = Parameters<typeof listArrivals>[1] & { onlyOpen: boolean; form: WrittenAs }

/** Text has people's words; JSON and CSV, which programs read, have the literals. */
async function* payoutsOf(db: Database, { onlyOpen, form, ...asked }: AskedPayouts) {
  for await (const payout of listArrivals(db, asked)) {
    if (onlyOpen && !isOpenPayout(payout)) continue
    yield form === 'text' ? { ...payout, arrival: receivedText(payout.arrival) } : payout
  }
}

export const bookCommands = [
  command('reconcile payouts', 'List payouts, and whether they were received', {
    usage:
      '[--from D --to D | --month YYYY-MM] [--mid M1] [--open] [--csv]   (days of India, both included; else the last 31; --open: those that were not received in full and are not resolved)',
    schema: Flags.safeExtend({ open: z.literal(true).optional() }).refine(
      (typed) => !hasDays(typed) || requireDays[0](typed),
      requireDays[1],
    ),
    async run({ open, ...typed }, context) {
      const ofDays = hasDays(typed) ? typed : { ...typed, ...recentDays(context.now) }
      const { asked, form, forSpreadsheets } = await askedOf(ofDays, context)
      const list = {
        name: 'payouts',
        columns:
          'day, mid, account, bankReference, rows, gross, fee, tax, deductions, net, arrival, arrivedOn, credited, difference, statement, differenceId, resolution',
        sums: ['gross', 'fee', 'tax', 'deductions', 'net'],
      } as const
      return {
        chunks: writeList(payoutsOf(context.db, { ...asked, form, onlyOpen: open === true }), list, form),
        forSpreadsheets,
      }
    },
  }),

  command('reconcile fees', 'List settlement lines with excess fees', {
    usage: `${DAYS_USAGE} [--mid M1] [--csv]   (days of India, both included)`,
    schema: Flags.refine(...requireDays),
    async run(typed, context) {
      const { asked, form, forSpreadsheets } = await askedOf(typed, context)
      const columns = 'mid, day, settlementUtr, utr, orderId, gross, fee, tax, allowed, excess'
      const list = { name: 'fees', columns, sums: ['gross', 'fee', 'tax', 'allowed', 'excess'] } as const
      return { chunks: writeList(listExcessFees(context.db, asked), list, form), forSpreadsheets }
    },
  }),

  command('reconcile journal', 'Write the movements of a month in double entry', {
    usage: `${DAYS_USAGE} [--mid M1] [--csv [--for excel]]   (days of India, both included)`,
    schema: Asked,
    async run(typed, context) {
      const { asked, form } = await askedOf(typed, context)
      const written = form === 'csv' && typed.for === undefined ? 'plain csv' : form
      const columns = 'date, voucher, mid, ledger, debit, credit'
      const list = { name: 'postings', columns, sums: ['debit', 'credit'] } as const
      return { chunks: writeList(journalOf(context.db, asked), list, written), forSpreadsheets: written === 'csv' }
    },
  }),

  command('reconcile statement', 'Write the merchant statement, line by line', {
    usage: `--mid M1 ${DAYS_USAGE} [--csv [--for excel]]   (days of India, both included)`,
    schema: Asked,
    async run(typed, context) {
      const { asked, form } = await askedOf(typed, context)
      const written = form === 'csv' && typed.for === undefined ? 'plain csv' : form
      const { mid } = asked
      if (mid === undefined) throw new UsageError('--mid is required')
      const columns = 'day, kind, orderId, merchantOrderId, reference, amount, balance'
      const list = { name: 'lines', columns, sums: [] } as const
      return {
        chunks: writeList(await statementOf(context.db, { ...asked, mid }), list, written),
        forSpreadsheets: written === 'csv',
      }
    },
  }),

  command('reconcile closed', 'List the closed months, and what has changed since', {
    async run(_, { db, now }) {
      const months = await changesOfClosedMonths(db, now)
      const texts = months.map(({ month, closedAt, closedBy, sha256, changed }) =>
        [
          `${month} was closed by ${closedBy} at ${toIstTime(closedAt)}, sha256 ${sha256}\n`,
          ...changed.flatMap(({ mid, ...change }) => [
            line(`${mid}: ${formatFigures(change)}`),
            ...changeLines(change),
          ]),
          ...(changed.length === 0 ? [line('nothing has changed since')] : []),
        ].join(''),
      )
      return { json: months.map(wireMonth), text: texts.join('').trimEnd() || 'no month was closed yet' }
    },
  }),
]
