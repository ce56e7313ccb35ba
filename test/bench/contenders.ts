import { join } from 'node:path'
import { end, freePort, hasEnded, ROOT, start } from '../support/processes.ts'
import { untilListening } from '../support/wait.ts'
import { ENCRYPTION_KEYS } from '../support/webhooks.ts'
import type { Response } from './load.ts'

const PUBLIC_URL = 'https://pay.example.in'

/** Signs the acquirer's notifications. */
export const SECRET = 'secret-of-the-acquirer-in-a-benchmark'

/**
 * A Node.js program to compare. It serves requests once `readyPath` returns 200. Only the service returns what its
 * OpenAPI document says, so that the others' path is none of the document's.
 */
type Contender = { script: string; env: Record<string, string>; readyPath: string }

/** The image's flags of Node.js, for every contender. */
const FLAGS = ['--max-semi-space-size=16']

export type Service = { url: string; pid: number; stop: () => Promise<unknown> }

/**
 * The service from `npm run build`. Its rate limit is raised because a few keys send all requests, and it stops without draining because no load balancer is in front of it.
 */
const ours = (databaseUrl: string): Contender => ({
  script: 'dist/server.js',
  env: {
    DATABASE_URL: databaseUrl,
    PUBLIC_URL,
    OPS_PORT: '0',
    ACQUIRER_SECRETS: SECRET,
    WEBHOOK_SEALING_KEY: ENCRYPTION_KEYS[0]?.export().toString('base64') as string,
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    RATE_LIMIT_PER_SECOND: '1000000',
    SHUTDOWN_DRAIN_SECONDS: '0',
  },
  readyPath: '/readyz',
})

/** A bare Fastify server that returns `response` for every request and, with `logs`, writes one log line a request. */
export const floor = (response: Response, logs = false): Contender => ({
  script: 'test/bench/contenders/floor.mjs',
  env: { RESPONSE: JSON.stringify(response), ...(logs && { LOG: 'on' }) },
  readyPath: '/ready',
})

/** The reference: the same calls as a competent developer writes them first, on the same schema. */
export const typical = (databaseUrl: string): Contender => ({
  script: 'test/bench/contenders/typical.mjs',
  env: { DATABASE_URL: databaseUrl, PUBLIC_URL, SECRET },
  readyPath: '/ready',
})

/**
 * Starts a contender in production mode and waits until it is ready. Its request log goes to /dev/null, so that no
 * terminal slows it down.
 */
export async function startContender({ script, env, readyPath }: Contender): Promise<Service> {
  const port = await freePort()
  const child = start(process.execPath, [...FLAGS, join(ROOT, script)], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  await untilListening(url + readyPath, () => hasEnded(child))
  return { url, pid: child.pid as number, stop: () => end(child) }
}

export const startOurs = (databaseUrl: string): Promise<Service> => startContender(ours(databaseUrl))
