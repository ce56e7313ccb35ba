import { batchesOf } from '../../platform/db/batches.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Days } from '../ledger/bank-days.ts'
import type { Snapshot } from '../ledger/read-ledger.ts'
import { boundsOf, dayOf, paiseOf, settlementsKnown, type Texts, textOf, withPaise } from '../ledger/sql.ts'
import { amountOf, type Rest, restKey } from './rests.ts'

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
  knownAt: Date
  rows: number
  /** Of the rows that pay something out, with fee and tax. */
  gross: bigint
  /** Of all rows, as in the books: the bank may give back what it kept of a payment, or keep something of a chargeback. */
  fee: bigint
  tax: bigint
  /** What other rows take back, with fee and tax, and what the acquirer has added or deducted beside the rows. */
  deductions: bigint
  /** What has to stand in the bank statement. */
  net: bigint
}

/** The payouts of these days to one merchant, oldest first. Memory grows with `rests` alone. */
export async function* payoutsOf(
  { client, known }: Snapshot,
  mid: string,
  days: Days,
  rests: readonly Rest[],
): AsyncGenerator<PayoutLine> {
  const own = new Map(rests.flatMap((rest) => (rest.mid === mid ? [[restKey(rest), amountOf(rest)]] : [])))
  for await (const rows of batchesOf<Texts<PayoutLine>>(client, PAYOUTS(mid, known, ...boundsOf(days)))) {
    for (const row of rows) {
      const payout = withPaise<PayoutLine>(row, 'gross', 'fee', 'tax', 'deductions', 'net')
      const rest = own.get(restKey(payout)) ?? 0n
      yield { ...payout, deductions: payout.deductions + rest, net: payout.net + rest }
    }
  }
}

const sumWhere = (condition: string) => paiseOf(`coalesce(sum(gross) filter (where ${condition}), 0)`)

const AROUND = `initiated_at between $3::timestamptz - interval '31 days' and $4::timestamptz + interval '31 days'`

/**
 * Payouts of merchant $1 whose last row is of the days from $3 until before $4. Rows of one transfer lie within a month: with that
 * the index of lists suffices.
 */
const PAYOUTS = prepared(`
  select ${textOf(dayOf('max(at)'))} as day, $1 as mid, account, bank_reference_number as "bankReference",
         case when count(*) = 1 then min(utr) end as utr, count(*)::integer as rows,
         greatest(max(least(known_at, first_known_at)), 'epoch') as "knownAt",
         ${sumWhere('amount >= 0')} as gross, ${paiseOf('coalesce(sum(fee), 0)')} as fee, ${paiseOf('coalesce(sum(tax), 0)')} as tax,
         ${sumWhere('amount < 0')} as deductions, ${paiseOf('sum(amount)')} as net
    from (${settlementsKnown(`status = 'SUCCESS' and ${AROUND}`)}) s
    left join (select utr, min(known_at) as first_known_at
                 from settlement_versions
                where mid = $1 and status = 'SUCCESS' and not undone and ${AROUND}
                group by utr) v using (utr)
   group by account, bank_reference_number
  having max(at) >= $3 and max(at) < $4
   order by max(at), bank_reference_number, account`)
