import { type Readable, pipeline as startPipeline } from 'node:stream'
import { CsvError, parse } from 'csv-parse'

/** Reads the CSV files that banks send: line by line in constant memory, each checked, ready for PostgreSQL's COPY. */

/** Lines that travel together: one batch is read while PostgreSQL stores the one before. Memory is two batches. */
const BATCH_LINES = 10_000
/** Without it a quote that is never closed would read the rest of the file into memory. */
const MAX_RECORD_BYTES = 4_096
const FAULTS_SHOWN = 20

/** What is wrong with one line of the file, counted from 1. */
export type LineFault = { line: number; text: string }

/** A refused file: `faults` are its first 20 bad lines in order, `count` is the number of all of them. */
export class CsvFileError extends Error {
  readonly faults: readonly LineFault[]
  readonly count: number

  constructor(faults: readonly LineFault[], count: number) {
    super(`${count} bad ${count === 1 ? 'line' : 'lines'}, nothing was imported`)
    this.name = 'CsvFileError'
    this.faults = faults
    this.count = count
  }
}

export type Checked<T> = { value: T; faults?: never } | { value?: never; faults: string[] }

/** How the files of one kind are read. `Columns` says where each column stands in a record. */
export type CsvFormat<Columns> = {
  checkHeader: (header: readonly string[]) => Checked<Columns>
  /** Checks one record and writes it in the text format of COPY, without the line's number, which comes first. */
  checkRecord: (record: readonly string[], columns: Columns) => Checked<string>
}

/** `rows` is in the text format of COPY and holds `rowCount` of the lines; the others are in `faults`. */
export type Batch = { rows: string; rowCount: number; lineCount: number; faults: LineFault[] }

const emptyBatch = (): Batch => ({ rows: '', rowCount: 0, lineCount: 0, faults: [] })

/** Where each column stands in a record; -1 for an optional one that is absent. */
export type ColumnPositions<Column extends string> = Record<Column, number>

/** Finds the columns by the names in the first record, in any order; names what is missing, unknown or there twice. */
export function findColumns<Column extends string>(
  header: readonly string[],
  columns: readonly Column[],
  optional: readonly Column[],
): Checked<ColumnPositions<Column>> {
  const names = header.map((name) => name.trim())
  const known: readonly string[] = columns
  const missing = columns.filter((name) => !optional.includes(name) && !names.includes(name))
  const unknown = names.filter((name) => !known.includes(name))
  const twice = columns.filter((name) => names.indexOf(name) !== names.lastIndexOf(name))
  const faults = [
    ...missing.map((name) => `column ${name} is missing`),
    ...unknown.map((name) => `column ${JSON.stringify(name.slice(0, 40))} is unknown`),
    ...twice.map((name) => `column ${name} appears twice`),
  ]
  if (faults.length > 0) return { faults }
  return { value: Object.fromEntries(columns.map((name) => [name, names.indexOf(name)])) as ColumnPositions<Column> }
}

/**
 * Hands the file to `store` batch by batch; `store` returns the faults that only it can see. Throws a CsvFileError at the end
 * when a line is wrong: what was stored until then must not stay.
 */
export async function storeBatches<Columns>(
  csv: Readable,
  format: CsvFormat<Columns>,
  store: (batch: Batch) => Promise<LineFault[]>,
): Promise<void> {
  const faults: LineFault[] = []
  let faultCount = 0

  const storeNext = async (batch: Batch) => {
    const found = [...batch.faults, ...(await store(batch))].sort((a, b) => a.line - b.line)
    faults.push(...found.slice(0, FAULTS_SHOWN - faults.length))
    faultCount += found.length
  }

  let storing: Promise<void> = Promise.resolve()
  try {
    for await (const batch of readBatches(csv, format)) {
      await storing
      storing = storeNext(batch)
      // It is awaited one batch later; until then its failure is not an unhandled one.
      storing.catch(() => undefined)
    }
  } finally {
    await storing
  }
  if (faultCount > 0) throw new CsvFileError(faults, faultCount)
}

/** The checked rows of a CSV file, ready for COPY. Throws a CsvFileError when the file has no usable header. */
export async function* readBatches<Columns>(
  csv: Readable,
  { checkHeader, checkRecord }: CsvFormat<Columns>,
): AsyncGenerator<Batch> {
  let columns: Columns | undefined
  let batch = emptyBatch()
  let line = 1
  try {
    for await (const record of readRecords(csv)) {
      let lineCount = 1
      if (columns === undefined) {
        const { value, faults } = checkHeader(record)
        if (faults) throw new CsvFileError([{ line: 1, text: faults.join(', ') }], 1)
        columns = value
      } else if (record.length > 1 || record[0] !== '') {
        const { value, faults } = checkRecord(record, columns)
        if (faults) {
          batch.faults.push({ line, text: faults.join(', ') })
          // No field may hold a line break, so that only a wrong record is longer than its line.
          lineCount += record.join('').split('\n').length - 1
        } else {
          batch.rows += `${line}\t${value}\n`
          batch.rowCount += 1
        }
      }
      line += lineCount
      batch.lineCount += lineCount
      if (batch.lineCount >= BATCH_LINES) {
        yield batch
        batch = emptyBatch()
      }
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error
    batch.faults.push({ line: Number(error.lines), text: `${BROKEN_CSV}; nothing after it was checked` })
  }
  if (columns === undefined && batch.faults.length === 0) {
    throw new CsvFileError([{ line: 1, text: 'the file is empty; its first line must name the columns' }], 1)
  }
  yield batch
}

const BROKEN_CSV = `a quote is never closed, or a line is longer than ${MAX_RECORD_BYTES} bytes`

function readRecords(csv: Readable): AsyncIterable<string[]> {
  const parser = parse({
    bom: true,
    // A record of another length and a stray quote are faults of their line, not the end of the file.
    relax_column_count: true,
    relax_quotes: true,
    max_record_size: MAX_RECORD_BYTES,
  })
  // Not csv.pipe: a file that cannot be read must end the loop, and a loop that ends must close the file.
  startPipeline(csv, parser, () => undefined)
  return parser
}
