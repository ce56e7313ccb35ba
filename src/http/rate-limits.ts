import { setTimeout as sleep } from 'node:timers/promises'
import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { tooManyRequests } from '../errors.ts'
import type { Limits } from '../limits.ts'

const SECOND_MS = 1_000

export type RateLimits = {
  /** Counts a request of an accepted key; beyond its limit of this second it rejects with 429, 1 to 2 s later. */
  countRequest: (publicKey: string) => Promise<never> | undefined
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
  { windowMs, wrongSecrets, unknownKeys }: Limits['rates'],
  elapsedMs: () => number,
): Promise<RateLimits> {
  await app.register(rateLimit, { global: false, timeWindow: windowMs })
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
    countRequest: countBySecond(requestsPerSecond, elapsedMs),
    countFailure: counted(failures),
    countUnknownKey: counted(unknown),
  }
}

/**
 * Not by the plugin: of requests that come at once it lets none pass where one is too many, and each costs two promises. Told
 * at once, 429 would bring the next request at once: 1,500 connections of one key sent 15,000 a second, and others waited.
 */
function countBySecond(limit: number, elapsedMs: () => number): RateLimits['countRequest'] {
  let second = 0
  let counts = new Map<string, number>()
  return (publicKey) => {
    const present = Math.floor(elapsedMs() / SECOND_MS)
    if (present !== second) {
      second = present
      counts = new Map()
    }
    const count = (counts.get(publicKey) ?? 0) + 1
    counts.set(publicKey, count)
    return count > limit ? refuseLater(limit) : undefined
  }
}

async function refuseLater(limit: number): Promise<never> {
  // Spread, or all of them would come again at one moment.
  await sleep(SECOND_MS * (1 + Math.random()))
  throw tooManyRequests(limit, 'a second', 1)
}
