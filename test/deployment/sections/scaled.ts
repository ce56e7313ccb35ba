import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startHaproxy } from '../../support/haproxy.ts'
import { createHttpClient, type HttpResponse, tally } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { createRequest, STATUS, withFields } from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { addSettlements, longList, SHORT_LIST_ROWS, shortList } from '../../support/settlements.ts'
import { newTenant, type Tenant } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import { type Check, type Deployment, INSTANCE_LOG, startInstance } from '../deployment.ts'

const RESTARTS = 20
const DRAIN_SECONDS = '2'
const KILLS = 6
const BETWEEN_KILLS_MS = 1_000
/** Clients that create intents one after the other and request the short list after every fourth. */
const CLIENTS = 8
const CREATES_PER_LIST = 4
const PAUSE_MS = 20
/** Long enough to be streamed, and so to be in progress when an instance receives SIGTERM. */
const LONG_LIST_ROWS = 20_000
const LONG_LIST_PAUSE_MS = 400
const BALANCER = '127.0.0.1'
const PROXY = '127.0.0.8'
/**
 * Callers that send X-Forwarded-For with addresses for documentation (RFC 5737). The service trusts only the first
 * caller.
 */
const CALLERS = [
  { localAddress: PROXY, named: '203.0.113.8', counts: '203.0.113.8' },
  { localAddress: '127.0.0.9', named: '203.0.113.9', counts: '127.0.0.9' },
]

/**
 * Runs two instances behind HAProxy. Under load, it restarts both in turn, which must fail no request, and then kills
 * both in turn, which may fail only requests in progress in the killed instance.
 */
export async function scaled(deployment: Deployment): Promise<Check[]> {
  const { url, db } = await deployment.createDatabase('scaled')
  await runBuiltOps(deployment.programs.ops, { DATABASE_URL: url }, 'migrate')
  const tenant = await newTenant(db)
  await addSettlements(db, tenant.merchant.mid, LONG_LIST_ROWS)
  const trust = { TRUST_PROXY: `${BALANCER},${PROXY}`, SHUTDOWN_DRAIN_SECONDS: DRAIN_SECONDS }
  const startOn = (port?: number) => startInstance(deployment, { DATABASE_URL: url, ...trust }, port)
  const instances = [await startOn(), await startOn()]
  const ports = instances.map(({ port }) => port)
  const balancer = await startHaproxy(deployment.directory, {
    ports,
    opsPort: (instances[0] as ServerProcess).opsPort,
    trustProxy: `${PROXY} 198.51.100.0/24`,
  })
  await balancer.untilServe(2)
  const seen = await addressesSeen(deployment, balancer.url)
  const page = await fetch(`${balancer.opsUrl}/`)
  const metrics = await fetch(`${balancer.opsUrl}/metrics`)

  const traffic = startTraffic(balancer.url, tenant)
  const exitCodes = await restartInTurn()
  const restartedAt = performance.now()
  const kills = await killInTurn()
  const { creates, lists } = await traffic.end()

  const before = [...creates, ...lists].filter(({ startedAt, tookMs }) => startedAt + tookMs < restartedAt)
  const lost = creates.filter(({ status }) => status !== 200)
  const wasUnderWay = ({ startedAt, tookMs }: Sent) =>
    kills.some(({ from, to }) => startedAt <= to && startedAt + tookMs >= from)
  const repeated: HttpResponse[] = []
  for (const { orderId } of lost) repeated.push(await traffic.create(orderId))
  traffic.close()
  await balancer.stop()
  await Promise.all(instances.map((instance) => instance.stop()))
  const { rows } = await db.query<{ n: number }>('select count(*)::int as n from payment_intents')
  await db.end()
  const wrongLists = lists.filter(({ status, rows, expected }) => status === 200 && rows !== expected)
  return [
    {
      promise: `no request fails during ${RESTARTS} restarts under load, and each instance exits with 0`,
      found: `${before.length} requests (${tally(before)}), exits ${[...new Set(exitCodes)]}`,
      kept: before.every(({ status }) => status === 200) && exitCodes.every((code) => code === 0),
    },
    {
      promise: `killing ${KILLS} instances fails only requests in progress in them`,
      found: `${creates.length} creates (${tally(creates)}), ${lists.length} lists (${tally(lists)})`,
      kept: [...creates, ...lists].filter(({ status }) => status !== 200).every(wasUnderWay),
    },
    {
      promise: 'failed creates succeed when they are repeated, each intent is stored once, and no list lacks rows',
      found: `${repeated.length} repeated (${tally(repeated) || 'none'}), ${rows[0]?.n} stored, ${wrongLists.length} lists with missing rows`,
      kept: repeated.every(({ status }) => status === 200) && rows[0]?.n === creates.length && wrongLists.length === 0,
    },
    {
      promise: 'the service trusts X-Forwarded-For only from a proxy of TRUST_PROXY',
      found: CALLERS.map(({ localAddress }, index) => `${localAddress} is logged as ${seen[index]}`).join(', '),
      kept: CALLERS.every(({ counts }, index) => seen[index] === counts),
    },
    {
      promise: 'each instance serves the operator manual through HAProxy, but no metrics',
      found: `${page.status}, ${metrics.status}`,
      kept: page.status === 200 && metrics.status === 404,
    },
  ]

  async function restartInTurn(): Promise<(number | null)[]> {
    const exitCodes: (number | null)[] = []
    for (let restart = 0; restart < RESTARTS; restart++) {
      if (restart % 5 === 0) progress(`scaled: restart ${restart} of ${RESTARTS}`)
      const turn = restart % instances.length
      exitCodes.push(await (instances[turn] as ServerProcess).stop())
      instances[turn] = await startOn(ports[turn])
      await balancer.untilServe(2)
    }
    return exitCodes
  }

  /** Returns when each kill began and ended. */
  async function killInTurn(): Promise<{ from: number; to: number }[]> {
    const kills: { from: number; to: number }[] = []
    for (let kill = 0; kill < KILLS; kill++) {
      progress(`scaled: kill ${kill + 1} of ${KILLS}`)
      await sleep(BETWEEN_KILLS_MS)
      const turn = kill % instances.length
      const from = performance.now()
      await (instances[turn] as ServerProcess).killHard()
      kills.push({ from, to: performance.now() })
      await balancer.untilServe(1)
      instances[turn] = await startOn(ports[turn])
      await balancer.untilServe(2)
    }
    return kills
  }
}

