import type { Database } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { addPaise, type Paise } from '../../platform/money.ts'
import { startOfDay, toIstDay } from '../../platform/time.ts'
import { balancesBefore } from '../closing/brought-forward.ts'
import { type ClosedBase, readClosedBase } from '../closing/closed-items.ts'
import { findOpen } from '../closing/open-discrepancies.ts'
import { addDays, boundsOf } from '../ledger/bank-days.ts'
import type { DiscrepancyKind } from '../ledger/discrepancies.ts'
import { payoutKey, payoutOf } from '../ledger/judge-payouts.ts'
import { createList } from '../reading/book.ts'
import {
  type MerchantSnapshot,
  readMerchant,
  type WithMerchantOrderId,
  withMerchantOrderIds,
} from '../reading/merchant.ts'
import { readForms } from '../reading/payout-forms.ts'
import {
  AS_KNOWN,
  asOf,
  inSnapshot,
  isMerchantError,
  type MerchantError,
  type Merchants,
  readMids,
  readOne,
} from '../reading/snapshot.ts'

/** A part of the balance that a merchant's acquirers owe at the end of a day. `amount` is in paise. */
export type OpenItem = {
  mid: string
  /** The day of the payment, otherwise of the first movement; of a discrepancy the day under which reports list it. */
  day: string
  /**
   * An open discrepancy, or `not judged yet`: money whose payout was not due yet, or a refund or settlement line of such a
   * payout. `other` is the remainder of the balance that no listed item explains.
   */
  kind: DiscrepancyKind | 'not judged yet' | 'other'
  /** UTR of the payment, or of the settlement line if no payment is known. */
  utr: string | null
  orderId: string | null
  acquirer: string | null
  differenceId: string | null
  amount: Paise
  /** The day of the settlement line that settled the item afterwards; null if no line has settled it. */
  settledOn: string | null
}

type Requested = {
  /** The last day whose movements are included. */
  asOf: string
  /** Facts stored later are ignored, except for `settledOn`, which includes facts stored by `now`. */
  known: Date
  now: Date
}

/**
 * Yields the open items of each merchant at the end of a day. The amounts of a merchant add up to the balance that
 * `ops reconcile` carries forward from this day.
 */
export function openItems(
  db: Database,
  { mid, ...requested }: Requested & Pick<Merchants, 'mid'>,
): AsyncGenerator<WithMerchantOrderId<OpenItem> | MerchantError> {
  const { asOf, known } = requested
  return inSnapshot(db, known, async function* (snapshot) {
    const closed = await readClosedBase(snapshot, addDays(asOf, 1))
    for (const one of await readMids(snapshot.client, { mid })) {
      const found = await readOne(snapshot, one, async () => {
        const merchant = await readMerchant(snapshot, one)
        return withMerchantOrderIds(merchant, await openItemsOf(merchant, requested, closed))
      })
      if (isMerchantError(found)) yield found
      else yield* found
    }
  })
}

async function openItemsOf(
  merchant: MerchantSnapshot,
  requested: Requested,
  closed: ClosedBase | undefined,
): Promise<OpenItem[]> {
  const { mid } = merchant
  const { asOf } = requested
  const { sum, explained } = await balancesBefore(merchant, addDays(asOf, 1), closed)
  const unjudged = new Map((await readUnjudged(merchant, asOf)).map((one) => [one.utr, one]))
  const subtract = (utr: string | null, amount: Paise) => {
    const one = unjudged.get(utr ?? '')
    if (one?.payout === null || one?.orderId === null) one.amount = addPaise(one.amount, -amount)
  }
  for (const { utr, owed } of explained) subtract(utr, owed)
  const list = createList()
  await findOpen(merchant, { closed, to: asOf }, (open, items) => {
    list.add(open, items)
    for (const { utr, settlementUtr, owed } of open) {
      subtract(unjudged.has(settlementUtr ?? '') ? settlementUtr : utr, owed)
    }
  })
  const items = [
    ...list.end().discrepancies.map(({ id, account = null, settlementUtr, ...one }) => ({
      ...{ mid, day: one.day, kind: one.kind, utr: one.utr ?? settlementUtr, orderId: one.orderId, acquirer: account },
      ...{ differenceId: id, amount: one.owed, payout: null },
    })),
    ...[...unjudged.values()].flatMap((one) =>
      one.amount === 0 ? [] : [{ ...one, mid, kind: 'not judged yet' as const, differenceId: null }],
    ),
  ]
  const settledOn = await readSettledOn(merchant, items, requested)
  const rest = items.reduce((left, { amount }) => addPaise(left, -amount), sum)
  const nothing = { utr: null, orderId: null, acquirer: null, differenceId: null, settledOn: null }
  return [
    ...items.map(({ payout, ...one }) => ({ ...one, settledOn: settledOn.get(payout ?? one.utr ?? '') ?? null })),
    ...(rest === 0 ? [] : [{ ...nothing, mid, day: asOf, kind: 'other' as const, amount: rest }]),
  ]
}

