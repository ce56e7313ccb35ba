import type { Queryable } from '../../src/platform/db/pool.ts'

/** Returns every row of every table, as a dump would write it. */
export async function dump(db: Queryable): Promise<string> {
  const { rows } = await db.query<{ table: string }>(
    `select format('%I', tablename) as table from pg_tables where schemaname = 'public'`,
  )
  const parts: string[] = []
  for (const { table } of rows) {
    const { rows: lines } = await db.query<{ line: string }>(`select t::text as line from ${table} t`)
    parts.push(table, ...lines.map(({ line }) => line))
  }
  return parts.join('\n')
}

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
