import type { Readable } from 'node:stream'
import { parse } from 'csv-parse/sync'
import { type BankForm, type Checked, NOT_UTF8, positionsOf } from './header.ts'

/** Finds the table in a file: its encoding, its separator, and the line of its header. */

/** Number of lines and number of bytes at the start of a bank's file in which the header is searched. */
const MOST_LINES_BEFORE = 600
const MOST_BYTES_BEFORE = 256 * 1024
/** Largest number of lines in one header, because names in a header may contain line breaks in quotes. */
const MOST_LINES_OF_HEADER = 60
/** Number of bytes at the start of a file by which the type of the file is recognized. */
const BYTES_OF_TYPE = 256

/**
 * A file from its header on: the line of the header, counted from 1, the field separator, and whether spaces around
 * fields are removed.
 */
export type Table = { csv: AsyncIterable<Buffer | string>; line: number; delimiter: string; trim: boolean }

type Chunks = AsyncIterator<Buffer | string>

/**
 * Opens a file at its header: the first line in the service's own format, or one of the first 600 lines in a bank's
 * file. Returns why the file contains no table: the file is not text, or the most similar line lacks columns of the
 * bank's format.
 */
export async function openTable(csv: Readable, bank: BankForm | undefined): Promise<Checked<Table>> {
  let chunks: Chunks = csv[Symbol.asyncIterator]()
  let { head, isAll } = await readAhead(chunks, BYTES_OF_TYPE)
  const utf16 = encodingOf(head)
  if (utf16 !== undefined) {
    chunks = decoded(following(head, chunks), utf16)
    ;({ head, isAll } = await readAhead(chunks, BYTES_OF_TYPE))
  }
  if (bank && !isAll) {
    const more = await readAhead(chunks, MOST_BYTES_BEFORE - head.length)
    head = Buffer.concat([head, more.head])
  }
  const noText = whyNoText(head)
  if (noText !== undefined) return { errors: [`the file is ${noText}`] }
  if (bank === undefined) return { value: { csv: following(head, chunks), line: 1, delimiter: ',', trim: false } }
  const found = findHeader(head, bank)
  // Ignores an incomplete character at the end, because the bytes that were read may end inside a character.
  if (found.errors)
    return head.subarray(0, -4).toString().includes('\ufffd')
      ? { errors: [...found.errors, `the file ${NOT_UTF8}`] }
      : found
  const { start, ...place } = found.value
  return { value: { csv: following(head.subarray(start), chunks), ...place, trim: true } }
}

/** Reads until `bytes` are available or the file is complete. */
async function readAhead(chunks: Chunks, bytes: number): Promise<{ head: Buffer; isAll: boolean }> {
  const read: Buffer[] = []
  let size = 0
  while (size < bytes) {
    const { value, done } = await chunks.next()
    if (done) return { head: Buffer.concat(read), isAll: true }
    read.push(Buffer.from(value))
    size += (read.at(-1) as Buffer).length
  }
  return { head: Buffer.concat(read), isAll: false }
}

async function* following(head: Buffer, chunks: Chunks): AsyncGenerator<Buffer | string> {
  yield head
  for await (const chunk of { [Symbol.asyncIterator]: () => chunks }) yield chunk
}

/** Returns the encoding that a byte order mark names; undefined for UTF-8, and without a mark. */
function encodingOf(head: Buffer): 'utf-16le' | 'utf-16be' | undefined {
  const mark = head.toString('latin1', 0, 2)
  return mark === '\xff\xfe' ? 'utf-16le' : mark === '\xfe\xff' ? 'utf-16be' : undefined
}

async function* decoded(chunks: AsyncIterable<Buffer | string>, encoding: string): AsyncGenerator<Buffer> {
  const decoder = new TextDecoder(encoding)
  for await (const chunk of chunks) yield Buffer.from(decoder.decode(Buffer.from(chunk), { stream: true }))
  yield Buffer.from(decoder.decode())
}

