import type { PoolClient } from 'pg'
import { overdueBefore } from '../refunds/store.ts'
import { boundsOf, type Days, dayOf, settlementsKnown, type Texts, textOf, withPaise } from './paid-and-settled.ts'

/** Paise that went back on one day, and those of them that no row of the bank deducts. */
export type RefundedOn = { day: string; refunded: bigint; undeducted: bigint }

/** A refund that is open after T+5 days; `amount` is in paise. */
export type OverdueRefund = {
  mid: string
  refundId: string
  orderId: string
  acquirer: string
  amount: bigint
  madeAt: Date
}

type Books = { client: PoolClient; mid: string; known: Date }

/**
 * Refunds of merchant $1 that succeeded, as they were known at $2, as `refunded`: each with `row_utr`, the negative row by which
 * the bank has deducted it. A row belongs to the refund whose reference it carries, else to the oldest one of its payment
 * and amount. Refunds of a second payment (`second`) are of money that never counted as paid. `undeducted` sums those of
 * each order that no row deducts: the bank has left them out of the payment's own row, or not deducted them.
 */
export const REFUNDED = `
  sent_back as materialized (
    select r.our_refund_id as refund_id, r.order_id, p.utr, r.amount_paise as amount, r.ended_at,
           upper(r.reference) collate "C" as reference, p.kind = 'second' as second, p.amount_paise as paid
      from refunds r
      join payments p on p.mid = $1 and p.utr = r.utr and p.order_id = r.order_id
     where r.mid = $1 and r.status = 'SUCCESS' and r.ended_at <= $2
  ), deduction as materialized (
    select * from (${settlementsKnown(`status = 'SUCCESS' and amount < 0`)}) s
  ), named as (
    select distinct on (refund_id) refund_id, row_utr
      from (select distinct on (d.utr) d.utr as row_utr, d.initiated_at, b.refund_id
              from deduction d
             cross join lateral unnest(array[
               upper(d.utr) collate "C", upper(d.bank_reference_number) collate "C"]) as carried (reference)
              join sent_back b on b.reference = carried.reference and b.reference <> ''
             order by d.utr, b.ended_at, b.refund_id) each
     order by refund_id, initiated_at, row_utr
  ), unnamed as (
    select utr as row_utr, key, gross,
           row_number() over (partition by key, gross order by initiated_at, utr) as number
      from deduction
     where utr not in (select row_utr from named)
  ), refunded as materialized (
    select b.*, ${dayOf('ended_at')} as day, coalesce(b.named_utr, u.row_utr) as row_utr
      from (select b.*, n.row_utr as named_utr,
                   row_number() over (partition by utr, amount, n.row_utr is null order by ended_at, refund_id) as number
              from sent_back b
              left join named n using (refund_id)) b
      left join unnamed u on named_utr is null and u.key = b.utr and u.gross * -100 = b.amount and u.number = b.number
  ), undeducted as (
    select order_id, sum(amount) as amount from refunded where row_utr is null and not second group by order_id
  )`

/** Refunds of payments that count as paid, by the day of their success. */
export async function refundedDays({ client, mid, known }: Books, { from, to }: Days): Promise<RefundedOn[]> {
  const { rows } = await client.query<Texts<RefundedOn>>(
    `with ${REFUNDED}
     select ${textOf('day')} as day, sum(amount)::text as refunded,
            coalesce(sum(amount) filter (where row_utr is null), 0)::text as undeducted
       from refunded
      where not second and day >= $3 and day <= $4
      group by refunded.day`,
    [mid, known, from, to],
  )
  return rows.map((row) => withPaise<RefundedOn>(row, 'refunded', 'undeducted'))
}

/** Refunds made until the end of these days that were open after T+5 days, as it was known. */
export async function overdueRefunds({ client, mid, known }: Books, days: Days): Promise<OverdueRefund[]> {
  const { rows } = await client.query<Texts<OverdueRefund>>(
    `select mid, our_refund_id as "refundId", order_id as "orderId", acquirer, amount_paise::text as amount,
            made_at as "madeAt"
       from refunds
      where mid = $1 and made_at < least($3::timestamptz, $4) and (ended_at is null or ended_at > $2)
      order by made_at, our_refund_id`,
    [mid, known, overdueBefore(known), boundsOf(days).end],
  )
  return rows.map((row) => withPaise<OverdueRefund>(row, 'amount'))
}
