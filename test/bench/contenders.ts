import { type Service, startService } from './processes.ts'

/** The service as it is shipped, from `npm run build`; only the rate limit is raised, since one key sends everything. */
export function startOurs(databaseUrl: string): Promise<Service> {
  const env = {
    DATABASE_URL: databaseUrl,
    PUBLIC_URL: 'https://pay.example.in',
    OPS_PORT: '0',
    RATE_LIMIT_PER_MINUTE: '60000000',
  }
  return startService('dist/server.js', { env, readyPath: '/readyz' })
}

/** Bare Fastify that answers everything with `answer`. */
export function startFloor(answer: string): Promise<Service> {
  return startService('test/bench/contenders/floor.mjs', { env: { ANSWER: answer }, readyPath: '/livez' })
}

/** What a competent developer writes first, on the same schema. */
export function startTypical(databaseUrl: string): Promise<Service> {
  const env = { DATABASE_URL: databaseUrl, PUBLIC_URL: 'https://pay.example.in' }
  return startService('test/bench/contenders/typical.mjs', { env, readyPath: '/livez' })
}
