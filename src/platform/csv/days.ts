import * as z from 'zod'
import { toIstText } from '../time.ts'

/** Parses days and times from the files of banks and acquirers. */

export const DATE_FORM_RULE = 'must have d or dd, m, mm or mmm, and yy or yyyy, such as dd/mm/yyyy or d mmm yy'
const MONTHS = ['january', 'february', 'march', 'april', 'may', 'june', 'july', 'august', 'september', 'october']
  .concat('november', 'december')
  .map((month) => [month, month.slice(0, 3)])
/** A month by name: the complete name, its first three letters, or `Sept`, which is usual in India. */
const MONTH = '(?<monthName>[a-z]{3,9})\\.?'
const PARTS: Readonly<Record<string, string>> = {
  d: '(?<day>\\d{1,2})',
  dd: '(?<day>\\d{1,2})',
  m: '(?<month>\\d{1,2})',
  mm: '(?<month>\\d{1,2})',
  mmm: MONTH,
  mmmm: MONTH,
  yy: '(?<year>\\d\\d)',
  yyyy: '(?<year>20\\d\\d)',
}
const WEEKDAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']
const WEEKDAY = `(?:${WEEKDAYS.join('|')})[a-z]{0,6}\\.?`
const CLOCK =
  '(?:(?:[ T,]+)(?<hour>\\d{1,2})[:.](?<minute>\\d\\d)(?:[:.](?<second>\\d\\d))?(?:[.,]\\d+)? *(?<half>[ap]\\.?m\\b\\.?)?)?'
const ZONE = '(?: *(?<zone>Z|IST|UTC|GMT|(?:UTC|GMT)?[-+]\\d{1,2}(?::?\\d\\d)?))?'
const AROUND = { before: `^(?:(?<weekday>${WEEKDAY}),? *)?`, behind: `${CLOCK}${ZONE}(?:,? *\\(?${WEEKDAY}\\)?)?$` }

/** Formats with a month by name and a four-digit year, in any order. The remaining number is the day. */
const NAMED = [
  ['d', 'mmm', 'yyyy'],
  ['mmm', 'd', 'yyyy'],
  ['yyyy', 'mmm', 'd'],
].map((parts) => patternOf(parts.map((part) => PARTS[part]).join('(?:st|nd|rd|th)?[ ,./-]*')))

function patternOf(day: string): RegExp {
  return new RegExp(`${AROUND.before}${day}${AROUND.behind}`, 'i')
}

/**
 * Returns a parser for times in this format. The parser returns `YYYY-MM-DD HH:MM:SS` in IST, with 00:00:00 if the file
 * contains only a day, or undefined for a time that does not exist or has another format. A weekday may precede or
 * follow the time; a time zone may follow the time. If the format has the month by name, the order of its parts matters
 * only for two-digit years. A second day in brackets is ignored. Returns undefined for a format that violates DATE_FORM_RULE.
 */
export function timeReader(form: string): ((text: string) => string | undefined) | undefined {
  // A weekday in the format is accepted before or after the day.
  const parts = form.replace(/^d{3,4}[ ,.]+|[ ,]+d{3,4}$/g, '').match(/d+|m+|y+|[^dmy]/g) ?? []
  const kinds = parts
    .filter((part) => part in PARTS)
    .map((part) => part[0])
    .sort()
  if (kinds.join('') !== 'dmy' || !parts.every((part) => part in PARTS || /^[ /.,-]$/.test(part))) return undefined
  const isNamed = parts.some((part) => part.startsWith('mmm'))
  // A joined day must have the full number of digits, because without separators shorter parts cannot be distinguished.
  const isJoined = parts.length === 3
  const day = parts
    .map((part) => (part === ' ' ? ' +' : (PARTS[part] ?? `\\${part}`)))
    .map((part) => (isJoined ? part.replace('{1,2}', '{2}') : part))
  const patterns = [patternOf(day.join('')), ...(isNamed ? NAMED : [])]
  return (written) => {
    const text = withoutSecondDay(plain(written))
    for (const pattern of patterns) {
      const found = pattern.exec(text)?.groups
      if (found) return toTime(found)
    }
    return undefined
  }
}

