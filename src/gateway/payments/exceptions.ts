import type { Limits } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
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
  /** Distinguishes exceptions whose other fields are equal: the id of a refund, the SHA-256 of an unreadable body, or the time of an unreadable status. */
  digest?: string
  /** The beginning of an unreadable body. */
  body?: string
  person?: string | undefined
  note?: string | undefined
  /** The acquirer account whose notification this is; undefined for other sources. */
  acquirerAccount?: string | undefined
}

/** Stores an exception for the operator. Returns whether the exception is new: equal facts make one row. */
export async function saveException(db: Queryable, kind: ExceptionKind, subject: Subject, now: Date): Promise<boolean> {
  const { mid, orderId, utr = '', amount, status, paidAt, digest = '', body, person, note, acquirerAccount } = subject
  const { rowCount } = await db.query(
    `insert into payment_exceptions
       (mid, order_id, kind, utr, amount, status, paid_at, digest, body, told_by, note, acquirer_account, received_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     on conflict do nothing`,
    [mid, orderId, kind, utr, amount, status, paidAt, digest, body, person, note, acquirerAccount, now],
  )
  return rowCount === 1
}

/** `known` is an exception that was stored before, or cannot be: it is not counted again. */
export type SavedException = 'new' | 'known' | 'no room'

export type BoundedExceptions = ReturnType<typeof createBoundedExceptions>

/** Accounts, merchants and kinds whose counts are remembered; beyond that all are counted again. */
const REMEMBERED = 10_000

/**
 * Exceptions from notifications: at most `openOfAccount` of one acquirer account, merchant and kind are open. They are
 * counted once in `openCountedMs`, because a signer can send hundreds a second, and a count reads the resolved ones too. Each
 * instance counts for itself, so within this time several instances may together exceed the limit.
 */
export function createBoundedExceptions({ openOfAccount, openCountedMs }: Limits['reports']) {
  const rooms = new Map<string, { left: Promise<{ room: number }>; until: number }>()

  /** The room that is left, shared by concurrent calls, so that they count once and subtract from one number. */
  function roomOf(db: Queryable, ...[mid, acquirerAccount, kind]: [string, string, ExceptionKind]) {
    const key = [mid, acquirerAccount, kind].join('|')
    const known = rooms.get(key)
    if (known !== undefined && known.until > performance.now()) return known.left
    const left = db
      .query<{ open: number }>(COUNT_OPEN(mid, acquirerAccount, kind, openOfAccount))
      .then(({ rows }) => ({ room: openOfAccount - (rows[0]?.open ?? 0) }))
    if (rooms.size >= REMEMBERED) rooms.clear()
    rooms.set(key, { left, until: performance.now() + openCountedMs })
    left.catch(() => rooms.delete(key))
    return left
  }

  return async (
    db: Queryable,
    kind: ExceptionKind,
    subject: Subject & { acquirerAccount: string },
    now: Date,
  ): Promise<SavedException> => {
    const left = await roomOf(db, subject.mid, subject.acquirerAccount, kind)
    if (left.room <= 0) return 'no room'
    // Subtracted before the statement, because other calls may come in the meantime.
    left.room -= 1
    if (await saveException(db, kind, subject, now)) return 'new'
    left.room += 1
    return 'known'
  }
}

const COUNT_OPEN = prepared(
  `select count(*)::integer as open
     from (select
             from payment_exceptions e
            where e.mid = $1 and e.acquirer_account = $2 and e.kind = $3
              and not exists (select from payment_resolutions r where r.mid = $1 and r.exception_id = e.exception_id)
            limit $4) open`,
)
