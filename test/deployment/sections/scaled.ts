import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startComposeHaproxy } from '../../support/haproxy.ts'
import { type Answer, createHttpClient, tally } from '../../support/http-client.ts'
import { startNameServer } from '../../support/name-server.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { freePorts } from '../../support/processes.ts'
import { createRequest, STATUS } from '../../support/requests.ts'
import { newTenant } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import { type Check, type Deployment, INSTANCE_LOG, startInstance } from '../deployment.ts'

const KILLS = 6
const CLIENTS = 8
const PAUSE_MS = 20
const BETWEEN_KILLS_MS = 1_000
/** All instances have the same port, as containers do. HAProxy connects to them from 127.0.0.1. */
const HOSTS = ['127.0.0.2', '127.0.0.3', '127.0.0.4'] as const
const BALANCER = '127.0.0.1'
const PROXY = '127.0.0.8'
/** Callers who say whom they ask for, by addresses of documentation (RFC 5737). Only the first is believed. */
const CALLERS = [
  { localAddress: PROXY, named: '203.0.113.8', counts: '203.0.113.8' },
  { localAddress: '127.0.0.9', named: '203.0.113.9', counts: '127.0.0.9' },
]

/** Instances behind the balancer of the compose file, found by DNS: one more is found, and those that are killed cost only what was under way in them. */
export async function scaled(deployment: Deployment): Promise<Check[]> {
  const { url, db } = await deployment.createDatabase('scaled')
  await runBuiltOps(deployment.programs.ops, { DATABASE_URL: url }, 'migrate')
  const { merchant } = await newTenant(db)
  const [port, opsPort] = (await freePorts(2)) as [number, number]
  const startOn = (host: string) => {
    const ports = { HOST: host, OPS_HOST: host, OPS_PORT: String(opsPort) }
    return startInstance(deployment, { DATABASE_URL: url, TRUST_PROXY: `${BALANCER},${PROXY}`, ...ports }, port)
  }
  const names = await startNameServer()
  const [first, second, third] = HOSTS
  const instances = [await startOn(first), await startOn(second)]
  names.setAddresses([first, second])
  const balancer = await startComposeHaproxy(deployment.directory, {
    port,
    opsPort,
    dnsPort: names.port,
    trustProxy: `${PROXY} 198.51.100.0/24`,
  })
  await balancer.untilServe(2)
  const added = await startOn(third)
  names.setAddresses([...HOSTS])
  await balancer.untilServe(3)
  names.setAddresses([first, second])
  await balancer.untilServe(2)
  await added.stop()

  const seen = await addressesSeen(deployment, balancer.url)
  const page = await fetch(`${balancer.opsUrl}/`)
  const metrics = await fetch(`${balancer.opsUrl}/metrics`)

  const answers: (Answer & { startedAt: number; orderId: string })[] = []
  const client = createHttpClient({ maxSockets: CLIENTS })
  let going = true
  const send = async (orderId: string) => {
    const startedAt = performance.now()
    const { path, method, headers, body } = createRequest(merchant, { order_id: orderId })
    const request = { path, method, body, headers: { ...headers, 'idempotency-key': orderId } }
    return { ...(await client.send(balancer.url, request)), startedAt, orderId }
  }
  const shop = async () => {
    while (going) {
      answers.push(await send(randomUUID()))
      await sleep(PAUSE_MS)
    }
  }
  const traffic = Promise.all(Array.from({ length: CLIENTS }, shop))
  const kills: { from: number; to: number }[] = []
  for (let kill = 0; kill < KILLS; kill++) {
    progress(`scaled: kill ${kill + 1} of ${KILLS}`)
    await sleep(BETWEEN_KILLS_MS)
    const turn = kill % instances.length
    const from = performance.now()
    await instances[turn]?.killHard()
    kills.push({ from, to: performance.now() })
    await balancer.untilServe(1)
    instances[turn] = await startOn(HOSTS[turn] as string)
    await balancer.untilServe(2)
  }
  going = false
  await traffic

  const lost = answers.filter(({ status }) => status !== 200)
  const wasUnderWay = ({ startedAt, tookMs }: (typeof lost)[number]) =>
    kills.some(({ from, to }) => startedAt <= to && startedAt + tookMs >= from)
  const repeated: Answer[] = []
  for (const { orderId } of lost) repeated.push(await send(orderId))
  client.close()
  await balancer.stop()
  names.stop()
  await Promise.all(instances.map((instance) => instance.stop()))
  const { rows } = await db.query<{ n: number }>('select count(*)::int as n from payment_intents')
  await db.end()
  return [
    {
      promise: 'an instance that is added is found by DNS, and one that is gone is left',
      found: '2, 3, 2',
      kept: true,
    },
    {
      promise: `${KILLS} instances killed: only requests that were under way in them fail`,
      found: `${answers.length} creates (${tally(answers)})`,
      kept: lost.every(wasUnderWay),
    },
    {
      promise: 'those succeed when they are repeated, and every intent is stored once',
      found: `${repeated.length} repeated (${tally(repeated) || 'none'}), ${rows[0]?.n} stored`,
      kept: repeated.every(({ status }) => status === 200) && rows[0]?.n === answers.length,
    },
    {
      promise: 'only a proxy of TRUST_PROXY is believed for whom it asks',
      found: CALLERS.map(({ localAddress }, index) => `${localAddress} counts as ${seen[index]}`).join(', '),
      kept: CALLERS.every(({ counts }, index) => seen[index] === counts),
    },
    {
      promise: 'the operator’s page is shown by any instance, metrics are not',
      found: `${page.status}, ${metrics.status}`,
      kept: page.status === 200 && metrics.status === 404,
    },
  ]
}

/** The addresses that the instances write down for the two callers, who both say that they ask for somebody else. */
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
    // Refused for want of a key, which the log tells with the address.
    await client.send(url, { method: 'POST', path: STATUS, headers: { 'x-forwarded-for': named, 'content-length': 0 } })
    client.close()
    await until('the caller stood in the log', () => addresses().length > index)
  }
  return addresses()
}
