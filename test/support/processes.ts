import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type AddressInfo, createServer } from 'node:net'
import { delimiter, join } from 'node:path'
import { pathToFileURL } from 'node:url'

export const ROOT = join(import.meta.dirname, '../..')

/** Arguments with which Node.js runs a TypeScript program from any folder. */
export const TYPESCRIPT = ['--import', pathToFileURL(createRequire(import.meta.url).resolve('tsx')).href]

/** Linux counts processor time in hundredths of a second, whatever its clock rate. */
const TICKS_PER_SECOND = 100
const PAGE_BYTES = 4_096

const living = new Set<ChildProcess>()

/** Starts a child that `killStarted` kills if it is still running. */
export function start(command: string, args: string[], options: SpawnOptions): ChildProcess {
  const child = spawn(command, args, options)
  living.add(child)
  child.once('exit', () => living.delete(child))
  return child
}

/** Kills what `start` has started; for the end of a test file or of this process. */
export function killStarted(): void {
  for (const child of living) child.kill('SIGKILL')
}

/** Starts a program and collects its output. */
export function startReading(command: string, args: string[], options: Pick<SpawnOptions, 'cwd' | 'env'>) {
  const child = start(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const output of [child.stdout, child.stderr]) {
    output?.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
  }
  return { child, said: () => said }
}

export type Outcome = { code: number | null; stdout: string; stderr: string }

type RunOptions = { env?: NodeJS.ProcessEnv; cwd?: string; input?: string; discardOutput?: boolean }

/** Runs a program until it exits; `input` is its standard input. */
export async function runToEnd(
  command: string,
  args: string[],
  { env = process.env, cwd = ROOT, input = '', discardOutput = false }: RunOptions = {},
): Promise<Outcome> {
  const child = start(command, args, { cwd, env, stdio: ['pipe', discardOutput ? 'ignore' : 'pipe', 'pipe'] })
  const closed = once(child, 'close')
  let stdout = ''
  let stderr = ''
  child.stdout?.setEncoding('utf8').on('data', (text: string) => {
    stdout += text
  })
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    stderr += text
  })
  // A program that fails immediately does not wait for its input.
  child.stdin?.on('error', () => undefined).end(input)
  const [code] = (await closed) as [number | null]
  return { code, stdout, stderr }
}

/** Runs a program until it exits and returns its standard output; throws if it fails. */
export async function run(command: string, args: string[], options: RunOptions = {}): Promise<string> {
  const { code, stdout, stderr } = await runToEnd(command, args, options)
  if (code !== 0) throw new Error(`${command} ${args[0]} ended with ${code}:\n${stderr || stdout}`)
  return stdout
}

export const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

/** Sends `signal` to a child, and returns its exit code once its output has been read. */
export async function end(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<number | null> {
  if (hasEnded(child)) return child.exitCode
  const closed = once(child, 'close')
  child.kill(signal)
  await closed
  return child.exitCode
}

/**
 * Returns the path of a program; undefined if it is not installed. Debian installs some outside an ordinary user's
 * PATH.
 */
export function findSystemProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

export async function freePort(): Promise<number> {
  return (await freePorts(1))[0] as number
}

/** Returns different ports: all are open until the last one is found. */
export async function freePorts(count: number): Promise<number[]> {
  const servers = Array.from({ length: count }, () => createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => (server.address() as AddressInfo).port)
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}

/** Resident memory of process `pid` in MB; 0 if the system does not report it. */
export function residentMB(pid: number): number {
  try {
    return (Number(readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ')[1]) * PAGE_BYTES) / 1e6
  } catch {
    return 0
  }
}

/**
 * Processor seconds of process `pid` and its children, including exited ones; 0 if the system does not report them.
 */
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
        // The second field is the program's name, which may contain spaces and brackets.
        const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
        const [user = 0, system = 0, childrenUser = 0, childrenSystem = 0] = fields.slice(11, 15).map(Number)
        const ticks = { ticks: user + system, ticksOfEndedChildren: childrenUser + childrenSystem }
        return [{ pid: Number(name), parent: Number(fields[1]), ...ticks }]
      } catch {
        return []
      }
    })
}
