import type { FastifyInstance } from 'fastify'
import type { Limits } from '../../limits.ts'
import { registerRateLimits } from '../../platform/http/rate-limits.ts'
import { type Authentication, registerAuthentication } from './authenticate.ts'

type Dependencies = Omit<Authentication, 'rateLimits'> & {
  config: { rateLimitPerSecond: number }
  limits: Pick<Limits, 'rates'>
  elapsedMs: () => number
  sleep: (ms: number) => Promise<unknown>
}

/** Every route of `app` requires an API key, whose requests are limited. */
export async function requireKey(app: FastifyInstance, dependencies: Dependencies) {
  const { config, limits } = dependencies
  const rateLimits = await registerRateLimits(app, config.rateLimitPerSecond, limits.rates, dependencies)
  await registerAuthentication(app, { ...dependencies, rateLimits })
}
