import { batchesOf } from '../../platform/db/batches.ts'
import type { Database } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Paise } from '../../platform/money.ts'
import type { Days } from '../ledger/bank-days.ts'
import { boundsOf, textOf } from '../ledger/sql.ts'
import { inSnapshot } from './reconcile.ts'

/** A settlement line that deducts more than the contract allows. `gross` is with fee and tax, `excess` is `fee + tax - allowed`. */
export type ExcessFee = {
  mid: string
  day: string
  settlementUtr: string
  /** UTR and order of the payment; null where the line names no known payment. */
  utr: string | null
  orderId: string | null
} & Record<'gross' | 'fee' | 'tax' | 'allowed' | 'excess', Paise>

/** The lines of these days whose fee and tax exceed the contract, of the merchants that have one or of `mid`, by merchant and day. */
export function listExcessFees(
  db: Database,
  { mid, now, ...days }: Days & { mid?: string | undefined; now: Date },
): AsyncGenerator<ExcessFee> {
  return inSnapshot(db, now, async function* ({ client }) {
    const contracts = await client.query<{ mid: string }>(
      'select distinct mid from merchant_fees where $1::text is null or mid = $1 order by mid',
      [mid],
    )
    for (const { mid } of contracts.rows) {
      for await (const lines of batchesOf<ExcessFee>(client, EXCESS_FEES(mid, ...boundsOf(days)))) yield* lines
    }
  })
}

/**
 * Fee and tax are rounded half up, and may differ by one paisa together. A line that names neither an account nor a payment is
 * judged only if the merchant has contracts with one acquirer alone. The ledger counts a fee that the line does not state as 0.
 */
const EXCESS_FEES = prepared(`
  with charged as (
    select l.day, l.name, p.utr, p.order_id, -l.amount_paise as gross, l.fee_paise, l.tax_paise, f.tax_percent,
           round(coalesce(p.amount_paise, -l.amount_paise) * f.fee_percent * 0.01) as allowed_fee
      from ledger l
      left join payments p on p.mid = $1 and p.utr = l.item and p.kind <> 'second'
     cross join lateral (
       select fee_percent, tax_percent
         from merchant_fees
        where mid = $1 and since <= l.day
          and acquirer = coalesce(l.account, split_part(p.acquirer, ':', 1), (
                select min(acquirer) from merchant_fees where mid = $1 having min(acquirer) = max(acquirer)))
        order by since desc
        limit 1) f
     where l.mid = $1 and l.kind = 'settlement' and l.at >= $2 and l.at < $3 and l.replaced_at = 'infinity'
  ), judged as (
    select *, allowed_fee + round(allowed_fee * tax_percent * 0.01) as allowed from charged
  )
  select $1 as mid, ${textOf('day')} as day, name as "settlementUtr", utr, order_id as "orderId", gross, fee_paise as fee,
         tax_paise as tax, allowed::bigint as allowed, (fee_paise + tax_paise - allowed)::bigint as excess
    from judged
   where fee_paise + tax_paise - allowed > 1
   order by judged.day, name`)
