import type { Database } from '../../../src/platform/db/pool.ts'

// biome-ignore lint/suspicious/noExplicitAny: the columns of a row differ by table.
export type Row = Record<string, any>

/** The rows that a change has removed from a table and added to it; a changed row is both. */
export type Difference = Record<string, { gone: Row[]; added: Row[] }>

const OF_MERCHANT =
  'payment_intents payments payment_attempts payment_exceptions payment_resolutions refunds refund_returns disputes dispute_states webhook_deliveries settlements settlement_versions difference_resolutions acquirer_intents'
const OF_SETTLEMENTS = 'settlement_imports settlement_import_bases payout_rests'
const OF_STATEMENTS = 'statement_imports statement_lines'

const rowsOf = (table: string, condition: string) =>
  `select '${table}' as name, coalesce(json_agg(to_jsonb(t) order by t::text), '[]') as rows from ${table} t where ${condition}`
const TABLES = [
  ...OF_MERCHANT.split(' ').map((table) => rowsOf(table, 'mid = $1')),
  ...OF_SETTLEMENTS.split(' ').map((table) => rowsOf(table, 'import_id > $2')),
  ...OF_STATEMENTS.split(' ').map((table) => rowsOf(table, 'import_id > $3')),
].join(' union all ')

/** A merchant, and the newest imports before its history. */
export type Place = { mid: string; settlements: number; statements: number }

/** Returns the rows of every table that a change may touch, of one merchant and of its imports. */
export async function readTables(
  db: Database,
  { mid, settlements, statements }: Place,
): Promise<Record<string, Row[]>> {
  const { rows } = await db.query<{ name: string; rows: Row[] }>(`select name, rows::text as rows from (${TABLES}) t`, [
    mid,
    settlements,
    statements,
  ])
  return Object.fromEntries(rows.map(({ name, rows }) => [name, JSON.parse(String(rows))]))
}

/** Returns the tables that differ. */
export function differenceOf(before: Record<string, Row[]>, after: Record<string, Row[]>): Difference {
  const without = (rows: Row[] = [], others: Row[] = []) => {
    const texts = new Set(others.map((row) => JSON.stringify(row)))
    return rows.filter((row) => !texts.has(JSON.stringify(row)))
  }
  const tables = Object.keys(after).map((name) => {
    const [gone, added] = [without(before[name], after[name]), without(after[name], before[name])]
    return [name, { gone, added }] as const
  })
  return Object.fromEntries(tables.filter(([, { gone, added }]) => gone.length + added.length > 0))
}

/** Returns the numbers of the newest imports. */
export async function newestImports(db: Database): Promise<Omit<Place, 'mid'>> {
  const { rows } = await db.query<Omit<Place, 'mid'>>(
    `select coalesce((select max(import_id) from settlement_imports), 0) as settlements,
            coalesce((select max(import_id) from statement_imports), 0) as statements`,
  )
  return rows[0] as Omit<Place, 'mid'>
}
