import * as z from 'zod'
import type { CsvFormat } from '../csv.ts'
import { errorText, text, utr } from '../fields.ts'
import { momentText } from '../ist.ts'
import { bankAmount } from '../money.ts'
import { FINAL_STATUSES } from './outcome.ts'

const COLUMNS = ['order_id', 'acquirer_reference', 'status', 'utr', 'amount', 'paid_at'] as const

/** One line, with the rules of a notification. A field that is empty in the file is undefined here. */
const Line = z
  .object({
    order_id: text(64).optional(),
    acquirer_reference: text(64).optional(),
    status: z.enum(FINAL_STATUSES, errorText('must be SUCCESS, FAIL or REJECT')),
    utr: utr.optional(),
    amount: bankAmount,
    // In whole milliseconds, as a notification is kept: a failed attempt is known again by its time.
    paid_at: momentText.transform((moment) => moment.toISOString()).optional(),
  })
  .superRefine((line, context) => {
    const require = (path: keyof typeof line, message: string) => {
      if (line[path] === undefined) context.addIssue({ code: 'custom', path: [path], message })
    }
    if (line.acquirer_reference === undefined) require('order_id', 'or acquirer_reference is required')
    if (line.status !== 'SUCCESS') return
    require('utr', 'is required with SUCCESS')
    require('paid_at', 'is required with SUCCESS')
  })

/**
 * The acquirer's list of all payments of a day. Its rows are copied as line, order_id, acquirer_reference, status, utr,
 * amount, paid_at.
 */
export const DAY_FILE: CsvFormat = {
  columns: COLUMNS,
  // One of the first two names the order of a line.
  required: [['status'], ['utr'], ['amount'], ['paid_at'], ['order_id', 'acquirer_reference']],
  check(fields) {
    const { data, error } = Line.safeParse(Object.fromEntries(COLUMNS.map((name, i) => [name, fields[i] || undefined])))
    if (error) return { faults: error.issues.map(({ path, message }) => `${String(path[0])} ${message}`) }
    return { value: COLUMNS.map((name) => toCopyText(data[name])).join('\t') }
  },
}

/** In the text format of COPY. No field that was checked holds the control characters that it would escape too. */
function toCopyText(value: string | undefined): string {
  return value === undefined ? '\\N' : value.replaceAll('\\', '\\\\')
}
