import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../../platform/audit.ts'
import { pendingMigrations } from '../../platform/db/migrate.ts'
import { hasState, UNDEFINED_TABLE, UNIQUE_VIOLATION } from '../../platform/db/outage.ts'
import { type Database, inTransaction, type Queryable, rollBack } from '../../platform/db/pool.ts'
import { type Output, type Result, toOutput } from '../terminal/print.ts'
import { CommandError } from './errors.ts'
import { document, type RecordData } from './result.ts'

/**
 * Runs `work` in one transaction that also stores the command's outcome, so that the database stores either both or
 * neither.
 */
export type Change = (work: (client: pg.PoolClient) => Promise<Result>) => Promise<Output>

/**
 * Runs a command that changes data. Stores the command's audit row before the command begins, so that every change has
 * a row even if the process is killed. Rejects a second command with the same `auditId`. The transaction of `change`
 * stores the outcome. If a command uses its own transactions, the outcome is stored after the last transaction.
 */
export async function runAudited(
  { makesAudit, ...audited }: Pick<AuditedCommand, 'command' | 'arguments'> & { makesAudit: boolean },
  { db, person, auditId }: { db: Database; person: string; auditId: string },
  run: (change: Change) => Promise<Result>,
): Promise<Output> {
  const begin = () => createAudit(db).begin({ auditId, person, ...audited })
  const end = (client: Queryable, outcome: 'done' | 'failed', detail: Output['created'] = {}) =>
    createAudit(client).end({ auditId, outcome, detail })

  // Throws if the database has an incompatible earlier version, because the audit must not write to that database.
  await pendingMigrations(db)
  let begun = true
  await begin().catch((error: unknown) => {
    if (hasState(error, UNIQUE_VIOLATION)) throw new CommandError(REPEATED)
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
    // A command with its own transactions gets no outcome after an unexpected error, because part of its change may
    // already be stored. An outcome that was committed before the error stays, because the audit stores only the first
    // outcome.
    if (inOneTransaction || error instanceof CommandError) {
      // Ignores an error from the audit, so that the operator sees the error from the command.
      await end(db, 'failed', { fault: errorOf(error) }).catch(() => undefined)
    }
    throw error
  }
}

/** Runs a command with `--dry-run`: `change` rolls its transaction back, and the audit stores nothing. */
export async function runDry(db: Database, run: (change: Change) => Promise<Result>): Promise<Output> {
  const change: Change = (work) =>
    inTransaction(db, async (client) => {
      const { data, warnings = [] } = toOutput(await work(client))
      await rollBack(client)
      const { fields, parts = [] } = data as RecordData
      return { data: document({ ...fields, dryRun: true }, ...parts, 'Dry run: nothing was stored.'), warnings }
    })
  return toOutput(await run(change))
}

const REPEATED = 'this change was already confirmed: check its result before you repeat it'

/** Returns a code for the audit, because error messages from PostgreSQL and Node.js may quote a row. */
function errorOf(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, name } = error as Error & { code?: string }
  return `unexpected: ${code ?? name}`
}
