import { join } from 'node:path'
import { end, freePort, hasEnded, ROOT, start } from '../support/processes.ts'
import { untilAnswers } from '../support/wait.ts'
import { SEALING_KEYS } from '../support/webhooks.ts'

const PUBLIC_URL = 'https://pay.example.in'

/** Signs notifications. */
export const SECRET = 'secret-of-the-acquirer-in-a-benchmark'

/** A Node.js program that is compared; `readyPath` is answered with 200 once it can serve. `flags` are those of Node.js. */
type Contender = { script: string; flags?: string[]; env?: Record<string, string>; readyPath: string }

export type Service = { url: string; pid: number; stop: () => Promise<unknown> }

/**
 * The service as it is shipped, from `npm run build`, with the flags of the image. Only the rate limit is raised, since few keys send everything; and
 * there is no load balancer whose attention it would have to wait for when it stops.
 */
const ours = (databaseUrl: string): Contender => ({
  script: 'dist/server.js',
  flags: ['--max-semi-space-size=16'],
  env: {
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    OPS_PORT: '0',
    ACQUIRER_SECRETS: SECRET,
    WEBHOOK_SEALING_KEY: SEALING_KEYS[0]?.export().toString('base64') as string,
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    RATE_LIMIT_PER_SECOND: '1000000',
    SHUTDOWN_DRAIN_SECONDS: '0',
  },
  readyPath: '/readyz',
})

/** Bare Fastify that answers everything with `answer`, and logs its requests as Fastify does where `logs`. */
export const floor = (answer: string, logs = false): Contender => ({
  script: 'test/bench/contenders/floor.mjs',
  env: { ANSWER: answer, ...(logs && { LOG: 'on' }) },
  readyPath: '/livez',
})

/** What a competent developer writes first, on the same schema. */
export const typical = (databaseUrl: string): Contender => ({
  script: 'test/bench/contenders/typical.mjs',
  env: { DATABASE_URL: databaseUrl, PUBLIC_URL, SECRET },
  readyPath: '/livez',
})

/** Starts a contender in production mode on a port of its own, its standard output (the request log) at /dev/null, until it is ready. */
export async function startContender({ script, flags = [], env = {}, readyPath }: Contender): Promise<Service> {
  const port = await freePort()
  const child = start(process.execPath, [...flags, join(ROOT, script)], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  await untilAnswers(url + readyPath, () => hasEnded(child))
  return { url, pid: child.pid as number, stop: () => end(child) }
}

export const startOurs = (databaseUrl: string): Promise<Service> => startContender(ours(databaseUrl))
