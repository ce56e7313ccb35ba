import type { Queryable } from './db/pool.ts'

/**
 * A command that is about to change data. `arguments` maps each flag to its value, without secrets and without customer
 * data.
 */
export type AuditedCommand = {
  auditId: string
  person: string
  command: string
  arguments: Readonly<Record<string, unknown>>
}

/** The result of a command: the objects that the command created, by name, or in `fault` the reason for its failure. */
type AuditedOutcome = {
  auditId: string
  outcome: 'done' | 'failed'
  detail: Readonly<Record<string, unknown>>
}

export type AuditEntry = Omit<AuditedCommand, 'auditId'> & {
  at: Date
  databaseRole: string
  /** Null if the outcome is unknown, because the command is still running or was killed. */
  outcome: AuditedOutcome['outcome'] | null
  detail: AuditedOutcome['detail'] | null
}

type AuditQuery = { since?: Date | undefined; until?: Date | undefined; mid?: string | undefined }

/** Stores operators' commands and lists the commands for auditors. The tables are append-only. */
export function createAudit(db: Queryable) {
  return {
    /** Stores that a command begins. The command must not change anything before this is stored. */
    async begin({ auditId, person, command, arguments: given }: AuditedCommand): Promise<void> {
      await db.query('insert into audit_commands (audit_id, person, command, arguments) values ($1, $2, $3, $4)', [
        auditId,
        person,
        command,
        JSON.stringify(given),
      ])
    },

    /** Stores the outcome of a command. Only the first outcome of an `auditId` is stored. */
    async end({ auditId, outcome, detail }: AuditedOutcome): Promise<void> {
      await db.query(
        'insert into audit_outcomes (audit_id, outcome, detail) values ($1, $2, $3) on conflict do nothing',
        [auditId, outcome, JSON.stringify(detail)],
      )
    },

    /** Returns a command and its outcome; undefined if no command with this identifier has begun. */
    async find(auditId: string): Promise<Omit<AuditEntry, 'databaseRole'> | undefined> {
      const { rows } = await db.query<AuditEntry>(
        `select c.begun_at as at, c.person, c.command, c.arguments, o.outcome, o.detail
           from audit_commands c
           left join audit_outcomes o using (audit_id)
          where c.audit_id = $1`,
        [auditId],
      )
      return rows[0]
    },

    /**
     * Returns the commands that began from `since`, by default a week ago, until before `until`, oldest first. With
     * `mid`, returns only commands about this merchant: commands that name or created the merchant, or that name its
     * order, exception, key or webhook.
     */
    async list({ since, until, mid }: AuditQuery): Promise<AuditEntry[]> {
      const { rows } = await db.query<AuditEntry>(
        `select c.begun_at as at, c.person, c.database_role as "databaseRole", c.command, c.arguments, o.outcome, o.detail
           from audit_commands c
           left join audit_outcomes o on o.audit_id = c.audit_id
          where c.begun_at >= coalesce($1, now() - interval '7 days')
            and ($2::timestamptz is null or c.begun_at < $2)
            and ($3::text is null or c.arguments ->> 'mid' = $3 or o.detail ->> 'mid' = $3
                 or exists (select from payment_intents
                             where mid = $3 and order_id = c.arguments ->> 'orderId')
                 or exists (select from payment_exceptions
                             where mid = $3 and exception_id = c.arguments ->> 'exception')
                 or exists (select from access_keys
                             where mid = $3 and public_key = c.arguments ->> 'publicKey')
                 or exists (select from webhook_endpoints
                             where mid = $3 and endpoint_id in (c.arguments ->> 'endpoint', split_part(c.arguments ->> 'delivery', '.', 1))))
          order by c.begun_at, c.audit_id`,
        [since, until, mid],
      )
      return rows
    },
  }
}
