/** Browsers name a handful; a header of 16 KiB could name thousands. */
const MOST_RANGES = 20

/**
 * The one of `languages` that a reader wants most, by their Accept-Language; else the first. RFC 9110, section 12.5.4: a
 * language with a region, such as hi-IN, stands for the language; `*` for those that are not named; weight 0 for "not this
 * one". hi-Latn is Hindi in Latin letters: who asks for that may not read the script that Hindi is usually written in.
 */
export function preferredLanguage<L extends string>(header: string | undefined, languages: readonly [L, ...L[]]): L {
  const ranges = (header ?? '').toLowerCase().split(',', MOST_RANGES).flatMap(readRange)
  const named = ranges.map(({ tag }) => languages.find((language) => stands(tag, language)))
  let best: { language: L; weight: number } = { language: languages[0], weight: 0 }
  for (const [index, { tag, weight }] of ranges.entries()) {
    const language = tag === '*' ? languages.find((other) => !named.includes(other)) : named[index]
    // Of languages that are wanted equally the first one named wins.
    if (language !== undefined && weight > best.weight) best = { language, weight }
  }
  return best.language
}

function readRange(range: string): { tag: string; weight: number }[] {
  const [, tag, weight = '1'] = /^\s*([a-z0-9-]+|\*)\s*(?:;\s*q=([01](?:\.\d{0,3})?)\s*)?$/.exec(range) ?? []
  return tag === undefined ? [] : [{ tag, weight: Math.min(Number(weight), 1) }]
}

/** Whether `tag` is `language`, in any region, and in its usual script. */
function stands(tag: string, language: string): boolean {
  const [primary, ...others] = tag.split('-')
  const script = others.find((part) => /^[a-z]{4}$/.test(part))
  return primary === language && (script === undefined || script === scriptOf(language))
}

const scriptOf = (language: string) => new Intl.Locale(language).maximize().script?.toLowerCase()
