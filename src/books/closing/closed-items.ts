import { plannedQuery, query } from '../../platform/db/query.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { addDays, type BankDays, boundsOf, countDays, type Days } from '../ledger/bank-days.ts'
import { groupBy } from '../ledger/match-deductions.ts'
import { lineOfAccount, type MerchantSnapshot, NAMED_SINCE, namedSinceOf } from '../reading/merchant.ts'
import { AS_KNOWN, asOf, type Snapshot } from '../reading/snapshot.ts'
import { daysOfMonth, IS_CHANGED, IS_TOUCHED } from './closed-months.ts'

/**
 * A closed month with its open items. A report continues from these items instead of reading all earlier movements.
 * `sums` has the current sum of all earlier movements in paise by `mid` and acquirer account, as text, because a sum beyond
 * 2^53 is an error of its own merchant only.
 */
export type ClosedBase = ClosedAt & { to: string; sums: ReadonlyMap<string, readonly AccountSum[]> }
type AccountSum = { account: string; sum: string }

/** Returns the newest closed month before `day` whose open items are stored, as known at the time of the snapshot. */
export async function readClosedBase(
  { client, known }: Pick<Snapshot, 'client' | 'known'>,
  day: string,
): Promise<ClosedBase | undefined> {
  const [closed] = await NEWEST(client, { known, before: day.slice(0, 7) })
  if (closed === undefined) return undefined
  const { to } = daysOfMonth(closed.month)
  const sums = await SUMS(client, { ...closed, known, end: boundsOf({ from: to, to }).end })
  return { ...closed, to, sums: groupBy(sums, ({ mid }) => mid) }
}

type ClosedAt = { month: string; closedAt: Date }

const NEWEST = query<ClosedAt, { known: Date; before: string }>(`
  select month, closed_at
    from closed_months
   where closed_at <= :known and month < :before and month in (select month from closed_items)
   order by month desc
   limit 1`)

/** Adds the changes since the month was closed to the sums of that time. */
const SUMS = query<AccountSum & { mid: string }, ClosedAt & { known: Date; end: Date }>(`
  select mid, account, sum(paise)::text as sum
    from (select mid, account, balance_paise + explained_paise as paise from closed_balances where month = :month
           union all
          select mid, account, case when recorded_at <= :closedAt then -amount_paise else amount_paise end
            from ledger
           where at < :end and ${IS_CHANGED}) each
   group by mid, account`)

/**
 * Returns ranges of days until `to` on which the merchant may have open discrepancies. The ranges contain days of
 * discrepancies that were open when the month was closed, days of items that changed after the month was closed, and
 * days that were not judged yet when the month was closed.
 */
export async function daysSince(
  merchant: MerchantSnapshot,
  { month, closedAt, to: end }: ClosedBase,
  to: string,
): Promise<Days[]> {
  const { client, mid, known, bankDays, unknownOrders } = merchant
  const unjudged = bankDays.previousBankDay(toIstDay(closedAt))
  const from = unjudged <= end ? unjudged : addDays(end, 1)
  const reported = unknownOrders.filter(
    ({ receivedAt, resolvedAt }) => receivedAt > closedAt || (resolvedAt !== null && resolvedAt > closedAt),
  )
  const params = { mid, known, closedAt, month, end: startOfDay(from), reported: reported.map(({ utr }) => utr) }
  const found = await CHANGED_DAYS(client, params)
  const changed = found.flatMap(({ day, isChanged }) => (isChanged ? [day] : []))
  const otherForms = await daysOfOtherForms(merchant, changed, { closedAt, from })
  if (otherForms === 'first day') return [{ from: await firstDayOf(merchant, to), to }]
  const days = [...new Set([...found.map(({ day }) => day), ...otherForms])].flatMap((day) => daysAround(day, bankDays))
  const read = new Set([...days, ...daysOfRefunds(merchant, new Set(days)), ...daysOfReturns(merchant)])
  const runs: Days[] = []
  for (const day of [...read].filter((day) => day < from && day <= to).sort()) {
    const last = runs.at(-1)
    if (last !== undefined && addDays(last.to, 1) === day) last.to = day
    else runs.push({ from: day, to: day })
  }
  return from <= to ? [...runs, { from, to }] : runs
}

/** Returns the first day on which the merchant has movements; the day after `to` if it has none. */
export async function firstDayOf({ client, mid }: MerchantSnapshot, to: string): Promise<string> {
  const [first] = await FIRST_DAY(client, { mid })
  return first?.day ?? addDays(to, 1)
}

const FIRST_DAY = query<{ day: string }, { mid: string }>(`
  select day from ledger where mid = :mid order by at limit 1`)

/**
 * Returns the days of the payouts that lines and payments of this day belong to, and of the payouts before and after
 * them: one line may change the payout's form and thus the result for its other payments, and a payout may be explained
 * by the next one.
 */
const daysAround = (day: string, { bankDayFrom, previousBankDay, nextBankDay }: BankDays) =>
  daysFrom(previousBankDay(bankDayFrom(day)), nextBankDay(nextBankDay(day)))

/**
 * Returns the days before `from` whose payouts may have another form, or belong to another acquirer, than when the month
 * was closed, although nothing changed on these days: a payout without lines has the form of the last payout with lines
 * before it. Returns `first day` if an acquirer's first payout may have changed, which also decides earlier payouts.
 */
