import type { Paise } from '../../platform/money.ts'

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
    select max(t.received_at) from payment_attempts t where t.mid = i.mid and t.order_id = i.order_id) end) as "attemptedAt",
  case when i.status <> 'SUCCESS' then (
    select json_build_object('amount', e.amount_paise, 'utr', e.utr)
      from payment_exceptions e
     where e.mid = i.mid and e.order_id = i.order_id and e.kind = 'amount differs' and e.status = 'SUCCESS'
       and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
     order by e.received_at desc
     limit 1) end as mismatch`
