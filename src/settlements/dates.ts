/** India has no daylight saving: a day there begins 330 minutes before the UTC day of the same name, always. */
const IST_OFFSET_MS = 330 * 60_000
const DAY_MS = 24 * 60 * 60_000

/** The first moment of the IST day `dd-mm-yyyy`; undefined when the text has another form or there is no such day. */
export function startOfIstDay(text: string): Date | undefined {
  const match = /^(\d{2})-(\d{2})-(\d{4})$/.exec(text)
  if (match === null) return undefined
  const [day, month, year] = match.slice(1).map(Number) as [number, number, number]
  const utc = new Date(0)
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  utc.setUTCFullYear(year, month - 1, day)
  const exists = utc.getUTCFullYear() === year && utc.getUTCMonth() === month - 1 && utc.getUTCDate() === day
  return exists && year >= 1 ? new Date(utc.getTime() - IST_OFFSET_MS) : undefined
}

export function nextDay(day: Date): Date {
  return new Date(day.getTime() + DAY_MS)
}
