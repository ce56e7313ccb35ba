import { inTransaction, type Queryable, type Transactional } from '../../platform/db/pool.ts'
import { saveException } from './exceptions.ts'
import { abandonedUntil, OPEN_STATUSES } from './outcome.ts'
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
    await client.query('select from payment_intents where mid = $1 and order_id = $2 for no key update', [mid, orderId])
    const { rows } = await client.query(
      `select from payment_exceptions e
        where mid = $1 and order_id = $2 and kind = 'unreadable'
          and not exists (select from payment_resolutions r where r.mid = $1 and r.exception_id = e.exception_id)
       union all
       select from payment_intents where mid = $1 and order_id = $2 and status = 'SUCCESS' and not $3::boolean`,
      [mid, orderId, isBesidePayment],
    )
    if (rows.length > 0) return false
    await client.query(
      `update payment_intents i
          set unreadable_at = $3
        where mid = $1 and order_id = $2 and status in ${OPEN_STATUSES} and expires_at > $4 and not ${FAILURE_REPORTED}`,
      [mid, orderId, now, abandonedUntil(now)],
    )
    // The time distinguishes the exception from an earlier, resolved exception of the same order.
    const key = { amount: 0, status: '' as const, dedupKey: now.toISOString(), acquirerAccount }
    return saveException(client, 'unreadable', { mid, orderId, ...key }, now)
  })
}

/**
 * Whether an order has ever had the exception `unreadable`. For most orders, the result is false, and a readable
 * response needs no write.
 */
export async function hasUnreadable(db: Queryable, { mid, orderId }: Order): Promise<boolean> {
  const { rowCount } = await db.query(
    "select from payment_exceptions where mid = $1 and order_id = $2 and kind = 'unreadable' limit 1",
    [mid, orderId],
  )
  return rowCount === 1
}

/**
 * Resolves the exceptions `unreadable` of an order and removes its mark, so that the order gets its status as if the
 * response had not arrived.
 */
export async function endUnreadable(
  db: Queryable,
  { mid, orderId }: Order,
  { by, now }: { by: string; now: Date },
): Promise<void> {
  await db.query(
    `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
     select e.mid, e.exception_id, 'a later response could be read, or the order is final', $3, $4
       from payment_exceptions e
      where e.mid = $1 and e.order_id = $2 and e.kind = 'unreadable'
         on conflict do nothing`,
    [mid, orderId, by, now],
  )
  await endMark(db, { mid, orderId }, now)
}

/**
 * Removes the mark of an order in the caller's transaction. If the order's event payment.expired was waiting for the
 * removal, the event is scheduled.
 */
export async function endMark(db: Queryable, { mid, orderId }: Order, now: Date): Promise<void> {
  // The lock is a separate statement, so that the next statement sees the changes of the transaction that held the lock
  // before.
  await db.query('select from payment_intents where mid = $1 and order_id = $2 for no key update', [mid, orderId])
  await db.query(
    `with ended as (
       update payment_intents set unreadable_at = null where mid = $1 and order_id = $2 and unreadable_at is not null
     )
     update webhook_expiries set final_at = $3 where mid = $1 and order_id = $2 and final_at = 'infinity'`,
    [mid, orderId, now],
  )
}
