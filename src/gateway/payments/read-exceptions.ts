import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery } from '../../platform/db/query.ts'
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

const select = (condition: string) => `
  select e.exception_id as id, e.mid, e.order_id, e.kind, e.status, e.utr, nullif(e.our_refund_id, '') as refund_id,
         case when e.kind <> 'unreadable' then e.amount_paise end as amount, e.paid_at, e.body, e.reported_by as told_by,
         e.note, e.acquirer_account, e.received_at, r.reason as resolution, r.resolved_by, r.resolved_at
    from payment_exceptions e
    left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
   where ${condition}
   order by e.received_at, e.mid, e.order_id, e.kind, e.utr, e.amount_paise`

const LIST = plannedQuery<PaymentException, Requested>(
  select(`
    (not :open::boolean or r.mid is null)
     and (:kind::text is null or e.kind = :kind)
     and (:mid::text is null or e.mid = :mid)
     and (:from::timestamptz is null or e.received_at >= :from)
     and (:until::timestamptz is null or e.received_at < :until)
     and (:acquirerAccount::text is null or e.acquirer_account = :acquirerAccount)`),
)

const OF_ORDER = plannedQuery<PaymentException, { mid: string; orderId: string }>(
  select('e.mid = :mid and e.order_id = :orderId'),
)

const OF_UTR = plannedQuery<PaymentException, { utr: string }>(select("e.mid = '' and e.utr = :utr"))

const OF_DAY = plannedQuery<PaymentException, { amount: number | undefined; from: Date; until: Date }>(
  select(`e.mid = '' and (:amount::bigint is null or e.amount_paise = :amount)
     and coalesce(e.paid_at, e.received_at) >= :from and coalesce(e.paid_at, e.received_at) < :until`),
)

const BY_ID = plannedQuery<PaymentException, { id: string }>(select('e.exception_id = :id'))

const RESOLVE = plannedQuery<{ id: string }, { mids: string[]; ids: string[]; reason: string; by: string; now: Date }>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
  select mid, id, :reason, :by, :now
    from unnest(:mids::text[], :ids::text[]) as e (mid, id)
      on conflict do nothing
  returning exception_id as id`)

/**
 * The exceptions that the operator must investigate, and their resolutions. Stored rows are never changed or deleted.
 */
export function createExceptions(db: Queryable) {
  return {
    /** Returns exceptions that match the filters, oldest first. */
    list: (filters: Requested) => LIST(db, filters),

    ofOrder: (mid: string, orderId: string) => OF_ORDER(db, { mid, orderId }),

    /** Returns exceptions without a known order that report this UTR, or a payment of a day, with any amount if it is undefined. */
    ofNoOrder: (reported: { utr: string } | { amount: number | undefined; from: Date; until: Date }) =>
      'utr' in reported ? OF_UTR(db, reported) : OF_DAY(db, reported),

    /** Returns the exception with this id; undefined if the id is unknown. */
    find: async (id: string): Promise<PaymentException | undefined> => (await BY_ID(db, { id }))[0],

    /** Resolves exceptions. Returns the newly resolved exceptions, without those that were already resolved. */
    async resolve(
      exceptions: readonly PaymentException[],
      resolution: { reason: string; by: string; now: Date },
    ): Promise<PaymentException[]> {
      const [mids, ids] = [exceptions.map(({ mid }) => mid), exceptions.map(({ id }) => id)]
      const rows = await RESOLVE(db, { mids, ids, ...resolution })
      const ended = new Set(rows.map(({ id }) => id))
      const resolved = exceptions.filter(({ id }) => ended.has(id))
      // Clears the mark of an unreadable response, so that the order gets its status as if the response had not
      // arrived.
      for (const { kind, mid, orderId } of resolved) {
        if (kind === 'unreadable' && orderId !== '') await endMark(db, { mid, orderId }, resolution.now)
      }
      return resolved
    },
  }
}
