import * as z from 'zod'
import { isNothing, isTooLarge, LARGE_RULE, RUPEES_RULE, readPaise } from '../../platform/csv/amounts.ts'
import { bankForm, type CsvFormat } from '../../platform/csv/header.ts'
import { fieldReaders, IGNORED, type Layout, PAYMENT_COLUMNS } from '../../platform/csv/layouts.ts'
import { errorText, matching, reportedUtr, text } from '../../platform/fields.ts'
import { toDecimalText, toPaise } from '../../platform/money.ts'
import { momentText } from '../../platform/time.ts'
import { failureFields } from './failure-reasons.ts'
import { FINAL_STATUSES } from './outcome.ts'

/** A line of the file, checked by the rules for notifications. Empty fields become undefined. */
const Line = z
  .object({
    order_id: text(64).optional(),
    acquirer_reference: text(64).optional(),
    acquirer_payment_id: z
      .string()
      .regex(/^(?=.*[A-Za-z0-9])[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, _ or -')
      .optional(),
    status: z.enum(FINAL_STATUSES, errorText('must be SUCCESS, FAIL or REJECT')),
    utr: reportedUtr.optional(),
    amount: matching(/^[0-9]{1,15}(\.[0-9]{1,2})?$/, 'must be rupees with at most two decimals')
      .transform(toPaise)
      .refine((paise) => !isTooLarge(paise), LARGE_RULE),
    // The time is truncated to milliseconds as in a notification, because it identifies a repeated failed
    // attempt.
    paid_at: momentText.transform((moment) => moment.toISOString()).optional(),
    ...failureFields,
  })
  .superRefine((line, context) => {
    const require = (path: keyof typeof line, message: string) => {
      if (line[path] === undefined) context.addIssue({ code: 'custom', path: [path], message })
    }
    const isNamed = line.acquirer_payment_id !== undefined
    if (line.acquirer_reference === undefined && !isNamed) require('order_id', 'or acquirer_reference is required')
    if (line.status !== 'SUCCESS') return
    if (!isNamed) require('utr', 'is required with SUCCESS')
    require('paid_at', 'is required with SUCCESS')
  })

/** The columns by which a line can identify its order. */
const ORDER_COLUMNS = ['order_id', 'acquirer_reference', 'acquirer_payment_id'] as const
const PAYMENT_NAMES = ['utr', 'acquirer_payment_id'] as const
const PAYMENTS = { day: 'paid_at', naming: ORDER_COLUMNS, references: PAYMENT_NAMES }

/**
 * The format of the acquirer's list of payments: the service's own format, or the format that a layout describes. Rows
 * are copied in the order of PAYMENT_COLUMNS.
 */
export function dailyReport(layout?: Layout): CsvFormat {
  const readers = layout && fieldReaders(layout)
  const columns = PAYMENT_COLUMNS.map((name) => [name, layout?.columns.find(([ours]) => ours === name)?.[1]] as const)
  const names = columns.map(([, theirs]) => theirs)
  const { status, time, rules } = readers ?? {}
  const written: Partial<Record<string, [((field: string) => string | undefined) | undefined, string | undefined]>> = {
    status: [status, rules?.status],
    amount: [readers && rupeesOf, RUPEES_RULE],
    paid_at: [time, rules?.time],
  }
  const at = (name: string) => (PAYMENT_COLUMNS as readonly string[]).indexOf(name)
  const called = (name: string) => (names[at(name)] === undefined ? name : `${names[at(name)]} (${name})`)
  return {
    columns: PAYMENT_COLUMNS,
    required: [['status'], PAYMENT_NAMES, ['amount'], ['paid_at'], ORDER_COLUMNS],
    check(fields) {
      if (readers?.status(fields[at('status')] as string) === IGNORED) return { value: '' }
      const unread = new Map<string, string>()
      const line = Object.fromEntries(
        PAYMENT_COLUMNS.map((name, index) => {
          const typed = fields[index] ?? ''
          const field = (readers && isNothing(typed) ? '' : typed) || undefined
          const [read, rule] = written[name] ?? []
          // The status is read even if the file has no status column, because a layout's status that has no words
          // applies to every row.
          if (read === undefined || (field === undefined && name !== 'status')) return [name, field]
          const value = read(field ?? '')
          if (value === undefined && rule !== undefined) unread.set(name, rule)
          return [name, value]
        }),
      )
      const { data, error } = Line.safeParse(line)
      if (data && unread.size === 0) return { value: PAYMENT_COLUMNS.map((name) => toCopyText(data[name])).join('\t') }
      const issues = (error?.issues ?? []).map(({ path, message }) => [String(path[0]), message] as const)
      const errors = [...unread, ...issues.filter(([name]) => !unread.has(name))]
      return { errors: errors.map(([name, problem]) => `${called(name)} ${problem}`) }
    },
    ...(readers && { bank: bankForm({ ...layout, columns }, readers, PAYMENTS) }),
  }
}

/** Converts an amount in a bank's format to decimal text; returns undefined for any other text. */
function rupeesOf(field: string): string | undefined {
  const paise = readPaise(field)
  return paise === undefined ? undefined : toDecimalText(paise)
}

/** A field in COPY's text format. Only backslashes are escaped, because the checks reject tabs and line breaks. */
function toCopyText(value: string | number | undefined): string {
  return value === undefined ? '\\N' : String(value).replaceAll('\\', '\\\\')
}
