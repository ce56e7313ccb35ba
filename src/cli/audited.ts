import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../books/audit.ts'
import { hasState, UNDEFINED_TABLE } from '../db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../db/pool.ts'
import { CommandError } from './errors.ts'
import type { Output } from './output.ts'

/** Makes a change in one transaction, which ends with the outcome of the command: both are stored, or neither. */
export type Change = (work: (client: pg.PoolClient) => Promise<Output>) => Promise<Output>

/**
 * Runs a command that changes something. It is in the audit before it begins, so that there is no change without a row, whatever
 * becomes of the process. Its outcome is stored with its `change`; that of a command in several steps, which makes no `change`,
 * after the last of them.
 */
export async function runAudited(
  { makesAudit, ...audited }: Pick<AuditedCommand, 'command' | 'arguments'> & { makesAudit: boolean },
  { db, person }: { db: Database; person: string },
  run: (change: Change) => Promise<Output>,
): Promise<Output> {
  const auditId = randomUUID()
  const begin = () => createAudit(db).begin({ auditId, person, ...audited })
  const end = (client: Queryable, outcome: 'done' | 'failed', detail: Output['made'] = {}) =>
    createAudit(client).end({ auditId, outcome, detail })

  let begun = true
  await begin().catch((error: unknown) => {
    if (!makesAudit || !hasState(error, UNDEFINED_TABLE)) throw error
    begun = false
  })
  let inOneTransaction = false
  const change: Change = (work) => {
    inOneTransaction = true
    return inTransaction(db, async (client) => {
      const output = await work(client)
      await end(client, 'done', output.made)
      return output
    })
  }
  try {
    const output = await run(change)
    if (!begun) await begin()
    if (!inOneTransaction) await end(db, 'done', output.made)
    return output
  } catch (error) {
    // A command in several steps that breaks off for an unforeseen reason has no outcome: a part of its change may be stored.
    // If a transaction was committed after all, its outcome stands and this one is not stored.
    if (inOneTransaction || error instanceof CommandError) {
      // A failure to write the audit is ignored here: the operator has to read the command's own failure.
      await end(db, 'failed', { fault: faultOf(error) }).catch(() => undefined)
    }
    throw error
  }
}

/** A message of PostgreSQL or of Node.js may hold what was in a row. */
function faultOf(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, name } = error as Error & { code?: string }
  return `unexpected: ${code ?? name}`
}
