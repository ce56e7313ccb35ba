import { readInstrument } from '../../gateway/payments/instrument.ts'
import { isNothing, isTooLarge } from '../../platform/csv/amounts.ts'
import { bankForm, type CsvFormat } from '../../platform/csv/header.ts'
import { type FieldReaders, fieldReaders, IGNORED, type Layout } from '../../platform/csv/layouts.ts'
import { IDENTIFIER, IDENTIFIER_RULE, UTR, UTR_RULE, unpadded } from '../../platform/fields.ts'
import { counted, toPaise } from '../../platform/money.ts'
import { DAY_RULE, dayText, MOMENT_RULE, readMoment } from '../../platform/time.ts'
import { rowMoneyReader } from './row-money.ts'

/**
 * One column in a settlement file. `read` returns the text for PostgreSQL, or undefined for an invalid field. `rule` is
 * the error message for the operator.
 */
type Column = {
  read: (field: string) => string | undefined
  rule: string
  optional?: boolean
  /**
   * The kind of value that a layout converts from the bank's format before `read` parses the field. If `written` is
   * absent, `read` parses the field unchanged.
   */
  written?: 'time' | 'day' | 'status'
}

const matching = (pattern: RegExp) => (field: string) => (pattern.test(field) ? field : undefined)

/** An amount is negative if the bank deducts money. A signed zero is rejected. */
const SETTLED_AMOUNT = /^(?!-0+(?:\.0+)?$)-?[0-9]{1,12}(?:\.[0-9]{1,2})?$/

const AMOUNT = {
  /** Returns paise, because COPY writes the column `amount_paise`. */
  read(field: string) {
    const paise = SETTLED_AMOUNT.test(field) ? toPaise(field) : undefined
    return paise === undefined || isTooLarge(paise) ? undefined : String(paise)
  },
  rule: 'must be rupees such as 250 or -249.50, at most 100000000000',
}
const MOMENT = { read: readMoment, rule: MOMENT_RULE, written: 'time' } as const

