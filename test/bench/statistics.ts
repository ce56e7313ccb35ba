/** The middle sample, or the mean of the two middle ones. */
export function median(samples: readonly number[]): number {
  const sorted = [...samples].sort((a, b) => a - b)
  const middle = sorted.length / 2
  const high = sorted[Math.floor(middle)]
  const low = sorted[Math.ceil(middle) - 1]
  if (high === undefined || low === undefined) throw new Error('The median needs at least one sample.')
  return (low + high) / 2
}

/**
 * The ratio of `samples` to `base`, round by round: a slow phase of the machine affects both, so their ratio hides it.
 */
export function ratios(samples: readonly number[], base: readonly number[]): number[] {
  return samples.map((sample, round) => sample / (base[round] ?? Number.NaN))
}

/**
 * Runs all contenders in the same order in every round, so that a slow phase of the machine affects all of them.
 * Returns each contender's results by round.
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
