import * as z from 'zod'
import { otherwise } from '../fields.ts'
import { forgetCustomers } from '../payments/forget-customers.ts'
import type { ExceptionKind } from '../payments/outcome.ts'
import { recordReport } from '../payments/record-report.ts'
import { createReports, type PaymentException, type PaymentHistory } from '../payments/report-repository.ts'
import { CommandFault, command } from './command.ts'
import { progressLine, record, table } from './output.ts'

const orderId = z.string(otherwise('must be our orderId')).regex(/^[0-9a-f]{32}$/, 'must be our orderId, 32 hex digits')
/** INTENT_EXPIRY_MINUTES is a day at most, so that what is older than one is never still to be paid. */
const DAYS_RULE = 'must be a whole number of days, 1 to 36500'
const DAY_MS = 24 * 60 * 60_000
const AMOUNT_RULE = 'must be whole rupees, 1 to 100000'

const REFUSED: Record<ExceptionKind, string> = {
  'unknown order': 'there is no such order',
  'amount differs': 'the amount differs from the amount of the order',
  'UTR of another order': 'this UTR was already used by another order of the merchant',
  'double payment': 'the order is paid already with another UTR: a double payment, to be refunded',
}

export const paymentCommands = [
  command({
    name: 'payments show',
    usage: '--order-id ID',
    schema: z.object({ orderId }),
    async run({ orderId }, { db }) {
      const history = await createReports(db).findHistory(orderId)
      if (!history) throw new CommandFault(REFUSED['unknown order'])
      return { json: history, text: describe(history) }
    },
  }),

  command({
    name: 'payments confirm',
    usage: '--order-id ID --utr U --amount N',
    schema: z.object({
      orderId,
      utr: z.string(otherwise('must be a UTR')).regex(/^[A-Za-z0-9]{1,35}$/, 'must be 1 to 35 letters and digits'),
      amount: z.string(otherwise(AMOUNT_RULE)).regex(/^[1-9]\d{0,5}(\.00)?$/, AMOUNT_RULE),
    }),
    async run({ orderId, utr, amount }, { db, now }) {
      const rupees = amount.replace(/\.00$/, '')
      const report = { orderId, status: 'SUCCESS' as const, utr, amount: `${rupees}.00`, paidAt: undefined }
      const recorded = await recordReport(createReports(db), report, { reason: 'operator', now })
      if ('exception' in recorded) {
        const kept = recorded.exception === 'unknown order' ? '' : '; kept, see ops payments exceptions'
        throw new CommandFault(`${REFUSED[recorded.exception]}${kept}`)
      }
      const { status, changed } = recorded
      return {
        json: { orderId, status, changed },
        text: changed ? `${orderId} is paid` : `${orderId} was paid already`,
      }
    },
  }),

  command({
    name: 'payments exceptions',
    usage: '',
    schema: z.object({}),
    async run(_input, { db }) {
      const exceptions = await createReports(db).listExceptions()
      return { json: exceptions, text: exceptionTable(exceptions) }
    },
  }),

  command({
    name: 'payments forget-customers',
    usage: '--older-than-days N',
    schema: z.object({
      olderThanDays: z
        .string(otherwise(DAYS_RULE))
        .regex(/^\d{1,5}$/, DAYS_RULE)
        .transform(Number)
        .refine((days) => days >= 1 && days <= 36_500, DAYS_RULE),
    }),
    async run({ olderThanDays }, { db, now }) {
      const progress = progressLine('forgotten')
      try {
        const forgotten = await forgetCustomers(db, new Date(now.getTime() - olderThanDays * DAY_MS), progress.show)
        return { json: { forgotten }, text: `${forgotten} intents have forgotten their customer` }
      } finally {
        progress.clear()
      }
    },
  }),
]

function describe({ changes, exceptions, ...intent }: PaymentHistory): string {
  const changeColumns = ['status', 'utr', 'paidAt', 'reason', 'changedAt'] as const
  return [record(intent), '', table(changeColumns, changes, 'no changes'), '', exceptionTable(exceptions)].join('\n')
}

function exceptionTable(exceptions: PaymentException[]): string {
  const columns = ['receivedAt', 'kind', 'mid', 'orderId', 'utr', 'amount', 'paidAt'] as const
  return table(columns, exceptions, 'no exceptions')
}
