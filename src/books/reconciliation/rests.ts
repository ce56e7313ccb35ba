import type { Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { addDays, type Days } from '../ledger/bank-days.ts'
import type { Snapshot } from '../ledger/read-ledger.ts'
import { boundsOf, dayOf, settlementsOfAll, textOf } from '../ledger/sql.ts'

/**
 * What an acquirer has added to a payout, or deducted from it, beside the settlements of our orders: what `settlements pull` does
 * not store. Amounts are in paise. `mid` is the merchant whose rows alone make up the payout; null where several merchants share it,
 * or none has a row: then the rest is the account's.
 */
export type Rest = {
  account: string
  bankReference: string
  /** The day of the payout's last row, else the acquirer's. */
  day: string
  mid: string | null
  adjustments: Paise
  unknownOrders: Paise
}

export const amountOf = ({ adjustments, unknownOrders }: Rest): Paise => adjustments + unknownOrders

/** The days around `days` on which rows of a transfer may lie, and on which it may be listed or arrive: within 31 days. */
export const aroundOf = ({ from, to }: Days): Days => ({ from: addDays(from, -31), to: addDays(to, 31) })

type Filter = { days: Days; references?: never } | { references: readonly string[]; days?: never }

/** The rests of the payouts of these days, or with these references, as the newest import that still stands says. */
export async function readRests({ client, known }: Snapshot, { days, references }: Filter): Promise<Rest[]> {
  const around = days && aroundOf(days)
  const stored = await client.query<Stored>(STORED, [references, known, around?.from, around?.to])
  const rests = stored.rows.filter(({ amount }) => amount !== 0 || references !== undefined)
  if (rests.length === 0) return []
  // By every merchant, since the index of settlements begins with the merchant.
  const merchants = await client.query<{ mid: string }>('select mid from merchants')
  const [from, until] = boundsOf(around ?? { from: '2000-01-01', to: toIstDay(known) })
  const carried = await client.query<Carried>(CARRIED, [
    rests.map(({ bankReference }) => bankReference),
    known,
    rests.map(({ account }) => account),
    from,
    until,
    merchants.rows.map(({ mid }) => mid),
  ])
  const payouts = new Map(carried.rows.map((one) => [restKey(one), one]))
  const found = rests.flatMap(({ amount, unknownOrders, ...rest }) => {
    const payout = payouts.get(restKey(rest))
    const day = payout?.day ?? rest.day
    if (days && (day < days.from || day > days.to)) return []
    const mid = payout?.mids.length === 1 ? (payout.mids[0] as string) : null
    return { ...rest, day, mid, adjustments: amount - unknownOrders, unknownOrders }
  })
  return found.sort((a, b) => (`${a.day} ${restKey(a)}` < `${b.day} ${restKey(b)}` ? -1 : 1))
}

export const restKey = ({ account, bankReference }: { account: string | null; bankReference: string }) =>
  `${account ?? ''} ${bankReference}`

type Stored = Pick<Rest, 'account' | 'bankReference' | 'day'> & { amount: Paise; unknownOrders: Paise }
type Carried = Pick<Rest, 'account' | 'bankReference' | 'day'> & { mids: string[] }

/** Also a rest of 0, since an earlier import may have found another. The acquirer may not have reported the day of the payout. */
const STORED = `
  select distinct on (account, bank_reference_number) account, bank_reference_number as "bankReference",
         r.amount_paise as amount, unknown_orders_paise as "unknownOrders",
         ${textOf(`coalesce(day, ${dayOf('imported_at')})`)} as day
    from payout_rests r
    join settlement_imports using (import_id)
   where imported_at <= $2 and (undone_at is null or undone_at > $2)
     and ($1::text[] is null or bank_reference_number = any ($1))
     and ($3::date is null or day is null or day between $3 and $4::date)
   order by account, bank_reference_number, import_id desc`

const CARRIED = `
  select account, bank_reference_number as "bankReference", array_agg(distinct mid) as mids, ${textOf(dayOf('max(at)'))} as day
    from (${settlementsOfAll(`status = 'SUCCESS' and bank_reference_number = any ($1) and account = any ($3) and mid = any ($6)
             and initiated_at >= $4 and initiated_at < $5`)}) s
   group by account, bank_reference_number`
