import type { Queryable } from '../db/pool.ts'

/** Tables with work that is due at an acquirer, each with the column of the due time. */
const DUE_COLUMNS = { acquirer_intents: 'enquire_at', refunds: 'due_at' }

/**
 * Returns up to `limit` merchants with a row that is due at an acquirer. The order is random, so that a merchant with a
 * long queue comes no earlier than a merchant with a short one.
 */
export async function findDueMerchants(
  db: Queryable,
  table: keyof typeof DUE_COLUMNS,
  acquirer: string,
  limit: number,
  now: Date,
): Promise<string[]> {
  const { rows } = await db.query<{ mid: string }>(
    `select m.mid
       from merchants m
      -- One index look-up per merchant, however many rows are due: since PostgreSQL 16 this distinct stops at the first
      -- row. A limit would do the same, but Citus does not support it here.
      cross join lateral (
        select distinct mid from ${table} where mid = m.mid and acquirer = $1 and ${DUE_COLUMNS[table]} <= $2) due
      order by random()
      limit $3`,
    [acquirer, now, limit],
  )
  return rows.map(({ mid }) => mid)
}
