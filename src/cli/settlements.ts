import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import * as z from 'zod'
import { errorText } from '../fields.ts'
import { SettlementFileError } from '../settlements/csv.ts'
import { importSettlements } from '../settlements/import.ts'
import { CommandFault, command } from './command.ts'
import { progressLine } from './output.ts'

export const settlementCommands = [
  command({
    name: 'settlements import',
    usage: 'FILE|-   (CSV: mid,amount,utr,bank_reference_number,status,initiation_date[,created_at])',
    schema: z.object({ file: z.string(errorText('must be a path')) }),
    argument: 'file',
    async run({ file }, { db, now }) {
      const csv = file === '-' ? process.stdin : await openFile(file)
      const progress = progressLine('lines')
      try {
        const result = await importSettlements(db, csv, { now, onProgress: progress.show })
        const { inserted, unchanged, updated } = result
        return { json: result, text: `${inserted} inserted, ${unchanged} unchanged, ${updated} updated` }
      } catch (error) {
        throw error instanceof SettlementFileError ? new CommandFault(describe(error)) : error
      } finally {
        progress.clear()
      }
    },
  }),
]

async function openFile(path: string): Promise<Readable> {
  try {
    if ((await stat(path)).isDirectory()) throw new CommandFault(`${path} is a directory`)
  } catch (error) {
    if (error instanceof CommandFault) throw error
    throw new CommandFault(`${path} cannot be read: ${(error as NodeJS.ErrnoException).code}`)
  }
  return createReadStream(path)
}

/** One line for scripts; on a terminal every bad line has its own. */
function describe({ message, faults, count }: SettlementFileError): string {
  const lines = faults.map(({ line, text }) => `line ${line}: ${text}`)
  if (count > faults.length) lines.push(`and ${count - faults.length} more`)
  const separator = process.stderr.isTTY ? '\n  ' : '; '
  return [message, ...lines].join(separator)
}
