import { counted } from '../money.ts'
import { isAmount, isNothing, readUnits, withoutMinus } from './amounts.ts'
import { type FieldReaders, IGNORED, type Layout } from './layouts.ts'

/** Parses the header of a file's table, which names its columns, in the service's own format or in a bank's. */

export type Checked<T> = { value: T; errors?: never } | { value?: never; errors: string[] }

/**
 * Reads the records below a header. `check` receives a record and its line, and returns undefined for a record that is
 * not a row of the table; an error may be about an earlier `line`. `end` returns the errors that become known only
 * after the last record.
 */
export type RecordReader = {
  check: (record: readonly string[], line: number) => (Checked<string> & { line?: number }) | undefined
  end: () => { line: number; text: string }[]
}

/**
 * Format of one kind of file. A file has at least one column from each list in `required`, in any order. The first line
 * names the columns, unless the file is a bank's file.
 */
export type CsvFormat = {
  columns: readonly string[]
  required: readonly (readonly string[])[]
  /**
   * Checks the `fields` of the record in this line. The fields are in the order of `columns`, and empty if the file
   * lacks the column. `isNegative` is true below a title that makes amounts negative. `doubt` is a possible error in the
   * records above, if the form `isProvable`. Returns the record in the text format of COPY, without the line number; an
   * empty text is not stored.
   */
  check: (fields: readonly string[], line: number, isNegative: boolean, doubt?: Doubt) => Checked<string>
  bank?: BankForm
}

/**
 * A possible error in non-row records, which is reported only if the balances do not prove that the file is complete. A
 * break of the balances at the row in line `above` follows from the error.
 */
export type Doubt = { line: number; text: string; above?: number }

/**
 * The format of a bank's file. Its table may have lines above the header and below the last row, and additional
 * columns.
 */
export type BankForm = Pick<Layout, 'negativeBelow' | 'ignoredLines'> & {
  /** The bank's names of `columns`, in their order; undefined for a column that the file does not have. */
  names: readonly (string | undefined)[]
  readers: FieldReaders
  /** The positions of columns in `names`. `money` has the amounts, fee and tax. */
  at: Record<'status' | 'naming' | 'references' | 'amounts' | 'money', readonly number[]> & { day: number }
  /** The name of the day's column in messages. */
  dayCalled: string
  /** Whether balances prove that no row is missing. */
  isProvable: boolean
}

type ColumnPair = readonly [string, string | undefined]

/** The columns of one kind of file that contain a row's day, its identifiers, and the references of any row. */
type KindOfFile = { day: string; naming: readonly string[]; references: readonly string[] }

/** Returns the form of the layout's files. `columns` are pairs of the service's column and the bank's. */
export function bankForm(
  { columns, negativeBelow, ignoredLines }: Omit<Layout, 'columns'> & { columns: readonly ColumnPair[] },
  readers: FieldReaders,
  { day, naming, references }: KindOfFile,
): BankForm {
  const placesOf = (...names: readonly string[]) => columns.flatMap(([ours], at) => (names.includes(ours) ? [at] : []))
  const [dayAt = -1] = placesOf(day)
  return {
    ...{ negativeBelow, ignoredLines, readers, isProvable: placesOf('balance').length > 0 },
    names: columns.map(([, theirs]) => theirs && withoutMinus(theirs)),
    at: {
      ...{ day: dayAt, status: placesOf('status'), naming: placesOf(...naming), references: placesOf(...references) },
      amounts: placesOf('amount', 'credit', 'debit'),
      money: placesOf('amount', 'credit', 'debit', 'fee', 'tax'),
    },
    dayCalled: `${columns[dayAt]?.[1]} (${day})`,
  }
}

/**
 * Returns whether these fields are meant as a row of the table. A row of totals has neither an identifier nor a date. A
 * row that is not paid out yet may lack both, so it is recognized by its status.
 */
const isRow = ({ at, readers }: BankForm, fields: readonly string[]) =>
  readers.isLikeDay(fields[at.day] ?? '') ||
  at.naming.some((place) => ONE_NAME.test(fields[place] ?? '')) ||
  at.status.some((place) => readers.status(fields[place] ?? '') === IGNORED)

/**
 * A reference or an id: a single word with a digit, unlike the text of a footer, such as `Total (2)` or `Page 1 of 2`.
 */
const ONE_NAME = /^[\w.-]*\d[\w.-]*$/

/** Returns whether the fields contain an amount and a reference, as rows do. */
const isLikeRow = ({ at }: BankForm, fields: readonly string[]) =>
  at.references.some((place) => /\p{L}|\d{6}/u.test(fields[place] ?? '')) &&
  at.amounts.some((place) => isAmount(fields[place] ?? ''))

