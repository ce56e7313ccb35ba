import type { Limits } from '../../limits.ts'
import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { ExceptionKind, FinalStatus } from './outcome.ts'

export type ExceptionSubject = {
  /** The merchant of the order; empty if the order is unknown. */
  mid: string
  orderId: string
  utr?: string | undefined
  /** The reported amount, in paise. */
  amount: Paise
  /** The reported status of the payment; empty for an exception about a refund, and for an unreadable notification. */
  status: FinalStatus | ''
  paidAt?: Date | null | undefined
  /** The service's id of the refund that the exception is about. */
  ourRefundId?: string
  /**
   * Distinguishes exceptions whose other fields are equal: the SHA-256 of an unreadable body, the time of an unreadable
   * status, or the acquirer's id of a refund that is not stored.
   */
  dedupKey?: string
  /** The first bytes of an unreadable notification's body. */
  body?: string
  person?: string | undefined
  note?: string | undefined
  /** The acquirer account that sent the notification; undefined for other sources. */
  acquirerAccount?: string | undefined
}

/**
 * Stores an exception for the operator. Returns whether the exception is new. An exception with the same facts as a
 * stored exception creates no second row.
 */
export async function saveException(
  db: Queryable,
  kind: ExceptionKind,
  subject: ExceptionSubject,
  now: Date,
): Promise<boolean> {
  const { utr = '', ourRefundId = '', dedupKey = '' } = subject
  return (await SAVE(db, { ...subject, kind, utr, ourRefundId, dedupKey, now })).length === 1
}

const SAVE = query<object, ExceptionSubject & { kind: ExceptionKind; now: Date }>(`
  insert into payment_exceptions
    (mid, order_id, kind, utr, amount_paise, status, paid_at, our_refund_id, dedup_key, body, reported_by, note,
     acquirer_account, received_at)
  values (:mid, :orderId, :kind, :utr, :amount, :status, :paidAt, :ourRefundId, :dedupKey, :body, :person, :note,
          :acquirerAccount, :now)
      on conflict do nothing
  returning 1`)

/**
 * `known` is an exception that was stored before or cannot be stored. The metrics do not count it. `no
 * room` means that the limit of open exceptions is reached.
 */
export type SavedException = 'new' | 'known' | 'no room'

export type BoundedExceptions = ReturnType<typeof createBoundedExceptions>

/**
 * Largest number of combinations of account, merchant and kind whose counts are cached. Beyond this number, the cache
 * is emptied and all combinations are counted again.
 */
const REMEMBERED = 10_000

/**
 * Stores exceptions from notifications. At most `openOfAccount` exceptions of one acquirer account, merchant and kind
 * are open. The open exceptions are counted once per `openCountedMs`, because a signer can send hundreds of
 * notifications a second, and a count also reads resolved ones. Each instance counts separately, so within this
 * time several instances together may exceed the limit.
 */
export function createBoundedExceptions({ openOfAccount, openCountedMs }: Limits['reports']) {
  const rooms = new Map<string, { left: Promise<{ room: number }>; until: number }>()

  /**
   * Returns how many more exceptions may be stored. Concurrent calls share the result, so that they count once and
   * subtract from the same number.
   */
  function roomOf(db: Queryable, { mid, acquirerAccount, kind }: Counted) {
    const key = [mid, acquirerAccount, kind].join('|')
    const known = rooms.get(key)
    if (known !== undefined && known.until > performance.now()) return known.left
    const left = COUNT_OPEN(db, { mid, acquirerAccount, kind, most: openOfAccount }).then(([counted]) => ({
      room: openOfAccount - (counted?.open ?? 0),
    }))
    if (rooms.size >= REMEMBERED) rooms.clear()
    rooms.set(key, { left, until: performance.now() + openCountedMs })
    left.catch(() => rooms.delete(key))
    return left
  }

  return async (
    db: Queryable,
    kind: ExceptionKind,
    subject: ExceptionSubject & { acquirerAccount: string },
    now: Date,
  ): Promise<SavedException> => {
    const left = await roomOf(db, { ...subject, kind })
    if (left.room <= 0) return 'no room'
    // Subtracts before the statement is sent, because other calls may arrive while it is running.
    left.room -= 1
    if (await saveException(db, kind, subject, now)) return 'new'
    left.room += 1
    return 'known'
  }
}

type Counted = { mid: string; acquirerAccount: string; kind: ExceptionKind }

const COUNT_OPEN = query<{ open: number }, Counted & { most: number }>(`
  select count(*) as open
    from (select
            from payment_exceptions e
           where e.mid = :mid and e.acquirer_account = :acquirerAccount and e.kind = :kind
             and not exists (select from payment_resolutions r where r.mid = :mid and r.exception_id = e.exception_id)
           limit :most) open`)
