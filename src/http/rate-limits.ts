import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { tooManyRequests } from '../errors.ts'
import type { Limits } from '../limits.ts'

export type RateLimits = {
  /** Counts a request of an accepted key; throws 429 beyond its limit of this minute. */
  countRequest: (request: FastifyRequest) => Promise<void>
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
  requestsPerMinute: number,
  { windowMs, wrongSecrets, unknownKeys: unknownKeysLimit }: Limits['rates'],
): Promise<RateLimits> {
  await app.register(rateLimit, { global: false, timeWindow: windowMs })
  const requests = app.createRateLimit({ max: requestsPerMinute, keyGenerator: ({ publicKey }) => publicKey ?? '' })
  const failures = app.createRateLimit({
    max: wrongSecrets,
    keyGenerator: ({ publicKey, ip }) => `${publicKey} ${ip}`,
  })
  const unknownKeys = app.createRateLimit({ max: unknownKeysLimit, keyGenerator: ({ ip }) => ip })
  const counted = (limit: typeof requests) => async (request: FastifyRequest) => {
    const state = await limit(request)
    if ('isExceeded' in state && state.isExceeded) throw tooManyRequests(state.max, state.ttlInSeconds)
  }
  return {
    countRequest: counted(requests),
    countFailure: counted(failures),
    countUnknownKey: counted(unknownKeys),
  }
}