/** Returns where the header of this format begins in `head`: the byte, and the line counted from 1. */
function findHeader(head: Buffer, { names }: BankForm): Checked<{ start: number; line: number; delimiter: string }> {
  const present = names.filter((name) => name !== undefined)
  const lines = head.toString('latin1').split(/(?<=\r\n|\n|\r(?!\n))/, MOST_LINES_BEFORE + MOST_LINES_OF_HEADER)
  let missing: string[] = present
  let start = 0
  for (const [index, line] of lines.slice(0, MOST_LINES_BEFORE).entries()) {
    const record = Buffer.from(wholeRecord(lines, index), 'latin1').toString()
    for (const delimiter of [',', '\t', ';', '|', '~']) {
      const positions = positionsOf(splitRecord(record, delimiter), present)
      const missingHere = present.filter((_, at) => Number.isNaN(positions[at]))
      if (missingHere.length === 0) return { value: { start, line: index + 1, delimiter } }
      if (missingHere.length < missing.length) missing = missingHere
    }
    start += line.length
  }
  return {
    errors: [
      `no line among the first ${MOST_LINES_BEFORE} names every column of the layout: ${missing.join(', ')} is missing`,
    ],
  }
}

/** Returns the line with this index, and the following lines while a quote is open. */
function wholeRecord(lines: readonly string[], index: number): string {
  let record = lines[index] as string
  for (let next = 1; next < MOST_LINES_OF_HEADER && (record.split('"').length - 1) % 2 === 1; next += 1) {
    const line = lines[index + next]
    if (line === undefined) break
    record += line
  }
  return record
}

function splitRecord(record: string, delimiter: string): string[] {
  try {
    const options = { delimiter, bom: true, trim: true, relax_quotes: true, relax_column_count: true }
    return (parse(record.trimEnd(), options) as string[][])[0] ?? []
  } catch {
    // A record with an unclosed quote is not a header.
    return []
  }
}

/**
 * Returns the type of a file that is not text, by the file's first bytes, and how to convert the file; undefined for
 * text.
 */
function whyNoText(head: Buffer): string | undefined {
  const start = head.toString('latin1', 0, BYTES_OF_TYPE)
  if (/^PK[\x03\x05]/.test(start)) return typeOfZip(head)
  if (start.startsWith('\x1f\x8b')) return 'compressed (.gz): unpack it first'
  if (start.startsWith('\xd0\xcf\x11\xe0')) return `an Excel workbook (.xls): ${SAVE_AS_CSV}`
  if (start.startsWith('%PDF')) return 'a PDF: get it from the bank as CSV or text'
  if (/^(?:\xef\xbb\xbf)?\s*</.test(start))
    return `a web page, whatever its name says: open it in a spreadsheet and ${SAVE_AS_CSV}`
  if (MT940.test(start)) return 'an MT940 message, which has no table: get the bank statement from the bank as CSV'
  if (start.slice(0, 32).includes('\0')) return 'UTF-16 without a byte order mark, or not text: save it as UTF-8'
  return undefined
}

/** Returns the type of a ZIP file, which may be a spreadsheet, by the name of the first file in it. */
function typeOfZip(head: Buffer): string {
  const name = head.length < 30 ? '' : head.toString('latin1', 30, 30 + head.readUInt16LE(26))
  if (name === 'mimetype') return `a spreadsheet (.ods): ${SAVE_AS_CSV}`
  if (name !== '' && !OF_WORKBOOK.test(name)) return 'an archive (.zip): unpack it, and import each file'
  return `an Excel workbook (.xlsx): ${SAVE_AS_CSV}`
}

const OF_WORKBOOK = /^(?:\[Content_Types\]\.xml$|(?:_rels|docProps|xl|customXml)\/)/
const MT940 = /^\s*(?:\{1:F|:20:)/
const SAVE_AS_CSV = 'save it as CSV, with the columns of references and UTRs as text, or get CSV from the bank'
