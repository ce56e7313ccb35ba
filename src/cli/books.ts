import * as z from 'zod'
import { identifier } from '../fields.ts'
import { toIstTime } from '../ist.ts'
import type { Days } from '../ledger/bank-days.ts'
import { listArrivals } from '../reconciliation/arrivals.ts'
import { changesOfClosedMonths } from '../reconciliation/changes-of-closed-months.ts'
import { command } from './command.ts'
import { DAYS, DAYS_USAGE, daysOf, inOrder, requireDays } from './days.ts'
import { UsageError } from './errors.ts'
import { type WrittenAs, writeList } from './long-list.ts'
import { requireMerchant } from './reconcile.ts'
import { line, spellSince } from './reconcile-report.ts'

export const bookCommands = [
  command('reconcile payouts', 'List payouts, and which have arrived at the bank', {
    usage: `${DAYS_USAGE} [--mid M1] [--csv]   (days of India, both included)`,
    schema: z
      .object({ ...DAYS, mid: identifier.optional(), csv: z.literal(true).optional() })
      .superRefine(inOrder)
      .refine(...requireDays),
    async run({ csv, mid, ...typed }, { db, now, asJson }) {
      const form = formOf(csv, asJson)
      await requireMerchant(db, mid)
      const asked = { ...(daysOf(typed) as Days), mid, now }
      const list = {
        name: 'payouts',
        columns:
          'day, mid, account, bankReference, rows, gross, fee, tax, deductions, net, arrival, arrivedOn, credited, statement',
        sums: ['gross', 'fee', 'tax', 'deductions', 'net'],
      } as const
      return { chunks: writeList(listArrivals(db, asked), list, form), forSpreadsheets: csv }
    },
  }),

  command('reconcile closed', 'List the closed months, and what has changed since', {
    async run(_, { db, now }) {
      const months = await changesOfClosedMonths(db, now)
      const texts = months.map(({ month, closedAt, closedBy, sha256, changed }) =>
        [
          `${month} was closed by ${closedBy} at ${toIstTime(closedAt)}, sha256 ${sha256}\n`,
          ...changed.map(({ mid, ...change }) => line(`${mid}: ${spellSince(change)}`)),
          ...(changed.length === 0 ? [line('nothing has changed since')] : []),
        ].join(''),
      )
      return { json: months, text: texts.join('').trimEnd() || 'no month was closed yet' }
    },
  }),
]

function formOf(csv: true | undefined, asJson: boolean): WrittenAs {
  if (csv && asJson) throw new UsageError('give --json or --csv, not both')
  return csv ? 'csv' : asJson ? 'json' : 'text'
}
