import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../../../src/db/pool.ts'
import { ACQUIRER_SECRETS, notificationRequest } from '../../support/acquirer.ts'
import { admitRoles, createCitusDatabase, query, startCitus } from '../../support/citus.ts'
import { databaseUrl } from '../../support/database-url.ts'
import { createHttpClient, tally } from '../../support/http-client.ts'
import { findCitus } from '../../support/installed-postgres.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { openPool } from '../../support/postgres-server.ts'
import { cpuSeconds, ROOT, runToEnd } from '../../support/processes.ts'
import {
  countRowsPatiently,
  createdOrderId,
  createRequest,
  forEach,
  getRequest,
  listRequest,
  sendPatiently,
  statusRequest,
  withFields,
} from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { newMerchant, type Tenant } from '../../support/tenants.ts'
import { SEALING_KEY } from '../../support/webhooks.ts'
import { progress } from '../../support/workspace.ts'
import { type CitusTrial, newTenants } from '../citus-trial.ts'
import { type Check, type Deployment, PASSWORD, startInstance } from '../deployment.ts'
import { coordinatorKilled, workerKilled, workerSilent } from '../lost-nodes.ts'

const DATABASE = 'spread'
const ORDERS = 500
const INSTANCES = 2
const ATTEMPTS = 6
const PAIRS = 100
const IMPORTED_ROWS = 20_000
const AT_ONCE = 32
const MERCHANTS = 20
const CREATES_AT_ONCE = 64
const CREATES_A_ROUND = 3_000
const COST_ROUNDS = 5

/** The tests that know of one server only are left out: they look at its locks and plans, or change its rows by themselves. */
const TESTS = [
  'test/books/reconcile.test.ts',
  'test/acquirer/enquiries.test.ts',
  'test/db/one-shard.test.ts',
  'test/payments/create-payment-intent.test.ts',
  'test/payments/order-guard.test.ts',
  'test/payments/order-requests.test.ts',
  'test/payments/cancel-payment.test.ts',
  'test/payments/duplicate-storm.test.ts',
  'test/settlements/fetch-settlement-list.test.ts',
  'test/settlements/import.test.ts',
  'test/webhooks/deliveries.test.ts',
  'test/webhooks/events.test.ts',
]

/** Undefined where it can be tried. */
export const noCitus = () => (findCitus() ? undefined : 'no PostgreSQL of Debian has Citus: build it into one')

/** The database is spread over two workers: everything works as on one server, and a lost node loses nothing. */
export async function citus(deployment: Deployment): Promise<Check[]> {
  const tests = await runTests()
  progress('citus: starting a coordinator and two workers')
  const { trial, checks } = await setUp(deployment)
  for (const part of [storm, payments, importAndList, pages, cost, workerKilled, workerSilent, coordinatorKilled]) {
    progress(`citus: ${part.name}`)
    checks.push(...(await part(trial)))
  }
  trial.client.close()
  await Promise.all(trial.instances.map((instance) => instance.stop()))
  await trial.db.end()
  trial.cluster.stop()
  return [tests, ...checks]
}

/** The same tests that run on one server, each file in a spread database of its own. */
async function runTests(): Promise<Check> {
  progress('citus: the tests on a cluster')
  const { code, stdout } = await runToEnd(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...TESTS], {
    cwd: ROOT,
    env: { ...process.env, TEST_CITUS: '1', NO_COLOR: '1' },
  })
  if (code !== 0) console.error(stdout)
  return {
    promise: `the tests of ${TESTS.length} files, and the hot path touches one shard by its plans`,
    found: /Tests\s+(.*)/.exec(stdout)?.[1] ?? `exit ${code}`,
    kept: code === 0,
  }
}

