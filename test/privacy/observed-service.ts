import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

const ROOT = join(import.meta.dirname, '../..')
const START_LIMIT_MS = 20_000

export type ObservedService = {
  url: string
  metricsUrl: string
  /** Ends it and answers all that it has ever written to stdout and stderr. */
  stop: () => Promise<string>
}

/** The service as a process that logs all it can, every byte of which is kept. */
export async function startObservedService(environment: Record<string, string>): Promise<ObservedService> {
  const child = spawn(process.execPath, ['--import', 'tsx', 'src/server.ts'], {
    cwd: ROOT,
    env: {
      ...process.env,
      LOG_LEVEL: 'trace',
      PORT: '0',
      OPS_PORT: '0',
      SHUTDOWN_DRAIN_SECONDS: '0',
      PUBLIC_URL: 'http://localhost',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  const ended = once(child, 'close')
  const deadline = performance.now() + START_LIMIT_MS
  let listening: { address: string; ops: string } | undefined
  while (listening === undefined) {
    if (child.exitCode !== null || performance.now() > deadline) throw new Error(`the service did not start: ${output}`)
    await sleep(50)
    const line = output.split('\n').find((text) => text.includes('"msg":"listening"'))
    listening = line === undefined ? undefined : JSON.parse(line)
  }
  return {
    url: listening.address.replace('localhost', '127.0.0.1'),
    metricsUrl: `${listening.ops.replace('localhost', '127.0.0.1')}/metrics`,
    async stop() {
      child.kill('SIGTERM')
      await ended
      return output
    },
  }
}