async function daysOfOtherForms(
  { client, mid, known, bankDays, namedSince, accounts }: MerchantSnapshot,
  changed: readonly string[],
  { closedAt, from }: { closedAt: Date; from: string },
): Promise<string[] | 'first day'> {
  const { bankDayFrom, nextBankDay, previousBankDay } = bankDays
  const before = namedSinceOf(await NAMED_SINCE(client, { mid, known: closedAt }), bankDays)
  const since = [...new Set([...before.keys(), ...namedSince.keys()])].flatMap((acquirer) => {
    const days = [before.get(acquirer), namedSince.get(acquirer)]
    return days[0] === days[1] ? [] : days.flatMap((day) => day ?? [])
  })
  const [first = from] = since.sort()
  const payouts = [...new Set(changed.flatMap((day) => [bankDayFrom(day), nextBankDay(day)]))]
  const following = await FOLLOWING(client, {
    ...{ mid, known, closedAt, accounts, begins: payouts.map((day) => startOfDay(addDays(previousBankDay(day), 1))) },
    ends: payouts.map((day) => startOfDay(addDays(day, 1))),
  })
  if (following.some(({ isFirst }) => isFirst)) return 'first day'
  const inheriting = following.flatMap(({ day, next }) => daysFrom(day, next !== null && next < from ? next : from))
  return [...inheriting, ...(first < from ? daysFrom(first, from) : [])]
}

/** Returns the days of refunds whose payment has no line and was paid on one of these days: its payout places the refund. */
const daysOfRefunds = ({ refunds, bankDays }: MerchantSnapshot, paidOn: ReadonlySet<string>) =>
  refunds
    .filter((refund) => refund.settled === null && paidOn.has(refund.paidOn))
    .flatMap(({ day }) => daysAround(day, bankDays))

/** Returns the days of returned refunds, which are few: any later line may decide whether the bank had deducted the refund. */
const daysOfReturns = ({ refunds, bankDays }: MerchantSnapshot) =>
  refunds.flatMap(({ returnedOn }) => (returnedOn === null ? [] : daysAround(returnedOn, bankDays)))

const daysFrom = (from: string, to: string) =>
  Array.from({ length: countDays(from, to) }, (_, index) => addDays(from, index))

/**
 * Returns the days before :end on which the merchant may have open discrepancies. The result contains days of
 * discrepancies that were open when the month was closed, and, as changed, days of items with a movement that was
 * recorded, replaced, reported or resolved after the month was closed. Movements dated :end or later are included, because they
 * may name a payment that an earlier payout by totals included.
 */
const CHANGED_DAYS = query<
  { day: string; isChanged: boolean },
  ClosedAt & { mid: string; known: Date; end: Date; reported: readonly string[] }
>(`
  with touched as materialized (
    select item
      from ledger
     where mid = :mid and at < :end and ${IS_TOUCHED}
     union all
    select p.utr
      from settlement_lines line
      join payments p on p.mid = :mid and p.utr = line.item
     where line.mid = :mid and line.at >= :end and coalesce(p.paid_at, p.received_at) < :end
       and ${IS_TOUCHED}
     union all
    select utr
      from money_exceptions
     where mid = :mid and utr <> '' and (received_at > :closedAt or resolved_at > :closedAt)
     union all
    select utr collate "C" from unnest(:reported::text[]) as utr
     union all
    select p.utr
      from money_exceptions e
      join payments p on p.mid = :mid and p.order_id = e.order_id
     where e.mid = :mid and e.kind = 'failure after success' and (e.received_at > :closedAt or e.resolved_at > :closedAt)
  )
  select day, bool_or(is_changed) as is_changed
    from (select day, false as is_changed from closed_items where mid = :mid and month = :month
           union all
          select l.day, true from touched t join ledger l on l.mid = :mid and l.item = t.item and l.at < :end
           union all
          -- A changed bank holiday may change the result for any day.
          select l.day, true
            from ledger l
           where l.mid = :mid and l.at < :end
             and exists (select from bank_holiday_changes where changed_at > :closedAt and changed_at <= :known)) each
   group by day`)

type Following = { day: string; next: string | null; isFirst: boolean }

const OF_PAYOUT = 'line.at >= payout.beginning and line.at < payout.ending'

/**
 * For each account with lines in these payouts, the day of the account's next line that pays money out, and whether it
 * has none before. `day` is a day of the payout's lines.
 */
const FOLLOWING = plannedQuery<
  Following,
  { mid: string; known: Date; closedAt: Date } & {
    accounts: readonly (string | null)[]
    begins: readonly Date[]
    ends: readonly Date[]
  }
>(`
  select source.day, next.day as next, earlier.day is null as is_first
    from unnest(:begins::timestamptz[], :ends::timestamptz[]) as payout (beginning, ending)
   cross join unnest(:accounts::text[]) as named (account)
   cross join lateral (${lineOfAccount('named.account', `(${AS_KNOWN} or ${asOf(':closedAt')}) and ${OF_PAYOUT}`)}) source
    left join lateral (${lineOfAccount('named.account', `${AS_KNOWN} and line.at >= payout.ending`)}) next on true
    left join lateral (${lineOfAccount('named.account', `${AS_KNOWN} and line.at < payout.beginning`, 'desc')}) earlier on true`)
