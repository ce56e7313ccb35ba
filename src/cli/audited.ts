import { randomUUID } from 'node:crypto'
import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../books/audit.ts'
import { type Database, inTransaction } from '../db/pool.ts'
import { hasState, UNDEFINED_TABLE } from '../db/sqlstates.ts'
import { CommandFault } from './faults.ts'

/** What the audit is told of a command. */
export type Audited = Pick<AuditedCommand, 'command' | 'arguments'>

type Given<Db> = { db: Db; now: Date; person: string }
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
    return orFailed(auditId, context, () =>
      inTransaction(context.db, async (client) => {
        const result = await run({ ...context, db: client })
        await createAudit(client).end({ auditId, outcome: 'done', detail: result.made ?? {} }, new Date())
        return result
      }),
    )
  }
}

/** The same for a command of several transactions: its outcome is written after the last of them. */
export function inSteps<C extends Given<Database>, R extends Made>(
  { makesAudit = false, ...audited }: Audited & { makesAudit?: boolean | undefined },
  run: (context: C) => Promise<R>,
): (context: C) => Promise<R> {
  return async (context) => {
    const begun = await begin(audited, context).catch((error: unknown) => {
      if (makesAudit && hasState(error, UNDEFINED_TABLE)) return undefined
      throw error
    })
    const result = await orFailed(begun, context, () => run(context))
    const auditId = begun ?? (await begin(audited, context))
    await createAudit(context.db).end({ auditId, outcome: 'done', detail: result.made ?? {} }, new Date())
    return result
  }
}

async function begin(audited: Audited, { db, now, person }: Given<Database>): Promise<string> {
  const auditId = `${now.getTime().toString(16).padStart(12, '0')}${randomUUID().replaceAll('-', '').slice(12)}`
  await createAudit(db).begin({ auditId, person, ...audited }, now)
  return auditId
}

async function orFailed<R>(auditId: string | undefined, { db }: Given<Database>, work: () => Promise<R>): Promise<R> {
  try {
    return await work()
  } catch (error) {
    // Any other text may hold what was in a row.
    const fault = error instanceof CommandFault ? error.message : `unexpected: ${(error as { code?: string }).code}`
    if (auditId !== undefined) {
      // The command's own failure is what the operator has to read, also when the database is away.
      const failed = { auditId, outcome: 'failed' as const, detail: { fault } }
      await createAudit(db)
        .end(failed, new Date())
        .catch(() => undefined)
    }
    throw error
  }
}
