import * as z from 'zod'
import { importSettlements } from '../settlements/import.ts'
import { changingCommand } from './command.ts'
import { FILE, readFile } from './file.ts'
import { progressLine } from './output.ts'

export const settlementCommands = [
  changingCommand({
    name: 'settlements import',
    usage: 'FILE|-   (CSV: mid,amount,utr,bank_reference_number,status,initiation_date[,created_at])',
    schema: z.object({ file: FILE }),
    argument: 'file',
    async run({ file }, { db, now }) {
      const progress = progressLine('lines')
      try {
        const result = await readFile(file, (csv) => importSettlements(db, csv, { now, onProgress: progress.show }))
        const { inserted, unchanged, updated } = result
        return { json: result, text: `${inserted} inserted, ${unchanged} unchanged, ${updated} updated` }
      } finally {
        progress.clear()
      }
    },
  }),
]
