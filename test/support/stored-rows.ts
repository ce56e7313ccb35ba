import type { Queryable } from '../../src/platform/db/pool.ts'

/** Returns a hash of each table that a report of a payment may change. */
export async function storedRows(db: Queryable): Promise<Record<string, string>> {
  const tables = [
    ...['payment_intents', 'payments', 'payment_attempts', 'payment_exceptions', 'payment_resolutions'],
    ...['webhook_deliveries', 'refunds', 'settlements', 'settlement_imports'],
  ]
  const hashes = tables.map(
    (table) => `(select md5(coalesce(string_agg(t::text, '|' order by t::text), '')) from ${table} t) as ${table}`,
  )
  const { rows } = await db.query(`select ${hashes.join(', ')}`)
  return rows[0]
}