const COLUMNS: Readonly<Record<string, Column>> = {
  mid: { read: matching(IDENTIFIER), rule: IDENTIFIER_RULE },
  amount: AMOUNT,
  utr: { read: matching(UTR), rule: UTR_RULE, optional: true },
  bank_reference_number: {
    read: matching(/^[A-Za-z0-9 ./_-]{1,64}$/),
    rule: 'must be 1 to 64 letters, digits, spaces or . / _ -',
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
  // Payments are stored under a UTR in upper case, without the zeros that some banks put before an RRN.
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
  event: { read: readEvent, rule: 'must be text', optional: true },
  acquirer_payment_id: {
    read: matching(/^(?=.*[A-Za-z0-9])[A-Za-z0-9_-]{1,64}$/),
    rule: 'must be 1 to 64 letters, digits, _ or -',
    optional: true,
  },
  instrument: { read: readInstrumentWord, rule: 'must be text', optional: true },
}

/** Returns the event of a line in the words of any acquirer, such as `CHARGEBACK_REVERSE`. An unknown word states none. */
function readEvent(field: string): string {
  const isReversal = /revers/i.test(field)
  if (/dispute|chargeback|retrieval|arbitration/i.test(field)) return isReversal ? 'dispute reversal' : 'dispute'
  if (/refund/i.test(field)) return isReversal ? 'other' : 'refund'
  return /payment|sale|capture/i.test(field) ? 'payment' : /adjust/i.test(field) ? 'other' : NULL
}

/** Returns the instrument in the words of any acquirer. The service does not store an unknown word, such as `UPI`. */
function readInstrumentWord(field: string): string {
  const instrument = readInstrument(INSTRUMENT_WORDS, field)
  return instrument === undefined || instrument === 'unknown' ? NULL : instrument
}

const INSTRUMENT_WORDS = {
  'bank account': /^(savings|current|(bank[ _-]?)?account)$/i,
  'credit card': /^(credit|((upi|rupay)[ _-])?credit[ _-]?card)$/i,
  wallet: /^(wallet|upi_wallet_fulfilment|(upi_)?ppi(_\w+)?)$/i,
  'credit line': /^(upi[ _-])?credit[ _-]?line$/i,
}

const CHECKS = Object.entries(COLUMNS)
const NAMES = Object.keys(COLUMNS)
export const SETTLEMENT_COLUMNS = NAMES
/** Columns that identify the row or its payment. Each row has a value in at least one of these columns. */
const NAMING_COLUMNS: readonly string[] = ['utr', 'order_id', 'acquirer_payment_id']
/**
 * Columns that exist only in layouts: the sign of amounts, separate credit and debit amounts, and the gross amount from
 * which fees are deducted.
 */
export const LAYOUT_COLUMNS: readonly string[] = ['sign', 'credit', 'debit', 'gross']
const REQUIRED_COLUMNS = CHECKS.flatMap(([name, { optional }]) => (optional && name !== 'utr' ? [] : [name]))

/**
 * Returns the parser for settlement files in the standard format, or in the format that `layout` describes. The error
 * for an invalid row lists every problem by the file's own column names and never repeats the row's content. `notes`
 * returns remarks about the rows read, to show to the operator.
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

  function check(fields: readonly string[], line: number, isNegative: boolean) {
    if (readers?.status(fields[statusAt] ?? '') === IGNORED) return { value: '' }
    const fieldsOf = (name: string) => placesOf.get(name)?.map((at) => fields[at] as string) ?? []
    const errors: string[] = []
    const isNamed = NAMING_COLUMNS.some((name) => fieldsOf(name).some((field) => !isNothing(field)))
    const moved = money?.read(fieldsOf, line, isNegative)
    if (moved?.errors) errors.push(...moved.errors)
    const copied = columns.map(({ name, read, rule, optional, called, at }) => {
      if (moved && isMoney(name)) return String(moved.value?.[name] ?? NULL)
      const written = fields[at] ?? ''
      const field = layout && name !== 'status' && isNothing(written) ? '' : written
      if (optional && field === '' && (isNamed || name !== 'utr')) return NULL
      const value = read(field)
      if (value === undefined) errors.push(`${called} ${rule}`)
      return value
    })
    const copiedOf = (name: string) => copied[NAMES.indexOf(name)]
    if (copiedOf('amount')?.startsWith('-') === false)
      for (const name of ['fee', 'tax'])
        if (copiedOf(name)?.startsWith('-')) errors.push(`${name} must not be negative unless amount is negative`)
    if (errors.length > 0) return { errors }
    if (copiedOf('amount') === '0') zeros += 1
    // No field needs escaping, because the rules reject every character that COPY's text format escapes.
    return { value: copied.join('\t') }
  }

  return {
    format: {
      columns: NAMES,
      required: REQUIRED_COLUMNS.map((name) => (name === 'utr' ? NAMING_COLUMNS : [name])),
      check,
      ...(layout && readers && { bank: bankForm(layout, readers, SETTLEMENTS) }),
    },
    notes: () => [
      ...(zeros > 0 ? [`${rowsOf(zeros)} an amount of 0.00: check which column contains the amount`] : []),
      ...(money && money.counts.rounded > 0
        ? [`${rowsOf(money.counts.rounded)} a fee or tax with fractions of a paisa, which were rounded`]
        : []),
    ],
  }
}

/** A layout's columns, by which the rows in the bank's own file are distinguished from headings and totals. */
const SETTLEMENTS = { day: 'initiation_date', naming: NAMING_COLUMNS, references: ['bank_reference_number'] }

const MONEY = ['amount', 'fee', 'tax'] as const
const isMoney = (name: string): name is (typeof MONEY)[number] => (MONEY as readonly string[]).includes(name)
const rowsOf = (count: number) => counted(count, 'row has', 'rows have')

/** Returns the parser and the rule for a column in the layout's format. */
function asWritten(name: string, { read, rule, written }: Column, layout?: Layout, readers?: FieldReaders) {
  if (!layout || !readers) return { read, rule }
  if (name === 'mid' && layout.mid !== null) return { read: () => layout.mid as string, rule }
  if (written === undefined) return { read, rule }
  return { read: (field: string) => read(readers[written](field) ?? ''), rule: readers.rules[written] }
}

const NULL = '\\N'
