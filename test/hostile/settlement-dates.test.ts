import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { nextDay, startOfIstDay } from '../../src/ist.ts'
import { WhichSettlements } from '../../src/settlements/fetch-settlement-list.ts'
import { runs } from '../support/generated.ts'

const FIRST_YEAR = 2000
const YEARS = 40

const DAYS_OF_MONTH: Record<number, number> = {
  1: 31,
  2: 28,
  3: 31,
  4: 30,
  5: 31,
  6: 30,
  7: 31,
  8: 31,
  9: 30,
  10: 31,
  11: 30,
  12: 31,
}

/** By the rule of the calendar, not by what a Date makes of it. */
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
  it(`takes every day of ${YEARS} years, and no other combination of two digits, two digits and a year`, () => {
    const wrong: string[] = []
    let previous = 0
    let days = 0
    for (let year = FIRST_YEAR; year < FIRST_YEAR + YEARS; year++) {
      for (let month = 0; month <= 99; month++) {
        for (let day = 0; day <= (month <= 13 ? 99 : 1); day++) {
          const text = write(day, month, year)
          const start = startOfIstDay(text)
          if ((start !== undefined) !== exists(day, month, year)) wrong.push(text)
          if (start === undefined) continue
          // Each day begins where the one before ends, so that none is missing and none is another's.
          if (previous !== 0 && start.getTime() !== previous) wrong.push(`${text} does not follow`)
          previous = nextDay(start).getTime()
          days += 1
        }
      }
    }
    expect(wrong).toEqual([])
    expect(days).toBe(14_610)
  })

  it('begins each day at midnight in India, as Intl knows it', () => {
    const wrong: string[] = []
    for (let year = FIRST_YEAR; year < FIRST_YEAR + YEARS; year++) {
      for (let month = 1; month <= 12; month++) {
        for (const day of [1, 15, DAYS_OF_MONTH[month] ?? 0]) {
          const start = startOfIstDay(write(day, month, year)) as Date
          const date = `${two(day)}/${two(month)}/${year}`
          if (INDIA.format(start) !== `${date}, 00:00:00`) wrong.push(date)
          if (INDIA.format(nextDay(start).getTime() - 1) !== `${date}, 23:59:59`) wrong.push(`the end of ${date}`)
        }
      }
    }
    expect(wrong).toEqual([])
  })

  it('follows the calendar in any year from 1 to 9999', () => {
    const part = fc.oneof(fc.integer({ min: 0, max: 32 }), fc.nat({ max: 99 }))
    const year = fc.oneof(fc.nat({ max: 9_999 }), fc.constantFrom(0, 1, 99, 100, 400, 1900, 2000, 2100, 9999))
    fc.assert(
      fc.property(part, part, year, (day, month, year) => {
        expect(startOfIstDay(write(day, month, year)) !== undefined).toBe(exists(day, month, year))
      }),
      { numRuns: runs(5_000) },
    )
  })

  it('is refused in any other form', () => {
    const almost = fc
      .tuple(
        fc.constantFrom('01-01-2026', '28-02-2027'),
        fc.nat({ max: 10 }),
        fc.string({ unit: 'binary', maxLength: 2 }),
      )
      .map(([text, at, other]) => text.slice(0, at) + other + text.slice(at + 1))
    const forms = fc.constantFrom('1-1-2026', '2026-01-01', '01/01/2026', '01-01-26', '०१-०१-२०२६', '01-01-2026T00:00')
    fc.assert(
      fc.property(fc.oneof(almost, forms, fc.string({ unit: 'binary' })), (text) => {
        const digits = text.split('-').map((part) => (/^[0-9]+$/.test(part) ? part : 'x'))
        const [day = '', month = '', year = ''] = digits
        const isDate = digits.length === 3 && day.length === 2 && month.length === 2 && year.length === 4
        const isDay = isDate && exists(Number(day), Number(month), Number(year))
        expect(startOfIstDay(text) !== undefined).toBe(isDay)
      }),
      { numRuns: runs(5_000) },
    )
  })

  it('is a range from the first moment of the one to the last of the other, refused when it is empty', () => {
    const date = fc.tuple(
      fc.integer({ min: 1, max: 28 }),
      fc.integer({ min: 1, max: 12 }),
      fc.integer({ min: 2000, max: 2039 }),
    )
    fc.assert(
      fc.property(date, date, (from, until) => {
        const [s_date, e_date] = [write(...from), write(...until)]
        const { success } = WhichSettlements.safeParse({ pid: 'P', mid: 'M', s_date, e_date })
        const sortable = (text: string) => text.split('-').reverse().join('')
        expect(success).toBe(sortable(s_date) <= sortable(e_date))
      }),
      { numRuns: runs(2_000) },
    )
  })
})
