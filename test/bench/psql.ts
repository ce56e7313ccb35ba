import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { to as copyTo } from 'pg-copy-streams'
import { asRole } from '../support/database-url.ts'
import { findSystemProgram, run } from '../support/processes.ts'
import type { WorkspaceDatabase } from '../support/workspace.ts'
import { connectionEnvironment } from './bench.ts'

const psql = findSystemProgram('psql')

/** The client that runs COPY. */
export const COPY_CLIENT = psql ? 'psql' : 'a bare client'

/**
 * Fetches all rows of `query` by `copy … to stdout` and discards them. Without psql, a bare client of the library `pg`
 * fetches them.
 */
export async function copyOut({ url, db }: WorkspaceDatabase, query: string): Promise<void> {
  const statement = `copy (${query}) to stdout`
  if (psql) {
    await run(psql, ['-X', '-q', '-c', statement], {
      env: connectionEnvironment(asRole(url, 'upi_owner')),
      discardOutput: true,
    })
    return
  }
  const client = await db.connect()
  const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
  await pipeline(client.query(copyTo(statement)), nowhere).finally(() => client.release())
}
