import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import { end, hasEnded, ROOT, startReading } from '../support/processes.ts'
import { until } from '../support/wait.ts'
import { blockWith, filledIn } from './guides.ts'

export type Sample = {
  name: string
  files: Record<string, string>
  command: (port: number) => [string, ...string[]]
  /** Compiles the sample once, for languages whose command compiles at each start. */
  compiled?: { by: [string, ...string[]]; command: () => [string, ...string[]] }
  isInstalled: boolean
}

export const NODE_SERVER: Sample = {
  name: 'Node.js, server.mjs',
  files: { 'server.mjs': blockWith('merchant', 'js', "existsSync('orders.json')") },
  command: () => [process.execPath, 'server.mjs'],
  isInstalled: true,
}

/** A folder with the files of the sample and the packages of the project. */
export function saveSample({ files }: Sample, demoUrl = 'http://127.0.0.1:9'): string {
  const folder = mkdtempSync(join(tmpdir(), 'upi-payments-guides-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), filledIn(text, demoUrl))
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'))
  return folder
}

/** Starts a sample, and waits until it listens on `port` or exits. */
export async function startSample(
  { command }: Sample,
  folder: string,
  port: number,
  environment: Record<string, string>,
) {
  const [file, ...args] = command(port)
  const { child, said } = startReading(file, args, {
    cwd: folder,
    env: { ...process.env, PORT: String(port), NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1', ...environment },
  })
  onTestFinished(() => void end(child, 'SIGKILL'))
  const listens = () =>
    fetch(`http://127.0.0.1:${port}/webhooks`, { method: 'POST', body: '' }).then(
      () => true,
      () => false,
    )
  const isReady = async () => hasEnded(child) || (await listens())
  await until(`the sample listens: ${said()}`, isReady, { timeoutMs: 60_000 })
  return { child, said }
}
