import { isDistributed } from '../../platform/db/distribution.ts'
import type { Database, Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'
import { createSharedBatches } from '../../platform/db/shared-batches.ts'
import type { FailureReason } from './failure-reasons.ts'
import { RETURN_URL_CALLBACK } from './outbox.ts'
import type { Status } from './outcome.ts'
import { FAILURE_REPORTED, failureReason } from './reported-status.ts'
import { statusCheckState, type WaitedFor } from './status-checks.ts'

/** Largest number of look-ups in a batch. PostgreSQL needs about a millisecond for such a batch. */
const BATCH_LOOK_UPS = 100

export type PaymentStatus = WaitedFor & {
  amount: number
  status: Status
  isUnreadable: boolean
  failureReason: FailureReason | null
  utr: string | null
  /**
   * Whether the order is paid, its return-URL callback is undelivered, and no response has reported the payment yet.
   */
  returnUrlCallbackWaits: boolean
  /** Whether a response has reported to the merchant that the order has finally failed. */
  failureReported: boolean
}

/** Finds an order of the merchant by its order_id or, if none matches, by its orderId. */
export async function findPaymentStatus(
  db: Queryable,
  mid: string,
  orderId: string,
): Promise<PaymentStatus | undefined> {
  const { rows } = await db.query<PaymentStatus>(FIND_ONE(mid, orderId))
  return rows[0]
}

/**
 * Returns a findPaymentStatus whose concurrent calls share statements, because a third of the cost of a look-up is its
 * round trip. `check` throws if the caller no longer waits. On distributed tables, look-ups run one by one, because an
 * array cannot be joined with a distributed table.
 */
export function createStatusLookUps(db: Database) {
  let distributed: boolean | undefined

  async function findBatch(requested: Requested[]): Promise<(PaymentStatus | undefined)[]> {
    const [{ mid, orderId }] = requested as [Requested]
    if (requested.length === 1) return [await findPaymentStatus(db, mid, orderId)]
    const { rows } = await db.query<PaymentStatus & { place: number }>(
      FIND_MANY(
        requested.map(({ mid }) => mid),
        requested.map(({ orderId }) => orderId),
      ),
    )
    const found = new Map(rows.map((row) => [row.place, row]))
    return requested.map((_, index) => found.get(index + 1))
  }

  const share = createSharedBatches(findBatch, ({ mid }) => mid, BATCH_LOOK_UPS)
  return async (mid: string, orderId: string, check: () => void): Promise<PaymentStatus | undefined> => {
    distributed ??= await isDistributed(db)
    return distributed ? findPaymentStatus(db, mid, orderId) : share({ mid, orderId }, check)
  }
}

type Requested = { mid: string; orderId: string }

const statusBy = (column: string, mid: string, orderId: string) => `
  select mid, order_id as "orderId", amount_paise as amount, status, utr, expires_at as "expiresAt",
         unreadable_at is not null as "isUnreadable",
         status = 'SUCCESS' and exists (
           select from webhook_deliveries d
            where d.mid = ${mid} and d.endpoint_id = '${RETURN_URL_CALLBACK}' and d.order_id = i.order_id
              and d.delivered_at is null) as "returnUrlCallbackWaits",
         ${FAILURE_REPORTED} as "failureReported", ${statusCheckState(mid)} as "statusCheck", ${failureReason(mid)} as "failureReason"
    from payment_intents i
   where mid = ${mid} and ${column} = ${orderId}`

/** `union all` instead of `or`, so that PostgreSQL runs the second part only if the first part finds nothing. */
const statusOf = (mid: string, orderId: string) =>
  `${statusBy('merchant_order_id', mid, orderId)} union all ${statusBy('order_id', mid, orderId)} limit 1`

const FIND_ONE = prepared(statusOf('$1', '$2'))

/**
 * Each array is passed through a subselect, so that the planner does not see its length. Otherwise PostgreSQL would
 * plan every batch again, because a custom plan looks cheaper for short batches, and the first batches are short.
 */
const FIND_MANY = prepared(
  `select requested.place::integer, found.*
     from unnest((select $1::text[]), (select $2::text[])) with ordinality as requested (mid, order_id, place)
    cross join lateral (${statusOf('requested.mid', 'requested.order_id')}) found`,
)
