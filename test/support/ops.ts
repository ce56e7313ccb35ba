import { PassThrough, Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { expect, vi } from 'vitest'
import type { DatabaseTime, Sleep } from '../../src/operator/commands/command.ts'
import { main } from '../../src/operator/terminal/main.ts'
import { type Outcome, ROOT, run, runToEnd } from './processes.ts'

/**
 * Runs a command in this process, whose pauses end immediately; `input` is its standard input, and `settings` are
 * additional environment variables. Every command that uses a database names it first: the outcome omits that line,
 * and a success without it fails the test.
 */
export function runOps(
  databaseUrl: string | undefined,
  args: string[],
  input = '',
  settings: Record<string, string> = {},
): Promise<Outcome> {
  return withoutName(databaseUrl, args, settings, (env) => typeCommand(args, env, input))
}

/** `runOps` for an operator at a terminal, who types `answer`. */
export const runOpsOnTerminal = (databaseUrl: string, args: string[], response: string): Promise<Outcome> =>
  withoutName(databaseUrl, args, {}, (env) => typeCommand(args, env, response, { isTTY: true }))

type Clocks = { sleep?: Sleep; databaseTime?: DatabaseTime }

/** `runOps` that calls `sleep` for each pause, and `databaseTime` for the time of PostgreSQL's clock. */
export const runOpsByClocks = (databaseUrl: string, args: string[], clocks: Clocks): Promise<Outcome> =>
  withoutName(databaseUrl, args, {}, (env) => typeCommand(args, env, '', clocks))

/**
 * Runs commands of `group` on the database of `url`: `ops` returns the outcome, `json` the document of a command that
 * succeeds and prints nothing else.
 */
export function opsOn(url: () => string, group: string[] = [], settings: Record<string, string> = {}) {
  const ops = (...args: string[]) => runOps(url(), [...group, ...args], '', settings)
  async function json(...args: string[]) {
    const { code, stdout, stderr } = await ops(...args, '--json')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/^[^\n]+\n$/)
    return JSON.parse(stdout)
  }
  return { ops, json }
}

/**
 * `opsOn` for a given day: commands of `group` run at noon IST, and `jsonOn` returns the document of one that
 * succeeds.
 */
export function opsAtNoon(url: () => string, group: string[] = []) {
  async function opsOn(day: string, ...args: string[]) {
    vi.useFakeTimers({ toFake: ['Date'], now: new Date(`${day}T12:00:00+05:30`) })
    try {
      return await runOps(url(), [...group, ...args])
    } finally {
      vi.useRealTimers()
    }
  }
  async function jsonOn(day: string, ...args: string[]) {
    const { code, stdout, stderr } = await opsOn(day, ...args, '--json')
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout)
  }
  return { opsOn, jsonOn }
}

/** `runOps` in a process of its own, as an operator starts it. */
export function runOpsProcess(
  databaseUrl: string | undefined,
  args: string[],
  input = '',
  settings: Record<string, string> = {},
): Promise<Outcome> {
  return withoutName(databaseUrl, args, settings, (env) =>
    runProgram('src/operator/terminal/ops.ts', args, { env, input }),
  )
}

async function withoutName(
  databaseUrl: string | undefined,
  args: string[],
  settings: Record<string, string>,
  type: (env: NodeJS.ProcessEnv) => Promise<Outcome>,
): Promise<Outcome> {
  const { DATABASE_URL: _, DATABASE_MIGRATE_URL: __, CONSOLE_DATABASE_URL: ___, ...environment } = process.env
  const name = args[0] === 'console' ? 'CONSOLE_DATABASE_URL' : 'DATABASE_URL'
  const env = { ...environment, ...settings, ...(databaseUrl !== undefined && { [name]: databaseUrl }) }
  const { code, stdout, stderr } = await type(env)
  const line = databaseUrl !== undefined && URL.canParse(databaseUrl) ? namingLine(databaseUrl) : ''
  if (stderr.startsWith(line)) return { code, stdout, stderr: stderr.slice(line.length) }
  if (code === 0) throw new Error(`ops ${args.join(' ')} did not start with: ${line}${stderr}`)
  return { code, stdout, stderr }
}

async function typeCommand(
  args: string[],
  env: NodeJS.ProcessEnv,
  input: string,
  { isTTY = false, ...clocks }: Clocks & { isTTY?: boolean } = {},
): Promise<Outcome> {
  const [stdout, stderr] = [new PassThrough(), new PassThrough()]
  const said = Promise.all([text(stdout), text(stderr)])
  const stdin = Object.assign(Readable.from([Buffer.from(input)]), { isTTY })
  // A test that sets the operator's clock cannot set PostgreSQL's.
  const clock = vi.isFakeTimers() && { databaseTime: async () => new Date() }
  const code = await main(args, { stdin, stdout, stderr, env, sleep: async () => undefined, ...clock, ...clocks })
  stdout.end()
  stderr.end()
  const [out, err] = await said
  return { code, stdout: out, stderr: err }
}

/** The line that a command prints first on stderr if it uses the database of `url`. */
export function namingLine(url: string): string {
  const { hostname, port, pathname, username } = new URL(url)
  return `ops: using database ${pathname.slice(1)} at ${hostname}:${port} as ${username}\n`
}

/** Runs a TypeScript program of the checkout `root` in exactly the environment `env`. */
export function runProgram(
  program: string,
  args: string[],
  { env, input, root = ROOT }: { env: NodeJS.ProcessEnv; input?: string; root?: string },
): Promise<Outcome> {
  return runToEnd(process.execPath, ['--import', 'tsx', program, ...args], {
    env,
    cwd: root,
    ...(input !== undefined && { input }),
  })
}

/** Runs the built command line `program` like the image, and returns its JSON output. */
export async function runBuiltOps(
  program: string,
  environment: Record<string, string>,
  ...args: string[]
): Promise<Record<string, unknown>> {
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', ...environment }
  return JSON.parse(await run(process.execPath, [program, ...args, '--json'], { env }))
}
