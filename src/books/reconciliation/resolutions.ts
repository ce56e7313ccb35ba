import type { Queryable } from '../../platform/db/pool.ts'
import type { Paise } from '../../platform/money.ts'
import type { Difference } from '../ledger/differences.ts'

/** What a difference is written off as, in the words of the accountant. */
export const WRITTEN_OFF_AS = ['chargeback', 'charge', 'write-off', 'bank-error'] as const

type Ending = { reason: string; as?: (typeof WRITTEN_OFF_AS)[number] | undefined; by: string; now: Date }

/**
 * Enters what ends a difference: the amount that the bank owes by it is not expected any more. Returns false when somebody else
 * has ended it since it was found: the entry's number, which follows the number of entries that were found, is taken.
 */
export async function enterResolution(
  db: Queryable,
  difference: Difference,
  { reason, as, by, now }: Ending,
): Promise<boolean> {
  const { id, mid, day, kind, orderId, utr, settlementUtr, owed, entries } = difference
  const { rows } = await db.query(
    `insert into difference_resolutions
       (mid, difference_id, entry, day, kind, order_id, utr, settlement_utr, amount_paise, reason, resolved_by, resolved_at,
        written_off_as)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
     on conflict do nothing
     returning 1`,
    [mid, id, entries + 1, day, kind, orderId, utr, settlementUtr, -owed, reason, by, now, as],
  )
  return rows.length === 1
}

/** An entry by which a person has ended a difference. `amount` is what the bank owes more by it. */
export type Resolution = {
  resolvedAt: Date
  resolvedBy: string
  mid: string
  day: string
  kind: string
  differenceId: string
  orderId: string | null
  merchantOrderId: string | null
  as: string | null
  amount: Paise
  reason: string
}

type Sought = { mid?: string | undefined; from?: Date | undefined; until?: Date | undefined }

/** The entries made from `from` until before `until`, oldest first. */
export async function listResolutions(db: Queryable, { mid, from, until }: Sought): Promise<Resolution[]> {
  const { rows } = await db.query<Resolution>(
    `select resolved_at as "resolvedAt", resolved_by as "resolvedBy", r.mid, to_char(day, 'YYYY-MM-DD') as day, kind,
            difference_id as "differenceId", r.order_id as "orderId", i.merchant_order_id as "merchantOrderId",
            written_off_as as "as", r.amount_paise as amount, reason
       from difference_resolutions r
       left join payment_intents i on i.mid = r.mid and i.order_id = r.order_id
      where ($1::text is null or r.mid = $1) and resolved_at >= coalesce($2::timestamptz, '-infinity')
        and resolved_at < coalesce($3::timestamptz, 'infinity')
      order by resolved_at, r.mid, difference_id, entry`,
    [mid, from, until],
  )
  return rows
}
