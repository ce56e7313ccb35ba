import { type Outcome, ROOT, run, runToEnd } from './processes.ts'

/**
 * Runs the command line as the process that an operator starts; `input` is its standard input, and `settings` are what else
 * the operator has set. Every command that works on
 * a database names it first: the outcome is without that line, and a success that lacks it fails the test.
 */
export async function runOps(
  databaseUrl: string | undefined,
  args: string[],
  input = '',
  settings: Record<string, string> = {},
): Promise<Outcome> {
  const { DATABASE_URL: _, DATABASE_MIGRATE_URL: __, ...environment } = process.env
  const env = { ...environment, ...settings, ...(databaseUrl !== undefined && { DATABASE_URL: databaseUrl }) }
  const { code, stdout, stderr } = await runProgram('src/cli/ops.ts', args, { env, input })
  const line = databaseUrl !== undefined && URL.canParse(databaseUrl) ? namingLine(databaseUrl) : ''
  if (stderr.startsWith(line)) return { code, stdout, stderr: stderr.slice(line.length) }
  if (code === 0) throw new Error(`ops ${args.join(' ')} did not begin with: ${line}${stderr}`)
  return { code, stdout, stderr }
}

/** What a command says first on stderr when it works on the database of `url`. */
export function namingLine(url: string): string {
  const { hostname, port, pathname, username } = new URL(url)
  return `ops: works on the database ${pathname.slice(1)} at ${hostname}:${port} as ${username}\n`
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

/** Runs the built command line `program` as the image does, and returns what it says to scripts. */
export async function runBuiltOps(
  program: string,
  environment: Record<string, string>,
  ...args: string[]
): Promise<Record<string, unknown>> {
  const env = { PATH: process.env.PATH, NODE_ENV: 'production', ...environment }
  return JSON.parse(await run(process.execPath, [program, ...args, '--json'], { env }))
}
