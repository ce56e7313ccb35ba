import { unanswered } from '../errors.ts'

/** A token is valid for 300 s. Setu advises renewal in the 4th minute. The last 10 s are reserved for slow requests. */
const TOKEN_FRESH_MS = 240_000
const TOKEN_VALID_MS = 290_000

/**
 * The log-in token of all calls. One log-in serves every call that waits for it. A token that is 240 s to 290 s old is
 * used while a new one is fetched. `elapsedMs` is a monotonic clock.
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
    /** When Setu has refused the token, call `renew`: the next `get` then fetches a new token. */
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

/** Settles as `promise`, or rejects when `signal` aborts first. Other calls share `promise`, so it goes on. */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(unanswered('the acquirer did not answer in time'))
    if (signal?.aborted) late()
    signal?.addEventListener('abort', late)
    promise.then(resolve, reject)
  })
}
