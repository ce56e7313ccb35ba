import { query } from '../../platform/db/query.ts'
import { startOfDay } from '../../platform/time.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import type { Facts, PaidGroup, ReversedLine } from '../ledger/facts.ts'
import { daysOfPayouts, type SettledOn } from '../ledger/judge-payouts.ts'
import { type Merchant, NAMES_NOTHING } from './merchant.ts'

/** An item that moved on the days. */
type MovedItem = { utr: string; day: string }

/** The items of the days that may be more than a payment and its one settlement. */
export type Uneven = {
  /** Items with several movements, or without a payment. */
  moved: MovedItem[]
  /** Payments that nothing else is known of, by acquirer and day. */
  waiting: { acquirer: string | null; day: string; utrs: string[] }[]
}

/** What is known of these days of a merchant, and its uneven items. */
export async function readFacts(merchant: Merchant, days: Days): Promise<{ facts: Facts; uneven: Uneven }> {
  const { client, known, bankDays, mid, unknownOrders } = merchant
  const window = daysOfPayouts(days, bankDays)
  const explained = unknownOrders.map(({ utr }) => utr)
  const groups = await GROUPS(client, { ...boundsOf(window), ...days, mid, known })
  const settled = await SETTLED(client, { ...boundsOf(window), explained, mid, known })
  const reversed = await REVERSED(client, { ...boundsOf(window), explained, mid, known })
  const paid = groups.flatMap(({ day, ...group }) => (day === null ? [] : [{ day, ...group }]))
  const formBefore = await readFormBefore(merchant, window, settled)
  return { facts: { ...merchant, days, window, paid, settled, reversed, formBefore }, uneven: unevenOf(groups) }
}

/** The form of the payout nearest to the window, where the first payout in it has no lines. */
async function readFormBefore(
  { client, known, bankDays, mid, unknownOrders }: Merchant,
  window: Days,
  settled: readonly SettledOn[],
) {
  const first = bankDays.nextBankDay(window.from)
  if (settled.some(({ day, paidOut }) => paidOut > 0 && bankDays.bankDayFrom(day) === first)) return undefined
  const explained = unknownOrders.map(({ utr }) => utr)
  const [nearest] = await NEAREST_DAY(client, { mid, known, explained, end: startOfDay(addDays(window.from, 1)) })
  return nearest?.namesEach ? 'by payment' : 'by sums'
}

function unevenOf(groups: readonly Group[]): Uneven {
  const uneven: Uneven = { moved: [], waiting: [] }
  for (const { day, acquirer, movedDay, isWaiting, items } of groups) {
    const utrs = items?.split(' ') ?? []
    if (isWaiting && day !== null) uneven.waiting.push({ acquirer, day, utrs })
    else for (const utr of utrs) uneven.moved.push({ utr, day: movedDay as string })
  }
  return uneven
}

type Window = { mid: string; known: Date; begin: Date; end: Date }

/**
 * Payments of the days from :begin until before :end by day, acquirer and the day of their first settlement line, and in a group
 * without a day what moved without a payment. `items` are those that moved on the days from :from to :to and are no payment with
 * one settlement of its amount; separated by spaces.
 */
type Group = Omit<PaidGroup, 'day'> & {
  day: string | null
  /** The first of the days on which its items moved. */
  movedDay: string | null
  isWaiting: boolean
  items: string | null
}

