import { describe, expect, it } from 'vitest'
import { nextDay, startOfIstDay } from '../../src/platform/time.ts'

/** 40 consecutive years, and those in which calendars differ. */
const YEARS = [...Array.from({ length: 40 }, (_, index) => 2000 + index), 0, 1, 99, 100, 400, 1900, 2100, 9999]
const DAYS_OF_MONTH = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Computed by the rule of the calendar, without Date. */
function exists(day: number, month: number, year: number): boolean {
  const isLeap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0
  const days = month === 2 && isLeap ? 29 : (DAYS_OF_MONTH[month] ?? 0)
  return year >= 1 && day >= 1 && day <= days
}

const two = (number: number) => String(number).padStart(2, '0')
const write = (day: number, month: number, year: number) => `${two(day)}-${two(month)}-${String(year).padStart(4, '0')}`

const INDIA = new Intl.DateTimeFormat('en-GB', {
  timeZone: 'Asia/Kolkata',
  dateStyle: 'short',
  timeStyle: 'medium',
  hourCycle: 'h23',
})

describe('s_date and e_date', () => {
  it('accepts every existing date as dd-mm-yyyy in s_date and e_date, from midnight to midnight in IST, and no other text', () => {
    const wrong: string[] = []
    for (const year of YEARS) {
      for (let month = 0; month <= 99; month++) {
        for (let day = 0; day <= (month <= 13 ? 99 : 1); day++) {
          const text = write(day, month, year)
          const start = startOfIstDay(text)
          if ((start !== undefined) !== exists(day, month, year)) wrong.push(text)
          // Before 1945, India had other time zones.
          if (start === undefined || year < 2000) continue
          const [begin, end] = [INDIA.format(start), INDIA.format(nextDay(start).getTime() - 1)]
          const date = text.replaceAll('-', '/')
          if (begin !== `${date}, 00:00:00` || end !== `${date}, 23:59:59`) wrong.push(`${text} is ${begin} to ${end}`)
        }
      }
    }
    expect(wrong).toEqual([])
  })
})
