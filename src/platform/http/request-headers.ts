/**
 * Largest number of media ranges or languages that are read from one header. Clients send a handful, but a header of
 * 16 KiB could contain thousands.
 */
const MOST_RANGES = 20

export const prefersCsv = (header?: string) => prefers('text/csv', header)

export const prefersHtml = (header?: string) => prefers('text/html', header)

/**
 * Whether an Accept header prefers `type`, a text, to JSON by its weights (RFC 9110, section 12.5.1). At equal weights,
 * the text is preferred only if the header names it, so a client that accepts everything gets JSON.
 */
function prefers(type: `text/${string}`, header = ''): boolean {
  const weights = new Map(
    header
      .replace(/\s/g, '')
      .toLowerCase()
      .split(',', MOST_RANGES)
      .map((range): [string, number] => [range.split(';', 1)[0] as string, Number(WEIGHT.exec(range)?.[1] ?? 1)]),
  )
  // The names are ordered from specific to general, so the weight of the first name in the header applies.
  const weightOf = (...names: string[]) => names.map((name) => weights.get(name)).find((one) => one !== undefined) ?? 0
  const text = weightOf(type, 'text/*', '*/*')
  const json = weightOf('application/json', 'application/*', '*/*')
  return text > json || (text === json && text > 0 && weights.has(type))
}

const WEIGHT = /;q=([01](?:\.\d*)?)(?:;|$)/

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

/** Whether an If-None-Match header matches `etag`: alone, in a list, as a weak tag or by `*`. */
export function matchesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  return ifNoneMatch?.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag) ?? false
}
