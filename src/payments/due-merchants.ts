import type { Queryable } from '../db/pool.ts'
import { prepared } from '../db/prepared.ts'

/** A merchant with pending work at an acquirer account that is due. */
export type DueMerchant = { acquirer: string; mid: string }

/**
 * Finds the merchants with rows that are due, of all acquirer accounts, in the order of their longest due rows. One look-up in
 * the index of due times, whose cost depends on due rows alone. The result has no limit, so that the merchants of an account
 * in trouble, which all wait, hide no other account.
 */
const findDue = (table: string, dueAt: string) =>
  prepared(
    `select acquirer, mid
       from ${table}
      where ${dueAt} <= $1
      group by acquirer, mid
      order by min(${dueAt})`,
  )

const FIND_DUE = { acquirer_intents: findDue('acquirer_intents', 'enquire_at'), refunds: findDue('refunds', 'due_at') }

export async function findDueMerchants(db: Queryable, table: keyof typeof FIND_DUE, now: Date): Promise<DueMerchant[]> {
  return (await db.query<DueMerchant>(FIND_DUE[table](now))).rows
}
