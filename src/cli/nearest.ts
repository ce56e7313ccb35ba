/** So many letters may be missing, too many or wrong: two typing mistakes. */
const MOST_CHANGES = 2

/** The command of `names` that the first of the typed `words` are nearly; undefined when they are nearly none. */
export function nearest(words: readonly string[], names: readonly string[]): string | undefined {
  const changes = (name: string) => changesBetween(words.slice(0, name.split(' ').length).join(' '), name)
  const counted = names.map((name) => ({ name, count: changes(name) })).sort((a, b) => a.count - b.count)
  return counted.find(({ count }) => count <= MOST_CHANGES)?.name
}

/** How many letters must be added, removed or replaced to make `to` of `from` (Levenshtein's distance). */
function changesBetween(from: string, to: string): number {
  // From the letters of `from` so far to each beginning of `to`.
  let counts = Array.from({ length: to.length + 1 }, (_, length) => length)
  for (const letter of from) {
    let last = (counts[0] as number) + 1
    counts = counts.map((above, length) => {
      if (length === 0) return last
      const replaced = (counts[length - 1] as number) + (letter === to[length - 1] ? 0 : 1)
      last = Math.min(replaced, above + 1, last + 1)
      return last
    })
  }
  return counts[to.length] as number
}
