import { isGivenUp } from './outcome.ts'

/** The `most` of an acquirer that names no limit: as many as are counted. */
export const UNLIMITED = 32_767

/** An acquirer's limits of enquiries, which are queries of an order's payment. */
export type EnquiryRules = {
  /** Enquiries about one order, those after its expiry and those of the operator included. */
  most: number
  /** Enquiries about one order after which none is made because somebody waits. By default one fewer than `most`. */
  mostWhileWaiting?: number
  /** Enquiries about all orders of the account in a minute: half of what the acquirer takes. Absent if it names no limit. */
  perMinute?: number
  /** Time from an order's creation to its first enquiry, while somebody waits. */
  firstAfterMs: number
  /** Shortest time between two enquiries about one order, while somebody waits. */
  pauseMs: number
  /**
   * Time between two enquiries for a caller who waits all the time, so that the enquiries last until the order expires.
   * `ageMs` is the order's age at the earlier of the two enquiries, `timeToPayMs` its age at its expiry.
   */
  pollingPauseMs: (ageMs: number, timeToPayMs: number) => number
}

/** An open order with a link of an acquirer. Times are in milliseconds since 1970; `statusCheckedAt` is null before an enquiry. */
export type EnquiryState = {
  acquirer: string
  statusChecks: number
  createdAt: number
  statusCheckedAt: number | null
  /** When the next enquiry is due in any case; null if there is none. */
  dueAt: number | null
}

/**
 * Whether an enquiry may be made now because somebody waits for the order's outcome. `cameBackAt` is when its customer
 * returned from an app to the pay page: a return after the last enquiry waits for no more than the acquirer's pause. The
 * last enquiry is left for the time after the order's expiry.
 */
export function mayEnquire(
  { statusChecks, createdAt, statusCheckedAt, dueAt, expiresAt }: EnquiryState & { expiresAt: Date },
  { most, mostWhileWaiting = most - 1, firstAfterMs, pauseMs, pollingPauseMs }: EnquiryRules,
  now: Date,
  cameBackAt?: Date,
): boolean {
  const moment = now.getTime()
  if (statusChecks >= mostWhileWaiting || dueAt === null || dueAt <= moment || isGivenUp(expiresAt, now)) return false
  if (statusCheckedAt === null) return moment >= createdAt + firstAfterMs
  const isNewReturn = cameBackAt !== undefined && cameBackAt.getTime() > statusCheckedAt
  const polling = isNewReturn ? 0 : pollingPauseMs(statusCheckedAt - createdAt, expiresAt.getTime() - createdAt)
  return moment >= statusCheckedAt + Math.max(pauseMs, polling)
}
