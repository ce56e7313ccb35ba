import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/platform/db/pool.ts'
import { ACQUIRER_SECRETS, notificationRequest } from '../../support/acquirer.ts'
import { admitRoles, type CitusCluster, createCitusDatabase, query, startCitus } from '../../support/citus.ts'
import { databaseUrl } from '../../support/database-url.ts'
import { groupBy } from '../../support/group-by.ts'
import { createHttpClient, type HttpClient, tally } from '../../support/http-client.ts'
import { findCitus } from '../../support/installed-postgres.ts'
import { formError, isUnsure, type Journal } from '../../support/journal.ts'
import { type Load, startLoad } from '../../support/load.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { openPool, type PostgresServer } from '../../support/postgres-server.ts'
import { ROOT, runToEnd } from '../../support/processes.ts'
import { type Reconciled, reconcile } from '../../support/reconcile.ts'
import {
  createdOrderId,
  createRequest,
  forEach,
  sendWithRetries,
  statusRequest,
  withFields,
} from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { addSettlements } from '../../support/settlements.ts'
import { newMerchant, newPartner, type Tenant, unique } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'
import { ENCRYPTION_KEYS, newWebhook } from '../../support/webhooks.ts'
import { progress } from '../../support/workspace.ts'
import { type Check, type Deployment, PASSWORD, startInstance } from '../deployment.ts'

type CitusTrial = {
  deployment: Deployment
  cluster: CitusCluster
  ownerUrl: string
  /** Connects to the coordinator as superuser. */
  db: Database
  /** The first instance connects to the coordinator, the second to the first worker. */
  instances: [ServerProcess, ServerProcess]
  /** The merchant of the first tenant is on the first worker, that of the second on the second. */
  tenants: [Tenant, Tenant]
  client: HttpClient
}

const DATABASE = 'spread'
const ORDERS = 500
const INSTANCES = 2
const ATTEMPTS = 6
const PAIRS = 100
const CONCURRENCY = 32
const BEFORE_MS = 3_000
const AWAY_MS = 6_000
const AFTER_MS = 4_000
const BACK_WITHIN_MS = 2_000
const NOTIFIED_WITHIN_MS = 30_000
/** The value that the operator's guide recommends. */
const RECOVERY = 'citus.recover_2pc_interval=5s'
const POLL_MS = 100

/**
 * Only tests that also work on a cluster: the others inspect the locks and plans of a single server or change its rows
 * directly.
 */
const TESTS = [
  'test/reconciliation/reconcile.test.ts',
  'test/acquirer/status-checks.test.ts',
  'test/acquirer/payment-notification.test.ts',
  'test/db/one-shard.test.ts',
  'test/payments/create-payment-intent.test.ts',
  'test/payments/order-guard.test.ts',
  'test/payments/order-requests.test.ts',
  'test/payments/cancel-payment.test.ts',
  'test/payments/fetch-order-list.test.ts',
  'test/payments/order-list-after-outage.slow.test.ts',
  'test/refunds/fetch-refund-list.test.ts',
  'test/scheduler/idle.test.ts',
  'test/settlements/fetch-settlement-list.test.ts',
  'test/settlements/import.test.ts',
  'test/tenants/last-used.test.ts',
  'test/webhooks/deliveries.test.ts',
  'test/webhooks/events.test.ts',
]

/** The reason why this section cannot run on this machine, or undefined if it can. */
export const noCitus = () =>
  findCitus() ? undefined : 'no PostgreSQL of Debian has Citus. Build Citus into one of them.'

/**
 * Distributes the database over two workers: all functions work as on one server, and killing a worker loses no data.
 */
export async function citus(deployment: Deployment): Promise<Check[]> {
  const tests = await runTests()
  progress('citus: starting a coordinator and two workers')
  const { trial, checks } = await setUp(deployment)
  for (const part of [storm, payments, workerKilled]) {
    progress(`citus: ${part.name}`)
    checks.push(...(await part(trial)))
  }
  trial.client.close()
  await Promise.all(trial.instances.map((instance) => instance.stop()))
  await trial.db.end()
  trial.cluster.stop()
  return [tests, ...checks]
}

/** Runs tests that also run on one server, each file in a distributed database of its own. */
async function runTests(): Promise<Check> {
  progress('citus: the tests on a cluster')
  const { code, stdout } = await runToEnd(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...TESTS], {
    cwd: ROOT,
    env: { ...process.env, TEST_CITUS: '1', NO_COLOR: '1' },
  })
  if (code !== 0) console.error(stdout)
  return {
    promise: `all tests of ${TESTS.length} files pass, expiry included, and the plan of a statement that names its merchant touches one shard`,
    found: /Tests\s+(.*)/.exec(stdout)?.[1] ?? `exit ${code}`,
    kept: code === 0,
  }
}

