/** Pauses after failed attempts. The pauses spread ten attempts over a little more than three days. */
const PAUSES_SECONDS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** Days without a success after which an endpoint is disabled. */
export const FAILING_DAYS = 5

/**
 * Pauses vary by up to 10 % in either direction, so that an endpoint that was unavailable does not receive all retries
 * at the same time.
 */
const SPREAD = 0.1

/**
 * Returns the time of the next attempt after `failed` failed attempts, the latest of which was at `at`; undefined after
 * the last attempt. A longer Retry-After takes precedence. `random` is a number from 0 to 1.
 */
export function nextAttempt(
  failed: number,
  at: Date,
  retryAfterSeconds: number | undefined,
  random: number,
): Date | undefined {
  const pause = PAUSES_SECONDS[failed - 1]
  if (pause === undefined) return undefined
  const spread = pause * (1 + SPREAD * (2 * random - 1))
  return new Date(at.getTime() + Math.max(spread, retryAfterSeconds ?? 0) * 1000)
}
