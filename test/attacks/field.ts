import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../src/db/pool.ts'
import { ROOT } from '../bench/processes.ts'
import { findSystemProgram } from '../deployment/deployment.ts'
import { startHaproxy } from '../deployment/haproxy.ts'
import { forEach } from '../deployment/requests.ts'
import { createHttpClient } from '../faults/http-client.ts'
import { createdOrderId } from '../faults/journal.ts'
import { create, newName } from '../faults/operations.ts'
import type { PostgresServer } from '../faults/postgres-server.ts'
import { type ServiceProcess, startServiceProcess } from '../faults/service-process.ts'
import { openStage, setScene } from '../faults/stage.ts'
import { newTenant, type Tenant } from '../faults/tenant.ts'
import { startInnocents } from './innocents.ts'

/** Where the innocent clients knock. `few files` is a service of its own with `ulimit -n 4096`. */
export type Door = 'service' | 'balancer' | 'few files'

export type Field = {
  directory: string
  postgres: PostgresServer
  databaseUrl: string
  db: Database
  innocent: Tenant
  attacker: Tenant
  /** Open orders of the attacker's merchant. */
  orderIds: string[]
  /** The service behind `door`, and the address to send to; started and warmed up where it is not running. */
  enter: (door: Door) => Promise<{ url: string; service: ServiceProcess }>
}

export const FEW_FILES = 4_096
/** More than fits between PostgreSQL and a client that reads little. */
const ATTACKERS_LIST_ROWS = 100_000
/** More QRs than the service remembers. */
const ATTACKERS_ORDERS = 1_200
/** The first requests of a new process are slow, and say nothing of an attack. */
const WARM_UP_MS = 3_000

/** A durable PostgreSQL with compose's limits, and the built service with its default limits. */
export async function openField(): Promise<Field> {
  const { directory, postgres } = await openStage()
  const { database, db, tenant: innocent } = await setScene(postgres, 'attacks')
  const databaseUrl = postgres.urlOf(database)
  const attacker = await newTenant(db, 'ATTACKER', ATTACKERS_LIST_ROWS)
  // Not earlier: a busy machine may take longer than the 5 s of a statement to fill the lists.
  await limitAsCompose(postgres)
  const services = new Map<Door, ServiceProcess>()
  let balancerUrl: string | undefined

  async function serviceOf(door: Door): Promise<ServiceProcess> {
    const running = services.get(door)
    if (running && !running.hasEnded()) return running
    const port = running && new URL(running.url).port
    const service = await startServiceProcess(databaseUrl, {
      // The balancer knows it by its port.
      env: { TRUST_PROXY: '127.0.0.1', ...(port !== undefined && { PORT: port }) },
      ...(door === 'few files' && { openFiles: FEW_FILES }),
    })
    services.set(door, service)
    await warmUp(service.url)
    return service
  }

  async function warmUp(url: string) {
    const innocents = startInnocents(url, innocent)
    await new Promise((resolve) => setTimeout(resolve, WARM_UP_MS))
    await innocents.end()
  }

  const { url } = await serviceOf('service')
  return {
    directory,
    postgres,
    databaseUrl,
    db,
    innocent,
    attacker,
    orderIds: await makeOrders(url, attacker),
    async enter(door) {
      if (door !== 'balancer') {
        const service = await serviceOf(door)
        return { url: service.url, service }
      }
      const service = await serviceOf('service')
      if (balancerUrl === undefined) {
        const port = Number(new URL(service.url).port)
        const balancer = await startHaproxy(directory, [port, port])
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
  for (const [, name, value] of settings) await admin.query(`alter system set ${name} = '${value}'`)
  await admin.query('select pg_reload_conf()')
  await admin.end()
}

async function makeOrders(url: string, tenant: Tenant): Promise<string[]> {
  const client = createHttpClient()
  const answers = await forEach(Array.from({ length: ATTACKERS_ORDERS }, newName), 10, (orderId) =>
    client.send(url, create(tenant, { orderId, idempotencyKey: undefined })),
  )
  client.close()
  return answers.map((answer) => {
    const orderId = createdOrderId(answer)
    if (orderId === undefined) throw new Error(`no order before the attacks: ${JSON.stringify(answer)}`)
    return orderId
  })
}
