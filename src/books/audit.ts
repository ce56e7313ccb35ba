import type { Queryable } from '../db/pool.ts'

/** A command that is about to change something. `arguments` are by flag, without secrets and without the customer's data. */
export type AuditedCommand = {
  auditId: string
  person: string
  command: string
  arguments: Readonly<Record<string, unknown>>
}

/** How a command ended: what it made, by name, or in `fault` why it failed. */
export type AuditedOutcome = {
  auditId: string
  outcome: 'done' | 'failed'
  detail: Readonly<Record<string, unknown>>
}

export type AuditEntry = Omit<AuditedCommand, 'auditId'> & {
  at: Date
  databaseRole: string
  /** Null where nobody knows: the command runs still, or was killed. */
  outcome: AuditedOutcome['outcome'] | null
  detail: AuditedOutcome['detail'] | null
}

/** What operators did, for auditors. The tables are append-only. */
export function createAudit(db: Queryable) {
  return {
    /** Writes down that a command begins. Until that is stored, the command must not change anything. */
    async begin({ auditId, person, command, arguments: given }: AuditedCommand, now: Date): Promise<void> {
      await db.query(
        `insert into audit_commands (audit_id, begun_at, person, command, arguments) values ($1, $2, $3, $4, $5)`,
        [auditId, now, person, command, JSON.stringify(given)],
      )
    },

    /** Writes down how it ended; the first word counts. */
    async end({ auditId, outcome, detail }: AuditedOutcome, now: Date): Promise<void> {
      await db.query(
        `insert into audit_outcomes (audit_id, ended_at, outcome, detail) values ($1, $2, $3, $4) on conflict do nothing`,
        [auditId, now, outcome, JSON.stringify(detail)],
      )
    },

    /** The commands begun from `since` until before `until`, oldest first; with `mid` those about this merchant. */
    async list({ since, until, mid }: { since: Date; until: Date; mid?: string | undefined }): Promise<AuditEntry[]> {
      const { rows } = await db.query<AuditEntry>(
        `select c.begun_at as at, c.person, c.database_role as "databaseRole", c.command, c.arguments, o.outcome, o.detail
           from audit_commands c
           left join audit_outcomes o on o.audit_id = c.audit_id
          where c.begun_at >= $1 and c.begun_at < $2
            and ($3::text is null or c.arguments ->> 'mid' = $3 or o.detail ->> 'mid' = $3)
          order by c.audit_id`,
        [since, until, mid],
      )
      return rows
    },
  }
}
