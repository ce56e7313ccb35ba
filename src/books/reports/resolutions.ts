import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { Discrepancy } from '../ledger/discrepancies.ts'

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
  const { owed, entries, ...about } = discrepancy
  // The acquirer has paid a short payout in full, so resolving the discrepancy does not change the acquirer's debt.
  const moved = about.kind === 'short payout' ? 0 : -owed
  const [{ account } = { account: 'unknown' }] = await ACCOUNT(db, about)
  const entry = { ...about, account, entry: entries + 1, moved }
  return (await insertEntry(db, { ...entry, reason, by, now, as })).length === 1
}

type About = Pick<Discrepancy, 'mid' | 'day' | 'utr' | 'settlementUtr' | 'account'>

/**
 * The acquirer account of a discrepancy: of its payment, otherwise of its settlement line. Of a payout by totals, it is the
 * account of a line of the payout's day, otherwise of the last payment before that day.
 */
const ACCOUNT = query<{ account: string }, About>(`
  select account
    from (select 1 as place, acquirer as account from payments where mid = :mid and utr = :utr
           union all
          (select 2, clearing_account
             from settlement_lines
            where mid = :mid and replaced_at = 'infinity' and clearing_account <> 'unknown'
              and (utr = :settlementUtr
                   or :settlementUtr::text is null and day = :day::date and (:account::text is null or acquirer = :account))
            limit 1)
           union all
          (select 3, acquirer
             from payments
            where mid = :mid and :utr::text is null and :settlementUtr::text is null
              and (:account::text is null or acquirer_of(acquirer) = :account)
              and coalesce(paid_at, received_at) < start_of_ist_day(:day)
            order by coalesce(paid_at, received_at) desc
            limit 1)) found
   order by place
   limit 1`)

type NewEntry = Omit<About, 'account'> &
  Pick<Discrepancy, 'id' | 'kind' | 'orderId'> &
  Ending & { entry: number; moved: Paise; account: string }

const insertEntry = query<{ entry: number }, NewEntry>(`
  insert into difference_resolutions
    (mid, difference_id, entry, day, kind, order_id, utr, settlement_utr, amount_paise, account, reason, resolved_by, resolved_at,
     written_off_as)
  values (:mid, :id, :entry, :day, :kind, :orderId, :utr, :settlementUtr, :moved, :account, :reason, :by, :now, :as)
      on conflict do nothing
  returning entry`)

/** An operator's entry that resolves a discrepancy. `amount` is the change of the bank's debt in paise. */
type Resolution = {
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
export const listResolutions = query<Resolution, Criteria>(`
  select resolved_at, resolved_by, r.mid, day, kind, difference_id, r.order_id, i.merchant_order_id, written_off_as as "as",
         r.amount_paise as amount, reason
    from difference_resolutions r
    left join payment_intents i on i.mid = r.mid and i.order_id = r.order_id
   where (:mid::text is null or r.mid = :mid) and resolved_at >= coalesce(:from::timestamptz, '-infinity')
     and resolved_at < coalesce(:until::timestamptz, 'infinity')
   order by resolved_at, r.mid, difference_id, entry`)
