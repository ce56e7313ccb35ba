import * as z from 'zod'
import { LAYOUT_COLUMNS, SETTLEMENT_COLUMNS, settlementFile } from '../../books/settlements/csv.ts'
import { SUMMED_COLUMNS } from '../../books/settlements/row-money.ts'
import { dailyReport } from '../../gateway/payments/daily-report-format.ts'
import { FINAL_STATUSES } from '../../gateway/payments/outcome.ts'
import { DATE_FORM_RULE, timeReader } from '../../platform/csv/days.ts'
import { isOneOf } from '../../platform/csv/header.ts'
import {
  createLayouts,
  IGNORED,
  isOfPayments,
  isOfStatements,
  type Layout,
  PAYMENT_COLUMNS,
  STATEMENT_COLUMNS,
} from '../../platform/csv/layouts.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { errorText, identifier, text } from '../../platform/fields.ts'
import { flag, type InputOf, list, optional } from './field.ts'
import { MID } from './fields.ts'

export const OURS = [
  ...new Set<string>([...SETTLEMENT_COLUMNS, ...LAYOUT_COLUMNS, ...STATEMENT_COLUMNS, ...PAYMENT_COLUMNS]),
]
const COLUMN_RULE = `must be COLUMN=NAME, with the name of the column in the file, such as amount="Net Amount"; COLUMN is one of ${OURS.join(', ')}`
const STATUSES = ['SUCCESS', 'PENDING', 'FAILED', IGNORED]
const PAYMENT_STATUSES = [...FINAL_STATUSES, IGNORED]
const STATUS_RULE =
  'must be SUCCESS, PENDING, FAILED or IGNORED (for payments SUCCESS, FAIL, REJECT or IGNORED) with the values in the file, such as SUCCESS=Success,Settled; a status without values, except IGNORED, applies to every row'

/** Returns the error text: the rule, or the correct order if the operator typed the file's column name first. */
const columnError = ([first, second]: [string, string]) =>
  OURS.includes(second)
    ? `must be COLUMN=NAME, with the service’s column first: --column "${second}=${first}"`
    : COLUMN_RULE

/** Parses `ours=theirs`. `theirs` is empty if the text contains no `=`. */
const pair = (ours: readonly string[], rule: string, errorOf: (typed: [string, string]) => string = () => rule) =>
  z
    .string(errorText(rule))
    .transform((typed): [string, string] => [typed.split('=', 1)[0] as string, /=(.*)/.exec(typed)?.[1]?.trim() ?? ''])
    .refine(([name]) => ours.includes(name), { error: ({ input }) => errorOf(input as [string, string]) })

const column = pair(OURS, COLUMN_RULE, columnError).refine(([, theirs]) => theirs !== '', COLUMN_RULE)
const columns = z.array(column, errorText(COLUMN_RULE))
const dateForm = z.string(errorText(DATE_FORM_RULE)).refine((form) => timeReader(form) !== undefined, DATE_FORM_RULE)
const isComplete = ([ours, words]: [string, string]) => ours !== IGNORED || words !== ''
const status = pair([...STATUSES, ...PAYMENT_STATUSES], STATUS_RULE).refine(isComplete, STATUS_RULE)
const statuses = z.array(status).default([])

/** Texts of lines in the file, each the only text of its line. */
const LINES = z.array(z.string().trim().pipe(text(255))).default([])

/** The fields that describe a layout. */
export const LAYOUT_FIELDS = {
  name: flag(identifier, 'LAYOUT', 'Name of the layout'),
  column: list(columns, 'COLUMN=NAME', 'Column and its name in the file', 'such as amount="Net Amount"'),
  date: flag(dateForm, 'FORMAT', 'Format of dates in the file', 'such as dd/mm/yyyy'),
  status: list(statuses, 'STATUS[=VALUE,…]', 'Status and its values', 'such as SUCCESS=Success,Settled'),
  mid: optional({ ...MID, label: 'Merchant of every row', hint: 'for files without a column mid' }),
  negativeBelow: list(LINES, 'TEXT', 'Amounts below a line whose only text is this are negative', 'such as Refunds'),
  ignoreLine: list(LINES, 'TEXT', 'Skip a line between rows whose only text is this'),
}

type Given = InputOf<typeof LAYOUT_FIELDS>

