import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../src/db/pool.ts'
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

/**
 * Where attackers and bystander send to: the service itself, HAProxy before it, or another service that may open only 4,096
 * files.
 */
export type Entrance = 'service' | 'balancer' | 'few files'

/** What every attack works with. */
export type Scene = {
  directory: string
  postgres: PostgresServer
  databaseUrl: string
  db: Database
  bystander: Tenant
  attacker: Tenant
  /** Open orders of the attacker's merchant. */
  orderIds: string[]
  /** The service behind `entrance`, and the address to send to; started and warmed up where it is not running. */
  open: (entrance: Entrance) => Promise<{ url: string; service: ServerProcess }>
}

const FEW_FILES = 4_096
/** More than fits between PostgreSQL and a client that reads little. */
const ATTACKERS_LIST_ROWS = 100_000
/** More QRs than the service remembers. */
const ATTACKERS_ORDERS = 1_200
/** The first requests of a new process are slow, and say nothing of an attack. */
const WARM_UP_MS = 3_000

/** A durable PostgreSQL with compose's limits, and the built service with its default limits. */
export async function setScene(): Promise<Scene> {
  const { directory, postgres } = await openWorkspace()
  const { url: databaseUrl, db } = await createDatabase(postgres, 'attacks')
  const bystander = await newTenant(db)
  await addSettlements(db, bystander.merchant.mid)
  const attacker = await newTenant(db)
  await addSettlements(db, attacker.merchant.mid, ATTACKERS_LIST_ROWS)
  // Not earlier: a busy machine may take longer than the 5 s of a statement to fill the lists.
  await limitAsCompose(postgres)
  const services = new Map<Entrance, ServerProcess>()
  let balancerUrl: string | undefined

  async function serviceOf(entrance: Entrance): Promise<ServerProcess> {
    const running = services.get(entrance)
    if (running && !running.hasEnded()) return running
    // The balancer knows it by its port.
    const environment = {
      ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(),
      TRUST_PROXY: '127.0.0.1',
      ...(running && { PORT: String(running.port) }),
    }
    const service = await startServerProcess(databaseUrl, environment, {
      built: BUILT_SERVER,
      logFile: '/dev/null',
      ...(entrance === 'few files' && { openFiles: FEW_FILES }),
    })
    services.set(entrance, service)
    await warmUp(service.url)
    return service
  }

  async function warmUp(url: string) {
    const creating = startBystander(url, bystander.merchant)
    await sleep(WARM_UP_MS)
    await creating.end()
  }

  const { url } = await serviceOf('service')
  return {
    directory,
    postgres,
    databaseUrl,
    db,
    bystander,
    attacker,
    orderIds: await makeOrders(url, attacker.merchant),
    async open(entrance) {
      if (entrance !== 'balancer') {
        const service = await serviceOf(entrance)
        return { url: service.url, service }
      }
      const service = await serviceOf('service')
      if (balancerUrl === undefined) {
        const balancer = await startHaproxy(directory, [service.port, service.port])
        await balancer.untilBothServe()
        balancerUrl = balancer.url
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
  if (settings.length === 0) throw new Error('docker-compose.yml has no settings of PostgreSQL any more')
  const admin = postgres.poolOf('postgres')
  for (const [, name, value] of settings) {
    // The PostgreSQL of npm has no zstd.
    await admin.query(`alter system set ${name} = '${value === 'zstd' ? 'on' : value}'`)
  }
  await admin.query('select pg_reload_conf()')
  await admin.end()
}

async function makeOrders(url: string, merchant: NewMerchant): Promise<string[]> {
  const client = createHttpClient()
  const names = Array.from({ length: ATTACKERS_ORDERS }, () => randomUUID())
  const answers = await forEach(names, 10, async (order_id) => {
    const request = createRequest(merchant, { order_id })
    const answer = await client.send(url, request)
    if (answer.status !== 429) return answer
    // A quick machine makes more than the key may in a second.
    await sleep(1_000)
    return client.send(url, request)
  })
  client.close()
  return answers.map((answer) => {
    const orderId = createdOrderId(answer)
    if (orderId === undefined) throw new Error(`no order before the attacks: ${JSON.stringify(answer)}`)
    return orderId
  })
}
