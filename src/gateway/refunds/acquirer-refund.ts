import { inTransaction, type Transactional } from '../../platform/db/pool.ts'
import type { BoundedExceptions, SavedException } from '../payments/exceptions.ts'
import { newId } from '../payments/intent.ts'
import { findMerchant } from '../payments/reports.ts'
import { findPayment, MOST_OF_PAYMENT } from './create-refund.ts'
import type { RefundName, RefundUpdate } from './refund.ts'

/** The kind of exception that is stored instead of a refund by the acquirer, if the refund exceeds its payment. */
export const ABOVE = 'refunded above what was paid'

/**
 * Stores a refund that an acquirer has initiated, such as the refund of a late payment, so that the refund is included
 * in the refunded sum of its payment and resolves the payment's exception. If a refund exceeds the payment's amount,
 * only the exception ABOVE is stored. If such a refund failed, nothing is stored, because no money has moved. Returns
 * undefined if the payment was not reported yet, because the acquirer repeats the notification.
 */
export async function storeAcquirerRefund(
  { db, saveBounded }: { db: Transactional; saveBounded: BoundedExceptions },
  acquirer: string,
  { orderId = '', id = '', amount = 0, utr, payment, status }: RefundUpdate,
  now: Date,
): Promise<RefundName | { above: SavedException | 'failed' } | undefined> {
  const mid = await findMerchant(db, orderId)
  if (mid === undefined) return undefined
  return inTransaction(db, async (client) => {
    // A repeated notification waits for this lock, and then finds the refund.
    const { rowCount } = await client.query(
      `select from payment_intents i
         join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
        where i.mid = $1 and i.order_id = $2 and a.acquirer = $3
          for no key update of i`,
      [mid, orderId, acquirer],
    )
    if (rowCount === 0) return undefined
    const { rows: known } = await client.query<RefundName>(
      `select mid, our_refund_id as "ourRefundId"
         from refunds
        where mid = $1 and order_id = $2 and acquirer = $3 and lower(acquirer_refund_id) = lower($4)`,
      [mid, orderId, acquirer, id],
    )
    if (known[0]) return known[0]
    const { rows: payments } = await client.query<{ utr: string }>(
      // A refund without an identifier of its payment belongs to the order's own payment. Nulls are sorted last, so
      // that a payment with the reported id takes precedence.
      `select utr
         from payments
        where mid = $1 and order_id = $2
          and case when $4::text is not null and acquirer_payment_id is not null then acquirer_payment_id = $4
                   when $3::text is not null then $3 in (utr, bank_reference)
                   else kind <> 'second' end
        order by acquirer_payment_id
        limit 1`,
      [mid, orderId, utr, payment?.id],
    )
    const paid = payments[0] && (await findPayment(client, { mid, orderId, utr: payments[0].utr }))
    if (paid === undefined) return undefined
    if (amount > paid.left || paid.count >= MOST_OF_PAYMENT) {
      if (status === 'FAIL') return { above: 'failed' }
      const note = `refund ${id} by the acquirer${amount > paid.left ? '' : `, after ${paid.count} others`}`
      const facts = { mid, orderId, utr: paid.utr, amount, status: '' } as const
      const reported = { dedupKey: id.toLowerCase(), person: 'notification', note, acquirerAccount: acquirer }
      return { above: await saveBounded(client, ABOVE, { ...facts, ...reported }, now) }
    }
    const ourRefundId = newId(now)
    await client.query(
      `insert into refunds
         (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, exception_id, acquirer, acquirer_merchant_id,
          created_by, created_at, status, acquirer_refund_id, accepted_at)
       select p.mid, $4, $4, p.order_id, p.utr, $6, 'by the acquirer', e.exception_id, $5, a.acquirer_merchant_id,
              'acquirer', $8, 'PENDING', $7, $8
         from payments p
         join acquirer_intents a on a.mid = p.mid and a.order_id = p.order_id and a.acquirer = $5
         left join payment_exceptions e on e.mid = p.mid and e.order_id = p.order_id and e.utr = p.utr
           and e.kind in ('late payment', 'double payment')
        where p.mid = $1 and p.order_id = $2 and p.utr = $3`,
      [mid, orderId, paid.utr, ourRefundId, acquirer, amount, id, now],
    )
    return { mid, ourRefundId }
  })
}
