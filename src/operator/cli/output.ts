import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { counted } from '../../platform/money.ts'
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
export type Output = ({ data: Data; screens?: never } | { data?: never; screens: AsyncIterable<Data> }) & {
  warnings?: readonly string[]
  made?: Readonly<Record<string, unknown>>
}

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
    if (format === 'excel') stdout.write('\ufeff')
    await pipeline(write(data, format), harmless, stdout, { end: false }).catch(unlessReaderLeft)
  }
  if (format !== 'json') for (const warning of output.warnings ?? []) printNote(terminal, `warning: ${warning}`)

  async function* harmless(parts: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const part of parts) yield format === 'json' ? escapeJson(part) : neutralize(part)
  }
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
  if (!stdin.isTTY)
    throw new CommandError(`would ${change}: add --yes to confirm, because standard input is not a terminal`)
  stderr.write(`${toOneLine(change)}? (y/N) `)
  for await (const answer of createInterface({ input: stdin })) {
    if (/^\s*y(es)?\s*$/i.test(answer)) return
    break
  }
  throw new CommandError('cancelled: nothing was changed')
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