async function setUp(deployment: Deployment): Promise<{ trial: CitusTrial; checks: Check[] }> {
  const cluster = await startCitus(join(deployment.directory, 'citus'), [RECOVERY])
  const { adminUrls } = cluster
  const admin = databaseUrl(adminUrls[0] as string, DATABASE)
  await createCitusDatabase(adminUrls, DATABASE)
  await query(admin, readFileSync(join(ROOT, 'src/operator/deploy/roles.sql'), 'utf8'))
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
      WEBHOOK_SEALING_KEY: `${ENCRYPTION_KEYS[0]?.export().toString('base64')}`,
      WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
    })
  const tenants = await newTenants(db, cluster)
  const instances = [await start(0), await start(1)] as [ServerProcess, ServerProcess]
  const client = createHttpClient({ maxSockets: 2 * CONCURRENCY })
  return {
    trial: { deployment, cluster, ownerUrl, db, instances, tenants, client },
    checks: [
      {
        promise: 'ops database spread distributes all tables, and none when it is repeated',
        found: `${first.length} tables, then ${again.length}`,
        kept: first.length > 0 && again.length === 0,
      },
    ],
  }
}

async function storm({ instances, tenants, client, db }: CitusTrial): Promise<Check[]> {
  const creates = tenants.map(({ merchant }) => createRequest(merchant))
  const attempts = Array.from({ length: ORDERS * ATTEMPTS }, (_, i) => i)
  const responses = await forEach(attempts, CONCURRENCY, (i) => {
    const order = Math.floor(i / ATTEMPTS)
    const create = creates[order % creates.length] as (typeof creates)[number]
    const { url } = instances[i % INSTANCES] as ServerProcess
    return sendWithRetries(client, url, withFields(create, { order_id: `storm-${order}` }))
  })
  const won = responses.filter(({ status }) => status === 200).length
  const { rows } = await db.query<{ n: number }>(
    `select count(*)::int as n from payment_intents where merchant_order_id like 'storm-%'`,
  )
  return [
    {
      promise: `${responses.length} concurrent creates with ${ORDERS} order_ids over two nodes create one intent for each order_id`,
      found: `${tally(responses)}; ${rows[0]?.n} stored`,
      kept:
        won === ORDERS && rows[0]?.n === ORDERS && responses.every(({ status }) => status === 200 || status === 409),
    },
  ]
}

/** Reports one payment concurrently for two orders over two nodes, which do not see each other's locks. */
async function payments({ instances, tenants, client }: CitusTrial): Promise<Check[]> {
  const results = await forEach(
    Array.from({ length: PAIRS }, (_, i) => i),
    CONCURRENCY / 4,
    async (i) => {
      const { merchant } = tenants[i % tenants.length] as Tenant
      const create = createRequest(merchant)
      const orders = await Promise.all(
        instances.map(async ({ url }) => createdOrderId(await sendWithRetries(client, url, create)) as string),
      )
      const notified = await Promise.all(
        orders.map((orderId, at) =>
          sendWithRetries(
            client,
            (instances[at] as ServerProcess).url,
            notificationRequest(orderId, `7${String(i).padStart(11, '0')}`),
          ),
        ),
      )
      const states = await Promise.all(
        orders.map((order_id) => sendWithRetries(client, instances[0].url, statusRequest(merchant, order_id))),
      )
      return { notified, paid: states.filter(({ text }) => JSON.parse(text).txnStatus === 'SUCCESS').length }
    },
  )
  const notified = results.flatMap((result) => result.notified)
  return [
    {
      promise: `${PAIRS} payments, each reported for two orders concurrently over two nodes, each pay one order`,
      found: `${tally(notified)}; ${results.filter(({ paid }) => paid === 1).length} paid one order`,
      kept: results.every(({ paid }) => paid === 1),
    },
  ]
}

