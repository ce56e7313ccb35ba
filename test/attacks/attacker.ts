import { once } from 'node:events'
import { join } from 'node:path'
import { start, TYPESCRIPT } from '../support/processes.ts'
import type { AttackerName } from './attackers.ts'
import type { Target } from './target.ts'

const PROGRAM = join(import.meta.dirname, 'attacker-process.ts')

/** What an attacker sent and received, and the processor cores that it used. */
export type Report = { sent: string; cores: number }

/** Attacks from a separate process, and resolves with its report. */
export async function attack(name: AttackerName, target: Target): Promise<Report> {
  const child = start(process.execPath, [...TYPESCRIPT, PROGRAM], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  const report = once(child, 'message')
  child.send({ name, target })
  const [response] = await Promise.race([report, exited.then(() => [])])
  await exited
  if (response === undefined) throw new Error(`the attacker "${name}" exited without a report`)
  return response as Report
}
