import type { Queryable } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'
import type { ExceptionKind, FinalStatus } from './outcome.ts'

type Subject = {
  /** The merchant of the order; empty if the order is unknown. */
  mid: string
  orderId: string
  utr?: string | undefined
  /** The reported amount, in rupees as decimal text. */
  amount: string
  /** The reported status of the payment; empty for an exception about a refund, and for an unreadable notification. */
  status: FinalStatus | ''
  paidAt?: Date | null | undefined
  /** Distinguishes exceptions whose other fields are equal: the id of a refund, or the SHA-256 of an unreadable body. */
  digest?: string
  /** The beginning of an unreadable body. */
  body?: string
  person?: string | undefined
  note?: string | undefined
  /** The acquirer account whose notification this is; undefined for other sources. */
  acquirerAccount?: string | undefined
}

/** `known` is an exception that was stored before: equal facts make one row. */
export type SavedException = 'new' | 'known' | 'no room'

/**
 * Stores an exception for the operator, unless `most` exceptions of this merchant, acquirer account and kind are open. Concurrent
 * calls may exceed `most` by a few.
 */
export async function saveException(
  db: Queryable,
  kind: ExceptionKind,
  subject: Subject,
  now: Date,
  most?: number,
): Promise<SavedException> {
  const { mid, orderId, utr = '', amount, status, paidAt, digest = '', body, person, note, acquirerAccount } = subject
  const facts = [mid, orderId, kind, utr, amount, status, paidAt, digest, body, person, note, acquirerAccount, now]
  const { rows } = await db.query<{ room: number; saved: number }>(SAVE(...facts, most))
  const { room = 0, saved = 0 } = rows[0] ?? {}
  if (saved > 0) return 'new'
  return room > 0 ? 'known' : 'no room'
}

const SAVE = prepared(
  `with room as materialized (
     select 1
      where $14::integer is null
         or $14 > (select count(*)
                     from (select
                             from payment_exceptions e
                            where e.mid = $1 and e.acquirer_account = $12 and e.kind = $3
                              and not exists (select from payment_resolutions r
                                               where r.mid = $1 and r.exception_id = e.exception_id)
                            limit $14) open)
   ), saved as (
     insert into payment_exceptions
       (mid, order_id, kind, utr, amount, status, paid_at, digest, body, told_by, note, acquirer_account, received_at)
     select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13 from room
     on conflict do nothing
     returning 1
   )
   select (select count(*) from room)::integer as room, (select count(*) from saved)::integer as saved`,
)
