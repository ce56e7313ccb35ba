import type { Readable } from 'node:stream'
import { parse } from 'csv-parse/sync'

/** The first line of a file's table, which names its columns: in our own form, or in that of a bank. */

/** The lines of a bank's file among which its header must be, and the bytes that are read for them. */
const MOST_LINES_BEFORE = 60
const MOST_BYTES_BEFORE = 64 * 1024

export type Checked<T> = { value: T; faults?: never } | { value?: never; faults: string[] }

/** Checks a record that stands in this line; undefined for a record that is no row of the table. A fault may be of a `line` above. */
export type CheckRecord = (record: readonly string[], line: number) => (Checked<string> & { line?: number }) | undefined

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
  /** Whether these fields, of a record between rows that is none, have an amount. */
  hasAmount: (fields: readonly string[]) => boolean
  /** Receives a fault of such records above the row in line `above`, where the balances can prove that there is none. */
  doubt?: ((fault: { line: number; text: string; above: number }) => void) | undefined
}

/** A file from its header on: the line of the header, counted from 1, what separates its fields, and whether blanks around them count. */
export type Table = { csv: AsyncIterable<Buffer | string>; line: number; delimiter: string; trim: boolean }

/** Returns the function that checks the records below this header, or every fault of the header. */
export function readHeader(
  header: readonly string[],
  { columns, required, check, bank }: CsvFormat,
  delimiter: string,
): Checked<CheckRecord> {
  if (bank) return checkBankRecords(header, bank, check, delimiter)
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
    value: (record, line) =>
      record.length === names.length
        ? check(
            positions.map((position) => record[position] ?? ''),
            line,
          )
        : { faults: [`has ${record.length} fields, not ${names.length}`] },
  }
}

/**
 * Records that are no rows are left out: below the table's last row, and between rows where they have no amount, or the balances
 * prove that no row is missing.
 */
function checkBankRecords(
  header: readonly string[],
  { names, isRow, hasAmount, doubt }: BankForm,
  check: CsvFormat['check'],
  delimiter: string,
): Checked<CheckRecord> {
  const several = names.filter((name) => name !== undefined && isOneOfSeveral(header, name, names))
  if (several.length > 0)
    return { faults: several.map((name) => `names ${name} more than once: give ${name}#1 or ${name}#2 in the layout`) }
  const positions = positionsOf(header, names)
  const fewest = Math.max(...positions) + 1
  const isHeader = (record: readonly string[]) =>
    positions.every((at) => at < 0 || comparable(record[at] ?? '') === comparable(header[at] ?? ''))
  let hasRows = false
  let between: Between | undefined
  const value: CheckRecord = (record, line) => {
    const fields = positions.map((position) => cleaned(record[position] ?? ''))
    if (!isRow(fields)) {
      const text = record.join(' ')
      if (!hasRows || !/[\p{L}\d]/u.test(text)) return undefined
      between ??= { line, repeatsHeader: false, hasText: false }
      if (isHeader(record)) between.repeatsHeader = true
      else if (hasAmount(fields)) between.amountIn ??= line
      else if (!PAGE.test(text)) between.hasText = true
      return undefined
    }
    hasRows = true
    const fault = between && faultBetween(between, line, doubt !== undefined)
    between = undefined
    if (fault && doubt) doubt({ ...fault, above: line })
    else if (fault) return { faults: [fault.text], line: fault.line }
    // A quote that is not closed swallows the line after.
    if (record.some((field) => /[\r\n]/.test(field) && field.includes(delimiter)))
      return { faults: ['has a quote that is not closed'] }
    if (record.length < fewest || record.slice(header.length).some((field) => field.trim() !== '')) {
      return { faults: [`has ${record.length} fields, not ${header.length}`] }
    }
    const rounded = names.flatMap((name, index) =>
      ROUNDED.test(fields[index] as string) ? [`${name} ${ROUNDED_RULE}`] : [],
    )
    return rounded.length > 0 ? { faults: rounded } : check(fields, line)
  }
  return { value }
}

/** Records between two rows that are none: the line of the first of them, and of the first that has an amount. */
type Between = { line: number; amountIn?: number; repeatsHeader: boolean; hasText: boolean }

/** What is wrong with them above the row in line `below`. A header that is repeated alone begins a page; others may begin another file. */
function faultBetween({ line, amountIn, repeatsHeader, hasText }: Between, below: number, isProvable: boolean) {
  if (repeatsHeader && (isProvable || hasText || amountIn !== undefined)) {
    const text = `is a row below the table, which ends in line ${line}: two files in one?`
    return { line: below, text: isProvable ? `${text} The balance does not follow from the row above` : text }
  }
  return amountIn === undefined ? undefined : { line: amountIn, text: AMOUNT_BETWEEN_ROWS }
}

const PAGE = /^\W*page\b/i
const AMOUNT_BETWEEN_ROWS =
  'stands between rows and has an amount, but is no row of the table: correct its day, or delete the line if it is a total'