/** Returns the reader of the records below this header, or every error of the header. */
export function readHeader(
  header: readonly string[],
  { columns, required, check, bank }: CsvFormat,
  delimiter: string,
): Checked<RecordReader> {
  if (bank) return readBankRecords(header, bank, check, delimiter)
  const [separator] = header.length === 1 ? (/[;|~\t]/.exec(header[0] ?? '') ?? []) : []
  if (separator !== undefined) {
    return {
      errors: [`fields are separated by ${separator === '\t' ? 'tabs' : `'${separator}'`}: save the file with commas`],
    }
  }
  const names = header.map((name) => name.trim())
  if (!names.some((name) => columns.includes(name))) {
    return {
      errors: [`none of the columns ${columns.join(', ')} is in the header: use --layout to read another format`],
    }
  }
  const errors = [
    ...required
      .filter((oneOf) => !oneOf.some((name) => names.includes(name)))
      .map((oneOf) => `column ${oneOf.join(' or ')} is missing`),
    ...names
      .filter((name) => !columns.includes(name))
      .map((name) => `column ${JSON.stringify(name.slice(0, 40))} is unknown`),
    ...columns
      .filter((name) => names.indexOf(name) !== names.lastIndexOf(name))
      .map((name) => `column ${name} appears twice`),
  ]
  if (errors.length > 0) return { errors }
  const positions = columns.map((name) => names.indexOf(name))
  return {
    value: {
      check: (record, line) =>
        record.length === names.length
          ? check(
              positions.map((position) => record[position] ?? ''),
              line,
              false,
            )
          : { errors: [`has ${counted(record.length, 'field')}, not ${names.length}`] },
      end: () => [],
    },
  }
}

/**
 * Skips records that are not rows. Records above the first row and below the last row are skipped, unless a record
 * looks like an unreadable row. Records between two rows are skipped if they have neither an amount nor a title's form,
 * or if the balances prove that no row is missing.
 */
function readBankRecords(
  header: readonly string[],
  form: BankForm,
  check: CsvFormat['check'],
  delimiter: string,
): Checked<RecordReader> {
  const { names, at, dayCalled, isProvable, negativeBelow: negativeTitles, ignoredLines } = form
  const several = names.filter((name) => name !== undefined && isOneOfSeveral(header, name, names))
  if (several.length > 0)
    return { errors: several.map((name) => `has ${name} more than once: write ${name}#1 or ${name}#2 in the layout`) }
  const positions = positionsOf(header, names)
  const dayAt = positions[at.day] as number
  const dayRule = `${dayCalled} ${form.readers.rules.day}`
  const isHeader = (record: readonly string[]) =>
    positions.every((at) => at < 0 || comparable(record[at] ?? '') === comparable(header[at] ?? ''))
  const isOtherHeader = (record: readonly string[]) => {
    const written = record.map(cleaned).filter((field) => field !== '')
    return written.length >= 3 && WORDS.test(record[dayAt] ?? '') && written.every((field) => WORDS.test(field))
  }
  const table = { header, positions, delimiter, form, dayAt }
  const unread: { line: number; text: string }[] = []
  let hasRows = false
  let first: { line: number; text: string } | undefined
  let last: { line: number; text: string } | undefined
  let between: Between | undefined
  let title: { line: number; text: string } | undefined
  /** The title above, if it makes the amounts below it negative. */
  let negativeBelow: string | undefined

  /** Stores the positions of non-row records, for the errors that depend on the rows around these records. */
  function leaveOut(record: readonly string[], fields: readonly string[], line: number): void {
    const text = record.join(' ')
    if (!/[\p{L}\d]/u.test(text)) return
    const written = fields[at.day] || record.find((field) => field.trim() !== '') || ''
    first ??= { line, text: `${NO_ROW} ${JSON.stringify(written.slice(0, 40))} is not a day: ${dayRule}` }
    // A word such as `Total` marks a row of totals only if the day field does not begin with a digit, because a
    // narration may contain such a word too.
    const isOfTotals = record.some((field) => OF_TOTALS.test(field)) && !/^\d/.test(written)
    if (isLikeRow(form, fields) && !isOfTotals) last ??= { line, text: `has an amount, but no day: ${dayRule}` }
    const hasMoney = at.money.some((place) => /[1-9]/.test(fields[place] ?? ''))
    const only = hasMoney ? undefined : onlyText(record)
    if (only !== undefined && isOneOf(negativeTitles, only)) {
      negativeBelow = only
      return
    }
    if (only !== undefined && isOneOf(ignoredLines, only)) {
      if (negativeBelow !== undefined) title ??= { line, text: belowNegative(only, negativeBelow) }
      return
    }
    if (!hasRows) return
    if (only !== undefined && !isHeader(record) && !isOfTotals && !PAGE.test(text))
      title ??= { line, text: mayBeTitle(only) }
    between ??= { line, repeatsHeader: false, hasText: false }
    if (isHeader(record)) between.repeatsHeader = true
    else if (isOtherHeader(record)) between.otherHeader ??= line
    else if (hasMoney) between.amountIn ??= line
    else if (!PAGE.test(text)) between.hasText = true
  }

  const value: RecordReader = {
    check(record, line) {
      if (record.some((field) => field.includes('\ufffd'))) return { errors: [NOT_UTF8] }
      const fields = positions.map((position) => cleaned(record[position] ?? ''))
      const isCounted = COUNTED_DAY.test(fields[at.day] ?? '') && isLikeRow(form, fields)
      if (!isRow(form, fields) && !isCounted) {
        leaveOut(record, fields, line)
        return undefined
      }
      if (!hasRows && last) unread.push(last)
      hasRows = true
      last = undefined
      const found = between && errorBetween(between, line, isProvable)
      const error: Doubt | undefined = found ? { ...found, above: line } : title
      between = undefined
      title = undefined
      if (error && !isProvable) return { errors: [error.text], line: error.line }
      if (swallowsRow(table, record)) return { errors: ['has a quote that is not closed'] }
      if (record.slice(header.length).some((field) => field.trim() !== '')) {
        return { errors: [`has ${counted(record.length, 'field')}, not ${header.length}`] }
      }
      const cut = at.money.find((place) => isCutAtComma(table, record, positions[place] as number))
      if (cut !== undefined) return { errors: [`${names[cut]} ${CUT_AT_COMMA}`] }
      if (isCounted) return { errors: [`${dayCalled} ${COUNTED_DAY_RULE}`] }
      const rounded = names.flatMap((name, index) =>
        ROUNDED.test(fields[index] as string) ? [`${name} ${ROUNDED_RULE}`] : [],
      )
      return rounded.length > 0 ? { errors: rounded } : check(fields, line, negativeBelow !== undefined, error)
    },
    end: () => (hasRows ? [...unread, ...(last ? [last] : [])] : first ? [first] : []),
  }
  return { value }
}

