import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { query } from '../../platform/db/query.ts'
import { saveException } from './exceptions.ts'
import { abandonedUntil, OPEN_STATUSES } from './outcome.ts'
import { lockOrder } from './reported-orders.ts'
import { FAILURE_REPORTED } from './reported-status.ts'

type Order = { mid: string; orderId: string }

/**
 * Stores that an acquirer's status response about an order may report a payment and was unreadable: the exception
 * `unreadable`, and a mark that leaves the order open, unless its status is already final. Returns whether the
 * exception is new.
 */
export function saveUnreadable(
  db: Transactional,
  { mid, orderId, isBesidePayment }: Order & { isBesidePayment: boolean },
  acquirerAccount: string,
  now: Date,
): Promise<boolean> {
  return inTransaction(db, async (client) => {
    await lockOrder(client, { mid, orderId })
    if ((await FIND_SAVED_OR_PAID(client, { mid, orderId, isBesidePayment })).length > 0) return false
    await MARK(client, { mid, orderId, now, abandonedUntil: abandonedUntil(now) })
    // The time distinguishes the exception from an earlier, resolved exception of the same order.
    const key = { amount: 0, status: '' as const, dedupKey: now.toISOString(), acquirerAccount }
    return saveException(client, 'unreadable', { mid, orderId, ...key }, now)
  })
}

const FIND_SAVED_OR_PAID = query<object, Order & { isBesidePayment: boolean }>(`
  select from payment_exceptions e
   where mid = :mid and order_id = :orderId and kind = 'unreadable'
     and not exists (select from payment_resolutions r where r.mid = :mid and r.exception_id = e.exception_id)
   union all
  select from payment_intents
   where mid = :mid and order_id = :orderId and status = 'SUCCESS' and not :isBesidePayment::boolean`)

const MARK = query<object, Order & { now: Date; abandonedUntil: Date }>(`
  update payment_intents i
     set unreadable_at = :now
   where mid = :mid and order_id = :orderId and status in ${OPEN_STATUSES} and expires_at > :abandonedUntil
     and not ${FAILURE_REPORTED}`)

/**
 * Whether an order has ever had the exception `unreadable`. For most orders, the result is false, and a readable
 * response needs no write.
 */
export const hasUnreadable = async (db: Queryable, order: Order): Promise<boolean> =>
  (await FIND_UNREADABLE(db, order)).length === 1

const FIND_UNREADABLE = query<object, Order>(
  "select from payment_exceptions where mid = :mid and order_id = :orderId and kind = 'unreadable' limit 1",
)

/**
 * Resolves the exceptions `unreadable` of an order and removes its mark, so that the order gets its status as if the
 * response had not arrived.
 */
export async function endUnreadable(db: Queryable, order: Order, resolution: { by: string; now: Date }): Promise<void> {
  await RESOLVE(db, { ...order, ...resolution })
  await endMark(db, order, resolution.now)
}

const RESOLVE = query<object, Order & { by: string; now: Date }>(`
  insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
  select e.mid, e.exception_id, 'a later response could be read, or the order is final', :by, :now
    from payment_exceptions e
   where e.mid = :mid and e.order_id = :orderId and e.kind = 'unreadable'
      on conflict do nothing`)

/**
 * Removes the mark of an order in the caller's transaction. If the order's event payment.expired was waiting for the
 * removal, the event is scheduled.
 */
export async function endMark(db: Queryable, order: Order, now: Date): Promise<void> {
  await lockOrder(db, order)
  await END_MARK(db, { ...order, now })
}

const END_MARK = query<object, Order & { now: Date }>(`
  with ended as (
    update payment_intents set unreadable_at = null
     where mid = :mid and order_id = :orderId and unreadable_at is not null
  )
  update webhook_expiries set final_at = :now where mid = :mid and order_id = :orderId and final_at = 'infinity'`)
