import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../src/platform/db/pool.ts'
import { ACQUIRER_SECRETS } from '../support/acquirer.ts'
import type { Load } from '../support/load.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { ROOT } from '../support/processes.ts'
import { reconcile } from '../support/reconcile.ts'
import { BUILT_SERVER, type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { addSettlements } from '../support/settlements.ts'
import { newTenant, type Tenant } from '../support/tenants.ts'
import { createDatabase, type Workspace } from '../support/workspace.ts'
import { firstSuccessAfter, judge } from './verdict.ts'

/** The resources of every fault. */
export type Stage = Workspace

/**
 * The settings of the service's role in an installation, as `set … = …`. With them PostgreSQL ends abandoned
 * transactions; otherwise a report lost in a silent network would leave its order locked.
 */
const SETTINGS_OF_ROLE = [
  ...readFileSync(join(ROOT, 'src/operator/deploy/roles.sql'), 'utf8').matchAll(
    /^ *alter role upi_service (set \S+ = \S+);$/gm,
  ),
].map(([, setting]) => setting)

/** A migrated database with its own tenant, for one fault. */
export type Scene = { name: string; url: string; db: Database; tenant: Tenant }

export async function setScene(postgres: PostgresServer, database: string, longListRows?: number): Promise<Scene> {
  const { name, url, db } = await createDatabase(postgres, database)
  const tenant = await newTenant(db)
  await addSettlements(db, tenant.merchant.mid, longListRows)
  if (SETTINGS_OF_ROLE.length === 0) throw new Error("roles.sql no longer contains settings of the service's role")
  for (const setting of SETTINGS_OF_ROLE) await db.query(`alter database ${name} ${setting}`)
  return { name, url, db, tenant }
}

/** Starts the service as shipped, without a log. */
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

/**
 * Ends the load and the service once every request has a response, and judges the responses. `returns` are the times
 * at which the failed component was available again.
 */
export async function conclude(
  fault: string,
  { db, tenant }: Scene,
  { service, load, returns = [] }: { service: ServerProcess; load: Load; returns?: number[] },
) {
  await load.end()
  const { journal } = load
  const reconciled = await reconcile({ ...load, tenant, db, url: service.url })
  const firstSuccessMs = returns.map((moment) => firstSuccessAfter(journal, moment))
  const finding = judge(fault, journal, reconciled, { firstSuccessMs })
  if (service.hasEnded()) finding.broken.push('the service keeps running')
  load.client.close()
  await service.stop()
  await db.end()
  return finding
}
