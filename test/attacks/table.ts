import type { Create, Figures } from './bystander.ts'
import { percentOf } from './verdict.ts'

/** An attack and the bystander's creates during it. */
export type Result = {
  name: string
  sent: string
  creates: Create[]
  figures: Figures
  /** Ratio to the quiet run through the same entrance, for information only. */
  p99Ratio: number
  memoryPeakMB: number
  alive: boolean
  /** In processor cores. */
  attackerCores: number | undefined
  /** Undefined if the service exited. */
  serviceCores: number | undefined
  broken: string[]
}

const HEADS = [
  'attack',
  'creates',
  '200',
  'others',
  'p50',
  'p99',
  '× quiet',
  'memory peak',
  'alive',
  'cores: attacker',
  'service',
]

export function printTable(results: Result[]): void {
  const rows = [HEADS, ...results.map(rowOf)]
  const widths = HEADS.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const print = ([name = '', ...rest]: string[]) => {
    const cells = rest.map((cell, column) => cell.padStart(widths[column + 1] ?? 0))
    console.log(`| ${[name.padEnd(widths[0] ?? 0), ...cells].join(' | ')} |`)
  }
  console.log('')
  print(HEADS)
  console.log(`|---|${'--:|'.repeat(HEADS.length - 1)}`)
  rows.slice(1).forEach(print)
  console.log('')
  for (const { name, sent } of results) console.log(`${name}: ${sent}`)
}

function rowOf(result: Result): string[] {
  const { name, figures, p99Ratio, memoryPeakMB, alive, attackerCores, serviceCores } = result
  return [
    name,
    String(figures.creates),
    `${percentOf(figures).toFixed(1)} %`,
    figures.others || '–',
    milliseconds(figures.p50Ms),
    milliseconds(figures.p99Ms),
    p99Ratio.toFixed(1),
    `${Math.round(memoryPeakMB)} MB`,
    alive ? 'yes' : 'NO',
    attackerCores?.toFixed(2) ?? '–',
    serviceCores?.toFixed(2) ?? '–',
  ]
}

const milliseconds = (value: number) => `${value.toFixed(value < 10 ? 1 : 0)} ms`
