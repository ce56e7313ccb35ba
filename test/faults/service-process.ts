import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { ROOT, start } from '../bench/processes.ts'
import { ACQUIRER_SECRET } from './tenant.ts'

export type ServiceProcess = {
  url: string
  opsUrl: string
  pid: number
  hasEnded: () => boolean
  signal: (signal: NodeJS.Signals) => void
  killHard: () => Promise<void>
  stop: () => Promise<void>
}

/**
 * The service as it is shipped, from `npm run build`, on ports that the system picks; answers once it listens. `openFiles` is
 * the most that it may have open, connections included.
 */
export async function startServiceProcess(
  databaseUrl: string,
  { env = {}, preload, openFiles }: { env?: Record<string, string>; preload?: string; openFiles?: number } = {},
): Promise<ServiceProcess> {
  const preloaded = preload === undefined ? [] : ['--import', preload]
  const command = [process.execPath, '--max-semi-space-size=16', ...preloaded, join(ROOT, 'dist/server.js')]
  const limited = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles} && exec "$@"`, 'sh']
  const [program = '', ...args] = [...limited, ...command]
  const child = start(program, args, {
    cwd: ROOT,
    env: {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      PORT: '0',
      OPS_PORT: '0',
      PUBLIC_URL: 'https://pay.example.in',
      ACQUIRER_SECRETS: ACQUIRER_SECRET,
      SHUTDOWN_DRAIN_SECONDS: '0',
      DATABASE_URL: databaseUrl,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const exited = once(child, 'exit')
  const output = child.stdout as NodeJS.ReadableStream
  const lines = createInterface({ input: output })
  const { address, ops } = await new Promise<{ address: string; ops: string }>((resolve, reject) => {
    exited.then(([code]) => reject(new Error(`the service ended with code ${code} before it listened`)))
    lines.on('line', (line) => {
      const entry = JSON.parse(line)
      if (entry.msg === 'listening') resolve(entry)
    })
  })
  lines.close()
  // The log is not looked at, but a full pipe would stop the service.
  output.resume()
  return {
    url: address,
    opsUrl: ops,
    pid: child.pid as number,
    hasEnded: () => child.exitCode !== null || child.signalCode !== null,
    signal: (signal) => void child.kill(signal),
    async killHard() {
      child.kill('SIGKILL')
      await exited
    },
    async stop() {
      child.kill('SIGTERM')
      await exited
    },
  }
}
