import { daysOfMonth } from '../../books/closing/closed-months.ts'
import { boundsOf } from '../../books/ledger/bank-days.ts'
import { createAudit } from '../../platform/audit.ts'
import { groupRupees } from '../../platform/money.ts'
import { countsText } from '../texts.ts'
import { read } from './command.ts'
import { oneOf, optional } from './field.ts'
import { MID, MONTH, SINCE, UNTIL } from './fields.ts'
import { table } from './result.ts'

export const listAudit = read('audit', 'List the changes that operators made', {
  title: 'Audit',
  fields: {
    period: oneOf([{ since: optional({ ...SINCE, hint: 'default: a week ago' }), until: UNTIL }, { month: MONTH }]),
    mid: optional(MID),
  },
  async run({ period: { since, until, month }, mid }, { db }) {
    const { begin: first, end } = month === undefined ? { begin: since, end: until } : boundsOf(daysOfMonth(month))
    const entries = await createAudit(db).list({ since: first, until: end, mid })
    return table('at, person, databaseRole, command, arguments, outcome, detail', entries, {
      empty: 'No changes in this period.',
      cells: (entry) => ({
        ...entry,
        arguments: formatValues(entry.arguments),
        outcome: entry.outcome ?? 'unknown: still running, killed or interrupted',
        detail: entry.detail && groupRupees(formatValues(entry.detail)),
      }),
    })
  },
})

/** Formats fields as one text, such as `mid=M1 vpa=shop@bank` or `recorded=2 exceptions: 1 double payment`. */
export function formatValues(values: Readonly<Record<string, unknown>>): string {
  return Object.entries(values)
    .map(([name, value]) => (isCounts(value) ? `${name}: ${countsText(value)}` : `${name}=${value}`))
    .join(' ')
}

const isCounts = (value: unknown): value is Record<string, number> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
