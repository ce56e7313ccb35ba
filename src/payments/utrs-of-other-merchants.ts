import type { Queryable } from '../db/pool.ts'
import { toDecimalText } from '../money.ts'
import type { ExceptionKind } from './outcome.ts'

/** One payment, or those that the bank made from `from` until before `until`, or else told of then. */
type Which = { mid: string; utr: string } | { from: Date; until: Date }

/** `amount` is in paise. */
type Payment = { mid: string; orderId: string; utr: string; amount: number; paidAt: Date | null }

const KIND = 'UTR of another merchant' satisfies ExceptionKind

/**
 * Keeps an exception, received at `now`, for each payment whose UTR has paid an order of another merchant before; of
 * payments at one moment that of the greater mid is the later one. Looks at `which` and at payments that share a UTR with
 * them. Returns how many exceptions are new. May be repeated. It must not run in the transaction that records a payment:
 * two at once would not see each other.
 */
export async function keepUtrsOfOtherMerchants(db: Queryable, which: Which, now: Date): Promise<number> {
  const payments = await ('utr' in which ? findByUtr(db, which.utr) : findShared(db, which))
  const later = payments.filter(({ utr }, index) => payments[index - 1]?.utr === utr)
  // A new payment makes the next one the later of the two, or is the later one itself: however many share the UTR.
  const maybeNew = 'utr' in which ? later.filter(({ mid }, index) => index === 0 || mid === which.mid) : later
  let kept = 0
  for (const { mid, orderId, utr, amount, paidAt } of maybeNew) {
    // One by one, since Citus stores no rows of several merchants by a select over all of them.
    const { rowCount } = await db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount, status, paid_at, received_at)
       values ($1, $2, '${KIND}', $3, $4, 'SUCCESS', $5, $6)
       on conflict do nothing`,
      [mid, orderId, utr, toDecimalText(amount), paidAt, now],
    )
    kept += rowCount ?? 0
  }
  return kept
}

const PAYMENT = `mid, order_id as "orderId", utr, amount_paise as amount, paid_at as "paidAt"`

/** Of each merchant one at most; the earliest first. */
async function findByUtr(db: Queryable, utr: string): Promise<Payment[]> {
  const { rows } = await db.query<Payment>(`select ${PAYMENT} from payments where utr = $1 order by heard_at, mid`, [
    utr,
  ])
  return rows
}

/** Payments of all times with a UTR that has paid several merchants, one of them in these days; of each UTR the earliest first. */
async function findShared(db: Queryable, { from, until }: { from: Date; until: Date }): Promise<Payment[]> {
  const { rows } = await db.query<Payment>(
    // By merchant, so that an index finds the payments of these days.
    `with of_days as (
       select p.utr
         from merchants m
         join payments p on p.mid = m.mid
        where coalesce(p.paid_at, p.heard_at) >= $1 and coalesce(p.paid_at, p.heard_at) < $2
     ), shared as (
       select utr from payments where utr in (select utr from of_days) group by utr having count(*) > 1
     )
     select ${PAYMENT} from payments where utr in (select utr from shared) order by utr, heard_at, mid`,
    [from, until],
  )
  return rows
}
