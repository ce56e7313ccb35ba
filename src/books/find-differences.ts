import type { PoolClient } from 'pg'
import { batchesOf } from '../db/batches.ts'
import { causeOf, type Difference, type FoundDifference } from './differences.ts'
import { explainByNoOrder, TELLS_OF_MONEY } from './exceptions-of-no-order.ts'
import {
  boundsOf,
  type Days,
  dayOf,
  IN_DAYS,
  PAID_AND_SETTLED,
  paiseOf,
  SETTLED_BEFORE,
  SETTLED_SINCE,
  SETTLEMENT,
  type Texts,
  textOf,
  valuesOfPaid,
  WITH_SETTLED,
  withPaise,
} from './paid-and-settled.ts'

/**
 * All differences. The parameters are those of PAID_AND_SETTLED, then $6, the last day whose payments are overdue, and
 * $7 and $8, the begin and the end of the days.
 */
const DIFFERENCES = `
  ${PAID_AND_SETTLED}, failed as (
    select distinct on (key) key, utr, status, initiated_at
      from (${SETTLED_SINCE}) s
     where status <> 'SUCCESS'
     order by key, initiated_at desc, utr
  ), unsettled as (
    select p.*, f.utr as failed_utr, f.status as failed_status, f.initiated_at as failed_at
      from ${WITH_SETTLED}
      left join failed f on f.key = p.utr
     where ${IN_DAYS} and day <= $6::date and s.key is null
  ), matched as materialized (
    select s.*, i.order_id, i.created_at, (i.amount * 100 + i.paise) as paid
      from (${SETTLEMENT} and initiated_at >= $7 and initiated_at < $8) s
      left join payment_intents i on i.mid = $1 and i.utr = s.key collate "default"
                                  and s.initiated_at >= i.created_at - ${SETTLED_BEFORE}
     where s.status = 'SUCCESS'
  ), first as (
    -- The first settlement of an order's payment: the earliest that can belong to the order.
    (select distinct on (s.key) s.key, m.order_id, s.utr, s.initiated_at
       from (${SETTLEMENT}
               and initiated_at >= (select min(created_at) - ${SETTLED_BEFORE} from matched)
               and initiated_at < $8) s
       join matched m on m.key = s.key and s.initiated_at >= m.created_at - ${SETTLED_BEFORE}
      where s.status = 'SUCCESS'
      order by s.key, s.initiated_at, s.utr)
     union all
    -- The first settlement of an unknown payment, of all times; two queries, so that each uses an index.
    (select distinct on (m.key) m.key, null, s.utr, s.initiated_at
       from matched m
      cross join lateral (
            select utr, initiated_at
              from settlements
             where mid = $1 and utr in (m.utr, m.key, lower(m.key)) and payment_utr is null and status = 'SUCCESS'
             union all
            select utr, initiated_at
              from settlements
             where mid = $1 and payment_utr = m.key and status = 'SUCCESS') s
      where m.order_id is null
      order by m.key, s.initiated_at, s.utr)
  ), told as (
    select distinct on (upper(e.utr)) upper(e.utr) collate "C" as utr, e.kind, e.order_id, e.exception_id, e.amount,
           r.reason
      from payment_exceptions e
      left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
     where e.mid = $1 and ${TELLS_OF_MONEY} and upper(e.utr) collate "C" in (select key from matched where order_id is null)
     order by upper(e.utr), r.reason is not null, e.received_at, e.exception_id
  ), taken_back as (
    select distinct on (e.order_id) e.order_id, e.exception_id, e.kind, r.reason
      from payment_exceptions e
      left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
     where e.mid = $1 and e.kind = 'failure after success'
     order by e.order_id, r.reason is not null, e.received_at, e.exception_id
  ), difference as (
    select day, 'not settled' as kind, order_id, utr, null as settlement_utr, paid, null::numeric as settled,
           null::numeric as fee, null::numeric as tax, failed_utr as other_utr, failed_status as other_status,
           ${dayOf('failed_at')} as other_day, b.exception_id, b.kind as exception_kind, b.reason as resolution,
           null::timestamptz as initiated_at
      from unsettled
      left join taken_back b using (order_id)
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
           case when f.utr = m.utr and m.gross <= t.amount then t.reason end, m.initiated_at
      from matched m
      left join first f on f.key = m.key and f.order_id is not distinct from m.order_id
      left join told t on m.order_id is null and t.utr = m.key
     where m.order_id is null or f.utr <> m.utr or m.gross * 100 <> m.paid
  )
  select $1 as mid, ${textOf('day')} as day, kind, order_id as "orderId", utr, settlement_utr as "settlementUtr", paid,
         settled, fee, tax, other_utr as "otherUtr", other_status as "otherStatus",
         ${textOf('other_day')} as "otherDay", exception_id as "exceptionId", exception_kind as "exceptionKind",
         resolution, initiated_at::text as "initiatedAt"
    from difference
   order by difference.day, kind, order_id, settlement_utr`

/**
 * Compares payments with settlements one by one. Yields payments of the days, at the latest of `lastOverdue`, that no
 * settlement carries; and settlements of the days that carry no payment, one that was settled before, or another
 * amount. Sorted by day.
 */
export async function* findDifferences(
  client: PoolClient,
  mid: string,
  days: Days,
  lastOverdue: string,
): AsyncGenerator<Difference> {
  const { begin, end } = boundsOf(days)
  const values = [...valuesOfPaid(mid, days), lastOverdue, begin, end]
  for await (const rows of batchesOf<Texts<FoundDifference>>(client, DIFFERENCES, values)) {
    const found = rows.map((row) => withPaise<FoundDifference>(row, 'paid', 'settled', 'fee', 'tax'))
    for (const one of await explainByNoOrder(client, mid, found)) {
      const { fee, tax, otherUtr, otherStatus, otherDay, exceptionKind, initiatedAt, ...difference } = one
      yield { ...difference, cause: causeOf(one) }
    }
  }
}
