import type { Finding } from './verdict.ts'

const HEADS = [
  'fault',
  'requests',
  'answered',
  '503',
  'no response',
  'unsure → resolved',
  'lost',
  'doubled',
  'orphaned',
  'other 5xx',
  'slowest 503',
  'first successes',
]

/** Prints one row per fault, then notes and broken promises. Returns true if every promise was met. */
export function printTable(findings: Finding[]): boolean {
  const rows = [HEADS, ...findings.map(rowOf)]
  const widths = HEADS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  for (const row of rows) {
    const [name = '', ...rest] = row
    const cells = rest.map((cell, column) => cell.padStart(widths[column + 1] ?? 0))
    console.log([name.padEnd(widths[0] ?? 0), ...cells].join('  '))
  }
  for (const { fault, notes } of findings) for (const note of notes) console.log(`${fault}: ${note}`)
  for (const { fault, leftOut } of findings) if (leftOut) console.log(`SKIPPED: ${fault}: ${leftOut}`)
  for (const { fault, broken } of findings) for (const promise of broken) console.log(`BROKEN: ${fault}: ${promise}`)
  return findings.every(({ broken }) => broken.length === 0)
}

function rowOf({ fault, figures, leftOut }: Finding): string[] {
  if (leftOut !== undefined) return [fault, 'skipped']
  if (figures === undefined) return [fault, '(see below)']
  const { reconciled, firstSuccessMs } = figures
  const times = (milliseconds: number) => (milliseconds > 0 ? `${Math.round(milliseconds)} ms` : '–')
  return [
    fault,
    String(figures.requests),
    String(figures.responded),
    String(figures.unavailable),
    String(figures.unanswered),
    `${reconciled.unsure} → ${reconciled.resolved}`,
    String(reconciled.lost),
    String(reconciled.doubled),
    String(reconciled.orphaned),
    String(figures.otherServerErrors),
    times(figures.slowest503Ms),
    // The slowest recovery after the component was available again.
    times(Math.max(0, ...firstSuccessMs)),
  ]
}
