import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import { amountOf, type Rest, restKey } from '../reading/rests.ts'
import { AS_KNOWN, type Snapshot } from '../reading/snapshot.ts'

/**
 * One bank transfer to a merchant: `gross - fee - tax + deductions = net`. Amounts are in paise. A line without a
 * merchant is the part of a shared transfer that belongs to no single merchant.
 */
export type PayoutLine = {
  /** IST day of the payout's last settlement line, `YYYY-MM-DD`. */
  day: string
  mid: string | null
  /** The acquirer account; null if the settlement file does not name the account. */
  account: string | null
  bankReference: string
  /** UTR of a payout that consists of a single line; otherwise null. */
  utr: string | null
  /** Time at which the last settlement line of the payout was first stored as SUCCESS. */
  recordedAt: Date
  rows: number
  /** Sum of the lines that pay money out, including fee and tax. */
  gross: Paise
  /**
   * Sum of the fees in all lines, as in the ledger: a bank may return the fee for a payment, or charge a fee for a
   * chargeback.
   */
  fee: Paise
  tax: Paise
  /**
   * Sum of two parts: the lines that deduct money, including fee and tax, and the amounts that the acquirer added or
   * deducted in addition to settlement lines.
   */
  deductions: Paise
  /** Amount expected in the bank statement. */
  net: Paise
}

/** Returns the payouts to one merchant on these days, oldest first. */
export async function payoutsOf(
  { client, known }: Snapshot,
  mid: string,
  days: Days,
  rests: readonly Rest[],
): Promise<PayoutLine[]> {
  const own = new Map(rests.flatMap((rest) => (rest.mid === mid ? [[restKey(rest), amountOf(rest)]] : [])))
  const { begin, end } = boundsOf(days)
  const payouts = await readPayouts(client, { mid, known, begin, end })
  return payouts.map((payout) => {
    const rest = own.get(restKey(payout)) ?? 0
    return { ...payout, deductions: addPaise(payout.deductions, rest), net: addPaise(payout.net, rest) }
  })
}

/**
 * Returns payouts whose last line is dated from `begin` until before `end`. The lines of one transfer lie within a
 * month, so the range lets PostgreSQL use the index of the settlement list.
 */
const readPayouts = query<PayoutLine, { mid: string; known: Date; begin: Date; end: Date }>(`
  select max(day) as day, mid, account, reference as bank_reference, case when count(*) = 1 then min(utr) end as utr, count(*) as rows,
         greatest(max(least(recorded_at, first_recorded_at)), 'epoch') as recorded_at,
         coalesce(sum(gross_paise) filter (where not is_deduction), 0)::bigint as gross, coalesce(sum(fee_paise), 0)::bigint as fee,
         coalesce(sum(tax_paise), 0)::bigint as tax,
         coalesce(sum(gross_paise) filter (where is_deduction), 0)::bigint as deductions, sum(net_paise)::bigint as net
    from settlement_lines
    left join (select utr, min(recorded_at) as first_recorded_at
                 from settlement_versions
                where mid = :mid and status = 'SUCCESS' and not undone
                  and initiated_at between :begin::timestamptz - interval '31 days' and :end::timestamptz + interval '31 days'
                group by utr) first using (utr)
   where mid = :mid and status = 'SUCCESS' and ${AS_KNOWN}
     and initiated_at between :begin::timestamptz - interval '31 days' and :end::timestamptz + interval '31 days'
   group by mid, account, reference
  having max(at) >= :begin and max(at) < :end
   order by max(at), reference, account`)
