import type { Queryable } from '../../platform/db/pool.ts'
import { toIstDay } from '../../platform/time.ts'

/**
 * The acquirer's contractual deductions from a merchant's payments. `fee` and `tax` are percentages as decimal text;
 * null if no deduction is expected.
 */
export type MerchantFee = { acquirer: string; since: string; fee: string | null; tax: string | null }

/** Sets the deductions of these acquirers from today on. The new values replace an entry that was made today. */
export async function saveFees(
  db: Queryable,
  mid: string,
  fees: readonly Omit<MerchantFee, 'since'>[],
  now: Date,
): Promise<void> {
  await db.query(
    `insert into merchant_fees (mid, acquirer, since, fee_percent, tax_percent)
     select $1, acquirer, $2, fee, tax
       from unnest($3::text[], $4::numeric[], $5::numeric[]) as f (acquirer, fee, tax)
     on conflict (mid, acquirer, since) do update set fee_percent = excluded.fee_percent, tax_percent = excluded.tax_percent`,
    [mid, toIstDay(now), fees.map((one) => one.acquirer), fees.map(({ fee }) => fee), fees.map(({ tax }) => tax)],
  )
}

/** Returns, by mid, the newest fees of each acquirer with expected deductions. */
export async function newestFees(db: Queryable): Promise<Map<string, MerchantFee[]>> {
  const { rows } = await db.query<MerchantFee & { mid: string }>(
    `select mid, acquirer, to_char(since, 'YYYY-MM-DD') as since, fee_percent::text as fee, tax_percent::text as tax
       from (select distinct on (mid, acquirer) * from merchant_fees order by mid, acquirer, since desc) newest
      where fee_percent is not null
      order by mid, acquirer`,
  )
  const byMid = new Map<string, MerchantFee[]>()
  for (const { mid, ...fee } of rows) byMid.set(mid, [...(byMid.get(mid) ?? []), fee])
  return byMid
}
