import { query } from '../../platform/db/query.ts'

/** A merchant with pending jobs at an acquirer account. */
export type PendingMerchant = { acquirer: string; mid: string }

/**
 * SQL for the merchants with pending rows, of all acquirer accounts, ordered by their oldest pending row. The result has
 * no limit, so that the waiting merchants of a failing account do not hide other accounts.
 *
 * The inner `order by` makes PostgreSQL read the index of scheduled times, so that the cost depends only on the number of
 * pending rows. PostgreSQL's statistics lag behind the clock, so without this order PostgreSQL would expect every
 * scheduled row to be pending, and read the whole index of merchants.
 */
const findPending = (table: string, dueAt: string) => `
  select acquirer, mid
    from (select acquirer, mid, ${dueAt} as due_at from ${table} where ${dueAt} <= :now order by ${dueAt}) due
   group by acquirer, mid
   order by min(due_at)`

type Now = { now: Date }
export const findPendingChecks = query<PendingMerchant, Now>(findPending('acquirer_intents', 'status_check_at'))
export const findPendingRefunds = query<PendingMerchant, Now>(findPending('refunds', 'due_at'))
export const findPendingDisputes = query<PendingMerchant, Now>(findPending('disputes', 'check_at'))

/** SQL conditions at the time $1; null without scheduled rows. PostgreSQL reads a minimum from the start of the index. */
export const CHECKS_ARE_PENDING = '(select min(status_check_at) from acquirer_intents) <= $1'
export const REFUNDS_ARE_PENDING = '(select min(due_at) from refunds) <= $1'
export const DISPUTES_ARE_PENDING = '(select min(check_at) from disputes) <= $1'
