import { isAbandoned } from './outcome.ts'

/** The `most` of an acquirer without a limit: the largest number that can be counted. */
export const UNLIMITED = 32_767

/** An acquirer's limits of status checks. */
export type StatusCheckRules = {
  /** Status checks of one order, including those after its expiry and those of the operator. */
  most: number
  /**
   * Number of status checks of one order after which none is scheduled for a waiting caller. By default one fewer than
   * `most`.
   */
  mostWhileWaiting?: number
  /** Status checks of all orders of the account per minute: half of the acquirer's limit. Absent if it has no limit. */
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
 * An open order with a link of an acquirer. Times are in milliseconds since 1970; `statusCheckedAt` is null before the
 * first check.
 */
export type StatusCheckState = {
  acquirer: string
  statusChecks: number
  createdAt: number
  statusCheckedAt: number | null
  /** When the next status check is scheduled in any case; null if none is. */
  dueAt: number | null
}

/**
 * Whether the status may be checked now because a caller waits for the order's outcome. `cameBackAt` is when its
 * customer returned from an app to the pay page: a return after the last check waits only for the acquirer's pause. The
 * last check is reserved for the time after the order's expiry.
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
