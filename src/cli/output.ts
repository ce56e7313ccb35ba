import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { toIstTime } from '../ist.ts'
import { groupRupees } from '../money.ts'

type CellValue = string | number | boolean | Date | null | readonly string[]

/**
 * Result of a command: one JSON document for `--json`, and the same as text for people. A result too long to hold in
 * memory comes in `chunks`, in the form that was asked for. `warnings` are for people too, a line each on stderr;
 * scripts find them in the document. `made` names for the audit what was made and no argument names.
 */
export type Output = (
  | { json: unknown; text: string; chunks?: never }
  | { chunks: AsyncIterable<string>; json?: never; text?: never }
  /** `forSpreadsheets` marks a CSV file as UTF-8, without which Excel takes it for another encoding. */
) & { forSpreadsheets?: boolean | undefined; warnings?: readonly string[]; made?: Readonly<Record<string, unknown>> }

/** Streams of a command: those of the process, or a test's. */
export type Terminal = { stdin: Readable & { isTTY?: boolean }; stdout: Screen; stderr: Screen }

type Screen = NodeJS.WritableStream & { isTTY?: boolean }

/** The words of `mid, name, by day file`. */
type Names<S extends string> = S extends `${infer Name}, ${infer Rest}` ? Name | Names<Rest> : S

/** Records under the names of `columns`, which are `mid, name`, aligned; `none` when there are no records. */
export function table<C extends string>(
  columns: C,
  rows: readonly Record<Names<C>, CellValue>[],
  none: string,
): string {
  const names = columns.split(', ') as Names<C>[]
  return rows.length === 0 ? none : alignColumns([names, ...rows.map((row) => names.map((name) => show(row[name])))])
}

/** A record whose amounts, which are decimal text, get the groups that people read. */
export const forPeople = <T extends object>(fields: T) =>
  Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, typeof value === 'string' ? groupRupees(value) : value]),
  ) as T

/** Records for a command that lists them. */
export function listed<C extends string, R extends Record<Names<C>, CellValue>>(
  columns: C,
  rows: readonly R[],
  none: string,
) {
  return { json: rows, text: table(columns, rows, none) }
}

/** Writes the outcome of a command: the document to stdout, or the text, and its warnings to stderr. */
export async function print(
  terminal: Terminal,
  { json, text, chunks, forSpreadsheets = false, warnings = [] }: Output,
  asJson: boolean,
): Promise<void> {
  const { stdout } = terminal
  if (forSpreadsheets) stdout.write('\ufeff')
  const toHarmless = asJson ? escapeJson : neutralize
  if (chunks) await pipeline(chunks, harmless, stdout, { end: false }).catch(unlessReaderLeft)
  else stdout.write(`${toHarmless(asJson ? JSON.stringify(json) : text)}\n`)
  if (!asJson) for (const warning of warnings) printNote(terminal, `warning: ${warning}`)

  async function* harmless(parts: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const part of parts) yield toHarmless(part)
  }
}

/** Writes lines for people. */
export function say(stream: NodeJS.WritableStream, text: string): void {
  stream.write(`${neutralize(text)}\n`)
}

/**
 * Writes a message beside the outcome to stderr, in one line for scripts; on a terminal each of `details` has its own.
 */
export function printNote({ stderr }: Terminal, message: string, details: readonly string[] = []): void {
  say(stderr, `ops: ${[message, ...details].map(toOneLine).join(stderr.isTTY ? '\n  ' : '; ')}`)
}

/** Asks on the terminal; true when the answer is y. */
export async function confirm({ stdin, stderr }: Terminal, question: string): Promise<boolean> {
  stderr.write(`${toOneLine(question)} (y/N) `)
  for await (const answer of createInterface({ input: stdin })) return /^\s*y(es)?\s*$/i.test(answer)
  return false
}

/** Ignores that the reader of a pipe left before the end of a long answer. Throws every other error. */
function unlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
}

/** Empties a terminal for what is shown next. */
export function clearScreen({ stdout }: Terminal): void {
  if (stdout.isTTY) stdout.write('\u001b[H\u001b[2J')
}

/** Counts of the named unit, such as lines; undefined where nobody looks. */
export type ShowProgress = (unit: string) => ((count: number) => void) | undefined

/**
 * Shows the progress of a long command in one line on stderr, which is removed at the end. Shows nothing unless stderr
 * is a terminal.
 */
export async function withProgress<T>({ stderr }: Terminal, work: (progress: ShowProgress) => Promise<T>): Promise<T> {
  if (!stderr.isTTY) return work(() => undefined)
  try {
    return await work((unit) => (count) => stderr.write(`${CLEAR_LINE}${count} ${unit}`))
  } finally {
    stderr.write(CLEAR_LINE)
  }
}

const CLEAR_LINE = '\r\u001b[K'

/** One record, with one field on each line. */
export function record(fields: Readonly<Record<string, CellValue>>): string {
  return alignColumns(Object.entries(fields).map(([name, value]) => [name, show(value)]))
}

/** One record for a command that shows it. */
export const shown = (fields: Readonly<Record<string, CellValue>>) => ({ json: fields, text: record(fields) })

function show(cell: CellValue): string {
  if (cell === null || cell === '') return '-'
  if (cell instanceof Date) return toIstTime(cell)
  if (typeof cell === 'object') return cell.length === 0 ? '-' : toOneLine(cell.join(' '))
  return toOneLine(String(cell))
}

/**
 * Characters in foreign text that a terminal would obey or not show: control characters, marks that turn the writing
 * direction, separators of lines. Exceptions are the joiners, which belong to the spelling of Indian names, our own line
 * breaks.
 */
const OBEYED = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu

const neutralize = (text: string) => text.replace(OBEYED, '\ufffd')

/** Escapes these characters in JSON. Its value stays the same: JSON has them inside strings only. */
const escapeJson = (json: string) => json.replace(OBEYED, (character) => character.split('').map(toEscape).join(''))

const toEscape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Foreign text as a part of one line: its line breaks are replaced too. */
export function toOneLine(text: string): string {
  return neutralize(text).replaceAll('\n', '\ufffd')
}

function alignColumns(lines: readonly (readonly string[])[]): string {
  const widths =
    lines[0]?.map((_, column) => lines.reduce((width, line) => Math.max(width, line[column]?.length ?? 0), 0)) ?? []
  const align = (line: readonly string[]) => line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return lines.map((line) => align(line).trimEnd()).join('\n')
}
