import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import { inSnapshot } from './snapshot.ts'

/**
 * A settlement line that deducts more fee and tax than the contract allows. `gross` includes fee and tax. `excess` is
 * `fee + tax - allowed`.
 */
export type ExcessFee = {
  mid: string
  day: string
  settlementUtr: string
  /** UTR of the payment; null if the line names no known payment. */
  utr: string | null
  /** Order id of the payment; null if the line names no known payment. */
  orderId: string | null
} & Record<'gross' | 'fee' | 'tax' | 'allowed' | 'excess', Paise>

/**
 * Yields the settlement lines of these days whose fee and tax exceed the contract, sorted by merchant and day. Checks
 * the merchant `mid` if given, otherwise all merchants with a contract.
 */
export function listExcessFees(
  db: Database,
  { mid, now, ...days }: Days & { mid?: string | undefined; now: Date },
): AsyncGenerator<ExcessFee> {
  return inSnapshot(db, now, async function* ({ client, known }) {
    for (const of of await MIDS_WITH_CONTRACT(client, { mid }))
      yield* await EXCESS_FEES(client, { ...boundsOf(days), ...of, known })
  })
}

const MIDS_WITH_CONTRACT = query<{ mid: string }, { mid: string | undefined }>(`
  select distinct mid from merchant_fees where :mid::text is null or mid = :mid order by mid`)

/**
 * Rounds fee and tax half up and tolerates a total difference of one paisa. A line that names neither an acquirer nor a
 * payment is checked only if all contracts of the merchant are with one acquirer. A fee that the line does not state is
 * treated as 0.
 */
const EXCESS_FEES = query<ExcessFee, { mid: string; known: Date; begin: Date; end: Date }>(`
  with charged as (
    select l.day, l.utr as settlement_utr, p.utr, p.order_id, l.gross_paise, coalesce(l.fee_paise, 0) as fee_paise,
           coalesce(l.tax_paise, 0) as tax_paise, f.tax_percent,
           round(coalesce(p.amount_paise, l.gross_paise) * f.fee_percent * 0.01) as allowed_fee
      from settlement_lines l
      left join payments p on p.mid = :mid and p.utr = l.item
     cross join lateral (
       select fee_percent, tax_percent
         from merchant_fees
        where mid = :mid and since <= l.day
          and acquirer = coalesce(l.acquirer, split_part(p.acquirer, ':', 1), (
                select min(acquirer) from merchant_fees where mid = :mid having min(acquirer) = max(acquirer)))
        order by since desc
        limit 1) f
     where l.mid = :mid and l.status = 'SUCCESS' and not l.is_deduction and l.at >= :begin and l.at < :end
       and (l.recorded_at <= :known) is true and l.replaced_at > :known
  ), judged as (
    select *, (allowed_fee + round(allowed_fee * tax_percent * 0.01))::bigint as allowed from charged
  )
  select :mid as mid, day, settlement_utr, utr, order_id, gross_paise as gross, fee_paise as fee, tax_paise as tax, allowed,
         fee_paise + tax_paise - allowed as excess
    from judged
   where fee_paise + tax_paise - allowed > 1
   order by day, settlement_utr`)
