import type { FastifyInstance } from 'fastify'
import type { Limits } from '../../limits.ts'
import { registerRateLimits } from '../../platform/http/rate-limits.ts'
import { refuseWhileLate } from '../../platform/http/time-limits.ts'
import { type Authentication, registerAuthentication } from './authenticate.ts'

type Dependencies = Omit<Authentication, 'rateLimits'> & {
  config: { rateLimitPerSecond: number }
  limits: Pick<Limits, 'rates' | 'lateness'>
  elapsedMs: () => number
  sleep: (ms: number) => Promise<unknown>
  latenessMs: () => number
}

/** Every route of `app` requires an API key, whose requests are limited. */
export async function requireKey(app: FastifyInstance, dependencies: Dependencies) {
  const { config, limits, latenessMs } = dependencies
  refuseWhileLate(app, latenessMs, limits.lateness.operationsMs)
  const rateLimits = await registerRateLimits(app, config.rateLimitPerSecond, limits.rates, dependencies)
  await registerAuthentication(app, { ...dependencies, rateLimits })
}
