import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { counted, groupRupees, toDecimalText } from '../../platform/money.ts'
import { toIstTime } from '../../platform/time.ts'
import { type Data, RecordData, TableData } from './data.ts'
import { CommandError } from './errors.ts'
import { escapeJson, neutralize, toOneLine } from './harmless.ts'
import { writeCsv } from './write-csv.ts'
import { writeJson } from './write-json.ts'
import { writeText } from './write-text.ts'

/**
 * The result of a command; `screens` replace one another on the terminal. `warnings` go to stderr, a line each, except
 * with `--json`: the document has its own. `made` is what the audit stores of the result, such as a new identifier.
 */
export type Output = ({ data: Data; screens?: never } | { data?: never; screens: AsyncIterable<Data> } | OldOutput) & {
  warnings?: readonly string[]
  made?: Readonly<Record<string, unknown>>
}

type OldOutput = { data?: never; screens?: never; forSpreadsheets?: boolean | undefined } & (
  | { json: unknown; text: string; chunks?: never }
  | { chunks: AsyncIterable<string>; json?: never; text?: never }
)

/** What a command returns: an output, or its data alone. */
export type Result = Output | TableData | RecordData

export const toOutput = (result: Result): Output =>
  result instanceof TableData || result instanceof RecordData ? { data: result } : result

/** How a result is written. `csv` is for programs, `excel` is CSV for spreadsheets. */
export type OutputFormat = 'text' | 'json' | 'csv' | 'excel'

export type Terminal = { stdin: Readable & { isTTY?: boolean }; stdout: Screen; stderr: Screen }

type Screen = NodeJS.WritableStream & { isTTY?: boolean }

/** Writes a command's result to stdout and its warnings to stderr. */
export async function print(terminal: Terminal, output: Output, format: OutputFormat): Promise<void> {
  const { stdout } = terminal
  for await (const data of output.screens ?? [output.data]) {
    if (format === 'excel' || ('forSpreadsheets' in output && output.forSpreadsheets)) stdout.write('\ufeff')
    const chunks = data === undefined ? oldChunks(output as OldOutput, format) : write(data, format)
    await pipeline(chunks, harmless, stdout, { end: false }).catch(unlessReaderLeft)
  }
  if (format !== 'json') for (const warning of output.warnings ?? []) printNote(terminal, `warning: ${warning}`)

  async function* harmless(parts: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const part of parts) yield format === 'json' ? escapeJson(part) : neutralize(part)
  }
}

async function* oldChunks({ json, text, chunks }: OldOutput, format: OutputFormat): AsyncGenerator<string> {
  if (chunks) yield* chunks
  else yield `${format === 'json' ? JSON.stringify(json) : text}\n`
}

function write(data: Data, format: OutputFormat): AsyncIterable<string> {
  if (format === 'json') return writeJson(data)
  return format === 'text' ? writeText(data) : writeCsv(data, format === 'excel')
}

export function say(stream: NodeJS.WritableStream, text: string): void {
  stream.write(`${neutralize(text)}\n`)
}

/** Writes a message to stderr: on a terminal with a line for each of `details`, otherwise all in one line. */
export function printNote({ stderr }: Terminal, message: string, details: readonly string[] = []): void {
  say(stderr, `ops: ${[message, ...details].map(toOneLine).join(stderr.isTTY ? '\n  ' : '; ')}`)
}

/** Throws unless the operator confirms on the terminal that the command may `change`, such as `erase 2 payments`. */
export async function requireConfirmation({ stdin, stderr }: Terminal, change: string): Promise<void> {
  if (!stdin.isTTY) throw new CommandError(`would ${change}: add --yes, since there is no terminal to ask on`)
  stderr.write(`${toOneLine(change)}? (y/N) `)
  for await (const answer of createInterface({ input: stdin })) {
    if (/^\s*y(es)?\s*$/i.test(answer)) return
    break
  }
  throw new CommandError('nothing was changed')
}

/** Ignores the error after a pipe's reader, such as `head`, has left before the end of a long result. */
function unlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
}

export function clearScreen({ stdout }: Terminal): void {
  if (stdout.isTTY) stdout.write('\u001b[H\u001b[2J')
}

/** Returns a function that shows a count, as `counted` writes it; undefined if stderr is not a terminal. */
export type ShowProgress = (unit: string, many?: string) => ((count: number) => void) | undefined

