import { spawn } from 'node:child_process'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '../..')

export type Outcome = { code: number | null; stdout: string; stderr: string }

/** Runs the command line as the process that an operator starts; `input` is its standard input. */
export function runOps(databaseUrl: string | undefined, args: string[], input = ''): Promise<Outcome> {
  const { DATABASE_URL: _, DATABASE_MIGRATE_URL: __, ...environment } = process.env
  const env = databaseUrl === undefined ? environment : { ...environment, DATABASE_URL: databaseUrl }
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'src/cli/ops.ts', ...args], { cwd: ROOT, env })
    const outcome: Outcome = { code: null, stdout: '', stderr: '' }
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      outcome.stdout += text
    })
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      outcome.stderr += text
    })
    // A command that fails at once does not wait for its input.
    child.stdin.on('error', () => undefined)
    child.stdin.end(input)
    child.on('error', reject)
    child.on('close', (code) => resolve({ ...outcome, code }))
  })
}
