import { plannedQuery, query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { toIstDay } from '../../platform/time.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import { AS_KNOWN, IMPORT_AS_KNOWN, type Snapshot } from './snapshot.ts'

/**
 * Amounts in paise that an acquirer added to a payout or deducted from it, in addition to the settlements of known
 * orders. `settlements pull` stores only their sum. `mid` is the merchant if all lines in the payout are the merchant's
 * own, and null if several merchants share the payout or if the payout has no line.
 */
export type Rest = {
  account: string
  bankReference: string
  /** Day of the last settlement line in the payout; without a line, the day that the acquirer reported. */
  day: string
  mid: string | null
  adjustments: Paise
  unknownOrders: Paise
}

export const amountOf = ({ adjustments, unknownOrders }: Rest): Paise => addPaise(adjustments, unknownOrders)

/**
 * Extends `days` by 31 days on both sides, because the lines of a transfer, its listing by the acquirer and its receipt
 * by the bank lie within 31 days.
 */
export const aroundOf = ({ from, to }: Days): Days => ({ from: addDays(from, -31), to: addDays(to, 31) })

type Filter = { days: Days; references?: never } | { references: readonly string[]; days?: never }

/**
 * Returns the rests of the payouts on these days, or of the payouts with these references. Reads each rest from the
 * newest import that was not undone.
 */
export async function readRests({ client, known }: Snapshot, { days, references }: Filter): Promise<Rest[]> {
  const around = days && aroundOf(days)
  const stored = await readStored(client, { ...around, references, known })
  const rests = stored.filter(({ amount }) => amount !== 0 || references !== undefined)
  if (rests.length === 0) return []
  const { begin, end } = boundsOf(around ?? { from: '2000-01-01', to: toIstDay(known) })
  const carried = await readCarried(client, {
    references: rests.map(({ bankReference }) => bankReference),
    accounts: rests.map(({ account }) => account),
    // Lists all merchants, because the index on settlements begins with the merchant.
    mids: (await readMids(client, {})).map(({ mid }) => mid),
    ...{ known, begin, end },
  })
  const payouts = new Map(carried.map((one) => [restKey(one), one]))
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

const readMids = query<{ mid: string }, object>('select mid from merchants')

/**
 * Includes amounts of 0, because 0 replaces the amount from an earlier import. The acquirer may not have reported the
 * payout's day.
 */
const readStored = plannedQuery<Stored, { known: Date; references?: readonly string[] | undefined } & Partial<Days>>(`
  select distinct on (account, bank_reference_number) account, bank_reference_number as bank_reference,
         r.amount_paise as amount, unknown_orders_paise as unknown_orders,
         coalesce(day, ist_day(imported_at)) as day
    from payout_rests r
    join settlement_imports using (import_id)
   where ${IMPORT_AS_KNOWN}
     and (:references::text[] is null or bank_reference_number = any (:references))
     and (:from::date is null or day is null or day between :from and :to::date)
   order by account, bank_reference_number, import_id desc`)

type Carrying = { references: string[]; accounts: string[]; mids: string[]; known: Date; begin: Date; end: Date }

const readCarried = plannedQuery<Carried, Carrying>(`
  select account, reference as bank_reference, array_agg(distinct mid) as mids, max(day) as day
    from settlement_lines
   where mid = any (:mids) and reference = any (:references) and account = any (:accounts) and status = 'SUCCESS'
     and initiated_at >= :begin and initiated_at < :end and ${AS_KNOWN}
   group by account, reference`)
