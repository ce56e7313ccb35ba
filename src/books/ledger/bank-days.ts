import { DAY_MS, startOfDay } from '../../platform/time.ts'

/** A period of IST days. `from` and `to` are `YYYY-MM-DD`, and both days are included. */
export type Days = { from: string; to: string }

/**
 * Creates functions that find Indian bank days. Every day is a bank day except Sundays, the second and fourth Saturday
 * of each month, and `holidays`. Holidays differ by state and year, and each one is `YYYY-MM-DD`.
 */
export function createBankDays(holidays: ReadonlySet<string>) {
  const isBankDay = (day: string): boolean => {
    const weekday = atUtc(day).getUTCDay()
    const saturdayOfMonth = Math.ceil(Number(day.slice(8)) / 7)
    const isFreeSaturday = weekday === 6 && (saturdayOfMonth === 2 || saturdayOfMonth === 4)
    return weekday !== 0 && !isFreeSaturday && !holidays.has(day)
  }
  /** Returns `day` if `day` is a bank day, otherwise the next bank day. */
  const bankDayFrom = (day: string): string => (isBankDay(day) ? day : bankDayFrom(addDays(day, 1)))
  /** Returns the last bank day before `day`. */
  const previousBankDay = (day: string): string => {
    const before = addDays(day, -1)
    return isBankDay(before) ? before : previousBankDay(before)
  }
  /**
   * Returns the first bank day after `day`, on which the bank pays out the payments that customers made on `day` (T+1).
   */
  const nextBankDay = (day: string) => bankDayFrom(addDays(day, 1))
  return { isBankDay, bankDayFrom, previousBankDay, nextBankDay }
}

export type BankDays = ReturnType<typeof createBankDays>

/** Adds days to a `YYYY-MM-DD` date; `days` may be negative. */
export function addDays(day: string, days: number): string {
  return new Date(atUtc(day).getTime() + days * DAY_MS).toISOString().slice(0, 10)
}

/** Returns the number of days from `first` to `last`, both included. */
export function countDays(first: string, last: string): number {
  return (atUtc(last).getTime() - atUtc(first).getTime()) / DAY_MS + 1
}

const atUtc = (day: string) => new Date(`${day}T00:00:00Z`)

/**
 * Returns the period as moments: `begin` is the start of the first IST day, and `end` is the start of the day after the
 * last one.
 */
export const boundsOf = ({ from, to }: Days) => ({ begin: startOfDay(from), end: startOfDay(addDays(to, 1)) })
