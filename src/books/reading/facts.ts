import { plannedQuery, query } from '../../platform/db/query.ts'
import { boundsOf, type Days } from '../ledger/bank-days.ts'
import type { Facts, PaidGroup, ReversedLine } from '../ledger/facts.ts'
import { payoutFacts } from '../ledger/judge.ts'
import { daysOfPayouts, type SettledOn, undecidedPayouts } from '../ledger/judge-payouts.ts'
import { IS_DISPUTED, type MerchantSnapshot, NAMES_NOTHING } from './merchant.ts'
import { readForms } from './payout-forms.ts'
import { AS_KNOWN } from './snapshot.ts'

/**
 * Items of one day and acquirer that may have discrepancies, because the items may differ from a payment settled once
 * in full.
 */
export type Uneven = {
  day: string
  acquirer: string | null
  /** True for payments without any other movement; false for items with several movements, or without a payment. */
  isWaiting: boolean
  /** UTRs separated by spaces, because an array of several hundred thousand strings needs ten times as much memory. */
  items: string
}

/**
 * Reads the facts about a merchant's days, and each day's `uneven` items, which may differ from a payment settled once
 * in full. `settledLater` contains the UTRs of unsettled payments that a settlement line dated after the window names.
 */
export async function readFacts(
  merchant: MerchantSnapshot,
  days: Days,
): Promise<{ facts: Facts; uneven: Uneven[]; settledLater: ReadonlySet<string> }> {
  const { client, known, mid, unknownOrders, bankDays } = merchant
  const window = daysOfPayouts(days, bankDays)
  const of = { ...boundsOf(window), explained: unknownOrders.map(({ utr }) => utr), mid, known }
  const settled = await SETTLED(client, of)
  const groups = await GROUPS(client, { ...days, ...of })
  const unlined = groups.flatMap(({ isUnlined, items }) => (isUnlined && items !== null ? [items] : []))
  const later = await SETTLED_LATER(client, { ...of, items: unlined.join(' ') })
  // The first query counted these payments as unsettled, so these payments move to the groups with the day of their
  // settlement line.
  const moved = later.map((group) => ({ ...group, settledDay: null, count: -group.count, paid: -group.paid }))
  const paid = [...groups, ...moved, ...later].flatMap(({ day, ...group }) => (day === null ? [] : [{ day, ...group }]))
  const read = { ...merchant, days, window, paid, settled, reversed: [] }
  const knownForms = await readForms(merchant, undecidedPayouts(payoutFacts(read), bankDays))
  const isByTotals = [...knownForms.values()].includes('by sums') || settled.some(({ unnamedRows }) => unnamedRows > 0)
  const reversed = isByTotals ? await REVERSED(client, of) : []
  const settledLater = new Set(later.flatMap(({ items }) => items.split(' ')))
  return { facts: { ...read, reversed, knownForms }, uneven: unevenOf(groups), settledLater }
}

const unevenOf = (groups: readonly Group[]): Uneven[] =>
  groups.flatMap(({ day, movedDay, acquirer, isWaiting, items }) =>
    movedDay === null || items === null
      ? []
      : [{ day: isWaiting && day !== null ? day : movedDay, acquirer, isWaiting, items }],
  )

type Window = { mid: string; known: Date; begin: Date; end: Date }

/**
 * Payments from :begin until before :end, grouped by day, acquirer and the day of their first settlement line. Groups
 * without a day contain movements without a payment. `items` lists, separated by spaces, the payments without a
 * settlement line, and the items with a movement from :from to :to that are more than a payment and one settlement line
 * of the same amount.
 */
