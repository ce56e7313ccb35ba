import { existsSync } from 'node:fs'
import { connectAlone } from './migrate.ts'
import { hasState, INSUFFICIENT_PRIVILEGE } from './outage.ts'
import { runFile } from './statements.ts'

// grants.sql is in the same folder as this file. In the bundle, dist/cli, grants.sql is one folder up.
const FILE = ['./grants.sql', '../grants.sql']
  .map((path) => new URL(path, import.meta.url))
  .find((url) => existsSync(url)) as URL

/**
 * Grants the service's role its rights in a migrated database, in one transaction, so that a running service never
 * lacks a right. The function does nothing if the role does not exist, as in a developer's database.
 */
export async function applyGrants(databaseUrl: string): Promise<void> {
  const client = await connectAlone(databaseUrl)
  try {
    const { rows } = await client.query<{ role: string | null }>(`select to_regrole('upi_service') as role`)
    if (rows[0]?.role == null) return
    await client.query('begin')
    // The lock serializes concurrent runs, because PostgreSQL rejects concurrent changes to one table's rights.
    await client.query(`select pg_advisory_xact_lock(hashtext('upi_service grants'))`)
    await runFile(client, FILE)
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/** Whether PostgreSQL rejected a statement because the role lacks the necessary right. */
export const isForbiddenToRole = (error: unknown) => hasState(error, INSUFFICIENT_PRIVILEGE)
