import type { Queryable } from '../db/pool.ts'
import type { ExceptionKind, FinalStatus } from './outcome.ts'

type Subject = {
  /** The merchant of the order; empty if the order is unknown. */
  mid: string
  orderId: string
  utr?: string | undefined
  /** The reported amount, in rupees as decimal text. */
  amount: string
  /** The reported status of the payment; empty for an exception about a refund. */
  status: FinalStatus | ''
  paidAt?: Date | null | undefined
  ourRefundId?: string
  person?: string | undefined
  note?: string | undefined
}

/** Stores an exception for the operator. Returns whether the exception is new: equal facts make one row. */
export async function saveException(
  db: Queryable,
  kind: ExceptionKind,
  { mid, orderId, utr = '', amount, status, paidAt, ourRefundId = '', person, note }: Subject,
  now: Date,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `insert into payment_exceptions
       (mid, order_id, kind, utr, amount, status, paid_at, digest, told_by, note, received_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
     on conflict do nothing`,
    [mid, orderId, kind, utr, amount, status, paidAt, ourRefundId, person, note, now],
  )
  return rowCount === 1
}
