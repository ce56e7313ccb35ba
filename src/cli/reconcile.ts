import * as z from 'zod'
import { countDays } from '../books/bank-days.ts'
import { reconcile } from '../books/reconcile.ts'
import { identifier } from '../fields.ts'
import { dayText } from '../ist.ts'
import { createMerchants } from '../tenants/merchants.ts'
import { command } from './command.ts'
import { CommandFault, UsageError } from './faults.ts'
import { toCsv, toJson, toText } from './reconcile-report.ts'

/** Days that one run compares at most: those of a merchant are in memory until they are printed. */
const LONGEST_DAYS = 366

export const reconcileCommands = [
  command({
    name: 'reconcile',
    usage: '--from D --to D [--mid M1] [--csv]   (days of India, both included)',
    schema: z
      .object({ from: dayText, to: dayText, mid: identifier.optional(), csv: z.literal(true).optional() })
      .refine(({ from, to }) => from <= to, '--from must not be after --to')
      .refine(({ from, to }) => countDays(from, to) <= LONGEST_DAYS, `at most ${LONGEST_DAYS} days at once`),
    async run({ csv, ...asked }, { db, now, asJson }) {
      if (csv && asJson) throw new UsageError('give --json or --csv, not both')
      if (asked.mid !== undefined && !(await createMerchants(db).find(asked.mid))) {
        throw new CommandFault(`mid ${asked.mid} is unknown: see ops merchants list`)
      }
      const write = csv ? toCsv : asJson ? toJson : toText
      return { chunks: write(reconcile(db, { ...asked, now }), asked) }
    },
  }),
]
