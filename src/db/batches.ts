import type { PoolClient } from 'pg'

/** Rows of one batch, the only rows in memory. */
const FETCHED_ROWS = 1_000

/** Yields the rows of a query in batches, none of them empty. */
export async function* batchesOf<Row extends object>(
  client: PoolClient,
  query: string,
  values: unknown[],
): AsyncGenerator<Row[]> {
  cursors += 1
  const name = `found_${cursors}`
  await client.query(`declare ${name} no scroll cursor for ${query}`, values)
  for (;;) {
    const { rows } = await client.query<Row>(`fetch ${FETCHED_ROWS} from ${name}`)
    if (rows.length > 0) yield rows
    if (rows.length < FETCHED_ROWS) break
  }
  await client.query(`close ${name}`)
}

/** Numbers the cursors, since a transaction may read several at once. */
let cursors = 0
