import * as z from 'zod'
import { createAudit } from '../books/audit.ts'
import { identifier } from '../fields.ts'
import { momentText } from '../ist.ts'
import { command } from './command.ts'
import { table } from './output.ts'

const SHOWN_BY_DEFAULT_MS = 7 * 24 * 60 * 60_000

export const auditCommands = [
  command({
    name: 'audit',
    usage: '[--since TIME] [--until TIME] [--mid M1]',
    schema: z.object({ since: momentText.optional(), until: momentText.optional(), mid: identifier.optional() }),
    async run({ since, until, mid }, { db, now }) {
      const from = since ?? new Date(now.getTime() - SHOWN_BY_DEFAULT_MS)
      const entries = await createAudit(db).list({ since: from, until: until ?? now, mid })
      const columns = ['at', 'person', 'databaseRole', 'command', 'arguments', 'outcome', 'detail'] as const
      const rows = entries.map((entry) => ({
        ...entry,
        arguments: spell(entry.arguments),
        outcome: entry.outcome ?? 'unknown: it runs still, or was killed',
        detail: entry.detail && spell(entry.detail),
      }))
      return { json: entries, text: table(columns, rows, `nothing was changed since ${from.toISOString()}`) }
    },
  }),
]

/** `mid=M1 vpa=chaipoint@examplebank` */
function spell(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => `${name}=${value}`)
    .join(' ')
}
