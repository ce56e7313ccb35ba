import * as z from 'zod'
import { identifier } from '../fields.ts'
import { momentText } from '../ist.ts'
import { groupRupees } from '../money.ts'
import { createAudit } from '../reconciliation/audit.ts'
import { countsText } from '../reconciliation/operator-texts.ts'
import { command } from './command.ts'
import { table } from './output.ts'

export const auditCommands = [
  command('audit', 'List who changed what, and when', {
    usage: '[--since TIME] [--until TIME] [--mid M1]',
    schema: z.object({ since: momentText.optional(), until: momentText.optional(), mid: identifier.optional() }),
    async run(filter, { db }) {
      const entries = await createAudit(db).list(filter)
      const rows = entries.map((entry) => ({
        ...entry,
        arguments: spell(entry.arguments),
        outcome: entry.outcome ?? 'unknown: it runs still, was killed, or broke off',
        detail: entry.detail && groupRupees(spell(entry.detail)),
      }))
      const columns = 'at, person, databaseRole, command, arguments, outcome, detail'
      return { json: entries, text: table(columns, rows, 'nothing was changed in this time') }
    },
  }),
]

/** Fields as one text: `mid=M1 vpa=shop@bank`, or after a day file `recorded=2 exceptions: 1 double payment`. */
function spell(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => (isCounts(value) ? `${name}: ${countsText(value)}` : `${name}=${value}`))
    .join(' ')
}

const isCounts = (value: unknown): value is Record<string, number> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
