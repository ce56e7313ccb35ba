import { describe, expect, it } from 'vitest'
import { addDays, countDays, createBankDays } from '../../src/books/ledger/bank-days.ts'

const { bankDayFrom, isBankDay, nextBankDay, previousBankDay } = createBankDays(new Set())

// November 2026 begins on a Sunday.
describe('bank days', () => {
  it('the calendar excludes Sundays and the second and fourth Saturday of a month', () => {
    const november = Array.from({ length: 30 }, (_, index) => addDays('2026-11-01', index))
    const closed = ['01', '08', '14', '15', '22', '28', '29'].map((day) => `2026-11-${day}`)
    expect(november.filter((day) => !isBankDay(day))).toEqual(closed)
    // A month that begins on a Saturday has a fifth Saturday, which is a bank day.
    expect(['01', '08', '15', '22', '29'].map((day) => isBankDay(`2026-08-${day}`))).toEqual([
      ...[true, false, true, false, true],
    ])
  })

  it.each([
    ['2026-11-02', '2026-11-03'],
    // The second Saturday and the Sunday after it are no bank days.
    ['2026-11-13', '2026-11-16'],
    ['2026-11-14', '2026-11-16'],
    // The third Saturday is a bank day.
    ['2026-11-20', '2026-11-21'],
    ['2026-12-31', '2027-01-01'],
  ])('the calendar settles payments made on %s on the bank day %s', (day, due) => {
    expect(nextBankDay(day)).toBe(due)
  })

  it('the calendar finds the bank days around any day and counts the days of a period', () => {
    expect([bankDayFrom('2026-11-16'), bankDayFrom('2026-11-14')]).toEqual(['2026-11-16', '2026-11-16'])
    expect([previousBankDay('2026-11-16'), previousBankDay('2026-11-13')]).toEqual(['2026-11-13', '2026-11-12'])
    expect([countDays('2026-11-01', '2026-11-30'), addDays('2028-03-01', -1)]).toEqual([30, '2028-02-29'])
  })
})
