/**
 * The days on which Indian banks work: all but Sundays and the second and fourth Saturday of a month. Public holidays differ by
 * state and year, and are not known here. A day is `YYYY-MM-DD`.
 */

const DAY_MS = 24 * 60 * 60_000

export function isBankDay(day: string): boolean {
  const weekday = atUtc(day).getUTCDay()
  const saturdayOfMonth = Math.ceil(Number(day.slice(8)) / 7)
  return weekday !== 0 && !(weekday === 6 && (saturdayOfMonth === 2 || saturdayOfMonth === 4))
}

/** The first bank day after `day`, on which the bank pays out the payments of `day` (T+1). */
export function nextBankDay(day: string): string {
  return bankDayFrom(addDays(day, 1))
}

/** The first bank day that is not before `day`. */
export function bankDayFrom(day: string): string {
  return isBankDay(day) ? day : bankDayFrom(addDays(day, 1))
}

/** The last bank day before `day`. */
export function previousBankDay(day: string): string {
  const before = addDays(day, -1)
  return isBankDay(before) ? before : previousBankDay(before)
}

/** `days` may be negative. */
export function addDays(day: string, days: number): string {
  return new Date(atUtc(day).getTime() + days * DAY_MS).toISOString().slice(0, 10)
}

/** How many days there are from `first` to `last`, both included. */
export function countDays(first: string, last: string): number {
  return (atUtc(last).getTime() - atUtc(first).getTime()) / DAY_MS + 1
}

const atUtc = (day: string) => new Date(`${day}T00:00:00Z`)
