import type { Readable } from 'node:stream'
import * as z from 'zod'
import { CsvFileError } from '../../platform/csv/csv.ts'
import { errorText } from '../../platform/fields.ts'
import { toOneLine } from '../../platform/printable.ts'
import type { Context, ShowProgress } from './command.ts'
import { CommandError } from './errors.ts'
import { flag } from './field.ts'

export const path = z.string(errorText('must be a path, or - for standard input'))
export const FILE = flag(path, 'FILE|-', 'File')

/** Passes the opened file and its name to `work`. Converts a CsvFileError to a CommandError with the invalid lines. */
export async function readFile<T>(
  path: string,
  { open, withProgress }: Pick<Context, 'open' | 'withProgress'>,
  work: (csv: Readable, progress: ShowProgress, name: string) => Promise<T>,
): Promise<T> {
  const { stream, name } = await open(path)
  try {
    // The name is untrusted text and may contain control characters.
    return await withProgress((progress) => work(stream, progress, toOneLine(name)))
  } catch (error) {
    throw error instanceof CsvFileError ? rejectedLines(error) : error
  }
}

/** Reads a file into memory; of a file with more than `maxBytes` bytes, only little more than that. */
export async function readBytes(path: string, { open }: Pick<Context, 'open'>, maxBytes = Infinity) {
  const parts: Buffer[] = []
  let length = 0
  for await (const part of (await open(path)).stream) {
    parts.push(part)
    length += part.length
    if (length > maxBytes) break
  }
  return Buffer.concat(parts)
}

/** Reads a whole file, such as the secrets of an account, as text. */
export const readText = async (path: string, context: Pick<Context, 'open'>) => String(await readBytes(path, context))

/** Returns the CommandError for a CSV file with invalid lines. `nameOf` formats a line number for the operator. */
export function rejectedLines({ message, errors, count }: CsvFileError, nameOf = (line: number) => `line ${line}`) {
  const lines = errors.map(({ line, text }) => `${nameOf(line)}: ${text}`)
  return new CommandError(message, count > errors.length ? [...lines, `and ${count - errors.length} more`] : lines)
}
