import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { newId } from '../payments/intent.ts'
import type { Refund } from './refund.ts'
import { findRefund } from './store.ts'

/** Largest number of refunds per payment, including failed refunds. */
export const MOST_OF_PAYMENT = 100

/**
 * A refund to store. `refundId` defaults to the service's own refund id. Without `utr`, the order's own payment is
 * refunded.
 */
export type RefundRequest = {
  mid: string
  orderId: string
  refundId?: string | undefined
  /** The amount in paise; undefined to refund the whole remaining amount of the payment. */
  amount: number | undefined
  note: string
  utr?: string | undefined
  exceptionId?: string | undefined
  createdBy: string
  /** Whether the payment is refunded although a dispute of it is open, as an operator decides. */
  despiteDispute?: boolean | undefined
}

/** The refund, with `created` false for a repeated request, or the reason for the rejection. */
export type RefundResult =
  | { refund: Refund; created: boolean }
  | { rejected: 'unknown order' | 'not successful' | 'disputed' | 'refund_id exists' | 'exceeds' | 'too many' }

/**
 * Stores a refund. The scheduler sends the refund; with the acquirer `direct`, the operator refunds the payment at the
 * bank. The amount is checked under the lock of the intent's row, so that concurrent refunds never exceed the payment.
 * pool.ts documents `claim` (type `Ending`).
 */
export async function createRefund(
  db: Transactional,
  request: RefundRequest,
  now: Date,
  claim?: () => void,
): Promise<RefundResult> {
  const before = await findRepeat(db, request)
  if (before) return before
  const isStored = async (created: RefundResult) =>
    'rejected' in created || (await findRefund(db, request.mid, created.refund)) !== undefined
  return inTransaction(db, store, claim && { claim, isStored })

  async function store(client: Queryable): Promise<RefundResult> {
    const [order] = await LOCK(client, request)
    if (order === undefined) return { rejected: 'unknown order' }
    // Searches for a repeat again, because an equal request may have been stored during the wait for the lock.
    const repeat = await findRepeat(client, request)
    if (repeat) return repeat
    const payment = await findPayment(client, request)
    if (payment === undefined) return { rejected: 'not successful' }
    if (payment.isDisputed && !request.despiteDispute) return { rejected: 'disputed' }
    if (payment.count >= MOST_OF_PAYMENT) return { rejected: 'too many' }
    const ourRefundId = newId(now)
    const { mid, refundId = ourRefundId, amount = payment.left } = request
    if (amount < 1 || amount > payment.left) return { rejected: 'exceeds' }
    const sending = { ...order, dueAt: order.acquirer === 'direct' ? null : now }
    const ids = { refundId, ourRefundId, utr: payment.utr }
    const added = await ADD(client, { ...request, ...ids, ...sending, amount, requested: request.amount, now })
    // No row was stored, because a concurrent one of another order, which has its own lock, has used this refund_id.
    if (added.length === 0) return { rejected: 'refund_id exists' }
    return { refund: (await findRefund(client, mid, { ourRefundId })) as Refund, created: true }
  }
}

/**
 * Finds the refund of an equal earlier request: a request for the same order with the same amount, or also without an
 * amount, and with the same note. An erased note is not compared.
 */
async function findRepeat(db: Queryable, request: RefundRequest): Promise<RefundResult | undefined> {
  if (request.refundId === undefined) return undefined
  const refund = await findRefund(db, request.mid, { refundId: request.refundId })
  if (refund === undefined) return undefined
  const isSameNote = refund.note === request.note || refund.note === ''
  const isSame = refund.orderId === request.orderId && refund.requested === (request.amount ?? null) && isSameNote
  return isSame ? { refund, created: false } : { rejected: 'refund_id exists' }
}

type Order = Pick<RefundRequest, 'mid' | 'orderId'>
type Acquirer = { acquirer: string; acquirerMerchantId: string | null }

/** Locks an order, so that its refunds and disputes wait for each other. Returns its acquirer. */
const LOCK = query<Acquirer, Order>(`
  select coalesce(a.acquirer, 'direct') as acquirer, a.acquirer_merchant_id
    from payment_intents i
    left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id
   where i.mid = :mid and i.order_id = :orderId
     for no key update of i`)

type NewRefund = Order &
  Acquirer &
  Pick<RefundRequest, 'note' | 'exceptionId' | 'createdBy'> &
  Pick<Refund, 'refundId' | 'ourRefundId' | 'utr' | 'amount' | 'dueAt'> & { requested: number | undefined; now: Date }

const ADD = query<object, NewRefund>(`
  insert into refunds
    (mid, refund_id, our_refund_id, order_id, utr, amount_paise, requested_paise, note, exception_id, acquirer,
     acquirer_merchant_id, created_by, created_at, status, due_at)
  values (:mid, :refundId, :ourRefundId, :orderId, :utr, :amount, :requested, :note, :exceptionId, :acquirer,
          :acquirerMerchantId, :createdBy, :now, 'PENDING', :dueAt)
      on conflict do nothing
  returning 1`)

/**
 * Returns the payment to refund, its remaining amount, the number of its refunds, and whether a dispute of it is not
 * final. The number includes failed refunds. The remaining amount ignores failed refunds, and is smaller by lost and
 * accepted disputes.
 */
export const findPayment = async (db: Queryable, named: NamedPayment) => (await PAYMENT(db, named))[0]

type NamedPayment = Order & { utr?: string | undefined }

const PAYMENT = query<{ utr: string; left: number; count: number; isDisputed: boolean }, NamedPayment>(`
  select p.utr,
         greatest(p.amount_paise - (
           select coalesce(sum(r.amount_paise), 0)
             from returned_amounts r
            where r.mid = :mid and r.order_id = :orderId and r.utr = p.utr), 0)::bigint as left,
         (select count(*) from refunds r where r.mid = :mid and r.order_id = :orderId and r.utr = p.utr) as count,
         exists (select from disputes d
                  where d.mid = :mid and d.utr = p.utr and d.status in ('open', 'under review')) as is_disputed
    from payments p
   where p.mid = :mid and p.order_id = :orderId
     and p.utr = coalesce(:utr::text, (select utr from payment_intents where mid = :mid and order_id = :orderId))`)