/**
 * Returns the text of a record whose other fields are empty, numbers or 0.00, as the title of a group of rows is.
 */
function onlyText(record: readonly string[]): string | undefined {
  const isText = (field: string) => /\p{L}/u.test(field) && !isNothing(field) && readUnits(field) === undefined
  const [only, ...others] = record.map(cleaned).filter(isText)
  return others.length === 0 ? only : undefined
}

/** A bank's table. `positions` are those of the form's columns in the header, and `dayAt` that of the day. */
type Table = {
  header: readonly string[]
  positions: readonly number[]
  delimiter: string
  form: BankForm
  dayAt: number
}

/**
 * Whether the amount at this position was split at its thousands comma, so that the rest of the amount is in a field
 * without a column.
 */
function isCutAtComma({ header, positions, delimiter }: Table, record: readonly string[], place: number): boolean {
  const isFree = record.length > header.length || (header[place + 1] ?? '').trim() === ''
  return (
    delimiter === ',' &&
    isFree &&
    !positions.includes(place + 1) &&
    /(?<!\d)[1-9]\d{0,2}$/.test(cleaned(record[place] ?? '')) &&
    /^(?:\d{2},){0,3}\d{3}(?:\.\d*)?(?:,|$)/.test(
      record
        .slice(place + 1)
        .map(cleaned)
        .join(),
    )
  )
}

/**
 * Whether a field contains the following line because the field's quote is not closed. Such a field contains a day at
 * the position where rows have a day.
 */
function swallowsRow({ form, dayAt, delimiter }: Table, record: readonly string[]): boolean {
  const hasDay = (fields: readonly string[]) => form.readers.isLikeDay(fields[dayAt] ?? '')
  return record.some((field, place) => {
    const [rest = '', ...others] = field.split(LINE_BREAK).map((line) => line.split(delimiter))
    return (
      others.some((fields) => fields.length > 1 && hasDay(fields)) ||
      (others.length > 0 && dayAt > place && hasDay([...record.slice(0, place), ...rest]))
    )
  })
}

/**
 * Describes the non-row records between two rows: the line of the first record, the line of the first record with an
 * amount, and the line of another table's header.
 */
type Between = { line: number; amountIn?: number; otherHeader?: number; repeatsHeader: boolean; hasText: boolean }

