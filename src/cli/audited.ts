import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../books/audit.ts'
import { hasState, UNDEFINED_TABLE } from '../db/outage.ts'
import { type Database, inTransaction } from '../db/pool.ts'
import { CommandFault } from './faults.ts'

/** What the audit is told of a command. */
export type Audited = Pick<AuditedCommand, 'command' | 'arguments'>

type Given<Db> = { db: Db; person: string }
type Made = { made?: Readonly<Record<string, unknown>> }

/**
 * Every command that changes something is in the audit before it begins, so that there is no change without a row, whatever
 * becomes of the process. How it ended is written in the transaction of the change: both are stored, or neither.
 */
export function inOneTransaction<C extends Given<Database>, R extends Made>(
  audited: Audited,
  run: (context: Omit<C, 'db'> & { db: pg.PoolClient }) => Promise<R>,
): (context: C) => Promise<R> {
  return async (context) => {
    const auditId = await begin(audited, context)
    try {
      return await inTransaction(context.db, async (client) => {
        const result = await run({ ...context, db: client })
        await createAudit(client).end({ auditId, outcome: 'done', detail: result.made ?? {} })
        return result
      })
    } catch (error) {
      // If the transaction was committed after all, its outcome stands and this one is not stored.
      await endAsFailed(auditId, context, error)
      throw error
    }
  }
}

/**
 * The same for a command of several transactions: its outcome is written after the last of them. One that breaks off for an
 * unforeseen reason has no outcome, since a part of its change may be stored.
 */
export function inSteps<C extends Given<Database>, R extends Made>(
  { makesAudit = false, ...audited }: Audited & { makesAudit?: boolean | undefined },
  run: (context: C) => Promise<R>,
): (context: C) => Promise<R> {
  return async (context) => {
    const begun = await begin(audited, context).catch((error: unknown) => {
      if (makesAudit && hasState(error, UNDEFINED_TABLE)) return undefined
      throw error
    })
    try {
      const result = await run(context)
      const auditId = begun ?? (await begin(audited, context))
      await createAudit(context.db).end({ auditId, outcome: 'done', detail: result.made ?? {} })
      return result
    } catch (error) {
      // The command's own failure is what the operator has to read, also when the audit cannot be written.
      const auditId = begun ?? (await begin(audited, context).catch(() => undefined))
      if (auditId !== undefined && error instanceof CommandFault) await endAsFailed(auditId, context, error)
      throw error
    }
  }
}

async function begin(audited: Audited, { db, person }: Given<Database>): Promise<string> {
  const auditId = randomUUID()
  await createAudit(db).begin({ auditId, person, ...audited })
  return auditId
}

async function endAsFailed(auditId: string, { db }: Given<Database>, error: unknown): Promise<void> {
  await createAudit(db)
    .end({ auditId, outcome: 'failed', detail: { fault: faultOf(error) } })
    // The command's own failure is what the operator has to read, also when the database is away.
    .catch(() => undefined)
}

/** A message of PostgreSQL or of Node.js may hold what was in a row. */
function faultOf(error: unknown): string {
  if (error instanceof CommandFault) return error.message
  const { code, name } = error as Error & { code?: string }
  return `unexpected: ${code ?? name}`
}
