import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { ACQUIRER_SECRETS } from '../support/acquirer.ts'
import { startHaproxy } from '../support/haproxy.ts'
import { createHttpClient } from '../support/http-client.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { findSystemProgram, ROOT } from '../support/processes.ts'
import { createdOrderId, createRequest, forEach } from '../support/requests.ts'
import { BUILT_SERVER, type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { addSettlements } from '../support/settlements.ts'
import { type NewMerchant, newTenant, type Tenant } from '../support/tenants.ts'
import { createDatabase, openWorkspace } from '../support/workspace.ts'
import { startBystander } from './bystander.ts'

/** Entrance for attackers and bystander: the service itself, or HAProxy with the shipped configuration. */
export type Entrance = 'service' | 'balancer'

/** The resources of every attack. */
export type Scene = {
  bystander: Tenant
  attacker: Tenant
  /** Open orders of the attacker's merchant. */
  orderIds: string[]
  /** Returns the URL for `entrance` and the service behind it, which is started and warmed up if it is not running. */
  open: (entrance: Entrance) => Promise<{ url: string; service: ServerProcess }>
}

/** More rows than the buffers between PostgreSQL and a slow client can store. */
const ATTACKERS_LIST_ROWS = 100_000
/** More QRs than the service caches. */
const ATTACKERS_ORDERS = 1_200
/** The first requests of a new process are slow and would distort the results. */
const WARM_UP_MS = 3_000

/**
 * Starts a durable PostgreSQL with the settings of docker-compose.yml, and the built service with its default limits.
 */
export async function setScene(): Promise<Scene> {
  const { directory, postgres } = await openWorkspace()
  const { url: databaseUrl, db } = await createDatabase(postgres, 'attacks')
  const bystander = await newTenant(db)
  await addSettlements(db, bystander.merchant.mid)
  const attacker = await newTenant(db)
  await addSettlements(db, attacker.merchant.mid, ATTACKERS_LIST_ROWS)
  // Applied after filling the lists, which may exceed the statement limit of 5 s on a busy machine.
  await limitAsCompose(postgres)
  let service: ServerProcess | undefined
  let balancerUrl: string | undefined

  async function startService(): Promise<ServerProcess> {
    if (service && !service.hasEnded()) return service
    const environment = {
      ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(),
      TRUST_PROXY: '127.0.0.1',
      // HAProxy's configuration contains the port.
      ...(service && { PORT: String(service.port) }),
    }
    service = await startServerProcess(databaseUrl, environment, { built: BUILT_SERVER, logFile: '/dev/null' })
    await warmUp(service.url)
    return service
  }

  async function warmUp(url: string) {
    const creating = startBystander(url, bystander.merchant)
    await sleep(WARM_UP_MS)
    await creating.end()
  }

  const { url } = await startService()
  return {
    bystander,
    attacker,
    orderIds: await makeOrders(url, attacker.merchant),
    async open(entrance) {
      const service = await startService()
      if (entrance === 'service') return { url: service.url, service }
      if (balancerUrl === undefined) {
        balancerUrl = (await startHaproxy(directory, { ports: [service.port] })).url
        await warmUp(balancerUrl)
      }
      return { url: balancerUrl, service }
    },
  }
}

export const hasBalancer = () => findSystemProgram('haproxy') !== undefined

async function limitAsCompose(postgres: PostgresServer): Promise<void> {
  const compose = readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')
  const settings = [...compose.matchAll(/^ +- -c(\w+)=(\w+)$/gm)]
  if (settings.length === 0) throw new Error('docker-compose.yml no longer contains PostgreSQL settings')
  const admin = postgres.poolOf('postgres')
  for (const [, name, value] of settings) {
    // The embedded PostgreSQL has no zstd.
    await admin.query(`alter system set ${name} = '${value === 'zstd' ? 'on' : value}'`)
  }
  await admin.query('select pg_reload_conf()')
  await admin.end()
}

async function makeOrders(url: string, merchant: NewMerchant): Promise<string[]> {
  const client = createHttpClient()
  const names = Array.from({ length: ATTACKERS_ORDERS }, () => randomUUID())
  const responses = await forEach(names, 10, async (order_id) => {
    const request = createRequest(merchant, { order_id })
    const response = await client.send(url, request)
    if (response.status !== 429) return response
    // A fast machine exceeds the key's rate limit per second.
    await sleep(1_000)
    return client.send(url, request)
  })
  client.close()
  return responses.map((response) => {
    const orderId = createdOrderId(response)
    if (orderId === undefined) throw new Error(`no order before the attacks: ${JSON.stringify(response)}`)
    return orderId
  })
}
