import { type Program, type Service, startService } from './processes.ts'

const PUBLIC_URL = 'https://pay.example.in'

/**
 * The service as it is shipped, from `npm run build`. Only the rate limit is raised, since few keys send everything; and
 * there is no load balancer whose attention it would have to wait for when it stops.
 */
export const ours = (databaseUrl: string): Program => ({
  script: 'dist/server.js',
  env: {
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    OPS_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '60000000',
    SHUTDOWN_DRAIN_SECONDS: '0',
  },
  readyPath: '/readyz',
})

/** Bare Fastify that answers everything with `answer`. */
export const floor = (answer: string): Program => ({
  script: 'test/bench/contenders/floor.mjs',
  env: { ANSWER: answer },
  readyPath: '/livez',
})

/** What a competent developer writes first, on the same schema. */
export const typical = (databaseUrl: string): Program => ({
  script: 'test/bench/contenders/typical.mjs',
  env: { DATABASE_URL: databaseUrl, PUBLIC_URL },
  readyPath: '/livez',
})

export const startOurs = (databaseUrl: string): Promise<Service> => startService(ours(databaseUrl))
