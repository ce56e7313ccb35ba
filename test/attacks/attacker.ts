import { once } from 'node:events'
import { join } from 'node:path'
import { start, TYPESCRIPT } from '../support/processes.ts'
import type { AttackerName } from './attackers.ts'
import type { Target } from './target.ts'

const PROGRAM = join(import.meta.dirname, 'attacker-process.ts')

/** What an attacker says that it sent and got, and the processor cores that it took from the others. */
export type Report = { sent: string; cores: number }

/** Attacks from a process of its own, and returns when that is over. */
export async function attack(name: AttackerName, target: Target): Promise<Report> {
  const child = start(process.execPath, [...TYPESCRIPT, PROGRAM], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  const exited = once(child, 'exit')
  const report = once(child, 'message')
  child.send({ name, target })
  const [answer] = await Promise.race([report, exited.then(() => [])])
  await exited
  if (answer === undefined) throw new Error(`the attacker "${name}" ended without a report`)
  return answer as Report
}
