import * as z from 'zod'
import { identifier } from '../fields.ts'
import { dayText } from '../ist.ts'
import { listPayouts } from '../reconciliation/payouts.ts'
import { command } from './command.ts'
import { UsageError } from './errors.ts'
import { type WrittenAs, writeList } from './long-list.ts'
import { requireMerchant } from './reconcile.ts'

export const bookCommands = [
  command('reconcile payouts', 'List what has to stand in the bank statement', {
    usage: '--from D --to D [--mid M1] [--csv]   (days of India, both included)',
    schema: z
      .object({ from: dayText, to: dayText, mid: identifier.optional(), csv: z.literal(true).optional() })
      .refine(({ from, to }) => from <= to, '--from must not be after --to'),
    async run({ csv, ...asked }, { db, now, asJson }) {
      const form = formOf(csv, asJson)
      await requireMerchant(db, asked.mid)
      const list = {
        name: 'payouts',
        columns: 'day, mid, account, bankReference, rows, gross, fee, tax, deductions, net',
        sums: ['gross', 'fee', 'tax', 'deductions', 'net'],
      } as const
      return { chunks: writeList(listPayouts(db, { ...asked, now }), list, form), forSpreadsheets: csv }
    },
  }),
]

function formOf(csv: true | undefined, asJson: boolean): WrittenAs {
  if (csv && asJson) throw new UsageError('give --json or --csv, not both')
  return csv ? 'csv' : asJson ? 'json' : 'text'
}