type Sent = HttpResponse & { startedAt: number }

/**
 * Sends requests until `end`: merchants' servers create intents and request short lists, and a partner reads a long
 * list.
 */
function startTraffic(url: string, { merchant, partner }: Tenant) {
  const creates: (Sent & { orderId: string })[] = []
  const lists: (Sent & { rows: number; expected: number })[] = []
  const client = createHttpClient({ maxSockets: CLIENTS + 1 })
  let going = true
  const create = (orderId: string) =>
    client.send(url, withFields(createRequest(merchant), { order_id: orderId }, orderId))
  const list = async (request: ReturnType<typeof shortList>, expected: number) => {
    const startedAt = performance.now()
    const response = await client.send(url, request)
    const rows = response.status === 200 ? JSON.parse(response.text).data.length : 0
    lists.push({ ...response, text: '', startedAt, rows, expected })
  }
  const store = async () => {
    for (let i = 1; going; i++) {
      const [orderId, startedAt] = [randomUUID(), performance.now()]
      creates.push({ ...(await create(orderId)), startedAt, orderId })
      if (i % CREATES_PER_LIST === 0) await list(shortList(partner, merchant.mid), SHORT_LIST_ROWS)
      await sleep(PAUSE_MS)
    }
  }
  const accountant = async () => {
    while (going) {
      await list(longList(partner, merchant.mid), LONG_LIST_ROWS)
      await sleep(LONG_LIST_PAUSE_MS)
    }
  }
  const underWay = Promise.all([accountant(), ...Array.from({ length: CLIENTS }, store)])
  return {
    create,
    async end() {
      going = false
      await underWay
      return { creates, lists }
    },
    close: client.close,
  }
}

/**
 * Returns the client addresses in the instances' log for the two callers, which both send the address of another
 * client.
 */
async function addressesSeen({ directory }: Deployment, url: string): Promise<string[]> {
  const logFile = join(directory, INSTANCE_LOG)
  const begin = readFileSync(logFile, 'utf8').length
  const addresses = () =>
    [
      ...readFileSync(logFile, 'utf8')
        .slice(begin)
        .matchAll(/"address":"([^"]+)"/g),
    ].map(([, it]) => it ?? '')
  for (const [index, { localAddress, named }] of CALLERS.entries()) {
    const client = createHttpClient({ localAddress, keepAlive: false })
    // Sent without a key, because the service logs the address of a rejected request.
    await client.send(url, { method: 'POST', path: STATUS, headers: { 'x-forwarded-for': named, 'content-length': 0 } })
    client.close()
    await until("the log has the caller's address", () => addresses().length > index)
  }
  return addresses()
}
