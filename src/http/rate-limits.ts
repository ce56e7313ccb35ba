import { setTimeout as sleep } from 'node:timers/promises'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '../errors.ts'
import type { Limits } from '../limits.ts'

const SECOND_MS = 1_000
/** Keys whose requests are paced at once: a limit for the memory. */
const PACED_KEYS = 10_000

export type RateLimits = Awaited<ReturnType<typeof registerRateLimits>>

/**
 * Limits by `request.publicKey`, counted in this process. Failures count by key and address together: without
 * TRUST_PROXY everybody behind a balancer has one address, and nobody must be locked out by a neighbour. Unknown keys count
 * by address alone, since each request may send another one; known keys of the same address are not refused for them.
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
 * Lets the requests of a key through `1 / limit` s apart: returns a promise for a request that has to wait, else undefined. A
 * tenth of a second's requests may come at once; further ones wait. When a second's requests wait already, it rejects with 429. Without this, a second's requests of one key made those of other keys wait for a third of a second. The rate
 * limit plugin is not used: when simultaneous requests exceed its limit by one, it lets none of them through.
 */
function paceByKey(limit: number, elapsedMs: () => number) {
  const distanceMs = SECOND_MS / limit
  const freeMs = SECOND_MS / 10
  /** When the next request of a key may go on. A key that was forgotten begins anew. */
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

/**
 * Refuses with 429 after a pause, because an immediate 429 brings the next request at once: 1,500 connections of one
 * key sent 15,000 requests a second, and other keys waited.
 */
async function refuseLater(limit: number): Promise<never> {
  // The pause is random, so that refused requests do not all come again at one moment.
  await sleep(SECOND_MS * (1 + Math.random()))
  throw tooManyRequests(limit, 'a second', 1)
}
