import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { counted } from '../../platform/money.ts'
import { escapeJson, neutralize, toOneLine } from '../../platform/printable.ts'
import type { Context } from '../commands/command.ts'
import { CommandError } from '../commands/errors.ts'
import type { Data, Output } from '../commands/result.ts'
import { writeCsv } from './csv.ts'
import { writeJson } from './json.ts'
import { writeText } from './text.ts'

/** The format of a result. `csv` is CSV for programs, and `excel` is CSV for spreadsheets. */
export type OutputFormat = 'text' | 'json' | 'csv' | 'excel'

export type Terminal = { stdin: Readable & { isTTY?: boolean }; stdout: Screen; stderr: Screen }

type Screen = NodeJS.WritableStream & { isTTY?: boolean }

/** Writes a command's result to stdout and its warnings to stderr. */
export async function print(terminal: Terminal, output: Output, format: OutputFormat): Promise<void> {
  const { stdout } = terminal
  for await (const data of output.screens ?? (output.data === undefined ? [] : [output.data])) {
    if (output.screens && stdout.isTTY) stdout.write(CLEAR_SCREEN)
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

/** Writes a message to stderr: on a terminal with one line per detail, otherwise in a single line. */
export function printNote({ stderr }: Terminal, message: string, details: readonly string[] = []): void {
  say(stderr, `ops: ${[message, ...details].map(toOneLine).join(stderr.isTTY ? '\n  ' : '; ')}`)
}

/** Throws unless the operator confirms `change`, such as `erase 2 payments`, on the terminal. */
export async function requireConfirmation({ stdin, stderr }: Terminal, change: string): Promise<void> {
  if (!stdin.isTTY)
    throw new CommandError(`would ${change}: add --yes to confirm, because standard input is not a terminal`)
  stderr.write(`${toOneLine(change)}? (y/N) `)
  for await (const response of createInterface({ input: stdin })) {
    if (/^\s*y(es)?\s*$/i.test(response)) return
    break
  }
  throw new CommandError('cancelled: nothing was changed')
}

/**
 * Ignores the error that occurs when the program that reads the pipe, such as `head`, exits before the end of the
 * output.
 */
function unlessReaderLeft(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE' && error.code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error
}

const CLEAR_SCREEN = '\u001b[H\u001b[2J'

/** Returns a function that runs work, and shows its progress in one line on stderr if stderr is a terminal. */
export const withProgress =
  ({ stderr }: Terminal): Context['withProgress'] =>
  async (work) => {
    if (!stderr.isTTY) return work(() => undefined)
    try {
      return await work((unit, many) => (count) => stderr.write(`${CLEAR_LINE}${counted(count, unit, many)}`))
    } finally {
      stderr.write(CLEAR_LINE)
    }
  }

const CLEAR_LINE = '\r\u001b[K'
