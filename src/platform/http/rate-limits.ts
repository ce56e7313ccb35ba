import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '../../errors.ts'
import type { Limits } from '../../limits.ts'

const SECOND_MS = 1_000
/** Keys whose next time is stored, to limit the memory. The least recently used key is dropped first. */
const PACED_KEYS = 10_000

/** `elapsedMs` is monotonic; `sleep` resolves after `ms` milliseconds. */
type Clock = { elapsedMs: () => number; sleep: (ms: number) => Promise<unknown> }

/**
 * Rate limits, counted in this process. Wrong secrets are counted by key and address: without TRUST_PROXY all callers
 * behind a balancer have one address, and no caller must be locked out by another. Unknown keys are counted by address
 * alone, since each request may send another key; they do not cause refusals of known keys from the same address.
 */
export async function registerRateLimits(
  app: FastifyInstance,
  requestsPerSecond: number,
  { wrongSecrets, unknownKeys }: Limits['rates'],
  clock: Clock,
) {
  await app.register(rateLimit, { global: false, timeWindow: 60 * SECOND_MS })
  const countBy = (keyGenerator: (request: FastifyRequest) => string, max: number) => {
    const count = app.createRateLimit({ max, keyGenerator })
    return async (request: FastifyRequest) => {
      const state = await count(request)
      if ('isExceeded' in state && state.isExceeded) throw tooManyRequests(state.max, 'a minute', state.ttlInSeconds)
    }
  }
  return {
    paceRequest: paceByKey(requestsPerSecond, clock),
    /** Counts a wrong secret of a key; throws 429 after too many. Right credentials are never refused for it. */
    countFailure: countBy(({ publicKey, ip }) => `${publicKey} ${ip}`, wrongSecrets),
    /** Counts a public key that nobody has; throws 429 after too many. Known keys are never refused for it. */
    countUnknownKey: countBy(({ ip }) => ip, unknownKeys),
  }
}

/**
 * Starts the requests of a key `1 / limit` s apart, so that one key does not delay the requests of others. Returns a
 * promise for a request that has to wait, else undefined. Of simultaneous requests `limit / 10` need not wait, and all
 * beyond `limit` get a promise that rejects with 429. The rate limit plugin would refuse all of them when they exceed
 * the limit by one.
 */
function paceByKey(limit: number, { elapsedMs, sleep }: Clock) {
  const distanceMs = SECOND_MS / limit
  const freeMs = SECOND_MS / 10
  /** Earliest time of the next request of each key, by `elapsedMs`. */
  const times = new LRUCache<string, number>({ max: PACED_KEYS })
  return (publicKey: string) => {
    const present = elapsedMs()
    const time = Math.max(times.get(publicKey) ?? 0, present - freeMs)
    // At most `limit` simultaneous requests: a tenth that need not wait, and nine tenths that wait.
    if (time - present > SECOND_MS - freeMs - distanceMs / 2) return refuseLater()
    times.set(publicKey, time + distanceMs)
    return time > present ? sleep(time - present) : undefined
  }

  /** Refuses with 429 after a pause. After an immediate 429 the client repeats at once, and other keys wait. */
  async function refuseLater(): Promise<never> {
    // The pause is random, so that refused requests are not all repeated at the same moment.
    await sleep(SECOND_MS * (1 + Math.random()))
    throw tooManyRequests(limit, 'a second', 1)
  }
}
