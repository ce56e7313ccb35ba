import { AcquirerFault } from './acquirer.ts'

/** A token is valid for 300 s; Setu advises a new one in the 4th minute. The rest is for the way of the last call. */
const TOKEN_FRESH_MS = 240_000
const TOKEN_VALID_MS = 290_000

/**
 * The log-in token, which all calls share: one log-in serves everybody who waits for it. A token of the 4th minute is still
 * used while a new one is fetched. `elapsedMs` is a clock that nobody sets.
 */
export function createToken(logIn: () => Promise<string>, elapsedMs: () => number) {
  let current: { value: string; since: number } | undefined
  let renewing: Promise<string> | undefined

  function renewOnce(): Promise<string> {
    const since = elapsedMs()
    renewing ??= logIn()
      .then((value) => {
        current = { value, since }
        return value
      })
      .finally(() => {
        renewing = undefined
      })
    return renewing
  }

  return {
    /** `renew` is for a token that was refused: the next `get` fetches another one. */
    async get(signal: AbortSignal): Promise<{ value: string; renew: () => void }> {
      const age = current ? elapsedMs() - current.since : Number.POSITIVE_INFINITY
      // While the old one is good, a failed log-in harms nobody: the next call tries again.
      if (current && age < TOKEN_VALID_MS && age >= TOKEN_FRESH_MS) renewOnce().catch(() => undefined)
      const value = current && age < TOKEN_VALID_MS ? current.value : await untilAborted(renewOnce(), signal)
      const renew = () => {
        if (current?.value === value) current = undefined
      }
      return { value, renew }
    },
  }
}

/** Rejects when nobody waits for `promise` any more; it goes on for others. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new AcquirerFault('unavailable', 'the acquirer did not answer in time'))
    if (signal.aborted) late()
    signal.addEventListener('abort', late)
    promise.then(resolve, reject)
  })
}
