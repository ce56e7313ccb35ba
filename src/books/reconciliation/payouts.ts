import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import { amountOf, type Rest, restKey } from './rests.ts'
import type { Snapshot } from './snapshot.ts'

/**
 * One transfer of the bank to a merchant: `gross - fee - tax + deductions = net`. Amounts are in paise. Without a merchant it is the rest
 * of a transfer that is the account's.
 */
export type PayoutLine = {
  /** Of its last row: `YYYY-MM-DD`, IST. */
  day: string
  mid: string | null
  /** The acquirer account; null where the file does not say. */
  account: string | null
  bankReference: string
  /** The UTR of a payout of one row; null for others. */
  utr: string | null
  /** When the last of its rows was first stored as paid out. */
  recordedAt: Date
  rows: number
  /** Of the rows that pay something out, with fee and tax. */
  gross: Paise
  /** Of all rows, as in the books: the bank may give back what it kept of a payment, or keep something of a chargeback. */
  fee: Paise
  tax: Paise
  /** What other rows take back, with fee and tax, and what the acquirer has added or deducted beside the rows. */
  deductions: Paise
  /** What has to stand in the bank statement. */
  net: Paise
}

/** The payouts of these days to one merchant, oldest first. */
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
    return { ...payout, deductions: payout.deductions + rest, net: payout.net + rest }
  })
}

/**
 * Payouts whose last row is of the days from `begin` until before `end`. Rows of one transfer lie within a month: with that the index
 * of lists suffices.
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
   where mid = :mid and status = 'SUCCESS' and (recorded_at <= :known) is true and replaced_at > :known
     and initiated_at between :begin::timestamptz - interval '31 days' and :end::timestamptz + interval '31 days'
   group by mid, account, reference
  having max(at) >= :begin and max(at) < :end
   order by max(at), reference, account`)
