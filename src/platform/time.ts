import * as z from 'zod'
import { errorText } from './fields.ts'

/**
 * The offset of Indian Standard Time, UTC+05:30 all year. The functions here use plain arithmetic, because Intl is much
 * slower.
 */
const OFFSET = '+05:30'
const OFFSET_MS = 330 * 60_000
const DAY_MS = 24 * 60 * 60_000

/** Formats a time as `YYYY-MM-DD HH:MM:SS` in IST. */
export const toIstText = (moment: Date): string => inIst(moment).replace('T', ' ')

/** Returns the day in India at `moment` as `YYYY-MM-DD`. */
export const toIstDay = (moment: Date): string => toIstText(moment).slice(0, 10)

/** Formats a time for people: `YYYY-MM-DD HH:MM:SS IST`. */
export const toIstTime = (moment: Date): string => `${toIstText(moment)} IST`

/** Formats a time as ISO 8601 in IST: `YYYY-MM-DDTHH:MM:SS+05:30`. */
export const toIstIso = (moment: Date): string => `${inIst(moment)}${OFFSET}`

const inIst = (moment: Date): string => new Date(moment.getTime() + OFFSET_MS).toISOString().slice(0, 19)

/**
 * Returns the first moment of the IST day `dd-mm-yyyy`; undefined if the text has another format or the day does not
 * exist.
 */
export function startOfIstDay(text: string): Date | undefined {
  const [, day, month, year] = /^(\d\d)-(\d\d)-(\d{4})$/.exec(text) ?? []
  const date = `${year}-${month}-${day}`
  // Rejects the year 0000, which the pattern accepts but the calendar does not have.
  if (year === '0000' || !z.regexes.date.test(date)) return undefined
  return new Date(`${date}T00:00:00${OFFSET}`)
}

/** Returns the first moment of the IST day that contains `moment`. */
export function istDayOf(moment: Date): Date {
  return new Date(Math.floor((moment.getTime() + OFFSET_MS) / DAY_MS) * DAY_MS - OFFSET_MS)
}

export const DAY_RULE = 'must be an existing day from 2000 to 2099: YYYY-MM-DD or dd-mm-yyyy'

/** Accepts a day as `YYYY-MM-DD` or `dd-mm-yyyy`; the result is `YYYY-MM-DD`. */
export const dayText = z
  .string(errorText(DAY_RULE))
  .transform((text) => text.replace(/^(\d\d)-(\d\d)-(\d{4})$/, '$3-$2-$1'))
  .refine((day) => day.startsWith('20') && z.regexes.date.test(day), DAY_RULE)

/** Returns the first moment of the IST day `YYYY-MM-DD`. */
export const startOfDay = (day: string): Date => new Date(`${day}T00:00:00${OFFSET}`)

export const nextDay = (day: Date): Date => new Date(day.getTime() + DAY_MS)

export const MOMENT_RULE =
  'must be an existing time from 2000 to 2099: ISO 8601 with a time zone (2026-01-31T09:30:00Z), or YYYY-MM-DD HH:MM:SS for IST'

const CLOCK = '([01]\\d|2[0-3]):[0-5]\\d'
const ISO_MOMENT = new RegExp(
  `^20\\d\\d-\\d\\d-\\d\\dT${CLOCK}(?::[0-5]\\d(?:\\.\\d{1,6})?)?(?:Z|[+-](?:0\\d|1[0-4]):?[0-5]\\d)$`,
)
const IST_MOMENT = new RegExp(`^20\\d\\d-\\d\\d-\\d\\d ${CLOCK}:[0-5]\\d$`)

/**
 * Returns the moment as ISO 8601 text with a time zone; undefined if `text` violates MOMENT_RULE. The moment stays
 * text, because a Date would lose the microseconds, and a file with a million lines would need a million Dates.
 */
export function readMoment(text: string): string | undefined {
  const day = text.slice(0, 10)
  if (ISO_MOMENT.test(text)) return z.regexes.date.test(day) ? text : undefined
  if (IST_MOMENT.test(text)) return z.regexes.date.test(day) ? `${day}T${text.slice(11)}${OFFSET}` : undefined
  return undefined
}

export const momentText = z
  .string()
  .transform(readMoment)
  // Without `abort`, the error text of an invalid time would also state that the time is missing.
  .refine((moment) => moment !== undefined, { error: MOMENT_RULE, abort: true })
  .transform((moment) => new Date(moment as string))
