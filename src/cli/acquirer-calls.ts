import { LIMITS } from '../limits.ts'

/** No log and no metrics: a command makes one call to the acquirer, and shows the call's error to the operator. */
export const ACQUIRER_OPTIONS = {
  log: { warn: () => undefined, error: () => undefined },
  onCall: () => undefined,
  limits: LIMITS.acquirers,
  elapsedMs: () => performance.now(),
}
