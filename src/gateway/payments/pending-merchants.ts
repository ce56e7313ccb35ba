import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'

/** A merchant with pending jobs at an acquirer account. */
export type PendingMerchant = { acquirer: string; mid: string }

// The inner `order by` makes PostgreSQL read the index of scheduled times. PostgreSQL's statistics lag behind the
// clock, so without this order PostgreSQL would expect every scheduled row to be pending, and read the whole index of
// merchants.
const findPending = (table: string, dueAt: string) =>
  `select acquirer, mid
     from (select acquirer, mid, ${dueAt} as due_at from ${table} where ${dueAt} <= $1 order by ${dueAt}) due
    group by acquirer, mid
    order by min(due_at)`

const FIND_PENDING_CHECKS = prepared(findPending('acquirer_intents', 'status_check_at'))
const FIND_PENDING_REFUNDS = prepared(findPending('refunds', 'due_at'))
const FIND_PENDING_DISPUTES = prepared(findPending('disputes', 'check_at'))
const STATEMENTS = {
  acquirer_intents: FIND_PENDING_CHECKS,
  refunds: FIND_PENDING_REFUNDS,
  disputes: FIND_PENDING_DISPUTES,
}

/** SQL conditions at the time $1; null without scheduled rows. PostgreSQL reads a minimum from the start of the index. */
export const CHECKS_ARE_PENDING = '(select min(status_check_at) from acquirer_intents) <= $1'
export const REFUNDS_ARE_PENDING = '(select min(due_at) from refunds) <= $1'
export const DISPUTES_ARE_PENDING = '(select min(check_at) from disputes) <= $1'

/**
 * Finds the merchants with pending rows, of all acquirer accounts, ordered by their oldest pending row. The cost
 * depends only on the number of pending rows. The result has no limit, so that the waiting merchants of a failing
 * account do not hide other accounts.
 */
export async function findPendingMerchants(
  db: Queryable,
  table: keyof typeof STATEMENTS,
  now: Date,
): Promise<PendingMerchant[]> {
  return (await db.query<PendingMerchant>(STATEMENTS[table](now))).rows
}
