import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { end, freePorts, hasEnded, ROOT, start } from './processes.ts'
import { untilListening } from './wait.ts'

/** Output of `npm run build`. */
export const BUILT_SERVER = join(ROOT, 'dist/server.js')
export const BUILT_OPS = join(ROOT, 'dist/cli/ops.js')

export type ServerProcess = {
  url: string
  port: number
  opsUrl: string
  opsPort: number
  pid: number
  child: ChildProcess
  /** Every logged line, unless the log is written to a file. */
  log: string[]
  /** Every line written to stderr. */
  errors: string[]
  hasEnded: () => boolean
  killHard: () => Promise<void>
  /** Sends SIGTERM and returns the exit code. */
  stop: () => Promise<number | null>
}

type Options = {
  /** The built service, which runs in production mode like the image; without it the sources run. */
  built?: string
  /** A module that is loaded before the service. */
  preload?: string
  /** Maximum number of open files, including connections. */
  openFiles?: number
  /** A program and its arguments that execute the service, such as `unshare`. */
  prefix?: string[]
  /** File for the log, or `/dev/null`, so that this process spends no time reading it. */
  logFile?: string
}

/**
 * Starts the service as a process, on 127.0.0.1 and free ports unless `environment` names others; resolves once it
 * responds.
 */
export async function startServerProcess(
  databaseUrl: string,
  environment: Record<string, string> = {},
  { built, preload, openFiles, prefix = [], logFile }: Options = {},
): Promise<ServerProcess> {
  const preloaded = preload === undefined ? [] : ['--import', preload]
  const program = built === undefined ? ['--import', 'tsx', 'src/server.ts'] : [built]
  const node = [process.execPath, '--max-semi-space-size=16', ...preloaded, ...program]
  const limited = openFiles === undefined ? [] : ['sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`]
  const [command = '', ...args] = [...prefix, ...limited, ...node]
  const [port, opsPort] = await freePorts(2)
  const env = {
    PATH: process.env.PATH,
    ...(built !== undefined && { NODE_ENV: 'production' }),
    DATABASE_URL: databaseUrl,
    PORT: String(port),
    OPS_PORT: String(opsPort),
    PUBLIC_URL: 'https://pay.example.in',
    SHUTDOWN_DRAIN_SECONDS: '0',
    ...environment,
  }
  const output = logFile === undefined ? 'pipe' : openSync(logFile, 'a')
  const child = start(command, args, { cwd: ROOT, env, stdio: ['ignore', output, 'pipe'] })
  if (typeof output === 'number') closeSync(output)

  const log: string[] = []
  const errors: string[] = []
  if (child.stdout) createInterface({ input: child.stdout }).on('line', (line) => log.push(line))
  if (child.stderr) createInterface({ input: child.stderr }).on('line', (line) => errors.push(line))
  const isGone = () => hasEnded(child)
  const url = `http://${environment.HOST ?? '127.0.0.1'}:${env.PORT}`
  await untilListening(`${url}/livez`, isGone).catch((error) => {
    throw new Error([error.message, ...log, ...errors].join('\n'))
  })
  return {
    url,
    port: Number(env.PORT),
    opsUrl: `http://127.0.0.1:${env.OPS_PORT}`,
    opsPort: Number(env.OPS_PORT),
    pid: child.pid as number,
    child,
    log,
    errors,
    hasEnded: isGone,
    killHard: async () => void (await end(child, 'SIGKILL')),
    stop: () => end(child),
  }
}
