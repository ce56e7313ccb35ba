/** Groups elements by key, in the order of each group's first element. */
export function groupBy<T>(all: readonly T[], keyOf: (one: T) => string | undefined): T[][] {
  const groups = new Map<string | undefined, T[]>()
  for (const one of all) {
    const key = keyOf(one)
    const group = groups.get(key)
    if (group) group.push(one)
    else groups.set(key, [one])
  }
  return [...groups.values()]
}
