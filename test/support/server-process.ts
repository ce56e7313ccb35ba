import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const ROOT = join(import.meta.dirname, '../..')

export type ServerProcess = {
  url: string
  port: number
  opsPort: number
  pid: number
  child: ChildProcess
  /** Every line that it has logged. */
  log: string[]
  stop: () => Promise<void>
}

/** The service as a process of its own, on a port that the system picks; answers once it listens. */
export async function startServerProcess(
  databaseUrl: string,
  environment: Record<string, string> = {},
  { openFiles }: { openFiles?: number } = {},
): Promise<ServerProcess> {
  const service = [process.execPath, '--max-semi-space-size=16', '--import', 'tsx', 'src/server.ts']
  const limited = ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`, ...service]
  const [command, ...args] = openFiles === undefined ? service : limited
  const child = spawn(command as string, args, {
    cwd: ROOT,
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      PORT: '0',
      OPS_PORT: '0',
      SHUTDOWN_DRAIN_SECONDS: '0',
      PUBLIC_URL: 'http://localhost',
      ...environment,
    },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout as NodeJS.ReadableStream })
  const log: string[] = []
  lines.on('line', (line) => log.push(line))
  const { port, opsPort } = await new Promise<{ port: number; opsPort: number }>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the service ended with code ${code} before it listened`)))
    lines.on('line', (line) => {
      const { msg, address, ops } = JSON.parse(line)
      if (msg === 'listening') resolve({ port: Number(new URL(address).port), opsPort: Number(new URL(ops).port) })
    })
  })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    opsPort,
    pid: child.pid as number,
    child,
    log,
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}
