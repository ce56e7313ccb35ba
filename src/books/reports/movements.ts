import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import { readExplained, withAccounts } from '../closing/brought-forward.ts'
import { addDays, boundsOf, type Days } from '../ledger/bank-days.ts'
import type { Discrepancy } from '../ledger/discrepancies.ts'
import { judgeDays } from '../reading/book.ts'
import { type MerchantSnapshot, withMerchantOrderIds } from '../reading/merchant.ts'
import { amountOf, type Rest } from '../reading/rests.ts'
import { AS_KNOWN } from '../reading/snapshot.ts'
import type { WRITTEN_OFF_AS } from './resolutions.ts'

export type MovementKind =
  | 'payment'
  | 'refund'
  /** A refund that the bank returned. */
  | 'refund returned'
  /** The other side of a line that deducts or returns a disputed amount. */
  | 'dispute'
  /** The amount of a dispute that was lost. It moves between two ledgers of the merchant, and leaves the debt unchanged. */
  | 'lost dispute'
  /** A lost dispute of a second payment. */
  | 'duplicate lost dispute'
  /** Second payment for an order that was already paid. */
  | 'duplicate payment'
  | 'duplicate refund'
  | 'duplicate refund returned'
  /** Net amount of a bank transfer. */
  | 'payout'
  /** Fee deducted from a bank transfer. */
  | 'fee'
  /** Tax deducted from a bank transfer. */
  | 'tax'
  /** Amount that the acquirer added to the transfer or deducted from it, in addition to settlement lines. */
  | 'adjustment'
  | 'unknown order'
  /** An operator's resolution of a discrepancy. The kind is `written off` if the operator gave no accounting term. */
  | (typeof WRITTEN_OFF_AS)[number]
  | 'written off'
  /** A discrepancy that its resolved exception explains. */
  | 'exception'

/** A change of an acquirer's debt to a merchant. `amount` is in paise, and negative if the debt decreases. */
export type MoneyMovement = {
  day: string
  kind: MovementKind
  /** The acquirer account of the debt; `unknown` if neither a payment nor a file names it. */
  account: string
  /** The service's `orderId`; null if no order is known. */
  orderId: string | null
  /** The merchant's own `order_id`; null if no order is known. */
  merchantOrderId: string | null
  /** UTR of the payment, `refundId`, bank reference of the payout, or id of the discrepancy or exception. */
  reference: string
  amount: Paise
}

/**
 * Returns all movements of these days in date order. The balance brought forward plus these movements equals the
 * balance carried forward. Within a day, payments come first, followed by refunds, payouts and resolutions.
 */
export async function movementsOf(
  merchant: MerchantSnapshot,
  days: Days,
  rests: readonly Rest[],
): Promise<MoneyMovement[]> {
  const { client, mid, known } = merchant
  const own = rests.filter((rest) => rest.mid === mid)
  const moved = await MOVEMENTS(client, { ...days, ...boundsOf(days), mid, known, rests: JSON.stringify(own) })
  const resolved: Discrepancy[] = []
  // Only resolutions through exceptions are added here. An operator's entry is a movement of its own and leaves nothing
  // owed.
  await judgeDays(merchant, days, (found) => {
    resolved.push(...found.filter(({ resolution, owed }) => resolution !== null && owed !== 0))
  })
  // The sort is stable, so resolutions through exceptions come last within a day.
  return [...moved, ...(await byExceptions(merchant, resolved))].sort(byDay)
}

export const byDay = (a: MoneyMovement, b: MoneyMovement) => (a.day < b.day ? -1 : a.day > b.day ? 1 : 0)

async function byExceptions(merchant: MerchantSnapshot, explained: readonly Discrepancy[]): Promise<MoneyMovement[]> {
  const own = await withMerchantOrderIds(merchant, await withAccounts(merchant, explained))
  const movements = own.map(({ day, account, orderId, merchantOrderId, exceptionId, id, owed }): MoneyMovement => {
    return { day, kind: 'exception', account, orderId, merchantOrderId, reference: exceptionId ?? id, amount: -owed }
  })
  // No query orders them, and a closed month must be printed in the same order each time.
  return movements.sort((a, b) => (`${a.reference} ${a.account}` < `${b.reference} ${b.account}` ? -1 : 1))
}

/**
 * Returns the movements until `to` that were not known `before`, and those that are not known `after` any more. A movement
 * without a time of its own, because a resolved exception explains it, is in both if it did not change.
 */
export async function changedMovements(before: MerchantSnapshot, after: MerchantSnapshot, to: string) {
  const days = { from: '2000-01-01', to }
  const params = { ...days, ...boundsOf(days), mid: after.mid, rests: '[]', before: before.known, after: after.known }
  const explained = async (merchant: MerchantSnapshot) =>
    byExceptions(merchant, await readExplained(merchant, addDays(to, 1)))
  return {
    recorded: [...(await RECORDED(after.client, { ...params, known: after.known })), ...(await explained(after))],
    replaced: [...(await REPLACED(after.client, { ...params, known: before.known })), ...(await explained(before))],
  }
}

