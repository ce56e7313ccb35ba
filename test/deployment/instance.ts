import { once } from 'node:events'
import { freePort, start } from '../bench/processes.ts'
import type { Deployment } from './deployment.ts'
import { untilAnswers } from './wait.ts'

export type Instance = {
  url: string
  port: number
  hasEnded: () => boolean
  /** Asks it to end by SIGTERM, and answers its exit code. */
  stop: () => Promise<number | null>
}

/** The built service in production mode, ready to serve; on a port of its own, unless one is given. */
export async function startInstance(
  { programs }: Deployment,
  environment: Record<string, string>,
  fixedPort?: number,
): Promise<Instance> {
  const port = fixedPort ?? (await freePort())
  const child = start(process.execPath, ['--max-semi-space-size=16', programs.server], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PUBLIC_URL: 'https://pay.example.in',
      PORT: String(port),
      OPS_PORT: '0',
      ...environment,
    },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  const url = `http://127.0.0.1:${port}`
  const hasEnded = () => child.exitCode !== null || child.signalCode !== null
  await untilAnswers(`${url}/readyz`, hasEnded)
  return {
    url,
    port,
    hasEnded,
    async stop() {
      if (hasEnded()) return child.exitCode
      const ended = once(child, 'exit')
      child.kill('SIGTERM')
      await ended
      return child.exitCode
    },
  }
}
