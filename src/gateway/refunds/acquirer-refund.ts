import { inTransaction, type Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import type { Paise } from '../../platform/money.ts'
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
    if ((await LOCK(client, { mid, orderId, acquirer })).length === 0) return undefined
    const [known] = await KNOWN(client, { mid, orderId, acquirer, id })
    if (known) return known
    const [named] = await NAMED_PAYMENT(client, { mid, orderId, utr, paymentId: payment?.id })
    const paid = named && (await findPayment(client, { mid, orderId, ...named }))
    if (paid === undefined) return undefined
    if (amount > paid.left || paid.count >= MOST_OF_PAYMENT) {
      if (status === 'FAIL') return { above: 'failed' }
      const note = `refund ${id} by the acquirer${amount > paid.left ? '' : `, after ${paid.count} others`}`
      const facts = { mid, orderId, utr: paid.utr, amount, status: '' } as const
      const reported = { dedupKey: id.toLowerCase(), person: 'notification', note, acquirerAccount: acquirer }
      return { above: await saveBounded(client, ABOVE, { ...facts, ...reported }, now) }
    }
    const ourRefundId = newId(now)
    await ADD(client, { mid, orderId, utr: paid.utr, ourRefundId, acquirer, amount, id, now })
    return { mid, ourRefundId }
  })
}

type Named = { mid: string; orderId: string }

const LOCK = query<object, Named & { acquirer: string }>(`
  select from payment_intents i
    join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
   where i.mid = :mid and i.order_id = :orderId and a.acquirer = :acquirer
     for no key update of i`)

const KNOWN = query<RefundName, Named & { acquirer: string; id: string }>(`
  select mid, our_refund_id
    from refunds
   where mid = :mid and order_id = :orderId and acquirer = :acquirer and lower(acquirer_refund_id) = lower(:id)`)

/**
 * A refund without an identifier of its payment belongs to the order's own payment. Nulls are sorted last, so that a
 * payment with the reported id takes precedence.
 */
const NAMED_PAYMENT = query<{ utr: string }, Named & { utr: string | undefined; paymentId: string | undefined }>(`
  select utr
    from payments
   where mid = :mid and order_id = :orderId
     and case when :paymentId::text is not null and acquirer_payment_id is not null then acquirer_payment_id = :paymentId
              when :utr::text is not null then :utr in (utr, bank_reference)
              else kind <> 'second' end
   order by acquirer_payment_id
   limit 1`)

const ADD = query<
  object,
  Named & { utr: string; ourRefundId: string; acquirer: string; amount: Paise; id: string; now: Date }
>(`
  insert into refunds
    (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, exception_id, acquirer, acquirer_merchant_id,
     created_by, created_at, status, acquirer_refund_id, accepted_at)
  select p.mid, :ourRefundId, :ourRefundId, p.order_id, p.utr, :amount, 'by the acquirer', e.exception_id, :acquirer,
         a.acquirer_merchant_id, 'acquirer', :now, 'PENDING', :id, :now
    from payments p
    join acquirer_intents a on a.mid = p.mid and a.order_id = p.order_id and a.acquirer = :acquirer
    left join payment_exceptions e on e.mid = p.mid and e.order_id = p.order_id and e.utr = p.utr
      and e.kind in ('late payment', 'double payment')
   where p.mid = :mid and p.order_id = :orderId and p.utr = :utr`)
