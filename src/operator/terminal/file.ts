import { open } from 'node:fs/promises'
import { basename, resolve } from 'node:path'
import type { Readable } from 'node:stream'
import * as z from 'zod'
import { CsvFileError } from '../../platform/csv/csv.ts'
import { errorText } from '../../platform/fields.ts'
import { CommandError } from '../commands/errors.ts'
import { toOneLine } from './harmless.ts'
import { type ShowProgress, type Terminal, withProgress } from './print.ts'

/** The FILE argument: a path, or `-` for standard input. */
export const FILE = z.string(errorText('must be a path, or - for standard input'))

/** Passes the opened file and its name to `work`. Converts a CsvFileError to a CommandError with the invalid lines. */
export async function readFile<T>(
  file: string,
  terminal: Terminal,
  work: (csv: Readable, progress: ShowProgress, name: string) => Promise<T>,
): Promise<T> {
  const csv = file === '-' ? terminal.stdin : await openFile(file)
  // The name is untrusted text and may contain control characters.
  const name = toOneLine(file === '-' ? (terminal.stdin.fileName ?? file) : basename(file))
  try {
    return await withProgress(terminal, (progress) => work(csv, progress, name))
  } catch (error) {
    throw error instanceof CsvFileError ? rejectedLines(error) : error
  }
}

async function openFile(path: string): Promise<Readable> {
  const file = await open(path).catch((error: NodeJS.ErrnoException) => {
    throw new CommandError(
      error.code === 'ENOENT' ? `file ${resolve(path)} does not exist` : `${path} cannot be read: ${error.code}`,
    )
  })
  if (!(await file.stat()).isDirectory()) return file.createReadStream()
  await file.close()
  throw new CommandError(`${path} is a directory: give a file`)
}

/** Reads a file into memory; of a file with more than `maxBytes` bytes, only little more than that. */
export async function readBytes(file: string, terminal: Terminal, maxBytes = Infinity): Promise<Buffer> {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of file === '-' ? terminal.stdin : await openFile(file)) {
    parts.push(part)
    length += part.length
    if (length > maxBytes) break
  }
  return Buffer.concat(parts)
}

/** Reads a whole file, such as the secrets of an account, as text. */
export const readText = async (file: string, terminal: Terminal) => String(await readBytes(file, terminal))

/** Returns the CommandError for a CSV file with invalid lines. `nameOf` formats a line number for the operator. */
export function rejectedLines(
  { message, errors, count }: CsvFileError,
  nameOf = (line: number) => `line ${line}`,
): CommandError {
  const lines = errors.map(({ line, text }) => `${nameOf(line)}: ${text}`)
  return new CommandError(message, count > errors.length ? [...lines, `and ${count - errors.length} more`] : lines)
}