/**
 * Returns the error in these non-row records above the row in line `below`. A repeated header is allowed, because every
 * page of a file may begin with the header. Other records may be the start of another file.
 */
function errorBetween(
  { line, amountIn, otherHeader, repeatsHeader, hasText }: Between,
  below: number,
  isProvable: boolean,
) {
  if (repeatsHeader && (isProvable || hasText || amountIn !== undefined)) {
    const text = `is a row below the table, which ends in line ${line}. If the file contains two tables, import them as two files.`
    return { line: below, text: isProvable ? `${text} The balance does not follow from the row above.` : text }
  }
  if (otherHeader !== undefined) return { line: otherHeader, text: OTHER_HEADER }
  return amountIn === undefined ? undefined : { line: amountIn, text: AMOUNT_BETWEEN_ROWS }
}

/** A field that contains only words, as in a header. */
const WORDS = /^(?=.*\p{L})\D+$/su
const OTHER_HEADER =
  'names other columns than the header of the table, and rows follow: import the two tables as two files'
const CUT_AT_COMMA = 'is cut at a comma: amounts with commas must be in quotes'
const PAGE = /^\W*page\b/i
const AMOUNT_BETWEEN_ROWS =
  'is between rows and has an amount, but is not a row of the table: correct its day, or delete the line if it is a total'
const mayBeTitle = (text: string) => {
  const quoted = JSON.stringify(text)
  return `${quoted} is the only text of a line between rows, and may be the title of the rows below: add --negative-below ${quoted} to the layout if their amounts are deducted, otherwise --ignore-line ${quoted}`
}
const belowNegative = (text: string, title: string) =>
  `${JSON.stringify(text)} is below ${JSON.stringify(title)}, so the amounts below it may be negative or not: import the lines from here on as a file of their own`
const NO_ROW = 'no line below the header can be read as a row; in this one, the first,'
/** Words that mark lines of totals. */
const OF_TOTALS = /total|balance|summary|opening|closing|brought|carried|forward|\b[bc]\/[fd]\b|\bpage\b/i
export const NOT_UTF8 = 'is not UTF-8 but possibly Windows-1252: save the file as UTF-8'
export const LINE_BREAK = /\r\n|\n|\r/

const ROUNDED_RULE =
  'was converted to a number by a spreadsheet and has lost digits: download the file again and open the column as text'

/** A day as the number of days since 1900, from 2009 to 2064, perhaps with a time as the decimals. */
const COUNTED_DAY = /^[45]\d{4}(?:\.\d+)?$/
const COUNTED_DAY_RULE = 'is a day as a spreadsheet counts it: format the column as a date, and save the file again'

const NUMBERED = /^(.*)#([1-9])$/

/**
 * Whether the header has several columns with this name, and the layout does not number the columns, as in `Amount#2`.
 */
function isOneOfSeveral(header: readonly string[], name: string, names: readonly (string | undefined)[]): boolean {
  const isNumbered = names.some((one) => comparable(NUMBERED.exec(one ?? '')?.[1] ?? '') === comparable(name))
  return !NUMBERED.test(name) && !isNumbered && header.filter((one) => comparable(one) === comparable(name)).length > 1
}

/**
 * Returns the position of each of `names` in the header; -1 for undefined. `Amount#2` is the second column with this
 * name.
 */
export function positionsOf(header: readonly string[], names: readonly (string | undefined)[]): number[] {
  const found = header.map(comparable)
  return names.map((name) => {
    if (name === undefined) return -1
    const [, base = name, nth = '1'] = NUMBERED.exec(name) ?? []
    return found.map((one, at) => (one === comparable(base) ? at : -1)).filter((at) => at >= 0)[Number(nth) - 1] ?? NaN
  })
}

const comparable = (name: string) => cleaned(name).replace(/\s+/g, ' ').toLowerCase()

/** Whether `texts` contains the text, in any case and with any whitespace. */
export const isOneOf = (texts: readonly string[], text: string) =>
  texts.some((one) => comparable(one) === comparable(text))

/**
 * Removes whitespace around a field and the characters that mark the field as text in spreadsheets: `="0123"`, `'0123`
 * and `'0123'`. A dash becomes empty text. Invisible characters are also removed.
 */
const cleaned = (field: string) =>
  field
    .replace(/[\u200b-\u200f\u2060\ufeff]/g, '')
    .trim()
    .replace(/^(?:="(.*)"|'(.*?)'?|-)$/s, '$1$2')
    .trim()

/** A number that a spreadsheet has rounded and written with an exponent, because the number has too many digits. */
const ROUNDED = /^\d(?:\.\d+)?E\+\d+$/i
