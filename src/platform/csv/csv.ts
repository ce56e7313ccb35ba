import type { Hash } from 'node:crypto'
import { type Readable, pipeline as startPipeline } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import { counted } from '../money.ts'
import { type CsvFormat, LINE_BREAK, type RecordReader, readHeader } from './header.ts'
import { openTable, type Table } from './open.ts'

/** Reads CSV files from banks in constant memory: checks each line, and returns lines for PostgreSQL's COPY. */

/**
 * Number of lines in a batch. The next batch is read while PostgreSQL stores the previous batch, so memory contains two
 * batches.
 */
const BATCH_LINES = 10_000
/** Without this limit, a quote that is never closed would read the rest of the file into memory. */
const MAX_RECORD_BYTES = 64 * 1024
const ERRORS_SHOWN = 20

/** An error in one line. Lines are counted from 1. */
export type LineError = { line: number; text: string }

/**
 * Error for a rejected file: `errors` are the errors of its first 20 invalid lines in order, `count` is the number of
 * all invalid lines.
 */
export class CsvFileError extends Error {
  readonly errors: readonly LineError[]
  readonly count: number

  constructor(errors: readonly LineError[], count: number) {
    super(`${counted(count, 'invalid line')}, nothing was imported`)
    this.name = 'CsvFileError'
    this.errors = errors
    this.count = count
  }
}

/**
 * Lines that are stored together: `rows` are `rowCount` valid lines in COPY's text format. The last batch may be empty.
 * `isWholeFile` is true for the last batch of a file in which every line could be read.
 */
export type Batch = {
  rows: string
  rowCount: number
  lineCount: number
  errors: LineError[]
  isLast: boolean
  isWholeFile: boolean
}

const emptyBatch = (): Batch => ({
  ...{ rows: '', rowCount: 0, lineCount: 0, errors: [] },
  ...{ isLast: false, isWholeFile: false },
})

/**
 * Passes the file to `store` batch by batch; `store` returns further errors, which may concern any line read so far. If
 * a line is invalid, throws a CsvFileError after the last line, and the caller must roll back everything that was
 * stored.
 */
export async function storeBatches(
  csv: Readable,
  format: CsvFormat,
  store: (batch: Batch) => Promise<LineError[]>,
  onWarning?: OnWarning,
): Promise<void> {
  let errors: LineError[] = []
  let errorCount = 0

  const storeNext = async (batch: Batch) => {
    const found = [...batch.errors, ...(await store(batch))]
    errors = [...errors, ...found].sort((a, b) => a.line - b.line).slice(0, ERRORS_SHOWN)
    errorCount += found.length
  }

  let storing: Promise<void> = Promise.resolve()
  try {
    for await (const batch of readBatches(csv, format, onWarning)) {
      await storing
      storing = storeNext(batch)
      // Without this handler, an error would be an unhandled rejection, because `storing` is awaited one batch later.
      storing.catch(() => undefined)
    }
  } finally {
    await storing
  }
  if (errorCount > 0) throw new CsvFileError(errors, errorCount)
}

/** Receives a sentence about suspicious content that the operator should check. */
export type OnWarning = ((text: string) => void) | undefined

/** Yields the file unchanged and updates `hash` with every byte. */
export async function* hashed(csv: Readable, hash: Hash): AsyncGenerator<Buffer | string> {
  for await (const chunk of csv) {
    hash.update(chunk)
    yield chunk
  }
}

