import { spawn } from 'node:child_process'
import { accessSync, constants, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import type { Key } from '../support/service.ts'

/**
 * Whether `command` is installed. If it is not, CI fails for a command that it `mustHave`; otherwise the tests that need the
 * command are skipped with a message.
 */
export function has(command: string, { mustHave }: { mustHave: boolean }): boolean {
  const folders = (process.env.PATH ?? '').split(delimiter)
  if (folders.some((folder) => isExecutable(join(folder, command)))) return true
  const missing = `No ${command}: install it for the tests that need it`
  if (mustHave && process.env.CI === 'true') throw new Error(missing)
  console.warn(`${missing}. Skipped`)
  return false
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

export type Outcome = { code: number | null; stdout: string; stderr: string }

/** Runs `command` in a temporary folder with `files`, as a reader of the guide does. */
export async function runIn(
  files: Record<string, string>,
  command: readonly [string, ...string[]],
  { baseUrl, key, acquirerSecret = '' }: { baseUrl: string; key: Key; acquirerSecret?: string },
): Promise<Outcome> {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
  try {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text)
    return await run(command, folder, {
      BASE_URL: baseUrl,
      MID: 'DEMO_MERCHANT',
      PID: 'DEMO_PARTNER',
      ACQUIRER_SECRET: acquirerSecret,
      PUBLIC_KEY: key.publicKey,
      SECRET_KEY: key.secretKey,
      // A proxy configured on the machine cannot reach this process.
      NO_PROXY: '127.0.0.1',
      no_proxy: '127.0.0.1',
    })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export function run(
  [file, ...args]: readonly [string, ...string[]],
  cwd: string,
  environment: Record<string, string>,
): Promise<Outcome> {
  return new Promise((resolve, reject) => {
    const child = spawn(file, args, {
      cwd,
      env: { ...process.env, ...environment },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const outcome: Outcome = { code: null, stdout: '', stderr: '' }
    for (const name of ['stdout', 'stderr'] as const) {
      child[name].setEncoding('utf8').on('data', (text: string) => {
        outcome[name] += text
      })
    }
    child.on('error', reject)
    child.on('close', (code) => resolve({ ...outcome, code }))
  })
}
