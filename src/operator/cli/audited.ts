import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../../platform/audit.ts'
import { pendingMigrations } from '../../platform/db/migrate.ts'
import { hasState, UNDEFINED_TABLE } from '../../platform/db/outage.ts'
import { type Database, inTransaction, type Queryable } from '../../platform/db/pool.ts'
import { CommandError } from './errors.ts'
import { type Output, type Result, toOutput } from './output.ts'

/** Runs `work` in one transaction that also stores the command’s outcome, so that either both are stored or neither. */
export type Change = (work: (client: pg.PoolClient) => Promise<Result>) => Promise<Output>

/**
 * Runs a changing command. Stores the command's audit row before the command begins, so that every change has a row even
 * if the process is killed. The transaction of `change` stores the outcome; for a command with its own transactions,
 * which does not call `change`, the outcome is stored after the last one.
 */
export async function runAudited(
  { makesAudit, ...audited }: Pick<AuditedCommand, 'command' | 'arguments'> & { makesAudit: boolean },
  { db, person }: { db: Database; person: string },
  run: (change: Change) => Promise<Result>,
): Promise<Output> {
  const auditId = randomUUID()
  const begin = () => createAudit(db).begin({ auditId, person, ...audited })
  const end = (client: Queryable, outcome: 'done' | 'failed', detail: Output['created'] = {}) =>
    createAudit(client).end({ auditId, outcome, detail })

  // Throws for a database of an incompatible earlier version, which must stay unchanged, before the audit writes to it.
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
      await end(client, 'done', output.created)
      return output
    })
  }
  try {
    const output = toOutput(await run(change))
    if (!begun) await begin()
    if (!inOneTransaction) await end(db, 'done', output.created)
    return output
  } catch (error) {
    // A command with its own transactions gets no outcome after an unexpected error, because part of its change may be
    // stored. An outcome that was committed before the error stays, because the audit stores only the first outcome.
    if (inOneTransaction || error instanceof CommandError) {
      // An error of the audit is ignored here, so that the operator sees the error of the command.
      await end(db, 'failed', { fault: errorOf(error) }).catch(() => undefined)
    }
    throw error
  }
}

/** Messages of PostgreSQL and Node.js may quote a row, so the audit stores only their code. */
function errorOf(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, name } = error as Error & { code?: string }
  return `unexpected: ${code ?? name}`
}
