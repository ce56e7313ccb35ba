import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../../platform/audit.ts'
import { pendingMigrations } from '../../platform/db/migrate.ts'
import { hasState, UNDEFINED_TABLE } from '../../platform/db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../../platform/db/pool.ts'
import { CommandError } from './errors.ts'
import { type Output, type Result, toOutput } from './output.ts'

/** Runs `work` in one transaction that also stores the outcome of the command: both are stored, or neither. */
export type Change = (work: (client: pg.PoolClient) => Promise<Result>) => Promise<Output>

/**
 * Runs a command that changes something. The audit gets the command's row before the command begins, so that no change
 * lacks a row, even if the process is killed. The outcome is stored in the transaction of `change`. A command with
 * transactions of its own does not call `change`: the outcome is stored after the last one.
 */
export async function runAudited(
  { makesAudit, ...audited }: Pick<AuditedCommand, 'command' | 'arguments'> & { makesAudit: boolean },
  { db, person }: { db: Database; person: string },
  run: (change: Change) => Promise<Result>,
): Promise<Output> {
  const auditId = randomUUID()
  const begin = () => createAudit(db).begin({ auditId, person, ...audited })
  const end = (client: Queryable, outcome: 'done' | 'failed', detail: Output['made'] = {}) =>
    createAudit(client).end({ auditId, outcome, detail })

  // Throws before the audit changes a database that must stay unchanged.
  await pendingMigrations(db)
  let begun = true
  await begin().catch((error: unknown) => {
    if (!makesAudit || !hasState(error, UNDEFINED_TABLE)) throw error
    begun = false
  })
  let inOneTransaction = false
  const change: Change = (work) => {
    inOneTransaction = true
    return inTransaction(db, async (client) => {
      const output = toOutput(await work(client))
      await end(client, 'done', output.made)
      return output
    })
  }
  try {
    const output = toOutput(await run(change))
    if (!begun) await begin()
    if (!inOneTransaction) await end(db, 'done', output.made)
    return output
  } catch (error) {
    // A command with its own transactions gets no outcome after an unexpected error: part of its change may be stored.
    // An outcome that was committed before the error is not overwritten: the audit stores only the first outcome.
    if (inOneTransaction || error instanceof CommandError) {
      // A second error, from the audit, is ignored: the operator has to read the error of the command.
      await end(db, 'failed', { fault: faultOf(error) }).catch(() => undefined)
    }
    throw error
  }
}

/** Messages of PostgreSQL and of Node.js may quote a row, so only their code is stored. */
function faultOf(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, name } = error as Error & { code?: string }
  return `unexpected: ${code ?? name}`
}
