import { noResponse } from '../../errors.ts'
import { type JsonResponse, throwUndone } from './json-request.ts'

/**
 * An access token. The service renews the token after `freshMs` and uses it for at most `validMs`. Both times
 * start with the login.
 */
export type Token = { value: string; freshMs: number; validMs: number }

/**
 * Pause between two renewals of a token that is still valid, and after the acquirer rejects a call with a new token.
 */
const RENEWAL_PAUSE_MS = 10_000

/**
 * Sends calls with a shared access token. Concurrent calls wait for one login. While a new token is fetched, calls use
 * the old one until it expires. `elapsedMs` is a monotonic clock.
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
    // A failed renewal is ignored while the old token is valid, because a later call renews it.
    if (usable && age >= usable.freshMs && elapsedMs() >= renewalAt) renewOnce().catch(() => undefined)
    return usable?.value ?? untilAborted(renewOnce(), signal)
  }

  /** Sends a call with the token, and once more with a new token if the acquirer returns 401. */
  async function sendWithToken(
    call: (token: string) => Promise<JsonResponse>,
    signal: AbortSignal | undefined,
  ): Promise<JsonResponse> {
    // If the login fails, the call is not sent, so the error is marked as having changed nothing.
    const token = await getToken(signal).catch(throwUndone)
    const response = await call(token)
    if (response.status !== 401 || elapsedMs() < replacedFrom) return response
    if (current?.value === token) current = undefined
    const again = await call(await getToken(signal).catch(throwUndone))
    // The acquirer also rejects a new token, so it is not the cause. The pause avoids a useless login for every
    // call.
    if (again.status === 401) replacedFrom = elapsedMs() + RENEWAL_PAUSE_MS
    return again
  }

  return { getToken, sendWithToken }
}

/**
 * Settles like `promise`, or rejects if `signal` aborts first. `promise` itself is not cancelled, because other calls
 * share it.
 */
function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  return new Promise((resolve, reject) => {
    const late = () => reject(noResponse('the acquirer did not respond in time'))
    if (signal?.aborted) late()
    signal?.addEventListener('abort', late)
    promise.then(resolve, reject)
  })
}