async function setUp(deployment: Deployment): Promise<{ trial: CitusTrial; checks: Check[] }> {
  const cluster = await startCitus(join(deployment.directory, 'citus'))
  const { adminUrls } = cluster
  const admin = databaseUrl(adminUrls[0] as string, DATABASE)
  await createCitusDatabase(adminUrls, DATABASE)
  await query(admin, readFileSync(join(ROOT, 'src/db/roles.sql'), 'utf8'))
  const roles = { upi_owner: PASSWORD, upi_service: PASSWORD }
  for (const [role, password] of Object.entries(roles)) await query(admin, `alter role ${role} password '${password}'`)
  await admitRoles(adminUrls, DATABASE, roles)
  const urlOf = (node: number, username: string) =>
    Object.assign(new URL(databaseUrl(adminUrls[node] as string, DATABASE)), { username, password: PASSWORD }).href
  const ownerUrl = urlOf(0, 'upi_owner')
  const ops = (...command: string[]) => runBuiltOps(deployment.programs.ops, { DATABASE_URL: ownerUrl }, ...command)
  await ops('migrate')
  const first = (await ops('database', 'spread')).spread as string[]
  const again = (await ops('database', 'spread')).spread as string[]
  const db = openPool(admin)
  const start = (node: number) =>
    startInstance(deployment, {
      DATABASE_URL: urlOf(node, 'upi_service'),
      ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(),
      SHUTDOWN_DRAIN_SECONDS: '0',
      RATE_LIMIT_PER_SECOND: '1000000',
      WEBHOOK_SEALING_KEY: SEALING_KEY.export().toString('base64'),
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    })
  const tenants = await newTenants(db, cluster)
  const instances = [await start(0), await start(1)] as [ServerProcess, ServerProcess]
  const client = createHttpClient({ maxSockets: CREATES_AT_ONCE })
  return {
    trial: { deployment, cluster, ownerUrl, db, instances, tenants, client },
    checks: [
      {
        promise: 'ops database spread takes every table, and repeated none',
        found: `${first.length} tables, then ${again.length}`,
        kept: first.length > 0 && again.length === 0,
      },
    ],
  }
}

async function storm({ instances, tenants, client, db }: CitusTrial): Promise<Check[]> {
  const creates = tenants.map(({ merchant }) => createRequest(merchant))
  const attempts = Array.from({ length: ORDERS * ATTEMPTS }, (_, i) => i)
  const answers = await forEach(attempts, AT_ONCE, (i) => {
    const order = Math.floor(i / ATTEMPTS)
    const create = creates[order % creates.length] as (typeof creates)[number]
    const { url } = instances[i % INSTANCES] as ServerProcess
    return sendPatiently(client, url, withFields(create, { order_id: `storm-${order}` }))
  })
  const won = answers.filter(({ status }) => status === 200).length
  const { rows } = await db.query<{ n: number }>(
    `select count(*)::int as n from payment_intents where merchant_order_id like 'storm-%'`,
  )
  return [
    {
      promise: `${answers.length} attempts at ${ORDERS} order_ids, over two nodes: exactly one of each wins`,
      found: `${tally(answers)}; ${rows[0]?.n} stored`,
      kept: won === ORDERS && rows[0]?.n === ORDERS && answers.every(({ status }) => status === 200 || status === 409),
    },
  ]
}

/** Two orders and one payment, told of both at the same time by way of two nodes, which know nothing of each other's locks. */
async function payments({ instances, tenants, client }: CitusTrial): Promise<Check[]> {
  const results = await forEach(
    Array.from({ length: PAIRS }, (_, i) => i),
    AT_ONCE / 4,
    async (i) => {
      const { merchant } = tenants[i % tenants.length] as Tenant
      const create = createRequest(merchant)
      const orders = await Promise.all(
        instances.map(async ({ url }) => createdOrderId(await sendPatiently(client, url, create)) as string),
      )
      const told = await Promise.all(
        orders.map((orderId, at) =>
          sendPatiently(
            client,
            (instances[at] as ServerProcess).url,
            notificationRequest(orderId, `7${String(i).padStart(11, '0')}`),
          ),
        ),
      )
      const states = await Promise.all(
        orders.map((order_id) => sendPatiently(client, instances[0].url, statusRequest(merchant, order_id))),
      )
      return { told, paid: states.filter(({ text }) => JSON.parse(text).txnStatus === 'SUCCESS').length }
    },
  )
  const told = results.flatMap((result) => result.told)
  return [
    {
      promise: `${PAIRS} payments, each told of two orders at once over two nodes: counted for one`,
      found: `${tally(told)}; ${results.filter(({ paid }) => paid === 1).length} counted once`,
      kept: results.every(({ paid }) => paid === 1),
    },
  ]
}

