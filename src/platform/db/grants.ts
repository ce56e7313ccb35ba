import { existsSync } from 'node:fs'
import { connectAlone } from './migrate.ts'
import { hasState, INSUFFICIENT_PRIVILEGE } from './outage.ts'
import { runFile } from './statements.ts'

/** The files of each role's rights. */
const FILES = { upi_service: 'grants.sql', upi_console: 'console-grants.sql' }

/** Returns a file in the folder of this file. In the bundle, dist/cli, the file is one folder up. */
const find = (file: string) =>
  [`./${file}`, `../${file}`].map((path) => new URL(path, import.meta.url)).find((url) => existsSync(url)) as URL

/**
 * Grants the roles of the service and of the console their rights in a migrated database, in one transaction, so that a
 * running process never lacks a right. The function skips a role that does not exist, as in a developer's database.
 */
export async function applyGrants(databaseUrl: string): Promise<void> {
  const client = await connectAlone(databaseUrl)
  try {
    await client.query('begin')
    // The lock serializes concurrent runs, because PostgreSQL rejects concurrent changes to one table's rights.
    await client.query(`select pg_advisory_xact_lock(hashtext('upi_service grants'))`)
    for (const [role, file] of Object.entries(FILES)) {
      const { rows } = await client.query<{ exists: boolean }>('select to_regrole($1) is not null as exists', [role])
      if (rows[0]?.exists) await runFile(client, find(file))
    }
    await client.query('commit')
  } finally {
    await client.end()
  }
}

/** Whether PostgreSQL rejected a statement because the role lacks the necessary right. */
export const isForbiddenToRole = (error: unknown) => hasState(error, INSUFFICIENT_PRIVILEGE)
