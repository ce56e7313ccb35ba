import { isNothing, readUnits, withoutMinus } from '../../platform/csv/amounts.ts'
import type { BankForm, CsvFormat } from '../../platform/csv/header.ts'
import { type FieldReaders, fieldReaders, IGNORED, type Layout, ONE_NAME } from '../../platform/csv/layouts.ts'
import { IDENTIFIER, IDENTIFIER_RULE, UTR, UTR_RULE, unpadded } from '../../platform/fields.ts'
import { counted, SETTLED_AMOUNT } from '../../platform/money.ts'
import { DAY_RULE, dayText, MOMENT_RULE, readMoment } from '../../platform/time.ts'
import { rowMoneyReader } from './row-money.ts'

/** One column of the bank's file: what its field becomes in PostgreSQL, undefined for a wrong one, and the rule for people. */
type Column = {
  read: (field: string) => string | undefined
  rule: string
  optional?: boolean
  /** How a bank's file writes what `read` reads; as our own form if absent. */
  written?: 'time' | 'day' | 'status'
}

const matching = (pattern: RegExp) => (field: string) => (pattern.test(field) ? field : undefined)

const AMOUNT = {
  read: matching(SETTLED_AMOUNT),
  rule: 'must be rupees such as 250 or -249.50, below 1000000000000',
}
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
export const SETTLEMENT_COLUMNS = NAMES
/** Columns that name the row, or its payment: a row has at least one of them. */
export const NAMING_COLUMNS: readonly string[] = ['utr', 'order_id', 'acquirer_payment_id']
/** Columns that only a layout has, for the signs of amounts and for what fees are parts of. */
export const LAYOUT_COLUMNS: readonly string[] = ['sign', 'credit', 'debit', 'gross']
export const REQUIRED_COLUMNS = CHECKS.flatMap(([name, { optional }]) => (optional && name !== 'utr' ? [] : [name]))

/**
 * The format of the bank's list of payouts, in our own form or by a layout. Rows are copied in the order of COLUMNS. The error
 * of a wrong line names every fault by the file's own column, and repeats nothing of the line. `notes` says what of the rows that were
 * read a person should know.
 */
export function settlementFile(layout?: Layout): { format: CsvFormat; notes: () => string[] } {
  const readers = layout && fieldReaders(layout)
  const money = layout && rowMoneyReader(layout)
  const pairs = layout?.columns ?? NAMES.map((name) => [name, name] as const)
  const columns = CHECKS.map(([name, column]) => {
    const at = pairs.findIndex(([ours]) => ours === name)
    const called = layout && at >= 0 ? `${pairs[at]?.[1]} (${name})` : name
    return { name, ...column, ...asWritten(name, column, layout, readers), called, at }
  })
  const placesOf = new Map<string, number[]>()
  for (const [at, [name]] of pairs.entries()) placesOf.set(name, [...(placesOf.get(name) ?? []), at])
  const statusAt = pairs.findIndex(([ours]) => ours === 'status')
  let zeros = 0

  function check(fields: readonly string[], line: number) {
    if (readers?.status(fields[statusAt] ?? '') === IGNORED) return { value: '' }
    const fieldsOf = (name: string) => placesOf.get(name)?.map((at) => fields[at] as string) ?? []
    const faults: string[] = []
    const isNamed = NAMING_COLUMNS.some((name) => fieldsOf(name).some((field) => !isNothing(field)))
    const moved = money?.read(fieldsOf, line)
    if (moved?.faults) faults.push(...moved.faults)
    const copied = columns.map(({ name, read, rule, optional, called, at }) => {
      if (moved && isMoney(name)) return moved.value?.[name] ?? NULL
      const written = fields[at] ?? ''
      const field = layout && name !== 'status' && isNothing(written) ? '' : written
      if (optional && field === '' && (isNamed || name !== 'utr')) return NULL
      const value = read(field)
      if (value === undefined) faults.push(`${called} ${rule}`)
      return value
    })
    const copiedOf = (name: string) => copied[NAMES.indexOf(name)]
    if (copiedOf('amount')?.startsWith('-') === false)
      for (const name of ['fee', 'tax'])
        if (copiedOf(name)?.startsWith('-')) faults.push(`${name} must not be negative where amount is not`)
    if (faults.length > 0) return { faults }
    if (/^0+(?:\.0+)?$/.test(copiedOf('amount') as string)) zeros += 1
    // Nothing needs escaping: the rules refuse every character that the text format of COPY escapes.
    return { value: copied.join('\t') }
  }

  return {
    format: {
      columns: NAMES,
      required: REQUIRED_COLUMNS.map((name) => (name === 'utr' ? NAMING_COLUMNS : [name])),
      check,
      ...(layout && readers && { bank: bankForm(layout, readers) }),
    },
    notes: () => [
      ...(zeros > 0 ? [`${rowsOf(zeros)} an amount of 0.00: is it in another column?`] : []),
      ...(money && money.counts.rounded > 0
        ? [`${rowsOf(money.counts.rounded)} a fee or tax with parts of a paisa, which were rounded`]
        : []),
    ],
  }
}

const MONEY = ['amount', 'fee', 'tax'] as const
const isMoney = (name: string): name is (typeof MONEY)[number] => (MONEY as readonly string[]).includes(name)
const rowsOf = (count: number) => counted(count, 'row has', 'rows have')

/** The form of the layout's files. */
function bankForm({ columns }: Layout, { isLikeDay, rules, status }: FieldReaders): BankForm {
  const placesOf = (...names: string[]) => columns.flatMap(([ours], at) => (names.includes(ours) ? [at] : []))
  const [[day = -1], [stated], references] = [
    placesOf('initiation_date'),
    placesOf('status'),
    placesOf('bank_reference_number'),
  ]
  const amounts = placesOf('amount', 'credit', 'debit')
  const naming = placesOf(...NAMING_COLUMNS)
  return {
    names: columns.map(([, theirs]) => withoutMinus(theirs)),
    // A row of totals has neither a name nor a day; nor may a row that is not paid out yet.
    isRow: (fields) =>
      isLikeDay(fields[day] ?? '') ||
      naming.some((at) => ONE_NAME.test(fields[at] ?? '')) ||
      (stated !== undefined && status(fields[stated] ?? '') === IGNORED),
    amountsAt: placesOf(...MONEY, 'credit', 'debit'),
    isLikeRow: (fields) =>
      references.some((at) => /\p{L}|\d{6}/u.test(fields[at] ?? '')) &&
      amounts.some((at) => (readUnits(fields[at] ?? '') ?? 0n) !== 0n),
    day: { at: day, rule: `${columns[day]?.[1]} (initiation_date) ${rules.day}` },
  }
}

/** The reader and the rule of a column in a bank's form. */
function asWritten(name: string, { read, rule, written }: Column, layout?: Layout, readers?: FieldReaders) {
  if (!layout || !readers) return { read, rule }
  if (name === 'mid' && layout.mid !== null) return { read: () => layout.mid as string, rule }
  if (written === undefined) return { read, rule }
  return { read: (field: string) => read(readers[written](field) ?? ''), rule: readers.rules[written] }
}

const NULL = '\\N'
