import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
import type { Intent } from './intent.ts'

/** Facts that only the pay page of an order shows. */
export type PayPageFacts = {
  /**
   * When the order's last failed attempt was reported, or when the acquirer's response became unreadable; null unless
   * the last report is one of these.
   */
  attemptedAt: Date | null
  /** A payment of another amount that the operator has not resolved yet; null for a paid order. */
  mismatch: { amount: Paise; utr: string } | null
}

/**
 * SQL of the columns of PayPageFacts for the order `i`. The pay page's event stream runs it every second, so both
 * subqueries read one range of a primary key, and none for a paid order.
 */
export const PAY_PAGE_FACTS = `
  coalesce(i.unreadable_at, case when i.status in ('FAIL', 'REJECT') then (
    select max(t.received_at) from payment_attempts t where t.mid = i.mid and t.order_id = i.order_id) end) as attempted_at,
  case when i.status <> 'SUCCESS' then (
    select json_build_object('amount', e.amount_paise, 'utr', e.utr)
      from payment_exceptions e
     where e.mid = i.mid and e.order_id = i.order_id and e.kind = 'amount differs' and e.status = 'SUCCESS'
       and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
     order by e.received_at desc
     limit 1) end as mismatch`

/** A payment of a paid order besides its own. `reference` is the bank's reference if it is known, otherwise the UTR. */
export type SecondPayment = { utr: string; reference: string; amount: Paise }

/**
 * Lists the payments of a paid order besides its own, oldest first: duplicate payments, and payments of another amount
 * that the operator has not resolved.
 */
export const listSecondPayments = query<SecondPayment, Pick<Intent, 'mid' | 'orderId'> & { utr: string | null }>(`
  select utr, reference, amount
    from (select p.utr, coalesce(p.bank_reference, p.utr) as reference, p.amount_paise as amount, p.received_at
            from payments p
           where p.mid = :mid and p.order_id = :orderId and p.kind = 'second'
           union all
          select e.utr, e.utr, e.amount_paise, e.received_at
            from payment_exceptions e
           where e.mid = :mid and e.order_id = :orderId and e.kind = 'amount differs' and e.status = 'SUCCESS'
             and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)) s
   where utr is distinct from :utr
   order by received_at, utr`)