const GROUPS = query<Group, Window & Days>(`
  with moved as (
    select item, min(at) filter (where kind in ('payment', 'second')) as paid_at,
           min(day) filter (where kind in ('payment', 'second')) as paid_day,
           min(acquirer) filter (where kind in ('payment', 'second')) as acquirer,
           sum(amount_paise) filter (where kind in ('payment', 'second')) as paid,
           bool_or(kind = 'second') as is_duplicate, min(at) filter (where kind = 'settlement') as line_at,
           count(*) as movements, sum(amount_paise) as balance,
           min(day) filter (where day between :from::date and :to::date) as moved_day
      from ledger
     where mid = :mid and at >= :begin and at < :end and kind <> 'resolution'
       and (recorded_at <= :known) is true and replaced_at > :known
     group by item
  ), item as (
    -- Only a payment without a settlement on these days is looked up among all settlements.
    select item, acquirer, paid_day, paid, is_duplicate, movements, balance, moved_day, line_at >= paid_at - interval '1 day' as has_line,
           case when line_at >= paid_at - interval '1 day' then line_at
                when paid_at is not null then
                  (select min(at)
                     from settlement_lines line
                    where line.mid = :mid and line.item = moved.item and status = 'SUCCESS' and not is_deduction
                      and line.at >= moved.paid_at - interval '1 day'
                      and (recorded_at <= :known) is true and replaced_at > :known)
           end as settled_at
      from moved
  ), judged as (
    select item, acquirer, paid_day, paid, is_duplicate, moved_day, (settled_at at time zone interval '330 minutes')::date as settled_day,
           paid_day is not null and movements = 1 and settled_at is null as is_waiting,
           (paid_day is null or movements > 1) and (movements = 2 and balance = 0 and has_line) is not true as is_uneven
      from item
  )
  select acquirer, paid_day as day, settled_day, case when is_uneven then moved_day end as moved_day, is_waiting, is_duplicate,
         count(*) as count, sum(paid)::bigint as paid,
         string_agg(item, ' ') filter (where moved_day is not null and (is_uneven or is_waiting)) as items
    from judged
   group by 1, 2, 3, 4, 5, 6
   order by coalesce(case when is_uneven then moved_day end, paid_day), 1, 2, 3`)

/** Settlement lines by day and acquirer. A line is unnamed if its UTR leads to no payment and no exception. */
const SETTLED = query<SettledOn, Window & { explained: readonly string[] }>(`
  select acquirer, day, count(*) as settled_count, count(*) filter (where not is_deduction) as paid_out,
         sum(gross_paise)::bigint as gross, coalesce(sum(fee_paise), 0)::bigint as fee, coalesce(sum(tax_paise), 0)::bigint as tax,
         sum(net_paise)::bigint as net, count(*) filter (where is_unnamed) as unnamed_rows,
         coalesce(sum(gross_paise) filter (where is_unnamed), 0)::bigint as unnamed
    from (select acquirer, day, is_deduction, gross_paise, fee_paise, tax_paise, net_paise,
                 not is_deduction and ${NAMES_NOTHING} as is_unnamed
            from settlement_lines line
           where mid = :mid and status = 'SUCCESS' and at >= :begin and at < :end
             and (recorded_at <= :known) is true and replaced_at > :known) each
   group by acquirer, day`)

/** Whether each line of a day names its payment: the last day with lines before :end, else the first after it. */
const NEAREST_DAY = query<{ namesEach: boolean | null }, Omit<Window, 'begin'> & { explained: readonly string[] }>(`
  select bool_and(not ${NAMES_NOTHING}) as names_each
    from settlement_lines line
   where mid = :mid and status = 'SUCCESS' and not is_deduction and (recorded_at <= :known) is true and replaced_at > :known
     and at = coalesce(
           (select max(at) from settlement_lines
             where mid = :mid and status = 'SUCCESS' and not is_deduction and at < :end
               and (recorded_at <= :known) is true and replaced_at > :known),
           (select min(at) from settlement_lines
             where mid = :mid and status = 'SUCCESS' and not is_deduction and at >= :end
               and (recorded_at <= :known) is true and replaced_at > :known))`)

const REVERSED = query<ReversedLine, Window & { explained: readonly string[] }>(`
  select acquirer, day, utr, gross_paise as gross
    from settlement_lines line
   where mid = :mid and status = 'FAILED' and at >= :begin and at < :end
     and (recorded_at <= :known) is true and replaced_at > :known
     and exists (select from settlement_versions v
                  where v.mid = :mid and v.utr = line.utr and v.status = 'SUCCESS' and not v.undone and v.replaced_at <= :known)
     and ${NAMES_NOTHING}
   order by at, utr`)
