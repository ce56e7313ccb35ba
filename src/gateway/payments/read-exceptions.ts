import type { Queryable } from '../../platform/db/pool.ts'
import type { Paise } from '../../platform/money.ts'
import type { ExceptionKind, FinalStatus } from './outcome.ts'
import { endMark } from './unreadable.ts'

/** `mid` is empty if the order is unknown. An unreadable notification has a `body` and nothing else. */
export type PaymentException = {
  /** The exception's id: 12 hex digits. */
  id: string
  mid: string
  orderId: string
  kind: ExceptionKind
  /** The reported status; empty if the report is unreadable. */
  status: FinalStatus | ''
  utr: string
  /** The refund that the exception is about; null for others. */
  refundId: string | null
  amount: Paise | null
  paidAt: Date | null
  body: string | null
  toldBy: string | null
  note: string | null
  /** The acquirer account whose notification created the exception, such as `setu:acme`; null for other sources. */
  acquirerAccount: string | null
  receivedAt: Date
  /** How the exception was resolved; null while the exception is open. */
  resolution: string | null
  resolvedBy: string | null
  resolvedAt: Date | null
}

/**
 * Filters for a list of exceptions. `open` selects only open exceptions. `from` and `until` select exceptions received
 * at or after `from` and before `until`.
 */
type Requested = {
  open: boolean
  kind?: ExceptionKind | undefined
  mid?: string | undefined
  acquirerAccount?: string | undefined
  from?: Date | undefined
  until?: Date | undefined
}

/**
 * The exceptions that the operator must investigate, and their resolutions. Stored rows are never changed or deleted.
 */
export function createExceptions(db: Queryable) {
  async function select(condition: string, values: unknown[]): Promise<PaymentException[]> {
    const { rows } = await db.query<PaymentException>(
      `select e.exception_id as id, e.mid, e.order_id as "orderId", e.kind, e.status, e.utr,
              nullif(e.our_refund_id, '') as "refundId",
              case when e.kind <> 'unreadable' then e.amount_paise end as amount, e.paid_at as "paidAt", e.body,
              e.reported_by as "toldBy", e.note, e.acquirer_account as "acquirerAccount", e.received_at as "receivedAt",
              r.reason as resolution, r.resolved_by as "resolvedBy", r.resolved_at as "resolvedAt"
         from payment_exceptions e
         left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
        where ${condition}
        order by e.received_at, e.mid, e.order_id, e.kind, e.utr, e.amount_paise`,
      values,
    )
    return rows
  }

  return {
    /** Returns exceptions that match the filters, oldest first. */
    list: ({ open, kind, mid, acquirerAccount, from, until }: Requested) =>
      select(
        `(not $1::boolean or r.mid is null)
           and ($2::text is null or e.kind = $2)
           and ($3::text is null or e.mid = $3)
           and ($4::timestamptz is null or e.received_at >= $4)
           and ($5::timestamptz is null or e.received_at < $5)
           and ($6::text is null or e.acquirer_account = $6)`,
        [open, kind, mid, from, until, acquirerAccount],
      ),

    ofOrder: (mid: string, orderId: string) => select('e.mid = $1 and e.order_id = $2', [mid, orderId]),

    /** Returns exceptions without a known order that report this UTR, or a payment of a day, with any amount if it is undefined. */
    ofNoOrder: (reported: { utr: string } | { amount: number | undefined; from: Date; until: Date }) =>
      'utr' in reported
        ? select(`e.mid = '' and e.utr = $1`, [reported.utr])
        : select(
            `e.mid = '' and ($1::bigint is null or e.amount_paise = $1) and coalesce(e.paid_at, e.received_at) >= $2
               and coalesce(e.paid_at, e.received_at) < $3`,
            [reported.amount, reported.from, reported.until],
          ),

    /** Returns the exception with this id; undefined if the id is unknown. */
    async find(id: string): Promise<PaymentException | undefined> {
      const [found] = await select('e.exception_id = $1', [id])
      return found
    },

    /** Resolves exceptions. Returns the newly resolved exceptions, without those that were already resolved. */
    async resolve(
      exceptions: readonly PaymentException[],
      { reason, by, now }: { reason: string; by: string; now: Date },
    ): Promise<PaymentException[]> {
      const { rows } = await db.query<{ id: string }>(
        `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
         select mid, id, $3, $4, $5
           from unnest($1::text[], $2::text[]) as e (mid, id)
         on conflict do nothing
         returning exception_id as id`,
        [exceptions.map(({ mid }) => mid), exceptions.map(({ id }) => id), reason, by, now],
      )
      const ended = new Set(rows.map(({ id }) => id))
      const resolved = exceptions.filter(({ id }) => ended.has(id))
      // Clears the mark of an unreadable response, so that the order gets its status as if the response had not
      // arrived.
      for (const { kind, mid, orderId } of resolved) {
        if (kind === 'unreadable' && orderId !== '') await endMark(db, { mid, orderId }, now)
      }
      return resolved
    },
  }
}
