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

/** What every fault works with. */
export type Stage = Workspace

/**
 * What the service's role has in an installation, as `set … = …`. PostgreSQL then ends what the service has given up: of plain
 * settings, a report that a silent network swallows would keep its order's lock.
 */
const SETTINGS_OF_ROLE = [
  ...readFileSync(join(ROOT, 'src/operator/deploy/roles.sql'), 'utf8').matchAll(
    /^ *alter role upi_service (set \S+ = \S+);$/gm,
  ),
].map(([, setting]) => setting)

/** A migrated database with a tenant of its own, for one fault. */
export type Scene = { name: string; url: string; db: Database; tenant: Tenant }

export async function setScene(postgres: PostgresServer, database: string, longListRows?: number): Promise<Scene> {
  const { name, url, db } = await createDatabase(postgres, database)
  const tenant = await newTenant(db)
  await addSettlements(db, tenant.merchant.mid, longListRows)
  if (SETTINGS_OF_ROLE.length === 0) throw new Error('roles.sql has no settings of the role of the service any more')
  for (const setting of SETTINGS_OF_ROLE) await db.query(`alter database ${name} ${setting}`)
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

/**
 * Ends the load and the service once it has answered for every request, and judges what it answered. `returns` are the moments at
 * which what was away came back.
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
  if (service.hasEnded()) finding.broken.push('the service lives on')
  load.client.close()
  await service.stop()
  await db.end()
  return finding
}