type Group = Omit<PaidGroup, 'day'> & {
  day: string | null
  /** The first day from :from to :to on which these items have a movement. */
  movedDay: string | null
  /** Payments that no settlement line in the window names. */
  isUnlined: boolean
  /** Payments without a settlement line and without any other movement. */
  isWaiting: boolean
  items: string | null
}
const GROUPS = query<Group, Window & Days>(`
  with moved as (
    select item, min(at) filter (where kind in ('payment', 'second')) as paid_at,
           min(day) filter (where kind in ('payment', 'second')) as paid_day,
           min(acquirer) filter (where kind in ('payment', 'second')) as acquirer,
           (sum(amount_paise) filter (where kind in ('payment', 'second')))::bigint as paid,
           bool_or(kind = 'second') as is_duplicate, min(at) filter (where kind = 'settlement') as line_at,
           count(*) as movements, sum(amount_paise) as balance,
           min(day) filter (where day between :from::date and :to::date) as moved_day
      from ledger
     where mid = :mid and at >= :begin::timestamptz - interval '1 day' and at < :end and (at >= :begin or kind = 'settlement')
       and kind <> 'resolution' and ${AS_KNOWN}
     group by item
  ), item as (
    select item, acquirer, paid_day, paid, is_duplicate, moved_day, paid_day is not null and line_at is null as is_unlined,
           paid_day is not null and movements = 1 as is_waiting,
           (paid_day is null or movements > 1)
           and (movements = 2 and balance = 0 and line_at >= paid_at - interval '1 day') is not true as is_uneven,
           ist_day(case when line_at >= paid_at - interval '1 day' then line_at
                        when line_at < paid_at - interval '1 day' then
                          -- A first line that is too early cannot settle the payment, but the next line may settle the
                          -- payment.
                          (select min(at)
                             from settlement_lines line
                            where line.mid = :mid and line.item = moved.item and status = 'SUCCESS' and not is_deduction
                              and line.at >= moved.paid_at - interval '1 day'
                              and ${AS_KNOWN})
                   end) as settled_day
      from moved
  )
  select acquirer, paid_day as day, settled_day, case when is_uneven or is_waiting then moved_day end as moved_day, is_unlined,
         is_waiting, is_duplicate, count(*) as count, sum(paid)::bigint as paid,
         string_agg(item, ' ') filter (where is_unlined or is_uneven and moved_day is not null) as items
    from item
   group by 1, 2, 3, 4, 5, 6, 7`)

/**
 * Returns the payments in :items (UTRs separated by spaces) that a settlement line dated :end or later names. Groups
 * the payments by the day of their first settlement line from :end on.
 */
const SETTLED_LATER = plannedQuery<PaidGroup & { items: string }, Omit<Window, 'begin'> & { items: string }>(`
  with late as (
    select p.utr, p.acquirer, coalesce(p.paid_at, p.received_at) as at, p.kind, p.amount_paise, min(line.day) as settled_day
      from unnest(string_to_array(:items, ' ')) as u (utr)
      join settlement_lines line on line.mid = :mid and line.item = u.utr collate "C"
      join payments p on p.mid = :mid and p.utr = line.item
     where line.at >= :end and line.status = 'SUCCESS' and not is_deduction
       and ${AS_KNOWN}
     group by p.mid, p.utr
  )
  select acquirer_of(acquirer) as acquirer, ist_day(at) as day, settled_day,
         kind = 'second' as is_duplicate, count(*) as count, sum(amount_paise)::bigint as paid, string_agg(utr, ' ') as items
    from late
   group by 1, 2, 3, 4`)

/** Sums settlement lines by day and acquirer. A line is unnamed if its UTR matches no payment and no exception. */
const SETTLED = query<SettledOn, Window & { explained: readonly string[] }>(`
  select acquirer, day, count(*) as settled_count, count(*) filter (where not is_deduction) as paid_out,
         sum(gross_paise)::bigint as gross, coalesce(sum(fee_paise), 0)::bigint as fee, coalesce(sum(tax_paise), 0)::bigint as tax,
         sum(net_paise)::bigint as net, coalesce(-sum(gross_paise) filter (where is_disputed), 0)::bigint as disputed,
         count(*) filter (where is_unnamed) as unnamed_rows,
         coalesce(sum(gross_paise) filter (where is_unnamed), 0)::bigint as unnamed
    from (select acquirer, day, is_deduction, gross_paise, fee_paise, tax_paise, net_paise,
                 not is_deduction and ${NAMES_NOTHING} as is_unnamed, ${IS_DISPUTED} as is_disputed
            from settlement_lines line
           where mid = :mid and status = 'SUCCESS' and at >= :begin and at < :end
             and ${AS_KNOWN}) each
   group by acquirer, day`)

const REVERSED = query<ReversedLine, Window & { explained: readonly string[] }>(`
  select acquirer, day, utr, gross_paise as gross
    from settlement_lines line
   where mid = :mid and status = 'FAILED' and at >= :begin and at < :end
     and ${AS_KNOWN}
     and exists (select from settlement_versions v
                  where v.mid = :mid and v.utr = line.utr and v.status = 'SUCCESS' and not v.undone and v.replaced_at <= :known)
     and ${NAMES_NOTHING}
   order by at, utr`)
