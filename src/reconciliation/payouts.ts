import { batchesOf } from '../db/batches.ts'
import type { Days } from '../ledger/bank-days.ts'
import type { Snapshot } from '../ledger/read-ledger.ts'
import { boundsOf, dayOf, paiseOf, settlementsKnown, type Texts, textOf, withPaise } from '../ledger/sql.ts'

/** One transfer of the bank to a merchant: `gross - fee - tax + deductions = net`. Amounts are in paise. */
export type PayoutLine = {
  /** Of its last row: `YYYY-MM-DD`, IST. */
  day: string
  mid: string
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
  /** What other rows take back, with fee and tax. */
  deductions: bigint
  /** What has to stand in the bank statement. */
  net: bigint
}

/** The payouts of these days to one merchant, oldest first. Memory does not grow with their number. */
export async function* payoutsOf({ client, known }: Snapshot, mid: string, days: Days): AsyncGenerator<PayoutLine> {
  for await (const rows of batchesOf<Texts<PayoutLine>>(client, PAYOUTS, [mid, known, ...boundsOf(days)])) {
    yield* rows.map((row) => withPaise<PayoutLine>(row, 'gross', 'fee', 'tax', 'deductions', 'net'))
  }
}

const sumWhere = (condition: string) => paiseOf(`coalesce(sum(gross) filter (where ${condition}), 0)`)

const AROUND = `initiated_at between $3::timestamptz - interval '31 days' and $4::timestamptz + interval '31 days'`

/**
 * Payouts of merchant $1 whose last row is of the days from $3 until before $4. Rows of one transfer lie within a month: with that
 * the index of lists suffices.
 */
const PAYOUTS = `
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
   order by max(at), bank_reference_number, account`
