/** Seconds from a failed attempt to the next one, 5 s to a day: ten attempts within three days. */
const PAUSES_SECONDS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]

/** Days without a single success after which an endpoint is switched off. */
export const FAILING_DAYS = 5

/** Each pause is up to a tenth shorter or longer, so that an endpoint that was away does not get all repeats at one moment. */
const SPREAD = 0.1

/**
 * When to attempt again after `failed` failed attempts, the last one at `at`; undefined when that was the last. `random` is
 * from 0 to 1. An endpoint that asks for a longer pause gets it.
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
