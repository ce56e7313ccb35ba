import type pg from 'pg'

/** The oldest PostgreSQL that the tests run on, beside the newest. */
const OLDEST_SERVED = 15

/**
 * What a server reports: `server_version_num`, such as 150018, and `server_version`, such as
 * `15.18 (Debian 15.18-0+deb12u1)`.
 */
type ServerVersion = { number: number; text: string }

/** Throws an Error in words for the operator when the server of `client` is older than the oldest supported one. */
export async function refuseOldServer(client: pg.Client): Promise<void> {
  const { rows } = await client.query<ServerVersion>(
    `select current_setting('server_version_num')::int as number, current_setting('server_version') as text`,
  )
  const refusal = rows[0] && refusalOf(rows[0])
  if (refusal !== undefined) throw new Error(refusal)
}

/** Why that server's version is not supported; undefined when it is. */
export function refusalOf({ number, text }: ServerVersion): string | undefined {
  if (number >= OLDEST_SERVED * 10_000) return undefined
  return `this database is PostgreSQL ${text}, and the service needs ${OLDEST_SERVED} or newer`
}
