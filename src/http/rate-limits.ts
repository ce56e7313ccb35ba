import { setTimeout as sleep } from 'node:timers/promises'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '../errors.ts'
import type { Limits } from '../limits.ts'

const SECOND_MS = 1_000
/** A limit for the memory. */
const PACED_KEYS = 10_000

export type RateLimits = Awaited<ReturnType<typeof registerRateLimits>>

/**
 * Limits by `request.publicKey`, counted in this process. Wrong secrets are counted by key and address: without TRUST_PROXY all
 * callers behind a balancer have one address, and no caller must be locked out by another. Unknown keys are counted by address
 * alone, since each request may send another key; known keys of the address are not refused for them.
 */
export async function registerRateLimits(
  app: FastifyInstance,
  requestsPerSecond: number,
  { wrongSecrets, unknownKeys }: Limits['rates'],
  elapsedMs: () => number,
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
    paceRequest: paceByKey(requestsPerSecond, elapsedMs),
    /** Counts a wrong secret of a key; throws 429 when there were too many. Right credentials are never held up. */
    countFailure: countBy(({ publicKey, ip }) => `${publicKey} ${ip}`, wrongSecrets),
    /** Counts a public key that nobody has; throws 429 when there were too many. Known keys are never held up. */
    countUnknownKey: countBy(({ ip }) => ip, unknownKeys),
  }
}

/**
 * Paces the requests of a key `1 / limit` s apart, so that one key does not delay the requests of others. Returns a promise for a
 * request that has to wait, else undefined. A tenth of a second's requests may come at once. When a second's requests wait
 * already, the promise rejects with 429. Not by the rate limit plugin, which refuses all simultaneous requests when they exceed
 * the limit by one.
 */
function paceByKey(limit: number, elapsedMs: () => number) {
  const distanceMs = SECOND_MS / limit
  const freeMs = SECOND_MS / 10
  /** Time of a key's next request. */
  const times = new LRUCache<string, number>({ max: PACED_KEYS })
  return (publicKey: string) => {
    const present = elapsedMs()
    const time = Math.max(times.get(publicKey) ?? 0, present - freeMs)
    // Waiting requests and the tenth that need not wait are together at most a second's requests.
    if (time - present > SECOND_MS - freeMs - distanceMs / 2) return refuseLater(limit)
    times.set(publicKey, time + distanceMs)
    return time > present ? sleep(time - present) : undefined
  }
}

/** Refuses with 429 after a pause: after an immediate 429 the next request comes at once, and other keys wait. */
async function refuseLater(limit: number): Promise<never> {
  // The pause is random, so that refused requests do not come again at one moment.
  await sleep(SECOND_MS * (1 + Math.random()))
  throw tooManyRequests(limit, 'a second', 1)
}