/** Money that is not judged yet. `payout` is the key of its payout if that is by totals. */
type Unjudged = Pick<OpenItem, 'day' | 'orderId' | 'acquirer' | 'amount'> & { utr: string; payout: string | null }

/**
 * Returns the items with movements whose payout was not due before `asOf`. The whole balance of an item that is paid out by
 * payment is included; of a total, only the movements that are not judged yet.
 */
async function readUnjudged(merchant: MerchantSnapshot, asOf: string): Promise<Unjudged[]> {
  const { client, mid, known, bankDays, namedSince, refunds, matched } = merchant
  const { bankDayFrom, nextBankDay, previousBankDay } = bankDays
  const last = previousBankDay(toIstDay(known))
  const moments = { begin: startOfDay(last), linesBegin: startOfDay(addDays(last, 1)) }
  const deducted = refunds.flatMap(({ refundId, utr, day }) => {
    const line = matched.rowOf.get(refundId)
    return line && (day >= last || line.day >= last) ? [{ refundId, items: [utr, line.item], line: line.utr }] : []
  })
  const recent = await RECENT(client, {
    ...{ ...moments, mid, known, end: boundsOf({ from: asOf, to: asOf }).end },
    refundIds: deducted.map(({ refundId }) => refundId),
    lines: deducted.map(({ line }) => line),
    items: deducted.flatMap(({ items }) => items),
  })
  const items = recent.map((one) => {
    const day = one.hasPayment ? nextBankDay(one.day) : bankDayFrom(one.day)
    return { ...one, payout: payoutOf({ acquirer: one.acquirer, day }, namedSince) }
  })
  const forms = await readForms(merchant, [...new Map(items.map(({ payout }) => [payoutKey(payout), payout])).values()])
  return items.flatMap(({ utr, orderId, acquirer, hasPayment, hasLine, hasRefund, payout, ...one }) => {
    const key = payoutKey(payout)
    const isInTotal = forms.get(key) === 'by sums' && !(hasLine && (hasPayment || hasRefund))
    const amount = isInTotal ? one.unjudged : one.balance
    const day = isInTotal ? (one.unjudgedDay ?? one.day) : one.day
    return amount === 0 ? [] : [{ utr, orderId, acquirer, day, amount, payout: isInTotal ? key : null }]
  })
}

type Recent = Pick<OpenItem, 'day' | 'orderId' | 'acquirer'> & {
  utr: string
  hasPayment: boolean
  hasLine: boolean
  hasRefund: boolean
  balance: Paise
  /** Sum and first day of the movements that are not judged yet. */
  unjudged: Paise
  unjudgedDay: string | null
}

type Moments = { mid: string; known: Date; begin: Date; linesBegin: Date; end: Date } & {
  refundIds: readonly string[]
  lines: readonly string[]
  items: readonly string[]
}

/**
 * Items with a movement from :begin until before :end; of lines from :linesBegin. A refund in :refundIds belongs to the item
 * of the line in :lines that deducts it. A line of a dispute is an item of its own, which its movement `dispute` closes.
 */
