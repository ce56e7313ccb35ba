import rateLimit from '@fastify/rate-limit'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { tooManyRequests } from '../errors.ts'

const WINDOW_MS = 60_000
/** Wrong credentials for one public key from one address in a minute. */
const FAILURES_PER_MINUTE = 20

export type RateLimits = {
  /** Counts a request of an accepted key; throws 429 when the key has had its share of this minute. */
  countRequest: (request: FastifyRequest) => Promise<void>
  /** Counts a refused credential; throws 429 when there were too many. Right credentials are never held up. */
  countFailure: (request: FastifyRequest) => Promise<void>
}

/**
 * Limits by `request.publicKey`, counted in this process. Failures count by key and address together: without
 * TRUST_PROXY everybody behind a balancer has one address, and nobody must be locked out by a neighbour.
 */
export async function registerRateLimits(app: FastifyInstance, requestsPerMinute: number): Promise<RateLimits> {
  await app.register(rateLimit, { global: false, timeWindow: WINDOW_MS })
  const requests = app.createRateLimit({ max: requestsPerMinute, keyGenerator: ({ publicKey }) => publicKey ?? '' })
  const failures = app.createRateLimit({
    max: FAILURES_PER_MINUTE,
    keyGenerator: ({ publicKey, ip }) => `${publicKey} ${ip}`,
  })
  const counted = (limit: typeof requests) => async (request: FastifyRequest) => {
    const state = await limit(request)
    if ('isExceeded' in state && state.isExceeded) throw tooManyRequests(state.max, state.ttlInSeconds)
  }
  return { countRequest: counted(requests), countFailure: counted(failures) }
}
