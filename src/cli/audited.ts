import { randomUUID } from 'node:crypto'
import { type AuditedCommand, createAudit } from '../books/audit.ts'
import { hasState, UNDEFINED_TABLE } from '../db/outage.ts'
import type { Database } from '../db/pool.ts'
import { CommandFault } from './faults.ts'
import type { Output } from './output.ts'

/**
 * Runs a command that changes something. It is in the audit before it begins, so that there is no change without a row, whatever
 * becomes of the process. Its outcome is written once it has ended. One that breaks off for an unforeseen reason has no outcome,
 * since its change, or a part of it, may be stored.
 */
export async function runAudited(
  audited: Pick<AuditedCommand, 'command' | 'arguments'>,
  { db, person }: { db: Database; person: string },
  run: () => Promise<Output>,
  makesAudit: boolean,
): Promise<Output> {
  const audit = createAudit(db)
  const auditId = randomUUID()
  const begin = () => audit.begin({ auditId, person, ...audited })
  let begun = true
  await begin().catch((error: unknown) => {
    if (!makesAudit || !hasState(error, UNDEFINED_TABLE)) throw error
    begun = false
  })
  try {
    const output = await run()
    if (!begun) await begin()
    await audit.end({ auditId, outcome: 'done', detail: output.made ?? {} })
    return output
  } catch (error) {
    // The command's own failure is what the operator has to read, also when the audit cannot be written.
    if (error instanceof CommandFault) {
      await audit.end({ auditId, outcome: 'failed', detail: { fault: error.message } }).catch(() => undefined)
    }
    throw error
  }
}
