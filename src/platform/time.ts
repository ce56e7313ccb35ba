import * as z from 'zod'
import { errorText, matching } from './fields.ts'

/**
 * The offset of Indian Standard Time, UTC+05:30 all year. The functions here use plain arithmetic, because Intl is much
 * slower.
 */
const OFFSET = '+05:30'
const OFFSET_MS = 330 * 60_000
export const HOUR_MS = 60 * 60_000
export const DAY_MS = 24 * HOUR_MS

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

export const ZONED_MOMENT_RULE = 'must be a time in ISO 8601 with a time zone (2026-01-31T09:30:00Z)'

/**
 * A time in RFC 3339, which also allows t, z and a space. Seconds and the colon of the time zone may be absent, because
 * libraries omit them. Second 60 is not accepted, because no leap second has been inserted since 2016. The largest
 * offset of a time zone is 14 hours.
 */
const ZONED_MOMENT = new RegExp(
  `^(${z.regexes.date.source.slice(1, -1)})[Tt ]((?:[01]\\d|2[0-3]):[0-5]\\d)(?::([0-5]\\d(?:\\.\\d+)?))?(?:[Zz]|([+-](?:0\\d|1[0-4])):?([0-5]\\d))$`,
)

/**
 * Returns `text`, a time with a time zone, in the form that Date and PostgreSQL read equally. The fraction is cut to
 * microseconds, because PostgreSQL would round it; undefined if `text` violates ZONED_MOMENT_RULE.
 */
function readZonedMoment(text: string): string | undefined {
  const [matched, day, minute, second = '00', hours, minutes] = ZONED_MOMENT.exec(text) ?? []
  if (matched === undefined) return undefined
  return `${day}T${minute}:${second.slice(0, 9)}${hours === undefined ? 'Z' : `${hours}:${minutes}`}`
}

/** A time with a time zone. */
export const zonedMoment = matching(ZONED_MOMENT, ZONED_MOMENT_RULE)
  .meta({ format: 'date-time' })
  .transform((text) => new Date(readZonedMoment(text) as string))

export const MOMENT_RULE =
  'must be an existing time from 2000 to 2099: ISO 8601 with a time zone (2026-01-31T09:30:00Z), or YYYY-MM-DD HH:MM:SS for IST'

const IST_MOMENT = /^\S{10} \d\d:\d\d:\d\d$/

/**
 * Returns the moment as ISO 8601 text with a time zone; undefined if `text` violates MOMENT_RULE. The moment stays
 * text, because a Date would lose the microseconds, and a file with a million lines would need a million Dates.
 */
export function readMoment(text: string): string | undefined {
  if (!text.startsWith('20')) return undefined
  return readZonedMoment(IST_MOMENT.test(text) ? `${text}${OFFSET}` : text)
}

export const momentText = z
  .string()
  .transform(readMoment)
  // Without `abort`, the error text of an invalid time would also state that the time is missing.
  .refine((moment) => moment !== undefined, { error: MOMENT_RULE, abort: true })
  .transform((moment) => new Date(moment as string))
