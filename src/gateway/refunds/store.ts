import type { Queryable } from '../../platform/db/pool.ts'
import { plannedQuery, query } from '../../platform/db/query.ts'
import { DAY_MS, istDayOf } from '../../platform/time.ts'
import type { Refund, RefundName } from './refund.ts'

/** The moment before which open refunds are overdue (later than T+5): five calendar days (IST) before today. */
export const overdueBefore = (now: Date) => new Date(istDayOf(now).getTime() - 5 * DAY_MS)

const REFUND = `
  select r.mid, r.refund_id, r.our_refund_id, r.order_id, i.merchant_order_id, r.utr, r.amount_paise as amount,
         r.requested_paise as requested, r.note, r.exception_id, r.acquirer, r.acquirer_merchant_id, r.created_by,
         r.created_at, r.status, r.reference, r.reason, r.ended_at, r.acquirer_refund_id, r.sent_at, r.accepted_at,
         r.attempts, r.due_at, r.succeeded_at, r.return_reference, r.returned_by
    from current_refunds r
    join payment_intents i on i.mid = r.mid and i.order_id = r.order_id`

export const findRefund = async (
  db: Queryable,
  mid: string,
  name: { refundId: string } | { ourRefundId: string },
): Promise<Refund | undefined> =>
  (await ('ourRefundId' in name ? BY_OUR_ID(db, { ...name, mid }) : BY_ID(db, { ...name, mid })))[0]

const BY_ID = query<Refund, { mid: string; refundId: string }>(
  `${REFUND} where r.mid = :mid and r.refund_id = :refundId`,
)
const BY_OUR_ID = query<Refund, RefundName>(`${REFUND} where r.mid = :mid and r.our_refund_id = :ourRefundId`)

type RefundFilter = {
  open?: boolean
  mid?: string | undefined
  orderId?: string
  ourRefundId?: string
  acquirer?: string | undefined
}

/** Lists refunds, oldest first. */
export const listRefunds = plannedQuery<Refund, RefundFilter>(`${REFUND}
   where (:open::boolean is not true or r.status = 'PENDING')
     and (:mid::text is null or r.mid = :mid)
     and (:orderId::text is null or r.order_id = :orderId)
     and (:ourRefundId::text is null or r.our_refund_id = :ourRefundId)
     and (:acquirer::text is null or r.acquirer = :acquirer)
   order by r.created_at, r.mid, r.our_refund_id`)

/**
 * Whether the operator must find out the result of an open refund, because the service does not check the refund's
 * status, as with `direct`, or because the acquirer has not reported a final status in time.
 */
export const isLeftToPerson = async (db: Queryable, refund: Refund): Promise<boolean> =>
  refund.dueAt === null || (await OPEN_EXCEPTIONS(db, refund)).length > 0

const OPEN_EXCEPTIONS = query<object, Pick<Refund, 'mid' | 'orderId' | 'ourRefundId'>>(`
  select from payment_exceptions e
   where e.mid = :mid and e.order_id = :orderId and e.our_refund_id = :ourRefundId
     and e.kind in ('refund unsure', 'refund without an end')
     and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)`)

/** Lists the acquirers of open refunds with one index look-up per acquirer, however many refunds are open. */
export async function acquirersOfOpenRefunds(db: Queryable): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const [next] = await FIRST_AFTER(db, { after: names.at(-1) ?? '' })
    if (next === undefined) return names
    names.push(next.acquirer)
  }
}

const FIRST_AFTER = query<{ acquirer: string }, { after: string }>(
  "select acquirer from refunds where status = 'PENDING' and acquirer > :after order by acquirer limit 1",
)
