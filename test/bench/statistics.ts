/** The middle one of `samples`, or the mean of the two in the middle. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const high = sorted[Math.floor(middle)]
  const low = sorted[Math.ceil(middle) - 1]
  if (high === undefined || low === undefined) throw new Error('The median of no samples does not exist')
  return (low + high) / 2
}

/**
 * How many times `base` each of `samples` is, round by round: what slows the machine down for a while slows both down,
 * and is not seen in their ratio.
 */
export function ratios(samples: readonly number[], base: readonly number[]): number[] {
  return samples.map((sample, round) => sample / (base[round] ?? Number.NaN))
}

/**
 * Runs every contender once a round, in the same order: what disturbs the machine for a while then disturbs all of them.
 * Returns the results of each contender by round.
 */
export async function alternate<Name extends string, Result>(
  names: readonly Name[],
  rounds: number,
  run: (name: Name, round: number) => Promise<Result>,
): Promise<Record<Name, Result[]>> {
  const results = Object.fromEntries(names.map((name) => [name, [] as Result[]])) as Record<Name, Result[]>
  for (let round = 1; round <= rounds; round++) {
    for (const name of names) results[name].push(await run(name, round))
  }
  return results
}
