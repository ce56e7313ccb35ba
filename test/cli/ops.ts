import { spawn } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

export type Outcome = { code: number | null; stdout: string; stderr: string }

/**
 * Runs the command line as the process that an operator starts; `input` is its standard input. Every command that works on
 * a database names it first: the outcome is without that line, and a success that lacks it fails the test.
 */
export async function runOps(databaseUrl: string | undefined, args: string[], input = ''): Promise<Outcome> {
  const { DATABASE_URL: _, DATABASE_MIGRATE_URL: __, ...environment } = process.env
  const env = databaseUrl === undefined ? environment : { ...environment, DATABASE_URL: databaseUrl }
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
  { env, input = '', root = ROOT }: { env: NodeJS.ProcessEnv; input?: string; root?: string },
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', program, ...args], { cwd: root, env })
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text
    })
    // A command that fails at once does not wait for its input.
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}