/** Returns the movements of amounts beside settlement lines, which add up to 0. */
export function movementsOfRest(rest: Rest): MoneyMovement[] {
  const { day, account, bankReference: reference, adjustments, unknownOrders } = rest
  const one = { day, account, orderId: null, merchantOrderId: null, reference }
  return [
    { ...one, kind: 'payout', amount: -amountOf(rest) },
    { ...one, kind: 'adjustment', amount: adjustments },
    { ...one, kind: 'unknown order', amount: unknownOrders },
  ]
}

/** `rests` is the JSON of the merchant's own rests. */
type Params = Days & { mid: string; known: Date; begin: Date; end: Date; rests: string }

/**
 * SQL for movements on the days from :from to :to, which begin at :begin and end before :end. The query sums settlement lines
 * by transfer and acquirer account. `also` is a condition on their times.
 */
const movements = (also: string) => `
  with transfer as (
    select day, reference, account, sum(net)::bigint as net, sum(fee)::bigint as fee, sum(tax)::bigint as tax,
           sum(adjustments)::bigint as adjustments, sum(unknown_orders)::bigint as unknown_orders
      from (select day, reference, clearing_account as account, net_paise as net, fee_paise as fee, tax_paise as tax, 0 as adjustments, 0 as unknown_orders
              from settlement_lines
             where mid = :mid and status = 'SUCCESS' and at >= :begin and at < :end
               and ${AS_KNOWN} ${also}
             union all
            select day, "bankReference", account, adjustments + "unknownOrders", 0, 0, adjustments, "unknownOrders"
              from json_to_recordset(:rests)
                as r (day date, "bankReference" text, account text, adjustments bigint, "unknownOrders" bigint)) t
     group by day, reference, account
  ), moved as (
    select l.day, case l.kind when 'payment' then 1 when 'second' then 2 else 3 end as place, l.at,
           case when l.kind = 'second' then 'duplicate payment'
                when l.kind in ('refund', 'refund returned') and exists (
                  select from payments p where p.mid = :mid and p.utr = l.item and p.kind = 'second') then 'duplicate ' || l.kind
                else l.kind end as kind,
           l.account, l.order_id, i.merchant_order_id, case when l.kind in ('refund', 'refund returned', 'dispute') then l.name else l.item end as reference,
           l.amount_paise as amount
      from ledger l
      left join payment_intents i on i.mid = :mid and i.order_id = l.order_id
     where l.mid = :mid and l.kind in ('payment', 'second', 'refund', 'refund returned', 'dispute') and l.at >= :begin and l.at < :end
       and ${AS_KNOWN} ${also}
     union all
    select t.day, 4, null, p.kind, t.account, null, null, t.reference, -p.amount
      from transfer t
     cross join lateral (
       values ('payout', t.net), ('fee', t.fee), ('tax', t.tax),
              ('adjustment', -t.adjustments), ('unknown order', -t.unknown_orders)) p (kind, amount)
     where p.amount <> 0
     union all
    select l.day, 4, l.at, case when l.is_second then 'duplicate lost dispute' else 'lost dispute' end, l.account, l.order_id, i.merchant_order_id, l.name, l.amount_paise
      from lost_disputes l
      left join payment_intents i on i.mid = :mid and i.order_id = l.order_id
     where l.mid = :mid and l.day between :from::date and :to::date
       and ${AS_KNOWN} ${also}
     union all
    select r.day, 5, r.resolved_at, coalesce(r.written_off_as, 'written off'), r.account, r.order_id, i.merchant_order_id, r.difference_id,
           r.amount_paise
      from (select *, resolved_at as recorded_at, 'infinity'::timestamptz as replaced_at from difference_resolutions) r
      left join payment_intents i on i.mid = :mid and i.order_id = r.order_id
     where r.mid = :mid and r.resolved_at <= :known and r.amount_paise <> 0 and r.day between :from::date and :to::date ${also}
  )
  select day, kind, account, order_id, merchant_order_id, reference, amount
    from moved m
   order by m.day, place, m.at, reference, m.account collate "C",
            array_position(array['payout', 'fee', 'tax', 'adjustment', 'unknown order'], kind), m.amount`

const MOVEMENTS = query<MoneyMovement, Params>(movements(''))
const RECORDED = query<MoneyMovement, Params & { before: Date }>(movements('and recorded_at > :before'))
const REPLACED = query<MoneyMovement, Params & { after: Date }>(movements('and replaced_at <= :after'))