async function importAndList({ deployment, ownerUrl, instances, tenants }: CitusTrial): Promise<Check[]> {
  const file = join(deployment.directory, 'spread-settlements.csv')
  const lines = Array.from({ length: IMPORTED_ROWS }, (_, i) => {
    const { mid } = (tenants[i % tenants.length] as Tenant).merchant
    return `${mid},${i}.50,S${i},BRN${i},SUCCESS,${new Date(Date.UTC(2025, 0, 1) + i * 60_000).toISOString()}`
  })
  writeFileSync(file, `mid,amount,utr,bank_reference_number,status,initiation_date\n${lines.join('\n')}\n`)
  const ops = (...command: string[]) => runBuiltOps(deployment.programs.ops, { DATABASE_URL: ownerUrl }, ...command)
  const first = await ops('settlements', 'import', file)
  const again = await ops('settlements', 'import', file)
  const lists = await Promise.all(
    tenants.flatMap(({ merchant, partner }) =>
      instances.map(({ url }) =>
        countRowsPatiently(url, listRequest(partner, merchant.mid, '01-01-2025', '31-12-2025')),
      ),
    ),
  )
  return [
    {
      promise: `ops settlements import of ${IMPORTED_ROWS} rows of two merchants, and again; their lists over both nodes`,
      found: `${first.inserted} inserted, then ${again.unchanged} unchanged; lists of ${lists.join(', ')}`,
      kept:
        first.inserted === IMPORTED_ROWS &&
        again.unchanged === IMPORTED_ROWS &&
        lists.every((rows) => rows === IMPORTED_ROWS / tenants.length),
    },
  ]
}

async function pages({ instances, tenants, client }: CitusTrial): Promise<Check[]> {
  const numbers = Array.from({ length: 200 }, (_, i) => i)
  const answers = await forEach(numbers, AT_ONCE, async (i) => {
    const { merchant } = tenants[i % tenants.length] as Tenant
    const orderId = createdOrderId(await sendPatiently(client, instances[0].url, createRequest(merchant)))
    return client.send((instances[i % INSTANCES] as ServerProcess).url, getRequest(`/pay/${orderId}`))
  })
  return [
    {
      promise: `${answers.length} pay pages over both nodes`,
      found: tally(answers),
      kept: answers.every(({ status }) => status === 200),
    },
  ]
}

/** What the database spends on a create, beside one server: the servers' processor time, theirs together. */
async function cost({ deployment, cluster, db, client, instances }: CitusTrial): Promise<Check[]> {
  const one = await deployment.createDatabase('beside_citus')
  await runBuiltOps(deployment.programs.ops, { DATABASE_URL: one.url }, 'migrate')
  const limit = { RATE_LIMIT_PER_SECOND: '1000000', SHUTDOWN_DRAIN_SECONDS: '0' }
  const plain = await startInstance(deployment, { DATABASE_URL: one.url, ...limit })
  const sides = [
    { url: plain.url, merchants: await newMerchants(one.db), pids: [deployment.serverPid()], took: [] as number[] },
    {
      url: instances[0].url,
      merchants: await newMerchants(db),
      pids: cluster.nodes.map((node) => node.pid()),
      took: [] as number[],
    },
  ]
  const used = (pids: number[]) => pids.reduce((sum, pid) => sum + cpuSeconds(pid), 0)
  for (let round = 0; round <= COST_ROUNDS; round++) {
    for (const { url, merchants, pids, took } of sides) {
      const creates = merchants.map((merchant) => createRequest(merchant))
      const before = used(pids)
      await forEach(
        Array.from({ length: CREATES_A_ROUND }, (_, i) => i),
        CREATES_AT_ONCE,
        (i) => sendPatiently(client, url, creates[i % creates.length] as (typeof creates)[number]),
      )
      // The first round warms both up.
      if (round > 0) took.push(((used(pids) - before) * 1e6) / CREATES_A_ROUND)
    }
  }
  await plain.stop()
  await one.db.end()
  const [alone = 0, together = 0] = sides.map(
    ({ took }) => took.sort((a, b) => a - b)[Math.floor(took.length / 2)] as number,
  )
  return [
    {
      promise: `processor time of the database for a create, medians of ${COST_ROUNDS}: one server; a cluster`,
      found: `${alone.toFixed(0)} µs; ${together.toFixed(0)} µs, ${(together / alone).toFixed(1)} ×`,
      kept: true,
    },
  ]
}

const newMerchants = (db: Database) => Promise.all(Array.from({ length: MERCHANTS }, () => newMerchant(db)))
