import { type Readable, pipeline as startPipeline } from 'node:stream'
import { CsvError, parse } from 'csv-parse'
import {
  type ColumnPositions,
  checkHeader,
  checkRecord,
  type LineFault,
  SettlementFileError,
  type SettlementRow,
} from './csv.ts'

/** Lines that travel together: one batch is parsed while PostgreSQL stores the one before. Memory is two batches. */
const BATCH_LINES = 10_000
/** Without it a quote that is never closed would read the rest of the file into memory. */
const MAX_RECORD_BYTES = 4_096

/** `rows` is in the text format of COPY and holds `rowCount` of the lines; the others are in `faults`. */
export type Batch = { rows: string; rowCount: number; lineCount: number; faults: LineFault[] }

const emptyBatch = (): Batch => ({ rows: '', rowCount: 0, lineCount: 0, faults: [] })

/** The checked rows of a CSV file, ready for COPY. Throws a SettlementFileError when the file has no usable header. */
export async function* readBatches(csv: Readable): AsyncGenerator<Batch> {
  let columns: ColumnPositions | undefined
  let batch = emptyBatch()
  let line = 1
  try {
    for await (const record of readRecords(csv)) {
      let lineCount = 1
      if (columns === undefined) {
        columns = columnsOf(record)
      } else if (record.length > 1 || record[0] !== '') {
        const { value, faults } = checkRecord(record, columns)
        if (value) {
          batch.rows += toCopyLine(line, value)
          batch.rowCount += 1
        } else {
          batch.faults.push({ line, text: faults.join(', ') })
          // No field may hold a line break, so that only a wrong record is longer than its line.
          lineCount += record.join('').split('\n').length - 1
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
    throw new SettlementFileError([{ line: 1, text: 'the file is empty; its first line must name the columns' }], 1)
  }
  yield batch
}

const BROKEN_CSV = `a quote is never closed, or a line is longer than ${MAX_RECORD_BYTES} bytes`

function columnsOf(record: string[]): ColumnPositions {
  const { value, faults } = checkHeader(record)
  if (faults) throw new SettlementFileError([{ line: 1, text: faults.join(', ') }], 1)
  return value
}

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

/** The text format of COPY. What it would escape cannot occur in a checked row. */
function toCopyLine(line: number, row: SettlementRow): string {
  const { mid, utr, amount, bankReferenceNumber, status, initiatedAt, createdAt } = row
  return `${line}\t${mid}\t${utr}\t${amount}\t${bankReferenceNumber}\t${status}\t${initiatedAt}\t${createdAt ?? '\\N'}\n`
}
