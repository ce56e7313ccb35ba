import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { tooManyInvalidCredentials, tooManyRequests } from '../../errors.ts'
import type { Limits } from '../../limits.ts'

const SECOND_MS = 1_000
/**
 * Largest number of keys whose next start time is stored, to limit the memory. The least recently used key is dropped
 * first.
 */
const PACED_KEYS = 10_000

/** `elapsedMs` is a monotonic clock in milliseconds; `sleep` resolves after `ms` milliseconds. */
type Clock = { elapsedMs: () => number; sleep: (ms: number) => Promise<unknown> }

/**
 * Limits for invalid credentials, counted in this process. Wrong secrets are counted per key and address: without
 * TRUST_PROXY, all callers behind a load balancer share one address, and one caller must not lock out another. Unknown
 * keys are counted only per address, because each request may send a different key. Unknown keys never cause the
 * rejection of existing keys from the same address.
 */
export async function registerCredentialLimits(app: FastifyInstance, { wrongSecrets, unknownKeys }: Limits['rates']) {
  await app.register(rateLimit, { global: false, timeWindow: 60 * SECOND_MS })
  const countBy = (keyGenerator: (request: FastifyRequest) => string, max: number) => {
    const count = app.createRateLimit({ max, keyGenerator })
    return async (request: FastifyRequest) => {
      const state = await count(request)
      if ('isExceeded' in state && state.isExceeded) throw tooManyInvalidCredentials(state.max, state.ttlInSeconds)
    }
  }
  return {
    /**
     * Counts a wrong secret for a key; throws 429 after too many wrong secrets. The count never causes the rejection of
     * valid credentials.
     */
    countFailure: countBy(({ publicKey, ip }) => `${publicKey} ${ip}`, wrongSecrets),
    /**
     * Counts a public key that does not exist; throws 429 after too many unknown keys. The count never causes the
     * rejection of existing keys.
     */
    countUnknownKey: countBy(({ ip }) => ip, unknownKeys),
  }
}

/**
 * Starts the requests of a key `1 / limit` s apart, so that one key does not delay the requests of other keys. Returns
 * a promise for a request that has to wait, otherwise undefined. The first `limit / 10` concurrent requests do not
 * wait, and requests beyond `limit` get a promise that rejects with 429. The rate-limit plugin would reject all
 * concurrent requests as soon as they exceed the limit by one.
 */
export function paceByKey(limit: number, { elapsedMs, sleep }: Clock) {
  const distanceMs = SECOND_MS / limit
  const freeMs = SECOND_MS / 10
  /** Earliest start of the next request of each key, on the clock `elapsedMs`. */
  const times = new LRUCache<string, number>({ max: PACED_KEYS })
  return (publicKey: string) => {
    const present = elapsedMs()
    const time = Math.max(times.get(publicKey) ?? 0, present - freeMs)
    // Allows `limit` concurrent requests: one tenth starts immediately, nine tenths wait.
    if (time - present > SECOND_MS - freeMs - distanceMs / 2) return rejectLater()
    times.set(publicKey, time + distanceMs)
    return time > present ? sleep(time - present) : undefined
  }

  /**
   * Rejects with 429 after a pause. After an immediate 429, a client would retry immediately and delay the requests of
   * other keys.
   */
  async function rejectLater(): Promise<never> {
    // The pause is random, so that rejected requests are not all retried at the same moment.
    await sleep(SECOND_MS * (1 + Math.random()))
    throw tooManyRequests(limit, 1)
  }
}
