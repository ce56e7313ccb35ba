import type { Queryable } from '../db/pool.ts'
import type { Difference } from '../ledger/differences.ts'

/**
 * Enters what ends a difference: the amount that the bank owes by it is not expected any more. Returns false when somebody else
 * has ended it since it was found: the entry's number, which follows the number of entries that were found, is taken.
 */
export async function enterResolution(
  db: Queryable,
  { id, mid, day, kind, orderId, utr, settlementUtr, owed, entries }: Difference,
  { reason, by, now }: { reason: string; by: string; now: Date },
): Promise<boolean> {
  const { rows } = await db.query(
    `insert into difference_resolutions
       (mid, difference_id, entry, day, kind, order_id, utr, settlement_utr, amount_paise, reason, resolved_by, resolved_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)
     on conflict do nothing
     returning 1`,
    [mid, id, entries + 1, day, kind, orderId, utr, settlementUtr, String(-owed), reason, by, now],
  )
  return rows.length === 1
}
