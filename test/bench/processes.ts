import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

export const ROOT = join(import.meta.dirname, '../..')

const READY_TIMEOUT_MS = 30_000
const POLL_MS = 10
/** Linux counts processor time in hundredths of a second, whatever its clock does. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4_096

const living = new Set<ChildProcess>()

/** A child that does not outlive the benchmark. */
export function start(command: string, args: string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, options)
  living.add(child)
  child.once('exit', () => living.delete(child))
  return child
}

/** Ends what `start` has started; for the last moment of this process. */
export function killStarted(): void {
  for (const child of living) child.kill('SIGKILL')
}

/** Runs a program to its end and answers what it printed; throws when it fails. */
export async function run(
  command: string,
  args: string[],
  { env, discardOutput }: { env?: NodeJS.ProcessEnv; discardOutput?: boolean } = {},
): Promise<string> {
  const child = start(command, args, {
    cwd: ROOT,
    env: env ?? process.env,
    stdio: ['ignore', discardOutput ? 'ignore' : 'pipe', 'pipe'],
  })
  let output = ''
  let faults = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    output += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    faults += text
  })
  const [code] = (await once(child, 'close')) as [number | null]
  if (code !== 0) throw new Error(`${command} ${args[0]} ended with ${code}:\n${faults || output}`)
  return output
}

export type Service = { url: string; port: number; pid: number; stop: () => Promise<void> }

export type Program = {
  script: string
  env?: Record<string, string> /** Answered with 200 once it can serve. */
  readyPath: string
}

/** Starts a Node.js program in production mode on a port of its own, its standard output (the request log) at /dev/null. */
export async function launch({ script, env = {} }: Program): Promise<Service & { hasEnded: () => boolean }> {
  const port = await freePort()
  const child = start(process.execPath, [join(ROOT, script)], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, NODE_ENV: 'production', PORT: String(port), ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  })
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    pid: child.pid as number,
    stop: () => stop(child),
    hasEnded: () => child.exitCode !== null,
  }
}

/** As `launch`, and answers once the program is ready. */
export async function startService(program: Program): Promise<Service> {
  const { hasEnded, ...service } = await launch(program)
  const deadline = Date.now() + READY_TIMEOUT_MS
  while (!(await answers(service.url + program.readyPath))) {
    if (hasEnded()) throw new Error(`${program.script} ended before it was ready`)
    if (Date.now() > deadline) throw new Error(`${program.script} was not ready within ${READY_TIMEOUT_MS} ms`)
    await sleep(POLL_MS)
  }
  return service
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => undefined)
  await response?.arrayBuffer()
  return response?.status === 200
}

export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer()
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const address = server.address()
      server.close(() => resolve(typeof address === 'object' && address ? address.port : 0))
    })
  })
}

/** Memory of process `pid` that lies in RAM, in MB; 0 where the system does not tell. */
export function residentMB(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES) / 1e6
  } catch {
    return 0
  }
}

/** Processor seconds that process `pid` and its children, ended ones too, have used; 0 where the system does not tell. */
export function cpuSeconds(pid: number): number {
  let ticks = 0
  for (const it of readProcesses()) {
    if (it.pid === pid) ticks += it.ticks + it.ticksOfEndedChildren
    else if (it.parent === pid) ticks += it.ticks
  }
  return ticks / TICKS_PER_SECOND
}

type ProcessTimes = { pid: number; parent: number; ticks: number; ticksOfEndedChildren: number }

function readProcesses(): ProcessTimes[] {
  if (process.platform !== 'linux') return []
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, 'utf8')
        // The second field is the program's name, which may hold blanks and brackets.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15).map(Number)
        const ticks = { ticks: user + system, ticksOfEndedChildren: childrenUser + childrenSystem }
        return [{ pid: Number(name), parent: Number(fields[1]), ...ticks }]
      } catch {
        return []
      }
    })
}