/** Yields the lines of the file in batches. Throws a CsvFileError if the file has no usable header. */
async function* readBatches(csv: Readable, format: CsvFormat, onWarning: OnWarning): AsyncGenerator<Batch> {
  let reader: RecordReader | undefined
  let batch = emptyBatch()
  let isEnded = true
  let isRead = true
  const { value: table, errors: unreadable } = await openTable(csv, format.bank)
  if (unreadable) {
    csv.destroy()
    throw new CsvFileError([{ line: 1, text: unreadable.join(', ') }], 1)
  }
  let { line } = table
  let linesOfRecords = 0
  const records = readRecords(
    table,
    (last) => {
      isEnded = LINE_ENDS.includes(last)
    },
    (lines) => {
      linesOfRecords = lines
    },
  )
  try {
    for await (const record of records) {
      let lineCount = 1
      if (reader === undefined) {
        // A first line `sep=,` only names the separator for Excel, so the header is in the next line.
        if (line > 1 || record.join(',').toLowerCase() !== 'sep=,') {
          const { value, errors } = readHeader(record, format, table.delimiter)
          if (errors) throw new CsvFileError([{ line, text: errors.join(', ') }], 1)
          reader = value
          lineCount += format.bank ? lineBreaksIn(record) : 0
        }
      } else if (record.length > 1 || record[0] !== '') {
        const { value, errors, line: at = line } = reader.check(record, line) ?? { value: '' }
        // In the service's own format, a field with a line break is an error, so only an invalid record spans several
        // lines.
        lineCount += format.bank ? lineBreaksIn(record) : errors ? record.join('').split('\n').length - 1 : 0
        const isOther = errors && !format.bank && /[\r\n]/.test(record.join(''))
        if (errors) batch.errors.push({ line: at, text: isOther ? OTHER_LINE_END : errors.join(', ') })
        else if (value !== '') {
          batch.rows += `${line}\t${value}\n`
          batch.rowCount += 1
        }
      }
      line += lineCount
      batch.lineCount += lineCount
      if (batch.lineCount >= BATCH_LINES) {
        isRead = isRead && batch.errors.length === 0
        yield batch
        batch = emptyBatch()
      }
    }
    batch.errors.push(...(reader?.end() ?? []))
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    batch.errors.push({
      // Reports the line in which the quote was opened, instead of the line in which the parser failed.
      line: table.line + linesOfRecords,
      text: `${BROKEN_CSV}; nothing after it was checked`,
    })
  }
  if (reader === undefined && batch.errors.length === 0) {
    throw new CsvFileError([{ line: 1, text: 'the file is empty; its first line must name the columns' }], 1)
  }
  if (!isEnded)
    onWarning?.(`line ${line - 1}, the last one, has no line end: where the file was cut, its last field is cut too`)
  yield { ...batch, isLast: true, isWholeFile: isRead && batch.errors.length === 0 }
}

const lineBreaksIn = (record: readonly string[]) => record.join().split(LINE_BREAK).length - 1

const OTHER_LINE_END =
  'a line break is inside a field, or lines do not all end as line 1 does (CRLF, LF or CR): save the file with one kind'
const BROKEN_CSV = `a quote is never closed, a line is longer than ${MAX_RECORD_BYTES} bytes, or ${OTHER_LINE_END}`

/** Line ends: the last byte of a Buffer, or the last character of a string. */
const LINE_ENDS: readonly unknown[] = [10, 13, '\n', '\r']

/**
 * Yields the records of the file. `onChunk` receives the last byte or character of each chunk. `onRecord` receives the
 * number of lines up to the end of each record, before the record is yielded.
 */
function readRecords(
  { csv, delimiter, trim }: Table,
  onChunk: (last: unknown) => void,
  onRecord: (lines: number) => void,
): AsyncIterable<string[]> {
  const parser = parse({
    bom: true,
    delimiter,
    trim,
    // Lines of a bank's file may end with CR LF, LF or CR, even within one file.
    ...(trim && { record_delimiter: ['\r\n', '\n', '\r'] }),
    // A record with a wrong number of fields or with a stray quote is an error in one line, and does not stop the
    // parser.
    relax_column_count: true,
    relax_quotes: true,
    max_record_size: MAX_RECORD_BYTES,
    on_record(record, { lines }) {
      onRecord(lines)
      return record
    },
  })
  // Uses pipeline instead of csv.pipe, because pipeline stops the loop when reading fails, and closes the file when the
  // loop stops.
  startPipeline(csv, watched, parser, () => undefined)
  return parser

  async function* watched(chunks: AsyncIterable<Buffer | string>) {
    for await (const chunk of chunks) {
      onChunk(chunk.at(-1))
      yield chunk
    }
  }
}
