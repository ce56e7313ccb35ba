import type { CsvFormat } from '../csv-header.ts'
import { IDENTIFIER, IDENTIFIER_RULE, UTR, UTR_RULE, unpadded } from '../fields.ts'
import { DAY_RULE, dayText, MOMENT_RULE, readMoment } from '../ist.ts'
import { readRupees, SETTLED_AMOUNT, toSum, toSumText } from '../money.ts'
import { type FieldReaders, fieldReaders, IGNORED, type Layout } from './layouts.ts'

/** One column of the bank's file: what its field becomes in PostgreSQL, undefined for a wrong one, and the rule for people. */
type Column = {
  read: (field: string) => string | undefined
  rule: string
  optional?: boolean
  /** How a bank's file writes what `read` reads; as our own form if absent. */
  written?: 'rupees' | 'time' | 'day' | 'status'
}

const matching = (pattern: RegExp) => (field: string) => (pattern.test(field) ? field : undefined)

const AMOUNT = {
  read: matching(SETTLED_AMOUNT),
  rule: 'must be rupees such as 250 or -249.50, below 1000000000000',
  written: 'rupees',
} as const
const MOMENT = { read: readMoment, rule: MOMENT_RULE, written: 'time' } as const

const COLUMNS: Readonly<Record<string, Column>> = {
  mid: { read: matching(IDENTIFIER), rule: IDENTIFIER_RULE },
  amount: AMOUNT,
  utr: { read: matching(UTR), rule: UTR_RULE, optional: true },
  bank_reference_number: {
    read: matching(/^[A-Za-z0-9 ./_-]{1,64}$/),
    rule: 'must be 1 to 64 letters, digits, blanks or . / _ -',
  },
  status: {
    read: matching(/^(?:PENDING|SUCCESS|FAILED)$/),
    rule: 'must be PENDING, SUCCESS or FAILED',
    written: 'status',
  },
  initiation_date: MOMENT,
  created_at: { ...MOMENT, optional: true },
  fee: { ...AMOUNT, optional: true },
  tax: { ...AMOUNT, optional: true },
  // UTRs are stored in upper case and unpadded, like those of payments.
  payment_utr: {
    read: (field) => (UTR.test(field) ? unpadded(field.toUpperCase()) : undefined),
    rule: UTR_RULE,
    optional: true,
  },
  value_date: {
    read: (field) => dayText.safeParse(field).data,
    rule: DAY_RULE,
    optional: true,
    written: 'day',
  },
  order_id: { read: matching(IDENTIFIER), rule: IDENTIFIER_RULE, optional: true },
  acquirer_payment_id: {
    read: matching(/^(?=.*[A-Za-z0-9])[A-Za-z0-9_-]{1,64}$/),
    rule: 'must be 1 to 64 letters, digits, _ or -',
    optional: true,
  },
}
const CHECKS = Object.entries(COLUMNS)
const NAMES = Object.keys(COLUMNS)
const at = (name: string) => NAMES.indexOf(name)
const [AMOUNT_AT, UTR_AT, STATUS_AT, DAY_AT, FEE_AT, TAX_AT] = [
  at('amount'),
  at('utr'),
  at('status'),
  at('initiation_date'),
  at('fee'),
  at('tax'),
]

export const SETTLEMENT_COLUMNS = NAMES
/** Columns that name the row, or its payment: a row has at least one of them. */
export const NAMING_COLUMNS: readonly string[] = ['utr', 'order_id', 'acquirer_payment_id']
const NAMING_AT = NAMING_COLUMNS.map(at)
export const REQUIRED_COLUMNS = CHECKS.flatMap(([name, { optional }]) => (optional && name !== 'utr' ? [] : [name]))

/**
 * The format of the bank's list of payouts, in our own form or by a layout. Rows are copied in the order of COLUMNS. The error
 * of a wrong line names every fault by the file's own column, and repeats nothing of the line.
 */