const RECENT = query<Recent, Moments>(`
  with deducted as (
    select * from unnest(:refundIds::text[], :lines::text[]) as d (refund_id, line)
  ), disputed as materialized (
    select name
      from ledger
     where mid = :mid and kind = 'dispute' and ${AS_KNOWN}
  ), recent as materialized (
    select item
      from ledger
     where mid = :mid and at >= :begin and at < :end and kind <> 'resolution'
       and ${AS_KNOWN}
     union
    select unnest(:items::text[])
  ), moved as (
    select case when l.kind = 'deduction' and l.name = any (:lines) then l.name
                when l.kind in ('settlement', 'deduction', 'dispute') and l.name in (select name from disputed) then l.name
                else coalesce(d.line, item) end as item,
           l.day, l.order_id, l.acquirer, l.amount_paise, l.kind in ('payment', 'second') as is_payment,
           l.kind in ('settlement', 'deduction') as is_line, l.kind in ('refund', 'refund returned') as is_refund,
           l.kind <> 'resolution'
           and l.at >= case when l.kind in ('settlement', 'deduction', 'dispute') then :linesBegin::timestamptz else :begin end as is_unjudged
      from recent
      join ledger l using (item)
      left join deducted d on l.kind in ('refund', 'refund returned') and d.refund_id = l.name
     where l.mid = :mid and l.at < :end and ${AS_KNOWN}
  )
  select item as utr, coalesce(min(day) filter (where is_payment), min(day)) as day, min(order_id) as order_id,
         coalesce(min(acquirer) filter (where is_payment), min(acquirer)) as acquirer, bool_or(is_payment) as has_payment,
         bool_or(is_line) as has_line, bool_or(is_refund) as has_refund, sum(amount_paise)::bigint as balance,
         coalesce(sum(amount_paise) filter (where is_unjudged), 0)::bigint as unjudged,
         min(day) filter (where is_unjudged) as unjudged_day
    from moved
   group by item
  having sum(amount_paise) <> 0 or sum(amount_paise) filter (where is_unjudged) <> 0
   order by day, utr`)

/** Returns the day of the settlement line that settled each of these items or payouts after `asOf`. */
async function readSettledOn(
  { client, mid, bankDays, namedSince }: MerchantSnapshot,
  items: readonly { utr: string | null; payout: string | null }[],
  { asOf, known, now }: Requested,
): Promise<ReadonlyMap<string, string>> {
  const utrs = items.flatMap(({ utr, payout }) => (payout === null && utr !== null ? [utr] : []))
  const later = { mid, known, now, end: boundsOf({ from: asOf, to: asOf }).end }
  const ofItems = await SETTLED_ITEMS(client, { ...later, utrs })
  const ofPayouts = items.some(({ payout }) => payout !== null) ? await SETTLED_PAYOUTS(client, later) : []
  return new Map([
    ...ofItems.map(({ item, day }) => [item, day] as const),
    ...ofPayouts.map(({ acquirer, day }) => {
      return [payoutKey(payoutOf({ acquirer, day: bankDays.bankDayFrom(day) }, namedSince)), day] as const
    }),
  ])
}

type Later = { mid: string; known: Date; now: Date; end: Date }

/** SQL condition that the line pays out, by the time :now, what was not settled before :end as known at :known. */
const SETTLES_LATER = `
  mid = :mid and status = 'SUCCESS' and ${asOf(':now')}
     and (at >= :end or recorded_at > :known)`

const SETTLED_ITEMS = plannedQuery<{ item: string; day: string }, Later & { utrs: readonly string[] }>(`
  select item, min(day) as day
    from settlement_lines
   where ${SETTLES_LATER} and item = any (:utrs)
   group by item`)

const SETTLED_PAYOUTS = plannedQuery<{ acquirer: string | null; day: string }, Later>(`
  select acquirer, day
    from settlement_lines
   where ${SETTLES_LATER} and at < :end::timestamptz + interval '31 days'
   group by acquirer, day
   order by day desc`)
