/**
 * Largest number of languages that are read from one header. Browsers send a handful, but a header of 16 KiB could
 * contain thousands.
 */
const MOST_RANGES = 20

/**
 * Returns the first language of an Accept-Language header that `languages` contains, otherwise the first of
 * `languages`. Browsers send the preferred language first, so weights are ignored, except the weight 0, which excludes
 * a language. hi-IN matches hi, but hi-Latn does not match hi, because a reader of Hindi in Latin script may not read
 * Devanagari.
 */
export function preferredLanguage<L extends string>(header = '', languages: readonly [L, ...L[]]): L {
  const ranges = header.toLowerCase().split(',', MOST_RANGES)
  const accepted = ranges
    .filter((range) => !/-latn|;\s*q=0(\.0*)?\s*$/.test(range))
    .map((range) => range.split(/[-;]/, 1)[0]?.trim())
  return languages.find((language) => language === accepted.find((tag) => languages.includes(tag as L))) ?? languages[0]
}
