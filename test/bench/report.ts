import { writeFileSync } from 'node:fs'
import { cpus, totalmem } from 'node:os'
import { median } from './statistics.ts'

/** One contender's results, one sample a round. */
export type Series = { contender: string; unit: string; samples: number[] }

/**
 * A measured figure; the median of its samples must be within the target. Without `atLeast` and `atMost` it has no
 * target.
 */
export type Figure = { what: string; unit: string; samples: number[]; atLeast?: number; atMost?: number }

/** The results of a section; `notes` are printed unchanged. */
export type Finding = { title: string; series: Series[]; figures: Figure[]; notes?: string[] }

/** Negated comparisons, so that NaN misses the target too. */
export function isMissed({ samples, atLeast, atMost }: Figure): boolean {
  const value = median(samples)
  return (atLeast !== undefined && !(value >= atLeast)) || (atMost !== undefined && !(value <= atMost))
}

export function printFinding({ title, series, figures, notes = [] }: Finding): void {
  console.log(`\n## ${title}\n`)
  if (series.length > 0) {
    console.log('| | median | min – max | unit |\n|---|--:|--:|---|')
    for (const { contender, unit, samples } of series) {
      console.log(`| ${contender} | ${format(median(samples))} | ${spread(samples)} | ${unit} |`)
    }
    console.log('')
  }
  if (figures.length > 0) {
    console.log('| ratio or figure | median | min – max | target | |\n|---|--:|--:|--:|---|')
    for (const figure of figures) {
      const { what, unit, samples, atLeast, atMost } = figure
      const target = atLeast !== undefined ? `≥ ${atLeast}` : atMost !== undefined ? `≤ ${atMost}` : ''
      const verdict = target === '' ? '' : isMissed(figure) ? 'MISSED' : 'met'
      console.log(`| ${what} | ${format(median(samples))} ${unit} | ${spread(samples)} | ${target} | ${verdict} |`)
    }
  }
  for (const note of notes) console.log(`\n${note}`)
}

/** Prints the overall verdict and returns true if every section ran and every target is met. */
export function printVerdict(findings: Finding[], broken: string[], seconds: number): boolean {
  const figures = findings.flatMap((finding) => finding.figures)
  const targets = figures.filter(({ atLeast, atMost }) => atLeast !== undefined || atMost !== undefined)
  const missed = targets.filter(isMissed)
  console.log(`\n${targets.length - missed.length} of ${targets.length} targets met in ${Math.round(seconds)} s.`)
  for (const { what, unit, samples, atLeast, atMost } of missed) {
    const limit = atLeast !== undefined ? `at least ${atLeast}` : `at most ${atMost}`
    console.log(`MISSED: ${what}: ${format(median(samples))} ${unit}, target ${limit}`)
  }
  for (const name of broken) console.log(`NOT MEASURED: ${name} failed with the error above.`)
  return missed.length + broken.length === 0
}

export function writeResults(file: string, findings: Finding[], run: Record<string, unknown>): void {
  const machine = {
    cores: cpus().length,
    cpu: cpus()[0]?.model,
    memoryMB: Math.round(totalmem() / 1e6),
    node: process.version,
  }
  const results = findings.map((finding) => ({
    ...finding,
    series: finding.series.map((series) => ({ ...series, median: median(series.samples) })),
    figures: finding.figures.map((figure) => ({ ...figure, median: median(figure.samples), met: !isMissed(figure) })),
  }))
  writeFileSync(file, `${JSON.stringify({ ...run, machine, findings: results }, null, 2)}\n`)
}

const spread = (samples: number[]) => `${format(Math.min(...samples))} – ${format(Math.max(...samples))}`

/** Rounds to three significant digits and separates thousands. */
export function format(value: number): string {
  const digits = Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2
  return value.toFixed(digits).replace(/\B(?=(\d{3})+(?!\d))/g, value >= 1000 ? ',' : '')
}
