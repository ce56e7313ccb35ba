import type { Database } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import { AS_KNOWN, readMids, readSnapshot } from '../reading/snapshot.ts'

/**
 * What an acquirer account charged all merchants, by the days of its settlement lines. `other` is the part of fee and tax
 * whose payment was on other days, `later` what lines of other days charged for payments on these days, and `resolved`
 * the discrepancies of these days that an operator resolved as a charge. The journal posts the same to
 * `<account> charges`, but a change after a close in the next open month.
 */
export type AccountCharges = { account: string; lines: number } & Record<
  'gross' | 'fee' | 'tax' | 'otherFee' | 'otherTax' | 'laterFee' | 'laterTax' | 'resolved',
  Paise
>

/** Returns the charges of each acquirer account. */
export const listCharges = (db: Database, { now, ...days }: Days & { now: Date }): Promise<AccountCharges[]> =>
  readSnapshot(db, now, async ({ client, known }) =>
    CHARGES(client, { ...days, ...boundsOf(days), mids: await readMids(client, {}), known }),
  )

/**
 * A line of a refund or a dispute belongs to its own day, because its fee is returned or charged again on that day. A
 * payment may be settled at any later time, and before its own day if its report was late.
 */
const CHARGES = query<AccountCharges, Days & { mids: readonly string[]; known: Date; begin: Date; end: Date }>(`
  with line as (
    select l.mid, l.clearing_account as account, l.gross_paise as gross, coalesce(l.fee_paise, 0) as fee, coalesce(l.tax_paise, 0) as tax,
           l.at >= :begin and l.at < :end as is_settled,
           case when l.is_deduction or l.event <> 'payment' or p.utr is null then l.day
                else ist_day(coalesce(p.paid_at, p.received_at)) end as paid_on
      from settlement_lines l
      left join payments p on p.mid = l.mid and p.utr = l.item
     where l.mid = any (:mids) and l.status = 'SUCCESS' and l.at >= :begin::timestamptz - interval '31 days'
       and ${AS_KNOWN}
  ), one as (
    select *, paid_on between :from::date and :to::date as is_paid, 0 as resolved from line
     union all
    select mid, account, 0, 0, 0, false, null, false, -amount_paise
      from difference_resolutions
     where written_off_as = 'charge' and day between :from::date and :to::date and resolved_at <= :known
  )
  select account, count(*) filter (where is_settled) as lines,
         coalesce(sum(gross) filter (where is_settled), 0)::bigint as gross, coalesce(sum(fee) filter (where is_settled), 0)::bigint as fee,
         coalesce(sum(tax) filter (where is_settled), 0)::bigint as tax,
         coalesce(sum(fee) filter (where is_settled and not is_paid), 0)::bigint as other_fee,
         coalesce(sum(tax) filter (where is_settled and not is_paid), 0)::bigint as other_tax,
         coalesce(sum(fee) filter (where not is_settled and is_paid), 0)::bigint as later_fee,
         coalesce(sum(tax) filter (where not is_settled and is_paid), 0)::bigint as later_tax, sum(resolved)::bigint as resolved
    from one
   where is_settled or is_paid or resolved <> 0
   group by account
   order by account`)