export function settlementFile(layout?: Layout): CsvFormat {
  const readers = layout && fieldReaders(layout)
  const theirs = NAMES.map((name) => layout?.columns.flatMap(([ours, theirs]) => (ours === name ? [theirs] : [])) ?? [])
  // The second and further columns of a fee or tax stand behind the columns of the others.
  const further = theirs.flatMap((names, index) => names.slice(1).map((name) => ({ name, index })))
  const columns = CHECKS.map(([name, column], index) => {
    const names = theirs[index] as string[]
    const called = names.length > 0 ? `${names.map(withoutMinus).join(' + ')} (${name})` : name
    const places = [index, ...further.flatMap((one, at) => (one.index === index ? [NAMES.length + at] : []))]
    return { ...column, ...asWritten(name, names, column, layout, readers), called, places }
  })
  return {
    columns: NAMES,
    required: REQUIRED_COLUMNS.map((name) => (name === 'utr' ? NAMING_COLUMNS : [name])),
    check(fields) {
      if (readers?.status(fields[STATUS_AT] as string) === IGNORED) return { value: '' }
      const faults: string[] = []
      const isNamed = NAMING_AT.some((at) => fields[at] !== '')
      const copied = columns.map(({ read, rule, optional, called, places }, index) => {
        const own = places.map((at) => fields[at] as string)
        if (optional && (isNamed || index !== UTR_AT) && own.every((field) => field === '')) return NULL
        const value = read(...(own as [string]))
        if (value === undefined) faults.push(`${called} ${rule}`)
        return value
      })
      if (copied[AMOUNT_AT]?.startsWith('-') === false) {
        for (const at of [FEE_AT, TAX_AT])
          if (copied[at]?.startsWith('-'))
            faults.push(`${columns[at]?.called} must not be negative where amount is not`)
      }
      // Nothing needs escaping: the rules refuse every character that the text format of COPY escapes.
      return faults.length > 0 ? { faults } : { value: copied.join('\t') }
    },
    ...(readers && {
      bank: {
        names: [...theirs.map(([name]) => name), ...further.map(({ name }) => name)].map(
          (name) => name && withoutMinus(name),
        ),
        // A row of totals has neither a name nor a day. One that is ignored may lack both too.
        isRow: (fields) =>
          readers.isLikeDay(fields[DAY_AT] ?? '') ||
          NAMING_AT.some((at) => /\d/.test(fields[at] ?? '')) ||
          readers.status(fields[STATUS_AT] as string) === IGNORED,
        hasAmount: (fields) =>
          columns.some(
            ({ written, places }) => written === 'rupees' && places.some((at) => /[1-9]/.test(fields[at] ?? '')),
          ),
      },
    }),
  }
}

/** Our columns that a file may give in several, whose sum counts, or with a minus before what was kept: `-MDR`. */
export const KEPT_COLUMNS: readonly string[] = ['fee', 'tax']

const withoutMinus = (name: string) => name.replace(/^-/, '')

/** The reader and the rule of a column in a bank's form. `theirs` are the file's columns for it. */
function asWritten(
  name: string,
  theirs: readonly string[],
  { read, rule, written }: Column,
  layout?: Layout,
  readers?: FieldReaders,
) {
  if (!layout || !readers) return { read, rule }
  if (name === 'mid' && layout.mid !== null) return { read: () => layout.mid as string, rule }
  if (written === undefined) return { read, rule }
  if (KEPT_COLUMNS.includes(name)) {
    return { read: (...fields: string[]) => read(sumOf(fields, theirs) ?? ''), rule: readers.rules.rupees }
  }
  return { read: (field: string) => read(readers[written](field) ?? ''), rule: readers.rules[written] }
}

/** The sum of fields of the columns `names`, of which those with a minus are taken away. Undefined if one is no amount. */
function sumOf(fields: readonly string[], names: readonly string[]): string | undefined {
  let sum = 0n
  for (const [index, field] of fields.entries()) {
    const rupees = readRupees(field || '0')
    if (rupees === undefined) return undefined
    sum += names[index]?.startsWith('-') ? -toSum(rupees) : toSum(rupees)
  }
  return toSumText(sum)
}

const NULL = '\\N'
