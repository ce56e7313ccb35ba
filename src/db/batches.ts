import type { PoolClient } from 'pg'

/** Rows in memory at once. */
const FETCHED_ROWS = 1_000

/** Yields the rows of a query in batches; no batch is empty. A client runs one such query at a time. */
export async function* batchesOf<Row extends object>(
  client: PoolClient,
  query: string,
  values: unknown[],
): AsyncGenerator<Row[]> {
  await client.query(`declare found no scroll cursor for ${query}`, values)
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${FETCHED_ROWS} from found`)
    if (rows.length > 0) yield rows
    if (rows.length < FETCHED_ROWS) break
  }
  await client.query('close found')
}
