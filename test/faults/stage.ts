import type { Database } from '../../src/db/pool.ts'
import { ACQUIRER_SECRETS } from '../support/acquirer.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { BUILT_SERVER, type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { addSettlements } from '../support/settlements.ts'
import { newTenant, type Tenant } from '../support/tenants.ts'
import { createDatabase, type Workspace } from '../support/workspace.ts'

/** What every fault works with. */
export type Stage = Workspace

/**
 * What installations set for the service's role: it ends a transaction whose client is silent, and with it the lock of the order
 * that was being reported.
 */
const SILENT_TRANSACTIONS_END = `set idle_in_transaction_session_timeout = '10s'`

/** A migrated database with a tenant of its own, for one fault. */
export type Scene = { name: string; url: string; db: Database; tenant: Tenant }

export async function setScene(postgres: PostgresServer, database: string, longListRows?: number): Promise<Scene> {
  const { name, url, db } = await createDatabase(postgres, database)
  await db.query(`alter database ${name} ${SILENT_TRANSACTIONS_END}`)
  const tenant = await newTenant(db)
  await addSettlements(db, tenant.merchant.mid, longListRows)
  return { name, url, db, tenant }
}

/** The service as it is shipped. Nobody reads its log. */
export function startService(
  databaseUrl: string,
  environment: Record<string, string> = {},
  options: { preload?: string; openFiles?: number } = {},
): Promise<ServerProcess> {
  return startServerProcess(
    databaseUrl,
    { ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(), ...environment },
    { built: BUILT_SERVER, logFile: '/dev/null', ...options },
  )
}
