import type { PoolClient } from 'pg'

/** Rows of a long answer that are in memory at once. */
const FETCHED_ROWS = 1_000

/** The rows of a query, however many there are, a batch at a time; none is empty. One such query at a time on a client. */
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
