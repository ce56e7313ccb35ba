import { type Create, type Figures, figuresOf } from './bystander.ts'

const LEAST_SUCCESSES_PERCENT = 99
const MOST_TIMES_QUIET = 10

/** The creates during one attack, and its other broken promises. */
export type Judged = { name: string; creates: Create[]; broken: string[] }

/**
 * Returns the promises that a run has broken. 99 % of the creates are 200, during each attack and in total. The p99 of
 * all creates is at most 10 times that of the quiet run. Only a run of all attacks passes `quiet`: one attack has some
 * 250 creates, whose p99 is the third slowest and proves little.
 */
export function brokenPromises(attacks: Judged[], quiet: Figures | undefined): { name: string; broken: string[] }[] {
  const all = figuresOf(attacks.flatMap(({ creates }) => creates))
  const brokenInAll = tooFewSuccesses(all)
  const ratio = quiet && all.p99Ms / quiet.p99Ms
  if (ratio !== undefined && !(ratio <= MOST_TIMES_QUIET)) {
    brokenInAll.push(
      `the p99 is at most ${MOST_TIMES_QUIET} times that of the quiet run: it is ${ratio.toFixed(1)} times`,
    )
  }
  return [
    ...attacks.map(({ name, creates, broken }) => ({
      name,
      broken: [...broken, ...tooFewSuccesses(figuresOf(creates))],
    })),
    { name: 'all attacks', broken: brokenInAll },
  ].filter(({ broken }) => broken.length > 0)
}

function tooFewSuccesses(figures: Figures): string[] {
  const percent = percentOf(figures)
  if (percent >= LEAST_SUCCESSES_PERCENT) return []
  return [`${LEAST_SUCCESSES_PERCENT} % of the creates are 200: ${percent.toFixed(1)} % are`]
}

export const percentOf = ({ creates, successes }: Figures) => (100 * successes) / creates
