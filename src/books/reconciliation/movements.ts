import { batchesOf } from '../../platform/db/batches.ts'
import { prepared } from '../../platform/db/prepared.ts'
import type { Days } from '../ledger/bank-days.ts'
import type { Ledger } from '../ledger/read-ledger.ts'
import { boundsOf, dayOf, KNOWN, paiseOf, settlementsKnown, type Texts, textOf, withPaise } from '../ledger/sql.ts'
import { withMerchantOrderIds } from './merchant-order-ids.ts'
import { differencesOfDays } from './reconcile-merchant.ts'
import type { WRITTEN_OFF_AS } from './resolutions.ts'
import type { Rest } from './rests.ts'

export type MovementKind =
  | 'payment'
  | 'refund'
  /** What a transfer of the bank brought; `fee` and `tax` are what was kept of it. */
  | 'payout'
  | 'fee'
  | 'tax'
  /** What the acquirer has added to the transfer, or deducted from it, beside the settlements. */
  | 'adjustment'
  | 'unknown order'
  /** How a person has ended a difference; `written off` without a word for the accountant. */
  | (typeof WRITTEN_OFF_AS)[number]
  | 'written off'
  /** A difference that the end of its exception accounts for. */
  | 'exception'

/** What changes the sum that the acquirer owes a merchant: `amount`, in paise, more or, negative, less. */
export type MoneyMovement = {
  day: string
  kind: MovementKind
  /** Our orderId and the shop's own number; null where no order is known. */
  orderId: string | null
  merchantOrderId: string | null
  /** UTR of the payment, our refundId, the bank's reference of the payout, or the id of the difference or exception. */
  reference: string
  amount: bigint
}

/**
 * All that has moved on these days, in their order: what is brought forward, and these, are what is carried forward. On one day
 * payments come first, then refunds, payouts and what persons have ended. Memory grows only with ended exceptions.
 */
export async function* movementsOf(ledger: Ledger, days: Days, rests: readonly Rest[]): AsyncGenerator<MoneyMovement> {
  const { client, mid, known } = ledger
  const own = rests.filter((rest) => rest.mid === mid)
  const values = [
    ...[mid, known, ...boundsOf(days), own.map(({ day }) => day), own.map(({ bankReference }) => bankReference)],
    ...[own.map(({ adjustments }) => String(adjustments)), own.map(({ unknownOrders }) => String(unknownOrders))],
  ]
  const ended: MoneyMovement[] = []
  for await (const movement of withMerchantOrderIds(ledger, endedByExceptions(ledger, days))) ended.push(movement)
  for await (const rows of batchesOf<Texts<MoneyMovement>>(client, MOVEMENTS(...values))) {
    for (const row of rows) {
      while (ended[0] !== undefined && ended[0].day < row.day) yield ended.shift() as MoneyMovement
      yield withPaise<MoneyMovement>(row, 'amount')
    }
  }
  yield* ended
}

/** What a person has entered is a movement of its own, and has left nothing owed. */
async function* endedByExceptions(ledger: Ledger, days: Days): AsyncGenerator<Omit<MoneyMovement, 'merchantOrderId'>> {
  for await (const { day, orderId, exceptionId, id, owed, resolution } of differencesOfDays(ledger, days)) {
    if (resolution === null || owed === 0n) continue
    yield { day, kind: 'exception', orderId, reference: exceptionId ?? id, amount: -owed }
  }
}

/** The movements of merchant $1 from $3 until before $4 as they were known at $2. Rows of the bank count by their transfer. */
const MOVEMENTS = prepared(`
  with transfer as (
    select day, reference, sum(net) as net, sum(fee) as fee, sum(tax) as tax, sum(adjustments) as adjustments,
           sum(unknown_orders) as unknown_orders
      from (select ${dayOf('at')} as day, bank_reference_number as reference, amount as net, fee, tax, 0 as adjustments,
                   0 as unknown_orders
              from (${settlementsKnown(`status = 'SUCCESS'`)}) s
             where at >= $3 and at < $4
             union all
            select day, reference, (adjustments + unknown_orders)::numeric / 100, 0, 0, adjustments, unknown_orders
              from unnest($5::date[], $6::text[], $7::bigint[], $8::bigint[]) as r (day, reference, adjustments, unknown_orders)) t
     group by day, reference
  ), moved as (
    select l.day, case l.kind when 'payment' then 1 else 2 end as place, l.at, l.kind, l.order_id, i.merchant_order_id,
           case l.kind when 'payment' then l.item else l.name end as reference, l.amount_paise::numeric(40, 0) as amount
      from ledger l
      left join payment_intents i on i.mid = $1 and i.order_id = l.order_id
     where l.mid = $1 and l.kind in ('payment', 'refund') and l.at >= $3 and l.at < $4 and ${KNOWN}
     union all
    select t.day, 3, null, p.kind, null, null, t.reference, -p.amount
      from transfer t
     cross join lateral (
       values ('payout', ${paiseOf('t.net')}), ('fee', ${paiseOf('t.fee')}), ('tax', ${paiseOf('t.tax')}),
              ('adjustment', -t.adjustments), ('unknown order', -t.unknown_orders)) p (kind, amount)
     where p.amount <> 0
     union all
    select r.day, 4, r.resolved_at, coalesce(r.written_off_as, 'written off'), r.order_id, i.merchant_order_id, r.difference_id,
           r.amount_paise
      from difference_resolutions r
      left join payment_intents i on i.mid = $1 and i.order_id = r.order_id
     where r.mid = $1 and r.resolved_at <= $2 and r.amount_paise <> 0
       and r.day >= ${dayOf('$3::timestamptz')} and r.day < ${dayOf('$4::timestamptz')}
  )
  select ${textOf('day')} as day, kind, order_id as "orderId", merchant_order_id as "merchantOrderId", reference,
         amount::text as amount
    from moved m
   order by m.day, place, m.at, reference, array_position(array['payout', 'fee', 'tax', 'adjustment', 'unknown order'], kind), m.amount`)
