import type { Queryable } from './db/pool.ts'
import { plannedQuery } from './db/query.ts'

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
    async begin(command: AuditedCommand): Promise<void> {
      await BEGIN(db, { ...command, arguments: JSON.stringify(command.arguments) })
    },

    /** Stores the outcome of a command. Only the first outcome of an `auditId` is stored. */
    async end(outcome: AuditedOutcome): Promise<void> {
      await END(db, { ...outcome, detail: JSON.stringify(outcome.detail) })
    },

    /** Returns a command and its outcome; undefined if no command with this identifier has begun. */
    find: async (auditId: string) => (await FIND(db, { auditId }))[0],

    /**
     * Returns the commands that began from `since`, by default a week ago, until before `until`, oldest first. With
     * `mid`, returns only commands about this merchant: commands that name or created the merchant, or that name its
     * order, exception, key or webhook.
     */
    list: (criteria: AuditQuery) => LIST(db, criteria),
  }
}

type AsText<T, Name extends keyof T> = Omit<T, Name> & Record<Name, string>

// These statements are not prepared, because `ops migrate` also runs through a PgBouncer without prepared statements.
const BEGIN = plannedQuery<object, AsText<AuditedCommand, 'arguments'>>(
  'insert into audit_commands (audit_id, person, command, arguments) values (:auditId, :person, :command, :arguments)',
)

const END = plannedQuery<object, AsText<AuditedOutcome, 'detail'>>(
  'insert into audit_outcomes (audit_id, outcome, detail) values (:auditId, :outcome, :detail) on conflict do nothing',
)

const FIND = plannedQuery<Omit<AuditEntry, 'databaseRole'>, { auditId: string }>(`
  select c.begun_at as at, c.person, c.command, c.arguments, o.outcome, o.detail
    from audit_commands c
    left join audit_outcomes o using (audit_id)
   where c.audit_id = :auditId`)

const LIST = plannedQuery<AuditEntry, AuditQuery>(`
  select c.begun_at as at, c.person, c.database_role, c.command, c.arguments, o.outcome, o.detail
    from audit_commands c
    left join audit_outcomes o on o.audit_id = c.audit_id
   where c.begun_at >= coalesce(:since, now() - interval '7 days')
     and (:until::timestamptz is null or c.begun_at < :until)
     and (:mid::text is null or c.arguments ->> 'mid' = :mid or o.detail ->> 'mid' = :mid
          or exists (select from payment_intents
                      where mid = :mid and order_id = c.arguments ->> 'orderId')
          or exists (select from payment_exceptions
                      where mid = :mid and exception_id = c.arguments ->> 'exception')
          or exists (select from access_keys
                      where mid = :mid and public_key = c.arguments ->> 'publicKey')
          or exists (select from webhook_endpoints
                      where mid = :mid and endpoint_id in (c.arguments ->> 'endpoint', split_part(c.arguments ->> 'delivery', '.', 1))))
   order by c.begun_at, c.audit_id`)
