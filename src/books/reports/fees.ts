import type { Instrument } from '../../gateway/payments/instrument.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import { groupBy } from '../ledger/match-deductions.ts'
import { bandsOf, type Rate } from '../ledger/rate-of.ts'
import { AS_KNOWN, inSnapshot, readMids, readSnapshot } from '../reading/snapshot.ts'

/**
 * A settlement line that deducts more fee or tax than the contract allows. `gross` includes fee and tax. `excess` is
 * what exceeds `allowedFee` and `allowedTax`.
 */
type ExcessFee = {
  mid: string
  day: string
  /** The acquirer account of the payment, otherwise of the file. */
  account: string
  /** Null if the payment's instrument is unknown. */
  instrument: Instrument | null
  settlementUtr: string
  /** UTR of the payment; null if the line names no known payment. */
  utr: string | null
  /** Order id of the payment; null if the line names no known payment. */
  orderId: string | null
} & Record<'gross' | 'fee' | 'tax' | 'allowedFee' | 'allowedTax' | 'excess', Paise>

/** The settlement lines of an acquirer account and instrument. `isJudged` is false if no rate applies to them. */
export type FeeSum = Pick<ExcessFee, 'account' | 'instrument' | (typeof SUMMED)[number]> &
  Record<'lines' | 'listed', number> & { isJudged: boolean }
const SUMMED = ['gross', 'fee', 'tax', 'excess'] as const

/**
 * Judges the settlement lines of these days by the contract rates, of the merchant `mid` if given, otherwise of all
 * merchants with rates. `rows` yields the lines that deduct too much, sorted by merchant and day; `sums` returns the
 * sums of all lines once they are read.
 */
export function judgeFees(
  db: Database,
  { mid, now, ...days }: Days & { mid?: string | undefined; now: Date },
): { rows: AsyncGenerator<ExcessFee>; sums: () => FeeSum[] } {
  const sums = new Map<string, FeeSum>()
  const rows = inSnapshot(db, now, async function* ({ client, known }) {
    for (const [one, rates] of groupBy(await readRates(client, { mid }), (rate) => rate.mid)) {
      const bands = bandsOf(rates)
      const accounts = [...new Set(bands.map(({ account }) => account))]
      const of = { ...boundsOf(days), mid: one, known, bands: JSON.stringify(bands), accounts }
      const found = await FEE_SUMS(client, of)
      for (const sum of found) add(sums, sum)
      if (found.some(({ listed }) => listed > 0)) yield* await EXCESS_FEES(client, of)
    }
  })
  return { rows, sums: () => [...sums].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum) }
}

function add(sums: Map<string, FeeSum>, sum: FeeSum): void {
  const key = JSON.stringify([sum.account, sum.instrument, sum.isJudged])
  const before = sums.get(key)
  const added = { ...sum }
  for (const name of ['lines', 'listed', ...SUMMED] as const) added[name] = addPaise(before?.[name] ?? 0, sum[name])
  sums.set(key, added)
}

type Params = { mid: string; known: Date; begin: Date; end: Date; bands: string; accounts: readonly string[] }

/**
 * Rounds fee and tax half up, and tolerates a difference of one paisa in each. The payment decides, whatever its line
 * states. A line that names neither an acquirer nor a payment is judged only if all rates of the merchant name the same
 * acquirer or account. A fee that the line does not state is treated as 0.
 */
const JUDGED = `
  with line as (
    select l.day, coalesce(p.acquirer, l.account, case when cardinality(:accounts::text[]) = 1 then (:accounts::text[])[1] end) as account,
           p.instrument, l.utr as settlement_utr, p.utr, p.order_id, l.gross_paise as gross, coalesce(l.fee_paise, 0) as fee,
           coalesce(l.tax_paise, 0) as tax, coalesce(p.amount_paise, l.gross_paise) as amount,
           coalesce(ist_day(coalesce(p.paid_at, p.received_at)), l.day) as paid_on
      from settlement_lines l
      left join payments p on p.mid = :mid and p.utr = l.item
     where l.mid = :mid and l.status = 'SUCCESS' and not l.is_deduction and (l.event is null or l.event = 'payment')
       and l.at >= :begin and l.at < :end and ${AS_KNOWN}
  ), allowed as (
    select line.*, allowed_fee, round(allowed_fee * r.tax * 0.01)::bigint as allowed_tax
      from line
      left join json_to_recordset(:bands)
             as r (account text, instrument text, above bigint, "upTo" bigint, since date, until date, percent numeric, flat bigint, tax numeric)
        on r.account = case when line.account = any (:accounts::text[]) then line.account else acquirer_of(line.account) end
       and coalesce(r.instrument, '') = coalesce(line.instrument, '')
       and line.amount > r.above and (line.amount > r."upTo") is not true
       and line.paid_on >= r.since and (line.paid_on >= r.until) is not true
     cross join lateral (select round(line.amount * r.percent * 0.01 + r.flat)::bigint as allowed_fee) fee
  ), judged as (
    select *, greatest(fee - allowed_fee, 0) + greatest(tax - allowed_tax, 0) as excess,
           coalesce(fee - allowed_fee > 1 or tax - allowed_tax > 1, false) as is_listed
      from allowed
  )`

const EXCESS_FEES = query<ExcessFee, Params>(`${JUDGED}
  select :mid as mid, day, account, instrument, settlement_utr, utr, order_id, gross, fee, tax, allowed_fee, allowed_tax, excess
    from judged
   where is_listed
   order by day, settlement_utr`)

const FEE_SUMS = query<FeeSum, Params>(`${JUDGED}
  select coalesce(account, 'unknown') as account, instrument, allowed_fee is not null as is_judged, count(*) as lines,
         count(*) filter (where is_listed) as listed, sum(gross)::bigint as gross, sum(fee)::bigint as fee, sum(tax)::bigint as tax,
         coalesce(sum(excess) filter (where is_listed), 0)::bigint as excess
    from judged
   group by 1, 2, 3`)

export type MerchantRate = Rate & { mid: string }

/** Stores rates. A rate replaces the one that has its name and begins on the same day. */
export async function saveRates(db: Queryable, rates: readonly MerchantRate[]): Promise<void> {
  await SAVE(db, { rates: JSON.stringify(rates) })
}

const SAVE = query<object, { rates: string }>(`
  insert into contract_rates (mid, acquirer, instrument, above_paise, since, percent, flat_paise, tax_percent)
  select mid, acquirer, coalesce(instrument, ''), above, since, percent, flat, tax
    from json_to_recordset(:rates)
      as r (mid text, acquirer text, instrument text, above bigint, since date, percent numeric, flat bigint, tax numeric)
      on conflict (mid, acquirer, instrument, above_paise, since)
      do update set percent = excluded.percent, flat_paise = excluded.flat_paise, tax_percent = excluded.tax_percent`)

/**
 * Returns the rates of one or all merchants that begin on the day `until` or before, by merchant, acquirer, instrument and
 * amount, the oldest first.
 */
export const readRates = query<MerchantRate, { mid?: string | undefined; until?: string }>(`
  select mid, acquirer, nullif(instrument, '') as instrument, above_paise as above, since, percent::text, flat_paise as flat,
         tax_percent::text as tax
    from contract_rates
   where (:mid::text is null or mid = :mid) and since <= coalesce(:until::date, 'infinity')
   order by mid, acquirer, instrument, above_paise, since`)

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
