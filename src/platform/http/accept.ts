/**
 * Largest number of media ranges that are read from one header. Clients send a handful, but a header of 16 KiB could
 * contain thousands.
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
