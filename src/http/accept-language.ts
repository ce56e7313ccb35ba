/** Browsers name a handful; a header of 16 KiB could name thousands. */
const MOST_RANGES = 20

/**
 * The first of `languages` that a reader's Accept-Language names, else the first of all. Browsers name the most wanted one first,
 * so weights are not read, but for 0, "not this one". hi-IN stands for hi; hi-Latn does not: who asks for Hindi in Latin
 * letters may not read its usual script.
 */
export function preferredLanguage<L extends string>(header = '', languages: readonly [L, ...L[]]): L {
  const ranges = header.toLowerCase().split(',', MOST_RANGES)
  const wanted = ranges
    .filter((range) => !/-latn|;\s*q=0(\.0*)?\s*$/.test(range))
    .map((range) => range.split(/[-;]/, 1)[0]?.trim())
  return languages.find((language) => language === wanted.find((tag) => languages.includes(tag as L))) ?? languages[0]
}
