import { isAbandoned } from './outcome.ts'

/** The value of `most` for an acquirer without a limit: the largest number that the database column can store. */
export const UNLIMITED = 32_767

/** An acquirer's limits of status checks. */
export type StatusCheckRules = {
  /** Largest number of status checks per order, including checks after its expiry and checks by the operator. */
  most: number
  /**
   * Number of status checks per order after which no check is scheduled for a waiting caller. The default is one fewer
   * than `most`.
   */
  mostWhileWaiting?: number
  /**
   * Status checks per minute for all orders of the account: half of the acquirer's limit. Absent if the acquirer has no
   * limit.
   */
  perMinute?: number
  /** Time from an order's creation to its first status check, while a caller waits. */
  firstAfterMs: number
  /** Shortest time between two status checks of one order, while a caller waits. */
  pauseMs: number
  /**
   * Time between two status checks for a caller who polls continuously, so that the checks last until the order
   * expires. `ageMs` is the order's age at the earlier of the two checks, `timeToPayMs` its age at its expiry.
   */
  pollingPauseMs: (ageMs: number, timeToPayMs: number) => number
}

/**
 * An open order with a link from an acquirer. Times are in milliseconds since 1970; `statusCheckedAt` is null before
 * the first check.
 */
export type StatusCheckState = {
  acquirer: string
  statusChecks: number
  createdAt: number
  statusCheckedAt: number | null
  /** Time of the next status check that is scheduled in any case; null if no check is scheduled. */
  dueAt: number | null
}

/**
 * Whether the status may be checked now because a caller waits for the order's outcome. `cameBackAt` is the time at
 * which the customer returned from an app to the pay page: if the customer returned after the last check, only the
 * acquirer's pause must have passed. The last check is reserved for the time after the order's expiry.
 */
export function mayCheckStatus(
  { statusChecks, createdAt, statusCheckedAt, dueAt, expiresAt }: StatusCheckState & { expiresAt: Date },
  { most, mostWhileWaiting = most - 1, firstAfterMs, pauseMs, pollingPauseMs }: StatusCheckRules,
  now: Date,
  cameBackAt?: Date,
): boolean {
  const moment = now.getTime()
  if (statusChecks >= mostWhileWaiting || dueAt === null || dueAt <= moment || isAbandoned(expiresAt, now)) return false
  if (statusCheckedAt === null) return moment >= createdAt + firstAfterMs
  const isNewReturn = cameBackAt !== undefined && cameBackAt.getTime() > statusCheckedAt
  const polling = isNewReturn ? 0 : pollingPauseMs(statusCheckedAt - createdAt, expiresAt.getTime() - createdAt)
  return moment >= statusCheckedAt + Math.max(pauseMs, polling)
}
