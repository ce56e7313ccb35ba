import type { Database } from '../../src/db/pool.ts'
import type { CitusCluster } from '../support/citus.ts'
import type { HttpClient } from '../support/http-client.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import type { ServerProcess } from '../support/server-process.ts'
import { addSettlements } from '../support/settlements.ts'
import { newMerchant, newPartner, type Tenant, unique } from '../support/tenants.ts'
import type { Deployment } from './deployment.ts'

export type CitusTrial = {
  deployment: Deployment
  cluster: CitusCluster
  ownerUrl: string
  /** A superuser's connections to the coordinator. */
  db: Database
  /** One is connected to the coordinator, the other to the first worker. */
  instances: [ServerProcess, ServerProcess]
  /** One on each worker. */
  tenants: [Tenant, Tenant]
  client: HttpClient
}

/** One on each worker. */
export async function newTenants(db: Database, { nodes }: CitusCluster): Promise<[Tenant, Tenant]> {
  return [await newTenantOn(db, nodes[1]), await newTenantOn(db, nodes[2])]
}

/** A merchant whose shard is on `node`, and its partner. */
async function newTenantOn(db: Database, node: PostgresServer | undefined): Promise<Tenant> {
  for (;;) {
    const mid = unique('M')
    const { rows } = await db.query<{ port: number }>(
      `select nodeport as port
         from citus_shards
        where shardid = get_shard_id_for_distribution_column('payment_intents', $1::text)`,
      [mid],
    )
    if (rows[0]?.port !== node?.port) continue
    const tenant = { merchant: await newMerchant(db, { mid }), partner: await newPartner(db, mid) }
    await addSettlements(db, mid)
    return tenant
  }
}
