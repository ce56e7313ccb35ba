import type { Queryable } from '../../platform/db/pool.ts'
import { DAY_MS, istDayOf } from '../../platform/time.ts'
import type { Refund } from './refund.ts'

/** The moment before which open refunds are overdue (later than T+5): five calendar days (IST) before today. */
export const overdueBefore = (now: Date) => new Date(istDayOf(now).getTime() - 5 * DAY_MS)

const SELECT_REFUNDS = `
  select r.mid, r.refund_id as "refundId", r.our_refund_id as "ourRefundId", r.order_id as "orderId",
         i.merchant_order_id as "merchantOrderId", r.utr, r.amount_paise as amount, r.requested_paise as requested, r.note,
         r.exception_id as "exceptionId", r.acquirer, r.acquirer_merchant_id as "acquirerMerchantId", r.created_by as "createdBy",
         r.created_at as "createdAt", r.status, r.reference, r.reason, r.ended_at as "endedAt",
         r.acquirer_refund_id as "acquirerRefundId", r.sent_at as "sentAt", r.accepted_at as "acceptedAt", r.attempts,
         r.due_at as "dueAt", r.succeeded_at as "succeededAt", r.return_reference as "returnReference",
         r.returned_by as "returnedBy"
    from current_refunds r
    join payment_intents i on i.mid = r.mid and i.order_id = r.order_id`

export async function findRefund(
  db: Queryable,
  mid: string,
  name: { refundId: string } | { ourRefundId: string },
): Promise<Refund | undefined> {
  const [column, value] = 'ourRefundId' in name ? ['our_refund_id', name.ourRefundId] : ['refund_id', name.refundId]
  const { rows } = await db.query<Refund>(`${SELECT_REFUNDS} where r.mid = $1 and r.${column} = $2`, [mid, value])
  return rows[0]
}

type RefundFilter = {
  open?: boolean
  mid?: string | undefined
  orderId?: string
  ourRefundId?: string
  acquirer?: string | undefined
}

/** Lists refunds, oldest first. */
export async function listRefunds(
  db: Queryable,
  { open = false, mid, orderId, ourRefundId, acquirer }: RefundFilter,
): Promise<Refund[]> {
  const { rows } = await db.query<Refund>(
    `${SELECT_REFUNDS}
      where (not $1::boolean or r.status = 'PENDING')
        and ($2::text is null or r.mid = $2)
        and ($3::text is null or r.order_id = $3)
        and ($4::text is null or r.our_refund_id = $4)
        and ($5::text is null or r.acquirer = $5)
      order by r.created_at, r.mid, r.our_refund_id`,
    [open, mid, orderId, ourRefundId, acquirer],
  )
  return rows
}

/**
 * Whether the operator must find out the result of an open refund, because the service does not check the refund's
 * status, as with `direct`, or because the acquirer has not reported a final status in time.
 */
export async function isLeftToPerson(db: Queryable, { mid, orderId, ourRefundId, dueAt }: Refund): Promise<boolean> {
  if (dueAt === null) return true
  const { rowCount } = await db.query(
    `select from payment_exceptions e
      where e.mid = $1 and e.order_id = $2 and e.our_refund_id = $3 and e.kind in ('refund unsure', 'refund without an end')
        and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)`,
    [mid, orderId, ourRefundId],
  )
  return rowCount !== 0
}

/** Lists the acquirers of open refunds with one index look-up per acquirer, however many refunds are open. */
export async function acquirersOfOpenRefunds(db: Queryable): Promise<string[]> {
  const names: string[] = []
  for (;;) {
    const { rows } = await db.query<{ acquirer: string }>(
      `select acquirer from refunds where status = 'PENDING' and acquirer > $1 order by acquirer limit 1`,
      [names.at(-1) ?? ''],
    )
    if (rows[0] === undefined) return names
    names.push(rows[0].acquirer)
  }
}
