import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'

/** A merchant with pending jobs at an acquirer account. */
export type DueMerchant = { acquirer: string; mid: string }

// The inner order makes PostgreSQL read the index of scheduled times. Its statistics lag behind the clock, so it
// expects every scheduled row to be pending, and would otherwise read the whole index of merchants, which has the order
// of the groups.
const findDue = (table: string, dueAt: string) =>
  `select acquirer, mid
     from (select acquirer, mid, ${dueAt} as due_at from ${table} where ${dueAt} <= $1 order by ${dueAt}) due
    group by acquirer, mid
    order by min(due_at)`

const FIND_DUE_CHECKS = prepared(findDue('acquirer_intents', 'status_check_at'))
const FIND_DUE_REFUNDS = prepared(findDue('refunds', 'due_at'))
const STATEMENTS = { acquirer_intents: FIND_DUE_CHECKS, refunds: FIND_DUE_REFUNDS }

/**
 * Finds the merchants with pending rows, of all acquirer accounts, ordered by their oldest pending row. The cost
 * depends on pending rows alone. The result has no limit, so that the merchants of a failing account, which all wait,
 * do not hide other accounts.
 */
export async function findDueMerchants(
  db: Queryable,
  table: keyof typeof STATEMENTS,
  now: Date,
): Promise<DueMerchant[]> {
  return (await db.query<DueMerchant>(STATEMENTS[table](now))).rows
}
