import { daysOfMonth } from '../../books/reconciliation/closed-months.ts'
import { matching } from '../../platform/fields.ts'
import { dayText } from '../../platform/time.ts'

export const monthText = matching(/^20\d\d-(0[1-9]|1[0-2])$/, 'must be a month such as 2026-11')

/** Schema fields for a period of IST days: `--from` and `--to`, both days included, or `--month`. */
export const DAYS = { from: dayText.optional(), to: dayText.optional(), month: monthText.optional() }
export const DAYS_USAGE = '--from DAY --to DAY | --month YYYY-MM'

type TypedDays = { from?: string | undefined; to?: string | undefined; month?: string | undefined }

/** Reports contradictory days as an issue. A schema with DAYS calls this function in `superRefine`. */
export function inOrder({ from, to, month }: TypedDays, context: { addIssue: (message: string) => void }): void {
  if (month !== undefined && (from !== undefined || to !== undefined))
    context.addIssue('give either --month, or --from and --to')
  if (from !== undefined && to !== undefined && from > to) context.addIssue('--from must not be after --to')
}

/** Returns the first and last day of the period in DAYS. A day is undefined if its flag is missing. */
export const daysOf = ({ from, to, month }: TypedDays) => (month === undefined ? { from, to } : daysOfMonth(month))

/** Arguments of `refine` for a schema in which the period is required. */
export const requireDays = [
  ({ from, to, month }: TypedDays) => month !== undefined || (from !== undefined && to !== undefined),
  'give --from and --to, or --month',
] as const
