/** The first line of a file's table, which names its columns: in our own form, or in that of a bank. */

export type Checked<T> = { value: T; faults?: never } | { value?: never; faults: string[] }

/**
 * Reads the records below a header. `check` is of a record that stands in this line, undefined for one that is no row of the table;
 * `end` returns what only the last record shows to be wrong.
 */
export type RecordReader = {
  check: (record: readonly string[], line: number) => Checked<string> | undefined
  end: () => { line: number; text: string }[]
}

/**
 * Format of one kind of file. A file has at least one column of each list in `required`, in any order; its first line names
 * them, unless it is a bank's.
 */
export type CsvFormat = {
  columns: readonly string[]
  required: readonly (readonly string[])[]
  /**
   * Checks the `fields` of the record in this line: in the order of `columns`, empty where the file lacks the column.
   * Returns them in the text format of COPY, without the line's number; an empty text is not stored.
   */
  check: (fields: readonly string[], line: number) => Checked<string>
  bank?: BankForm
}

/** The form of a bank's file. Its table has lines above the header and below the last row, and columns that nobody asked for. */
export type BankForm = {
  /** The bank's names of `columns`, in their order; undefined for a column that the file does not have. */
  names: readonly (string | undefined)[]
  /** Whether these fields, in the order of `columns`, are meant as a row of the table. */
  isRow: (fields: readonly string[]) => boolean
  /** Whether they have an amount and a reference, as rows have. */
  isLikeRow: (fields: readonly string[]) => boolean
  /** The column of days among `names`, and how a day is written. */
  day: { at: number; rule: string }
}

/** Returns the reader of the records below this header, or every fault of the header. */
export function readHeader(
  header: readonly string[],
  { columns, required, check, bank }: CsvFormat,
  delimiter: string,
): Checked<RecordReader> {
  if (bank) return { value: readBankRecords(header, bank, check, delimiter) }
  const [separator] = header.length === 1 ? (/[;|\t]/.exec(header[0] ?? '') ?? []) : []
  if (separator !== undefined) {
    return {
      faults: [`fields are separated by ${separator === '\t' ? 'tabs' : `'${separator}'`}: save the file with commas`],
    }
  }
  const names = header.map((name) => name.trim())
  const faults = [
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
  if (faults.length > 0) return { faults }
  const positions = columns.map((name) => names.indexOf(name))
  return {
    value: {
      check: (record, line) =>
        record.length === names.length
          ? check(
              positions.map((position) => record[position] ?? ''),
              line,
            )
          : { faults: [`has ${record.length} fields, not ${names.length}`] },
      end: () => [],
    },
  }
}

/**
 * Records above the table's first row and below its last one are left out, unless they look like rows that cannot be read. A row below
 * the last one means that the file is two files, or cut.
 */
function readBankRecords(
  header: readonly string[],
  { names, isRow, isLikeRow, day }: BankForm,
  check: CsvFormat['check'],
  delimiter: string,
): RecordReader {
  const positions = positionsOf(header, names)
  const fewest = Math.max(...positions) + 1
  const dayAt = positions[day.at] as number
  const unread: { line: number; text: string }[] = []
  let hasRows = false
  let first: { line: number; text: string } | undefined
  let last: { line: number; text: string } | undefined
  let ended: number | undefined
  const fieldsOf = (record: readonly string[]) => positions.map((position) => cleaned(record[position] ?? ''))

  /** Remembers a record that is no row. */
  function leaveOut(record: readonly string[], fields: readonly string[], line: number): void {
    if (!record.some((field) => /[\p{L}\d]/u.test(field))) return
    const written = fields[day.at] || record.find((field) => field.trim() !== '') || ''
    first ??= { line, text: `${NO_ROW} ${JSON.stringify(written.slice(0, 40))} is no day: ${day.rule}` }
    if (isLikeRow(fields) && !record.some((field) => OF_TOTALS.test(field)))
      last ??= { line, text: `has an amount, but no day: ${day.rule}` }
    if (hasRows) ended ??= line
  }

  return {
    check(record, line) {
      if (record.some((field) => field.includes('\ufffd'))) return { faults: [NOT_UTF8] }
      const fields = fieldsOf(record)
      if (!isRow(fields)) {
        leaveOut(record, fields, line)
        return undefined
      }
      if (!hasRows && last) unread.push(last)
      hasRows = true
      last = undefined
      if (ended !== undefined)
        return { faults: [`is a row below the table, which ends in line ${ended}: two files in one?`] }
      if (swallowsRow(record)) return { faults: ['has a quote that is not closed'] }
      if (record.length < fewest || record.slice(header.length).some((field) => field.trim() !== '')) {
        return { faults: [`has ${record.length} fields, not ${header.length}`] }
      }
      const rounded = names.flatMap((name, index) =>
        ROUNDED.test(fields[index] as string) ? [`${name} ${ROUNDED_RULE}`] : [],
      )
      return rounded.length > 0 ? { faults: rounded } : check(fields, line)
    },
    end: () => (hasRows ? [...unread, ...(last ? [last] : [])] : first ? [first] : []),
  }

  /** Whether a field has swallowed the line after, since its quote is not closed: a day stands in it, where one stands in rows. */
  function swallowsRow(record: readonly string[]): boolean {
    const hasDay = (fields: readonly string[]) =>
      isRow(names.map((_, at) => (at === day.at ? (fields[dayAt] ?? '') : '')))
    return record.some((field, at) => {
      const [rest = '', ...others] = field.split(LINE_BREAK).map((line) => line.split(delimiter))
      return (
        others.some((fields) => hasDay(fields)) ||
        (others.length > 0 && dayAt > at && hasDay([...record.slice(0, at), ...rest]))
      )
    })
  }
}

const NO_ROW = 'no line below the header is a row that can be read; in this one, the first,'
/** Words of lines that sum up others. */
const OF_TOTALS = /total|balance|summary|opening|closing|brought|carried|forward|\b[bc]\/[fd]\b|\bpage\b/i
const NOT_UTF8 = 'is not UTF-8, but perhaps Windows-1252: save the file as UTF-8'
export const LINE_BREAK = /\r\n|\n|\r/

const ROUNDED_RULE =
  'was made a number by a spreadsheet, and has lost digits: get the file again, and open the column as text'

/** Where each of `names` stands in the header; -1 for undefined. The first of columns with one name counts, `Amount#2` is the second. */
export function positionsOf(header: readonly string[], names: readonly (string | undefined)[]): number[] {
  const found = header.map(comparable)
  return names.map((name) => {
    if (name === undefined) return -1
    const [, base = name, nth = '1'] = /^(.*)#([1-9])$/.exec(name) ?? []
    return found.map((one, at) => (one === comparable(base) ? at : -1)).filter((at) => at >= 0)[Number(nth) - 1] ?? NaN
  })
}

const comparable = (name: string) => cleaned(name).replace(/\s+/g, ' ').toLowerCase()

/**
 * The field without blanks around it, and without what makes it a text for spreadsheets: `="0123"`, `'0123` and `'0123'`. A dash is
 * nothing. Characters that nobody sees are left out.
 */
const cleaned = (field: string) =>
  field
    .replace(/[\u200b-\u200f\u2060\ufeff]/g, '')
    .trim()
    .replace(/^(?:="(.*)"|'(.*?)'?|-)$/s, '$1$2')
    .trim()

/** A number as a spreadsheet writes it that has too many digits. */
const ROUNDED = /^\d(?:\.\d+)?E\+\d+$/i