/** Shows the progress of `work` in one line on a terminal's stderr, and removes the line at the end. */
export async function withProgress<T>({ stderr }: Terminal, work: (progress: ShowProgress) => Promise<T>): Promise<T> {
  if (!stderr.isTTY) return work(() => undefined)
  try {
    return await work((unit, many) => (count) => stderr.write(`${CLEAR_LINE}${counted(count, unit, many)}`))
  } finally {
    stderr.write(CLEAR_LINE)
  }
}

const CLEAR_LINE = '\r\u001b[K'

// Until the commands of the books return data.
export { toOneLine } from './harmless.ts'

type CellValue = string | number | boolean | Date | null | readonly string[]

/** The union of the names in a list: `'mid' | 'name'` for `'mid, name'`. */
type Names<S extends string> = S extends `${infer Name}, ${infer Rest}` ? Name | Names<Rest> : S

/** A table of records as text. `columns` is a list such as `mid, name`. Without records the text is `none`. */
export function table<C extends string>(
  columns: C,
  rows: readonly Record<Names<C>, CellValue>[],
  none: string,
): string {
  const names = columns.split(', ') as Names<C>[]
  return rows.length === 0 ? none : alignColumns([names, ...rows.map((row) => names.map((name) => show(row[name])))])
}

/** Records that decide the widths of a table that is too long for memory. */
const MEASURED_ROWS = 500

/** The lines of a table whose records come one by one. Cells wider than those of the first records are not aligned. */
export async function* longTable<C extends string>(
  columns: C,
  rows: AsyncIterable<Record<Names<C>, CellValue>>,
): AsyncGenerator<string> {
  const names = columns.split(', ') as Names<C>[]
  let held: string[][] = [names]
  let widths: number[] | undefined
  for await (const row of rows) {
    held.push(names.map((name) => show(row[name])))
    if (widths === undefined && held.length < MEASURED_ROWS) continue
    widths ??= widthsOf(held)
    yield `${alignColumns(held, widths)}\n`
    held = []
  }
  if (held.length > 0) yield `${alignColumns(held, widths)}\n`
}

/** Fields of lists and tables that are amounts, if they are numbers. */
const AMOUNTS: ReadonlySet<string> = new Set(
  'amount insertedAmount paid settled gross fee tax deductions net credited difference refunded owed allowed excess debit credit balance adjustments unknownOrders'.split(
    ' ',
  ),
)

/** A field as it is written: an amount in rupees. */
export const toRupees = (name: string, value: unknown): unknown =>
  typeof value === 'number' && AMOUNTS.has(name) ? toDecimalText(value) : value

/** The fields with amounts in rupees instead of paise. */
export const inRupees = <T extends object>(fields: T) =>
  Object.fromEntries(Object.entries(fields).map(([name, value]) => [name, toRupees(name, value)])) as {
    [Name in keyof T]: T[Name] extends number | null ? string | number | null : T[Name]
  }

/** Groups the digits of all amounts in decimal text as in India: 100000.00 becomes 1,00,000.00. */
export const forPeople = <T extends object>(fields: T) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? groupRupees(value) : value]),
  ) as T

export function listed<C extends string, R extends Record<Names<C>, CellValue>>(
  columns: C,
  rows: readonly R[],
  none: string,
) {
  return { json: rows, text: table(columns, rows, none) }
}

/** A record with one field on each line. */
export function record(fields: Readonly<Record<string, CellValue>>): string {
  return alignColumns(Object.entries(fields).map(([name, value]) => [name, show(value)]))
}

export const shown = (fields: Readonly<Record<string, CellValue>>) => ({ json: fields, text: record(fields) })

function show(cell: CellValue): string {
  if (cell === null || cell === '') return '-'
  if (cell instanceof Date) return toIstTime(cell)
  if (typeof cell === 'object') return cell.length === 0 ? '-' : toOneLine(cell.join(' '))
  return toOneLine(String(cell))
}

const widthsOf = (lines: readonly (readonly string[])[]): number[] =>
  lines[0]?.map((_, column) => lines.reduce((width, line) => Math.max(width, line[column]?.length ?? 0), 0)) ?? []

function alignColumns(lines: readonly (readonly string[])[], widths = widthsOf(lines)): string {
  const align = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return lines.map((line) => align(line).trimEnd()).join('\n')
}
