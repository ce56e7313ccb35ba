import { startOfDay } from '../../platform/time.ts'

/** Days are `YYYY-MM-DD`, IST, both included. */
export type Days = { from: string; to: string }

/**
 * The days on which Indian banks work: all but Sundays, the second and fourth Saturday of a month, and `holidays`, which
 * differ by state and year. A day is `YYYY-MM-DD`.
 */
export function createBankDays(holidays: ReadonlySet<string>) {
  const isBankDay = (day: string): boolean => {
    const weekday = atUtc(day).getUTCDay()
    const saturdayOfMonth = Math.ceil(Number(day.slice(8)) / 7)
    const isFreeSaturday = weekday === 6 && (saturdayOfMonth === 2 || saturdayOfMonth === 4)
    return weekday !== 0 && !isFreeSaturday && !holidays.has(day)
  }
  /** The first bank day that is not before `day`. */
  const bankDayFrom = (day: string): string => (isBankDay(day) ? day : bankDayFrom(addDays(day, 1)))
  /** The last bank day before `day`. */
  const previousBankDay = (day: string): string => {
    const before = addDays(day, -1)
    return isBankDay(before) ? before : previousBankDay(before)
  }
  /** The first bank day after `day`, on which the bank pays out the payments of `day` (T+1). */
  const nextBankDay = (day: string) => bankDayFrom(addDays(day, 1))
  return { isBankDay, bankDayFrom, previousBankDay, nextBankDay }
}

export type BankDays = ReturnType<typeof createBankDays>

const DAY_MS = 24 * 60 * 60_000

/** `days` may be negative. */
export function addDays(day: string, days: number): string {
  return new Date(atUtc(day).getTime() + days * DAY_MS).toISOString().slice(0, 10)
}

/** How many days there are from `first` to `last`, both included. */
export function countDays(first: string, last: string): number {
  return (atUtc(last).getTime() - atUtc(first).getTime()) / DAY_MS + 1
}

const atUtc = (day: string) => new Date(`${day}T00:00:00Z`)

/** The first moment of the days in India, and the first after them. */
export const boundsOf = ({ from, to }: Days) => ({ begin: startOfDay(from), end: startOfDay(addDays(to, 1)) })
