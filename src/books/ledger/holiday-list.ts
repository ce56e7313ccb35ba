import * as z from 'zod'
import { CsvFileError, type LineError } from '../../platform/csv/csv.ts'
import { text } from '../../platform/fields.ts'
import { dayText } from '../../platform/time.ts'
import type { BankHoliday } from './bank-holidays.ts'

const CSV_HEADER = /^"?(day|date)"?\s*,/i
const CSV_LINE = /^"?(\d{4}-\d\d-\d\d|\d\d-\d\d-\d{4})"?\s*,(.*)$/
/**
 * Matches a line with a month and its holidays' column numbers, such as `April 2024 1591011`. The month's holidays
 * follow below it, one holiday per line.
 */
const MONTH_LINE = /^([a-z]+)\s+(20\d\d)[\s\d]*$/i
const DAY_OF_MONTH_LINE = /^(.*\S)\s+(\d{1,2})$/
const MONTHS = 'january february march april may june july august september october november december'.split(' ')

/**
 * Reads a list of holidays from CSV, or from text copied from the Reserve Bank's page, where each month precedes its
 * days. `others` contains lines in neither format, such as headings. Throws a `CsvFileError` if a day does not exist,
 * if no month precedes a day, or if the list contains no holiday.
 */
export function readHolidays(list: string): { holidays: BankHoliday[]; others: LineError[] } {
  const holidays: BankHoliday[] = []
  const others: LineError[] = []
  const errors: LineError[] = []
  let month: string | undefined
  for (const [index, untrimmed] of list.split('\n').entries()) {
    const line = index + 1
    const written = untrimmed.trim()
    const [, word = '', year] = MONTH_LINE.exec(written) ?? []
    const monthNumber = MONTHS.indexOf(word.toLowerCase()) + 1
    if (monthNumber > 0) {
      month = `${year}-${String(monthNumber).padStart(2, '0')}`
      continue
    }
    const [, csvDay, csvName = ''] = CSV_LINE.exec(written) ?? []
    const [, pageName = '', dayOfMonth] = DAY_OF_MONTH_LINE.exec(written) ?? []
    if (csvDay === undefined && dayOfMonth === undefined) {
      if (written !== '' && !CSV_HEADER.test(written)) others.push({ line, text: written })
    } else if (csvDay === undefined && month === undefined) {
      errors.push({ line, text: 'no month precedes this day: add a line such as April 2026 above it' })
    } else {
      const day = csvDay ?? `${month}-${dayOfMonth?.padStart(2, '0')}`
      const holiday = Holiday.safeParse({ day, name: csvDay === undefined ? pageName : unquote(csvName) })
      if (holiday.success) holidays.push(holiday.data)
      else errors.push({ line, text: errorOf(day, holiday.error) })
    }
  }
  if (holidays.length + errors.length === 0)
    errors.push({ line: 1, text: 'the file contains no holiday: list each as YYYY-MM-DD,name' })
  if (errors.length > 0) throw new CsvFileError(errors.slice(0, 20), errors.length)
  return { holidays, others }
}

const Holiday = z.object({
  day: dayText,
  name: z
    .string()
    .transform((name) => name.trim().replace(/\s+/g, ' '))
    .pipe(text(255)),
})

const unquote = (field: string) =>
  field
    .trim()
    .replace(/^"(.*)"$/, '$1')
    .replaceAll('""', '"')

function errorOf(day: string, { issues }: z.ZodError): string {
  const [first] = issues
  return first?.path[0] === 'day' ? `${day} is not a date from 2000 to 2099` : `the name ${first?.message}`
}
