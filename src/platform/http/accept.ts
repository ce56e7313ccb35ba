/**
 * Largest number of media ranges that are read from one header. Clients send a handful, but a header of 16 KiB could
 * contain thousands.
 */
const MOST_RANGES = 20

/**
 * Whether an Accept header prefers CSV to JSON by its weights (RFC 9110, section 12.5.1). At equal weights, CSV is
 * preferred only if the header names CSV, so a client that accepts everything gets JSON.
 */
export function prefersCsv(header = ''): boolean {
  const weights = new Map(
    header
      .replace(/\s/g, '')
      .toLowerCase()
      .split(',', MOST_RANGES)
      .map((range): [string, number] => [range.split(';', 1)[0] as string, Number(WEIGHT.exec(range)?.[1] ?? 1)]),
  )
  // The names are ordered from specific to general, so the weight of the first name in the header applies.
  const weightOf = (...names: string[]) => names.map((name) => weights.get(name)).find((one) => one !== undefined) ?? 0
  const csv = weightOf('text/csv', 'text/*', '*/*')
  const json = weightOf('application/json', 'application/*', '*/*')
  return csv > json || (csv === json && csv > 0 && weights.has('text/csv'))
}

const WEIGHT = /;q=([01](?:\.\d*)?)(?:;|$)/