/** Replaces each run of whitespace of any kind, such as the narrow space before AM, with one space. */
const plain = (text: string) => text.replace(/\s+/g, ' ')

/** A second date in brackets, such as the value date in `18-Nov-26 (19-Nov-26)`. */
const withoutSecondDay = (text: string) =>
  text.replace(/ ?\(([^()]*)\)$/, (brackets, inside) => (isLikeDay(inside) ? '' : brackets))

function toTime(found: Record<string, string | undefined>): string | undefined {
  const { year = '', day = '', monthName, hour = '0', minute = '00', second = '00', half, zone = '', weekday } = found
  const month = monthName ? monthOf(monthName) : Number(found.month)
  const hours = half ? hourOfDay(Number(hour), half) : Number(hour)
  const two = (part: number | string) => String(part).padStart(2, '0')
  const date = `20${year.slice(-2)}-${two(month)}-${two(day)}`
  const time = `${two(hours)}:${minute}:${second}`
  if (!z.regexes.date.test(date) || !/^([01]\d|2[0-3]):[0-5]\d:[0-5]\d$/.test(time)) return undefined
  const noon = new Date(`${date}T12:00:00Z`)
  if (weekday && WEEKDAYS[noon.getUTCDay()] !== weekday.slice(0, 3).toLowerCase()) return undefined
  if (/^(?:IST)?$/i.test(zone)) return `${date} ${time}`
  const [, sign = '+', zoneHours = '0', zoneMinutes = '00'] = /([-+])(\d{1,2}):?(\d\d)?$/.exec(zone) ?? []
  if (Number(zoneHours) > 14 || Number(zoneMinutes) > 59) return undefined
  const moment = new Date(`${date}T${time}${sign}${two(zoneHours)}:${zoneMinutes}`)
  return toIstText(moment)
}

/** Returns the number of the month, 1 to 12; 0 for text that is not a month's name. */
function monthOf(name: string): number {
  const written = name.toLowerCase()
  return MONTHS.findIndex((names) => names.includes(written) || (written === 'sept' && names.includes('september'))) + 1
}

/** Returns the hour of the day; NaN for an hour that does not exist in this half of the day, such as `13 AM`. */
function hourOfDay(hour: number, half: string): number {
  const isAfternoon = /^p/i.test(half)
  if (hour > 12) return isAfternoon ? hour : Number.NaN
  if (hour === 0) return isAfternoon ? Number.NaN : 0
  return (hour % 12) + (isAfternoon ? 12 : 0)
}

const NAMES = MONTHS.map(([, short]) => short).join('|')
const LIKE_A_DAY = new RegExp(
  `^(?:${WEEKDAY},? *)?(?:${[
    '\\d{1,4} ?[-/. ] ?(?:\\d{1,2}|(?=\\d*[a-z])[a-z0-9]{2,9}) ?[-/. ] ?\\d{1,4}(?!\\d)',
    `\\d{1,2}(?:st|nd|rd|th)?[-/. ,]*(?:${NAMES})[a-z]{0,6}[-/. ,']*\\d{2,4}(?!\\d)`,
    `(?:${NAMES})[a-z]{0,6}[-/. ,]*\\d{1,2}(?:st|nd|rd|th)?[-/. ,]+\\d{2,4}(?!\\d)`,
    // Spreadsheets show only # characters if the column is too narrow for the day.
    '#{3,}$',
  ].join('|')})`,
  'i',
)

/**
 * Whether the field contains a day in any format, or text that is meant as a day. An invalid day is therefore an error
 * in its row and not the end of the table.
 */
export const isLikeDay = (field: string) => LIKE_A_DAY.test(plain(field))