/** Kills the second worker, because an instance connects through the first one. */
async function workerKilled(trial: CitusTrial): Promise<Check[]> {
  const { receiver, tenants } = await newListeners(trial.db, trial.cluster)
  const url = () => (trial.instances[Math.floor(Math.random() * INSTANCES)] as ServerProcess).url
  const loads = tenants.map((tenant) => startLoad(url, tenant, { without: 'long list' }))
  await sleep(BEFORE_MS)
  const worker = trial.cluster.nodes[2] as PostgresServer
  const killedAt = performance.now()
  worker.killHard()
  await sleep(AWAY_MS)
  const startedAt = performance.now()
  await worker.restart()
  const backAt = performance.now()
  await sleep(AFTER_MS)
  await Promise.all(loads.map((load) => load.end()))

  const [here, there] = loads.map(({ journal }) => journal) as [Journal, Journal]
  const all = [...here, ...there]
  const rejectedTo = (journal: Journal) => {
    const meanwhile = journal.filter(({ sentAt }) => sentAt > killedAt && sentAt < startedAt)
    return groupBy(meanwhile.filter(isUnsure), ({ kind }) => kind).map((group) => `${group.length} × ${group[0]?.kind}`)
  }
  const after = all.filter(({ sentAt }) => sentAt > backAt + BACK_WITHIN_MS)
  const rejectedAfter = after.filter(isUnsure).length
  const faults = all.flatMap((entry) => formError(entry) ?? [])
  const responses = all.flatMap(({ response }) => response ?? [])
  await untilRecovered(trial.db)
  const sums = await reconcileAll(trial, tenants, loads)
  const paid = new Set(all.flatMap(({ paid }) => paid?.orderId ?? []))
  const webhooks = await countWebhooks(receiver, paid)
  receiver.close()
  return [
    {
      promise: 'while a worker is down, its merchants, and some requests of other merchants, get 503 with Retry-After',
      found: `${tally(responses)}; meanwhile 503 for ${rejectedTo(there).join(', ')}; of other merchants for ${rejectedTo(here).join(', ')}${faults[0] ?? ''}`,
      kept:
        rejectedTo(there).length > 0 &&
        faults.length === 0 &&
        responses.every(({ status }) => status === 200 || status === 503),
    },
    {
      promise: `all requests succeed ${BACK_WITHIN_MS / 1_000} s after the worker accepts connections again`,
      found: `${rejectedAfter} of ${after.length} failed`,
      kept: after.length > 0 && rejectedAfter === 0,
    },
    {
      promise:
        'no acknowledged request is lost or stored twice, all unsure requests are resolved, and all payments are reported by webhook',
      found: `${sums.lost} lost, ${sums.doubled} stored twice, ${sums.resolved} of ${sums.unsure} resolved; ${webhooks.orders} of ${paid.size} reported by webhook`,
      kept:
        sums.lost + sums.doubled + sums.orphaned === 0 &&
        sums.resolved === sums.unsure &&
        webhooks.orders === paid.size,
    },
  ]
}

/**
 * Waits for Citus to commit or roll back the transactions that the killed worker had prepared. Until then their rows
 * are invisible but locked, and clients repeat their requests.
 */
function untilRecovered(db: Database): Promise<void> {
  const isRecovered = async () => {
    const { rows } = await db.query(
      `select from run_command_on_all_nodes('select count(*) from pg_prepared_xacts') where not success or result <> '0'`,
    )
    return rows.length === 0
  }
  return until('Citus ends all prepared transactions', isRecovered)
}

async function reconcileAll({ instances, db }: CitusTrial, tenants: Tenant[], loads: Load[]): Promise<Reconciled> {
  const sums: Reconciled = { lost: 0, doubled: 0, orphaned: 0, unsure: 0, resolved: 0 }
  for (const [at, { journal, client }] of loads.entries()) {
    const tenant = tenants[at] as Tenant
    const found = await reconcile({ journal, tenant, url: instances[0].url, client, db })
    for (const key of Object.keys(sums) as (keyof Reconciled)[]) sums[key] += found[key]
    client.close()
  }
  return sums
}

/** Creates a merchant on each worker whose webhooks are sent to `receiver`. */
async function newListeners(db: Database, cluster: CitusCluster) {
  const receiver = await startReceiver()
  const tenants = await newTenants(db, cluster)
  for (const { merchant } of tenants) await newWebhook(db, { mid: merchant.mid, url: receiver.url }, new Date())
  return { receiver, tenants }
}

/**
 * Counts the orders of `of` that webhooks report, and the webhooks, once all are reported or the time limit is
 * reached.
 */
async function countWebhooks(receiver: Receiver, of: ReadonlySet<string>): Promise<{ orders: number; sent: number }> {
  const notified = () =>
    receiver
      .to('/')
      .map(({ body }) => JSON.parse(body).data.orderId as string)
      .filter((orderId) => of.has(orderId))
  const end = performance.now() + NOTIFIED_WITHIN_MS
  while (new Set(notified()).size < of.size && performance.now() < end) await sleep(POLL_MS)
  return { orders: new Set(notified()).size, sent: notified().length }
}

/** Creates one tenant on each worker. */
async function newTenants(db: Database, { nodes }: CitusCluster): Promise<[Tenant, Tenant]> {
  return [await newTenantOn(db, nodes[1]), await newTenantOn(db, nodes[2])]
}

/** Creates a merchant whose shard is on `node`, and its partner. */
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
