import type { Queryable } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Rate } from '../ledger/rate-of.ts'

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
