import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { type Discrepancy, kindOfStored, STORED_KINDS } from '../ledger/discrepancies.ts'

/** Accounting terms under which a discrepancy is written off. */
export const WRITTEN_OFF_AS = ['chargeback', 'charge', 'write-off', 'bank-error'] as const

type Ending = { reason: string; as?: (typeof WRITTEN_OFF_AS)[number] | undefined; by: string; now: Date }

/**
 * Stores an entry that resolves a discrepancy, so that the bank's debt from the discrepancy is no longer expected.
 * Returns false if another operator has resolved the discrepancy in the meantime, because the next entry number is
 * already used.
 */
export async function enterResolution(
  db: Queryable,
  discrepancy: Discrepancy,
  { reason, as, by, now }: Ending,
): Promise<boolean> {
  const { owed, entries, kind, ...about } = discrepancy
  // The acquirer has paid a short payout in full, so resolving the discrepancy does not change the acquirer's debt.
  const moved = kind === 'short payout' ? 0 : -owed
  return (
    (await insertEntry(db, { ...about, kind: STORED_KINDS[kind], entry: entries + 1, moved, reason, by, now, as }))
      .length === 1
  )
}

type NewEntry = Pick<Discrepancy, 'id' | 'mid' | 'day' | 'orderId' | 'utr' | 'settlementUtr'> &
  Ending & { kind: string; entry: number; moved: Paise }

const insertEntry = query<{ entry: number }, NewEntry>(`
  insert into difference_resolutions
    (mid, difference_id, entry, day, kind, order_id, utr, settlement_utr, amount_paise, reason, resolved_by, resolved_at,
     written_off_as)
  values (:mid, :id, :entry, :day, :kind, :orderId, :utr, :settlementUtr, :moved, :reason, :by, :now, :as)
      on conflict do nothing
  returning entry`)

/** An operator's entry that resolves a discrepancy. `amount` is the change of the bank's debt in paise. */
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

type Criteria = { mid?: string | undefined; from?: Date | undefined; until?: Date | undefined }

/** Returns the entries that were created from `from` until before `until`, oldest first. */
export const listResolutions = async (db: Queryable, criteria: Criteria): Promise<Resolution[]> =>
  (await RESOLUTIONS(db, criteria)).map((one) => ({ ...one, kind: kindOfStored(one.kind) }))

const RESOLUTIONS = query<Resolution, Criteria>(`
  select resolved_at, resolved_by, r.mid, day, kind, difference_id, r.order_id, i.merchant_order_id, written_off_as as "as",
         r.amount_paise as amount, reason
    from difference_resolutions r
    left join payment_intents i on i.mid = r.mid and i.order_id = r.order_id
   where (:mid::text is null or r.mid = :mid) and resolved_at >= coalesce(:from::timestamptz, '-infinity')
     and resolved_at < coalesce(:until::timestamptz, 'infinity')
   order by resolved_at, r.mid, difference_id, entry`)
