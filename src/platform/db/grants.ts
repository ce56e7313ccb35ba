import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { connectAlone } from './migrate.ts'
import { hasState, INSUFFICIENT_PRIVILEGE } from './outage.ts'
import { splitStatements } from './statements.ts'

// grants.sql lies beside this file. In the bundle, dist/cli, it lies one folder up.
const FILE = ['./grants.sql', '../grants.sql']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url)) as URL

/**
 * Gives the service's role its rights in a migrated database, in one transaction, so that a running service never lacks
 * a right. Does nothing where the role is missing, as in a developer's database.
 */
export async function applyGrants(databaseUrl: string): Promise<void> {
  const client = await connectAlone(databaseUrl)
  try {
    const { rows } = await client.query<{ role: string | null }>(`select to_regrole('upi_service') as role`)
    if (rows[0]?.role == null) return
    await client.query('begin')
    // PostgreSQL refuses to change the rights of one table from two transactions at once.
    await client.query(`select pg_advisory_xact_lock(hashtext('upi_service grants'))`)
    for (const statement of splitStatements(await readFile(FILE, 'utf8'))) await client.query(statement)
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/** Whether PostgreSQL refused a statement because its role lacks the right to it. */
export const isForbiddenToRole = (error: unknown) => hasState(error, INSUFFICIENT_PRIVILEGE)
