import type pg from 'pg'
import { type AuditedCommand, createAudit } from '../../platform/audit.ts'
import { hasState, UNDEFINED_TABLE, UNIQUE_VIOLATION } from '../../platform/db/outage.ts'
import { type Database, inTransaction, type Queryable, rollBack } from '../../platform/db/pool.ts'
import { CommandError } from './errors.ts'
import { document, type Output, RecordData, type Result, toOutput } from './result.ts'

/**
 * Runs `work` in one transaction that also stores the command's outcome, so that the database stores either both or
 * neither. With `isDry`, the transaction is rolled back.
 */
export type Change = ((work: (client: pg.PoolClient) => Promise<Result>) => Promise<Output>) & { isDry?: true }

/** The error of a change whose figures are not those that the operator confirmed. `output` has the figures of now. */
export class FiguresChanged extends CommandError {
  readonly output: Output

  constructor(output: Output) {
    super('the figures have changed, so nothing was changed: check the new figures, and confirm them')
    this.output = output
  }
}

/** Returns the text of what an operator confirms. Equal texts have equal figures and warnings. */
export const toConfirm = ({ figures = {}, warnings = [] }: Output) => JSON.stringify([figures, warnings])

/** Throws FiguresChanged if `output` is not what the operator confirmed; undefined `confirmed` accepts everything. */
export function requireConfirmed(output: Output, confirmed: string | undefined): void {
  if (confirmed !== undefined && confirmed !== toConfirm(output)) throw new FiguresChanged(output)
}

/** Returns the function that runs a change with the confirmed figures; undefined accepts all. */
export type ChangeOf = (confirmed: string | undefined) => Change

type Audited = Pick<AuditedCommand, 'command' | 'arguments'> & { makesAudit: boolean }

/**
 * Runs a command that changes data. Stores the command's audit row before the command begins, so that every change has
 * a row even if the process is killed. Rejects a second command with the same `auditId`. The transaction of `change`
 * stores the outcome. If a command uses its own transactions, the outcome is stored after the last transaction.
 */
export async function runAudited(
  { makesAudit, ...audited }: Audited,
  { db, person, auditId }: { db: Database; person: string; auditId: string },
  run: (changeOf: ChangeOf) => Promise<Result>,
): Promise<Output> {
  const begin = () => createAudit(db).begin({ auditId, person, ...audited })
  const end = (client: Queryable, { created = {}, failure }: Output) => {
    const error = failure?.()
    const detail = error ? { fault: error.message } : created
    return createAudit(client).end({ auditId, outcome: error ? 'failed' : 'done', detail })
  }

  let begun = true
  await begin().catch((error: unknown) => {
    if (hasState(error, UNIQUE_VIOLATION)) throw new CommandError(REPEATED)
    if (!makesAudit || !hasState(error, UNDEFINED_TABLE)) throw error
    begun = false
  })
  let inOneTransaction = false
  const changeOf: ChangeOf = (confirmed) => (work) => {
    inOneTransaction = true
    return inTransaction(db, async (client) => {
      const output = toOutput(await work(client))
      requireConfirmed(output, output.figures && confirmed)
      await end(client, output)
      return output
    })
  }
  try {
    const output = toOutput(await run(changeOf))
    if (!begun) await begin()
    if (!inOneTransaction) await end(db, output)
    return output
  } catch (error) {
    // A command with its own transactions gets no outcome after an unexpected error, because part of its change may
    // already be stored. An outcome that was committed before the error stays, because the audit stores only the first
    // outcome.
    if (inOneTransaction || error instanceof CommandError) {
      // Ignores an error from the audit, so that the operator sees the error from the command.
      await end(db, { failure: () => new CommandError(errorOf(error)) }).catch(() => undefined)
    }
    throw error
  }
}

/** Returns the output of a change whose transaction is rolled back. The audit stores nothing. */
export async function runDry(db: Database, run: (change: Change) => Promise<Result>): Promise<Output> {
  const change: Change = (work) =>
    inTransaction(db, async (client) => {
      const output = toOutput(await work(client))
      await rollBack(client)
      const { fields, parts = [] } = output.data instanceof RecordData ? output.data : document({})
      return { ...output, data: document({ ...fields, dryRun: true }, ...parts, 'Dry run: nothing was stored.') }
    })
  return toOutput(await run(Object.assign(change, { isDry: true } as const)))
}

const REPEATED = 'this change was already confirmed: check its result before you repeat it'

/** Returns a code for the audit, because error messages from PostgreSQL and Node.js may quote a row. */
function errorOf(error: unknown): string {
  if (error instanceof CommandError) return error.message
  const { code, name } = error as Error & { code?: string }
  return `unexpected: ${code ?? name}`
}
