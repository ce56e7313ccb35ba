import pg, { type PoolClient, type QueryConfig } from 'pg'

/** Rows of one batch, the only rows in memory. */
const FETCHED_ROWS = 1_000

/**
 * Yields the rows of a query in batches, none of them empty. The cursor is a portal of the protocol, because `declare` would plan a
 * prepared statement again each time.
 */
export async function* batchesOf<Row extends object>(
  client: PoolClient,
  query: QueryConfig<unknown[]>,
): AsyncGenerator<Row[]> {
  cursors += 1
  const portal = `found_${cursors}`
  let rows = await firstRows<Row>(client, { ...query, portal })
  while (rows.length > 0) {
    yield rows
    if (rows.length < FETCHED_ROWS) break
    ;({ rows } = await client.query<Row>(`fetch ${FETCHED_ROWS} from ${portal}`))
  }
  await client.query(`close ${portal}`)
}

/** Numbers the cursors, since a transaction may read several at once. */
let cursors = 0

type PortalQuery = QueryConfig<unknown[]> & { portal: string }

const firstRows = <Row extends object>(client: PoolClient, query: PortalQuery) =>
  new Promise<Row[]>((resolve, reject) => {
    client.query(new FirstRows<Row>(query, (error, result) => (error ? reject(error) : resolve(result.rows))))
  })

type Connection = { execute: (of: { portal: string; rows: number }) => void; sync: () => void }

/** pg's own option `rows` reads all rows, FETCHED_ROWS at once. This query ends after the first, and leaves its portal open. */
class FirstRows<Row extends object> extends pg.Query<Row> {
  declare portal: string

  _getRows(connection: Connection): void {
    connection.execute({ portal: this.portal, rows: FETCHED_ROWS })
    connection.sync()
  }

  handlePortalSuspended(): void {}
}
