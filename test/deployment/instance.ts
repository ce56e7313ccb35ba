import { once } from 'node:events'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
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

/** What all instances log, in the directory of the trial. */
export const INSTANCE_LOG = 'instances.log'

/** The built service in production mode, ready to serve; on a port of its own, unless one is given. */
export async function startInstance(
  { programs, directory }: Deployment,
  environment: Record<string, string>,
  fixedPort?: number,
): Promise<Instance> {
  const port = fixedPort ?? (await freePort())
  const log = openSync(join(directory, INSTANCE_LOG), 'a')
  const child = start(process.execPath, ['--max-semi-space-size=16', programs.server], {
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PUBLIC_URL: 'https://pay.example.in',
      PORT: String(port),
      OPS_PORT: '0',
      ...environment,
    },
    stdio: ['ignore', log, 'inherit'],
  })
  closeSync(log)
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
