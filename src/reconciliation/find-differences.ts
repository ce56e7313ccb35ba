import { batchesOf } from '../db/batches.ts'
import type { BankDays } from '../ledger/bank-days.ts'
import { causeOf, type FoundDifference, type Unnamed } from './differences.ts'
import { findElsewhere } from './elsewhere.ts'
import { explainByNoOrder, TELLS_OF_MONEY } from './exceptions-of-no-order.ts'
import { type MerchantBooks, WAS_PAID_OUT } from './merchant-books.ts'
import {
  boundsOf,
  CARRIED_UTR,
  type Days,
  dayOf,
  PAID_OUT,
  paiseOf,
  READ_DAYS_WITHIN,
  SETTLED_BEFORE,
  settlementsKnown,
  type Texts,
  textOf,
  valuesOfPaid,
  withPaise,
} from './paid-and-settled.ts'
import { REFUNDED } from './refunded.ts'

/**
 * All differences of merchant $1, as they were known at $2. $3 are the days whose payments are overdue one by one, $4 and $5
 * the begin and the end of the days, $6 those whose settlements are compared one by one, $7 the UTRs of exceptions of no
 * known order; $8 is whether payments were recorded after $2; $9 are the days whose refunds had to be deducted one by one.
 * The payments are those of `readDays`.
 */
const differencesOf = (readDays: string) => `
  with ${REFUNDED}, unsettled_payment as materialized (
    select * from ${readDays} where order_id is not null and day = any ($3::date[])
  ), failed as (
    select distinct on (key) key, utr, status, initiated_at, status = 'FAILED' and ${WAS_PAID_OUT} as taken_back
      from (${settlementsKnown(`status <> 'SUCCESS' and initiated_at >= (select min(created_at) - ${SETTLED_BEFORE} from unsettled_payment)`)}) s
     order by key, initiated_at desc, utr
  ), unsettled as (
    -- Of what went back before it was settled nothing is owed.
    select p.day, p.order_id, p.utr, p.paid - coalesce(b.amount, 0) as paid, b.amount as undeducted, f.utr as failed_utr,
           f.status as failed_status, f.initiated_at as failed_at, f.taken_back
      from unsettled_payment p
      left join failed f on f.key = p.utr
      left join undeducted b using (order_id)
     where p.paid <> coalesce(b.amount, 0)
  ), matched as materialized (
    select s.*, i.order_id, i.created_at, (i.amount * 100 + i.paise) as paid
      from (${settlementsKnown(`status = 'SUCCESS' and initiated_at >= $4 and initiated_at < $5`)}) s
      left join payment_intents i
        on i.mid = $1 and i.utr = s.key collate "default" and s.initiated_at >= i.created_at - ${SETTLED_BEFORE}
           and not ($8 and exists (select from payment_changes c
                                     where c.mid = $1 and c.order_id = i.order_id and c.status = 'SUCCESS'
                                       and c.changed_at > $2))
     -- A row that names nothing, on a day that is compared by sums, is left to that.
     where s.amount < 0 or i.order_id is not null or s.payment_utr is not null
        or ${dayOf('s.initiated_at')} = any ($6::date[]) or s.key = any ($7::text[])
        or exists (select from payment_exceptions e
                    where e.mid = $1 and e.received_at <= $2 and upper(e.utr) = s.key and ${TELLS_OF_MONEY})
  ), first as (
    -- The first settlement of an order's payment: the earliest that can belong to the order.
    (select distinct on (s.key) s.key, m.order_id, s.utr, s.initiated_at
       from (${settlementsKnown(`${PAID_OUT}
               and initiated_at >= (select min(created_at) - ${SETTLED_BEFORE} from matched)
               and initiated_at < $5`)}) s
       join matched m on m.amount >= 0 and m.key = s.key and s.initiated_at >= m.created_at - ${SETTLED_BEFORE}
      order by s.key, s.initiated_at, s.utr)
     union all
    -- The first settlement of an unknown payment, of all times.
    (select distinct on (m.key) m.key, null, s.utr, s.initiated_at
       from matched m
      cross join lateral (${settlementsKnown(`${CARRIED_UTR} = m.key and ${PAID_OUT}`)}) s
      where m.order_id is null and m.amount >= 0
      order by m.key, s.initiated_at, s.utr)
  ), told as (
    select distinct on (upper(e.utr)) upper(e.utr) collate "C" as utr, e.kind, e.order_id, e.exception_id, e.amount,
           r.reason
      from payment_exceptions e
      left join payment_resolutions r
        on r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2
     where e.mid = $1 and e.received_at <= $2 and ${TELLS_OF_MONEY}
       and upper(e.utr) collate "C" in (select key from matched where order_id is null)
     order by upper(e.utr), r.reason is not null, e.received_at, e.exception_id
  ), reversed as (
    select distinct on (e.order_id) e.order_id, e.exception_id, e.kind, r.reason
      from payment_exceptions e
      left join payment_resolutions r
        on r.mid = e.mid and r.exception_id = e.exception_id and r.resolved_at <= $2
     where e.mid = $1 and e.received_at <= $2 and e.kind = 'failure after success'
     order by e.order_id, r.reason is not null, e.received_at, e.exception_id
  ), difference as (
    select day, case when taken_back then 'taken back' else 'not settled' end as kind, order_id, utr,
           null as settlement_utr, paid, null::numeric as settled,
           null::numeric as fee, null::numeric as tax, failed_utr as other_utr, failed_status as other_status,
           ${dayOf('failed_at')} as other_day, b.exception_id, b.kind as exception_kind, b.reason as resolution,
           null::timestamptz as initiated_at, undeducted, null as refund_id
      from unsettled
      left join reversed b using (order_id)
     union all
    select ${dayOf('m.initiated_at')},
           case when f.utr <> m.utr then 'settled twice'
                when m.order_id is null then 'no known payment'
                when coalesce(m.fee, m.tax) is not null then 'fee differs'
                else 'amount differs' end,
           coalesce(m.order_id, nullif(t.order_id, '')), m.key, m.utr, m.paid, ${paiseOf('m.gross')},
           ${paiseOf('m.fee')}, ${paiseOf('m.tax')}, f.utr, 'SUCCESS', ${dayOf('f.initiated_at')},
           t.exception_id, t.kind,
           -- A resolution covers the exception's money once.
           case when f.utr = m.utr and m.gross <= t.amount then t.reason end, m.initiated_at, b.amount, null
      from matched m
      left join first f on f.key = m.key and f.order_id is not distinct from m.order_id
      left join told t on m.order_id is null and t.utr = m.key
      left join undeducted b on b.order_id = m.order_id
     where m.amount >= 0 and (
             m.order_id is null or f.utr <> m.utr or m.gross * 100 not in (m.paid, m.paid - coalesce(b.amount, 0)))
     union all
    select ${dayOf('m.initiated_at')}, 'taken back', coalesce(m.order_id, b.order_id), coalesce(b.utr, m.key), m.utr,
           case when not b.second then -b.amount end, ${paiseOf('m.gross')}, ${paiseOf('m.fee')}, ${paiseOf('m.tax')}, null,
           null, null, null, null,
           -- The settlement of the second payment has ended with its exception.
           case when b.second and m.gross * -100 = b.amount
                     and exists (${settlementsKnown(`${CARRIED_UTR} = b.utr and ${PAID_OUT}`)})
                then 'refund ' || b.refund_id end,
           m.initiated_at, null, b.refund_id
      from matched m
      left join refunded b on b.row_utr = m.utr
     where m.amount < 0 and (b.second is not false or m.gross * -100 <> b.amount)
     union all
    select b.day, 'refund not deducted', b.order_id, b.utr, null, null, sum(b.amount), null, null, null, null, null, null,
           null, null, null, null, string_agg(b.refund_id, ', ' order by b.refund_id)
      from refunded b
      join undeducted u using (order_id)
     cross join lateral (
       select bool_or(gross * 100 = b.paid - u.amount) as is_less
         from (${settlementsKnown(`${CARRIED_UTR} = b.utr and ${PAID_OUT}`)}) s) settled
     where b.day = any ($9::date[]) and b.row_utr is null and not b.second and not settled.is_less
     group by b.day, b.order_id, b.utr
  )
  select $1 as mid, ${textOf('day')} as day, kind, order_id as "orderId", utr, settlement_utr as "settlementUtr", paid,
         settled, fee, tax, other_utr as "otherUtr", other_status as "otherStatus",
         ${textOf('other_day')} as "otherDay", exception_id as "exceptionId", exception_kind as "exceptionKind",
         resolution, initiated_at::text as "initiatedAt", undeducted::text, refund_id as "refundId"
    from difference
   order by difference.day, kind, order_id, settlement_utr`

