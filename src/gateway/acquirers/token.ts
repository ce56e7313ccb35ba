import { unanswered } from '../../errors.ts'
import { type JsonAnswer, throwUndone } from './json-request.ts'

/** A log-in token. It is renewed from `freshMs` on, and used for at most `validMs`, both after its log-in began. */
export type Token = { value: string; freshMs: number; validMs: number }

/** Pause between two attempts to renew a token that can still be used, or after a call that a new token was refused for. */
const RENEWAL_PAUSE_MS = 10_000

/**
 * Sends calls with one log-in token. One log-in serves every call that waits for it. A token that is not fresh any more is
 * used while a new one is fetched. `elapsedMs` is a monotonic clock.
 */
export function createToken(logIn: () => Promise<Token>, elapsedMs: () => number) {
  let current: (Token & { since: number }) | undefined
  let renewing: Promise<string> | undefined
  let renewalAt = 0
  let replacedFrom = 0

  function renewOnce(): Promise<string> {
    const since = elapsedMs()
    renewalAt = since + RENEWAL_PAUSE_MS
    renewing ??= logIn()
      .then((token) => {
        current = { ...token, since }
        return token.value
      })
      .finally(() => {
        renewing = undefined
      })
    return renewing
  }

  async function getToken(signal: AbortSignal | undefined): Promise<string> {
    const age = current ? elapsedMs() - current.since : 0
    const usable = current && age < current.validMs ? current : undefined
    // A failed log-in is ignored while the old token is valid: a later call tries again.
    if (usable && age >= usable.freshMs && elapsedMs() >= renewalAt) renewOnce().catch(() => undefined)
    return usable?.value ?? untilAborted(renewOnce(), signal)
  }

  /** Sends a call with the token, and once more with a new token if the acquirer answers 401. */
  async function sendWithToken(
    call: (token: string) => Promise<JsonAnswer>,
    signal: AbortSignal | undefined,
  ): Promise<JsonAnswer> {
    // Without a token nothing is sent.
    const token = await getToken(signal).catch(throwUndone)
    const answer = await call(token)
    if (answer.status !== 401 || elapsedMs() < replacedFrom) return answer
    if (current?.value === token) current = undefined
    const again = await call(await getToken(signal).catch(throwUndone))
    // The fault is not the token's: a log-in for each call would not mend it.
    if (again.status === 401) replacedFrom = elapsedMs() + RENEWAL_PAUSE_MS
    return again
  }

  return { getToken, sendWithToken }
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