export const toLayout = ({ name, column: columns, date, status, mid, ...lines }: Given): Layout => ({
  ...{ name, columns, date, mid: mid ?? null },
  ...{ negativeBelow: lines.negativeBelow, ignoredLines: lines.ignoreLine },
  statuses: Object.fromEntries(status.map(([ours, words]) => [ours, words === '' ? [] : words.split(/ *, */)])),
})

export const filesOf = (layout: Pick<Layout, 'columns'>) =>
  isOfPayments(layout) ? 'payments' : isOfStatements(layout) ? 'bank statements' : 'settlements'

/** The layout of a file. A form offers those of `files`. */
export const layoutOf = (files?: ReturnType<typeof filesOf>) => ({
  ...flag(identifier, 'LAYOUT', 'Layout of the file'),
  choices: async (db: Queryable) => {
    const layouts = await createLayouts(db).list()
    return layouts.filter((one) => filesOf(one) === files).map(({ name }) => ({ value: name }))
  },
})

/** Returns the reason why the layout is unusable, or undefined if the layout is usable. */
export function layoutError(fields: Given): string | undefined {
  const layout = toLayout(fields)
  const files = filesOf(layout)
  const { known, several, required, others, statuses } = KINDS[files]
  const ours = layout.columns.map(([name]) => name)
  const twice = ours.find((name, index) => !several.includes(name) && ours.indexOf(name) !== index)
  if (twice !== undefined) return `--column ${twice} must be given only once`
  const negated = layout.columns.find(
    ([name, theirs]) => theirs.startsWith('-') && !(files === 'settlements' && several.includes(name)),
  )
  if (negated)
    return `--column ${negated.join('=')}: only ${SUMMED_COLUMNS.join(', ')} of settlement files accept a minus before the name`
  const foreign = ours.find((name) => !known.includes(name))
  if (foreign !== undefined) return `--column ${foreign} is only for ${others}`
  const status = Object.keys(layout.statuses).find((name) => !statuses.includes(name))
  if (status !== undefined) return `--status ${status} is not a status of ${files}: use ${statuses.join(', ')}`
  if (files === 'payments' && layout.mid !== null)
    return '--mid is only for settlement files: a payment belongs to the merchant of its order'
  const hasTwo = ours.includes('credit') || ours.includes('debit')
  if (hasTwo && (ours.includes('amount') || ours.includes('sign')))
    return '--column credit and debit replace amount and sign: give either credit and debit, or amount with an optional sign'
  const { negativeBelow, ignoredLines } = layout
  if (negativeBelow.length > 0 && (files === 'payments' || !ours.includes('amount') || ours.includes('sign')))
    return '--negative-below is only for settlement files and bank statements with amount and without sign'
  if (negativeBelow.some((text) => isOneOf(ignoredLines, text)))
    return '--negative-below and --ignore-line must have different texts'
  // A status without values applies to every row.
  const hasStatus = Object.values(layout.statuses).some((words) => words?.length === 0)
  const given = [...ours, ...(layout.mid === null ? [] : ['mid']), ...(hasStatus ? ['status'] : [])]
  const missing = required
    .flatMap((oneOf) => (hasTwo && oneOf.includes('amount') ? [['credit'], ['debit']] : [oneOf]))
    .filter((oneOf) => !oneOf.some((name) => given.includes(name)))
  return missing.length > 0 ? `--column ${missing.map((oneOf) => oneOf.join(' or ')).join(', ')} is missing` : undefined
}

/**
 * One kind of file. `several` lists columns that may be repeated. Each list in `required` contains alternative columns,
 * and the layout needs at least one column from each list.
 */
type Kind = Record<'known' | 'several' | 'statuses', readonly string[]> & {
  required: readonly (readonly string[])[]
  /** The kinds of files to which all other columns belong. */
  others: string
}

const KINDS: Record<ReturnType<typeof filesOf>, Kind> = {
  payments: {
    ...{ known: PAYMENT_COLUMNS, several: [], required: dailyReport().required },
    ...{ statuses: PAYMENT_STATUSES, others: 'settlement files and bank statements' },
  },
  'bank statements': {
    ...{ known: STATEMENT_COLUMNS, several: ['reference', 'balance'], required: [['reference'], ['amount']] },
    ...{ statuses: STATUSES, others: 'settlement files' },
  },
  settlements: {
    known: [...SETTLEMENT_COLUMNS, ...LAYOUT_COLUMNS],
    ...{ several: SUMMED_COLUMNS, required: settlementFile().format.required },
    ...{ statuses: STATUSES, others: 'bank statements, which have a column day' },
  },
}