const ROUNDED_RULE =
  'was made a number by a spreadsheet, and has lost digits: get the file again, and open the column as text'

const NUMBERED = /^(.*)#([1-9])$/

/** Whether the header has several columns of this name, and neither the name nor another one of the layout says which one it is. */
function isOneOfSeveral(header: readonly string[], name: string, names: readonly (string | undefined)[]): boolean {
  const isNumbered = names.some((one) => comparable(NUMBERED.exec(one ?? '')?.[1] ?? '') === comparable(name))
  return !NUMBERED.test(name) && !isNumbered && header.filter((one) => comparable(one) === comparable(name)).length > 1
}

/** Where each of `names` stands in the header; -1 for undefined. `Amount#2` is the second column of this name. */
function positionsOf(header: readonly string[], names: readonly (string | undefined)[]): number[] {
  const found = header.map(comparable)
  return names.map((name) => {
    if (name === undefined) return -1
    const [, base = name, nth = '1'] = NUMBERED.exec(name) ?? []
    return found.map((one, at) => (one === comparable(base) ? at : -1)).filter((at) => at >= 0)[Number(nth) - 1] ?? NaN
  })
}

const comparable = (name: string) => cleaned(name).replace(/\s+/g, ' ').toLowerCase()

/** The field without blanks around it, and without what makes it a text for spreadsheets: `="0123"` and `'0123`. A dash is nothing. */
const cleaned = (field: string) =>
  field
    .trim()
    .replace(/^(?:="(.*)"|'(.*)|-)$/, '$1$2')
    .trim()

/** A number as a spreadsheet writes it that has too many digits. */
const ROUNDED = /^\d(?:\.\d+)?E\+\d+$/i

/**
 * Opens a file at its header: in our own form the first line, in a bank's one of the first 60. Returns why the file is no table: it
 * is no text, or lacks columns of the bank's form, in the line which has most of them.
 */
export async function openTable(csv: Readable, bank: BankForm | undefined): Promise<Checked<Table>> {
  const chunks = csv[Symbol.asyncIterator]() as AsyncIterator<Buffer | string>
  let head = Buffer.alloc(0)
  let isAll = false
  do {
    const { value, done } = await chunks.next()
    isAll = done === true
    if (!isAll) head = Buffer.concat([head, Buffer.from(value)])
  } while (!isAll && bank && head.length < MOST_BYTES_BEFORE)
  const noText = whyNoText(head.toString('latin1', 0, 16))
  if (noText !== undefined) return { faults: [`the file is ${noText}`] }
  if (bank === undefined) return { value: { csv: from(0), line: 1, delimiter: ',', trim: false } }
  const wanted = bank.names.filter((name) => name !== undefined)
  let missing: string[] = wanted
  for (let line = 1, start = 0; line <= MOST_LINES_BEFORE && start < head.length; line += 1) {
    const lineEnd = head.indexOf('\n', start)
    const end = lineEnd === -1 ? head.length : lineEnd
    for (const delimiter of [',', '\t', ';', '|']) {
      const positions = positionsOf(splitLine(head.toString('utf8', start, end), delimiter), wanted)
      const missingHere = wanted.filter((_, index) => Number.isNaN(positions[index]))
      if (missingHere.length === 0) return { value: { csv: from(start), line, delimiter, trim: true } }
      if (missingHere.length < missing.length) missing = missingHere
    }
    start = end + 1
  }
  return {
    faults: [
      `no line among the first ${MOST_LINES_BEFORE} names every column of the layout: ${missing.join(', ')} is missing`,
    ],
  }

  async function* from(start: number): AsyncGenerator<Buffer | string> {
    yield head.subarray(start)
    for await (const chunk of { [Symbol.asyncIterator]: () => chunks }) yield chunk
  }
}

function splitLine(line: string, delimiter: string): string[] {
  try {
    const options = { delimiter, bom: true, trim: true, relax_quotes: true, relax_column_count: true }
    return (parse(line.trimEnd(), options) as string[][])[0] ?? []
  } catch {
    // A quote that is not closed: no header.
    return []
  }
}

/** What a file is that is no text, by its first bytes, with the way to get text; undefined for text. */
function whyNoText(start: string): string | undefined {
  if (start.startsWith('PK')) return `an Excel workbook (.xlsx): ${SAVE_AS_CSV}`
  if (start.startsWith('\xd0\xcf\x11\xe0')) return `an Excel workbook (.xls): ${SAVE_AS_CSV}`
  if (start.startsWith('%PDF')) return 'a PDF: get it from the bank as CSV or text'
  if (/^\s*</.test(start)) return `a web page, whatever its name says: open it in a spreadsheet and ${SAVE_AS_CSV}`
  return undefined
}

const SAVE_AS_CSV = 'save it as CSV, with the columns of references and UTRs as text, or get CSV from the bank'
