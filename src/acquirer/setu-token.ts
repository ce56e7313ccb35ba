import { AcquirerError } from '../errors.ts'

/**
 * A token is valid for 300 s, and Setu advises a new one in the 4th minute. It is used until 290 s: the last call needs
 * time on its way.
 */
const TOKEN_FRESH_MS = 240_000
const TOKEN_VALID_MS = 290_000

/**
 * The log-in token, which all calls share: one log-in serves every call that waits for it. From 240 s to 290 s of age
 * the token is still used while a new one is fetched. `elapsedMs` is a monotonic clock.
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
    /** Returns the token. After the token was refused, call `renew`: the next `get` then fetches another one. */
    async get(signal: AbortSignal | undefined): Promise<{ value: string; renew: () => void }> {
      const age = current ? elapsedMs() - current.since : Number.POSITIVE_INFINITY
      // A failed log-in is ignored while the old token is valid: the next call tries again.
      if (current && age < TOKEN_VALID_MS && age >= TOKEN_FRESH_MS) renewOnce().catch(() => undefined)
      const value = current && age < TOKEN_VALID_MS ? current.value : await untilAborted(renewOnce(), signal)
      const renew = () => {
        if (current?.value === value) current = undefined
      }
      return { value, renew }
    },
  }
}

/**
 * Resolves as `promise` does, and rejects when `signal` aborts first. `promise` itself goes on for its other callers.
 */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(new AcquirerError('unavailable', 'the acquirer did not answer in time'))
    if (signal?.aborted) late()
    signal?.addEventListener('abort', late)
    promise.then(resolve, reject)
  })
}