const OF_KEPT_DAYS = differencesOf('read_days')
const OF_DAYS_READ_AGAIN = differencesOf(`(${READ_DAYS_WITHIN}) read_days`)

/** Which days of the asked ones are compared payment by payment. */
export type ByPayment = {
  overdueDays: readonly string[]
  settledDays: readonly string[]
  refundDays: readonly string[]
}

/**
 * Compares payments with settlements one by one. Yields payments of the overdue days that no settlement carries; and
 * settlements of `days` that carry another amount than their payment, one that was settled before, no payment though
 * they name one or are compared one by one, or that take money back. Sorted by day.
 */
export async function* findDifferences(
  { client, mid, known, keepsDays, utrsOfNoOrder, isPast }: MerchantBooks,
  days: Days,
  { overdueDays, settledDays, refundDays }: ByPayment,
  bankDays: BankDays,
): AsyncGenerator<Unnamed> {
  const { begin, end } = boundsOf(days)
  const values = [mid, known, overdueDays, begin, end, settledDays, utrsOfNoOrder, isPast, refundDays]
  const [query, more] = keepsDays ? [OF_KEPT_DAYS, []] : [OF_DAYS_READ_AGAIN, valuesOfPaid(mid, known, days).slice(2)]
  const batches = batchesOf<Texts<Omit<FoundDifference, 'elsewhere'>>>(client, query, [...values, ...more])
  for await (const rows of batches) {
    const paise = rows.map((row) =>
      withPaise<FoundDifference>({ ...row, elsewhere: null }, 'paid', 'settled', 'fee', 'tax', 'undeducted'),
    )
    const found = await findElsewhere(client, mid, known, paise)
    for (const one of await explainByNoOrder(client, mid, known, found)) {
      const { fee, tax, undeducted, refundId, elsewhere, ...told } = one
      const { otherUtr, otherStatus, otherDay, exceptionKind, initiatedAt, ...difference } = told
      yield { ...difference, cause: causeOf(one, bankDays) }
    }
  }
}
