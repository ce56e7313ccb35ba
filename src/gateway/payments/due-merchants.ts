import type { Queryable } from '../../platform/db/pool.ts'
import { prepared } from '../../platform/db/prepared.ts'

/** A merchant with pending work at an acquirer account that is due. */
export type DueMerchant = { acquirer: string; mid: string }

// The inner order makes PostgreSQL read the index of due times. Its statistics lag behind the clock, so that it expects every
// pending row to be due, and would otherwise read the whole index of merchants, which has the order of the groups.
const findDue = (table: string, dueAt: string) =>
  `select acquirer, mid
     from (select acquirer, mid, ${dueAt} as due_at from ${table} where ${dueAt} <= $1 order by ${dueAt}) due
    group by acquirer, mid
    order by min(due_at)`

const FIND_DUE_CHECKS = prepared(findDue('acquirer_intents', 'enquire_at'))
const FIND_DUE_REFUNDS = prepared(findDue('refunds', 'due_at'))
const STATEMENTS = { acquirer_intents: FIND_DUE_CHECKS, refunds: FIND_DUE_REFUNDS }

/**
 * Finds the merchants with rows that are due, of all acquirer accounts, in the order of their longest due rows. The cost depends
 * on due rows alone. The result has no limit, so that the merchants of an account in trouble, which all wait, hide no other
 * account.
 */
export async function findDueMerchants(
  db: Queryable,
  table: keyof typeof STATEMENTS,
  now: Date,
): Promise<DueMerchant[]> {
  return (await db.query<DueMerchant>(STATEMENTS[table](now))).rows
}
