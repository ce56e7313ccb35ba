import { setTimeout as sleep } from 'node:timers/promises'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { LRUCache } from 'lru-cache'
import { tooManyRequests } from '../errors.ts'
import type { Limits } from '../limits.ts'

const SECOND_MS = 1_000
/** Keys whose requests are paced at once: a limit for the memory. */
const PACED_KEYS = 10_000

export type RateLimits = {
  /** Waits for the time of a request of an accepted key; where its second is full, it rejects with 429, 1 to 2 s later. */
  paceRequest: (publicKey: string) => Promise<void> | undefined
  /** Counts a wrong secret of a key; throws 429 when there were too many. Right credentials are never held up. */
  countFailure: (request: FastifyRequest) => Promise<void>
  /** Counts a public key that nobody has; throws 429 when there were too many. Known keys are never held up. */
  countUnknownKey: (request: FastifyRequest) => Promise<void>
}

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
): Promise<RateLimits> {
  await app.register(rateLimit, { global: false, timeWindow: 60 * SECOND_MS })
  const failures = app.createRateLimit({
    max: wrongSecrets,
    keyGenerator: ({ publicKey, ip }) => `${publicKey} ${ip}`,
  })
  const unknown = app.createRateLimit({ max: unknownKeys, keyGenerator: ({ ip }) => ip })
  const counted = (limit: typeof unknown) => async (request: FastifyRequest) => {
    const state = await limit(request)
    if ('isExceeded' in state && state.isExceeded) throw tooManyRequests(state.max, 'a minute', state.ttlInSeconds)
  }
  return {
    paceRequest: paceByKey(requestsPerSecond, elapsedMs),
    countFailure: counted(failures),
    countUnknownKey: counted(unknown),
  }
}

/**
 * The requests of a key are `1 / limit` s apart, but for a tenth of a second's that may come at once; those that come sooner wait.
 * Let through at once, a second's requests of one key kept those of others waiting for a third of it. Not by the plugin: of
 * requests that come at once it lets none pass where one is too many.
 */
function paceByKey(limit: number, elapsedMs: () => number): RateLimits['paceRequest'] {
  const distanceMs = SECOND_MS / limit
  const freeMs = SECOND_MS / 10
  /** When the next request of a key may go on. A key that was forgotten begins anew. */
  const times = new LRUCache<string, number>({ max: PACED_KEYS })
  return (publicKey) => {
    const present = elapsedMs()
    const time = Math.max(times.get(publicKey) ?? 0, present - freeMs)
    // With those that need not wait they are as many as a second has.
    if (time - present > SECOND_MS - freeMs - distanceMs / 2) return refuseLater(limit)
    times.set(publicKey, time + distanceMs)
    return time > present ? sleep(time - present) : undefined
  }
}

/** Told at once, 429 would bring the next request at once: 1,500 connections of one key sent 15,000 a second, and others waited. */
async function refuseLater(limit: number): Promise<never> {
  // Spread, or all of them would come again at one moment.
  await sleep(SECOND_MS * (1 + Math.random()))
  throw tooManyRequests(limit, 'a second', 1)
}
