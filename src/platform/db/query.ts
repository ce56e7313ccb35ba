import type { QueryConfig } from 'pg'
import type { Queryable } from './pool.ts'
import { prepared } from './prepared.ts'

/** Sends the statement with these values. The column names in the rows are in camelCase. */
type Query<Row, Params> = (db: Queryable, params: Params) => Promise<Row[]>

/**
 * A statement with named parameters: `:mid` is replaced by the value `mid`. The statement is prepared, so PostgreSQL
 * plans the statement once per connection. Column names become camelCase, such as `orderId` for `order_id`.
 */
export function query<Row extends object, Params extends object>(text: string): Query<Row, Params> {
  const { config, names } = named(text)
  const statement = prepared(config)
  return (db, params) => send(db, statement(...names.map((name) => params[name as keyof Params])))
}

/**
 * Like `query`, but PostgreSQL plans the statement for its values each time. A generic plan compares each row with each
 * of some hundred UTRs and takes 20 to 100 times as long.
 */
export function plannedQuery<Row extends object, Params extends object>(text: string): Query<Row, Params> {
  const { config, names } = named(text)
  return (db, params) => send(db, { text: config, values: names.map((name) => params[name as keyof Params]) })
}

function named(text: string) {
  const names: string[] = []
  const config = text.replace(/(?<!:):([a-z]\w*)/g, (_, name: string) => {
    if (!names.includes(name)) names.push(name)
    return `$${names.indexOf(name) + 1}`
  })
  return { config, names }
}

async function send<Row extends object>(db: Queryable, config: QueryConfig<unknown[]>): Promise<Row[]> {
  const { rows, fields } = await db.query<unknown[]>({ ...config, rowMode: 'array' })
  const names = fields.map(({ name }) => name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()))
  // Uses a loop instead of Object.fromEntries, which is slower, because a report reads a million rows.
  return rows.map((row) => {
    const named: Record<string, unknown> = {}
    for (let at = 0; at < names.length; at += 1) named[names[at] as string] = row[at]
    return named as Row
  })
}
