import { createSecretKey, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/db/pool.ts'
import { ACQUIRER_SECRETS, notificationRequest } from '../../support/acquirer.ts'
import { createHttpClient } from '../../support/http-client.ts'
import { cpuSeconds } from '../../support/processes.ts'
import { createRequest, forEach } from '../../support/requests.ts'
import { newMerchant } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { newWebhook } from '../../support/webhooks.ts'
import { progress, type WorkspaceDatabase } from '../../support/workspace.ts'
import type { Bench, Section } from '../bench.ts'
import { type Contender, ours, type Service, startContender } from '../contenders.ts'
import { CONNECTIONS, load } from '../load.ts'
import type { Finding } from '../report.ts'
import { alternate, ratios } from '../statistics.ts'

const ROUNDS = 5
/** Of each merchant in each round. */
const PAYMENTS = 3_000
const WARM_UP_PAYMENTS = 2_000
const CREATE_SECONDS = 3
const CREATE_WARM_UP_SECONDS = 3
const QUEUE = 100_000
const QUICK_QUEUE = 20_000
/** While which the queue is delivered; a part of it, so that the rate is that of a long queue. */
const DRAIN_MS = 20_000
const IDLE_ENDPOINTS = 2_000
const IDLE_MS = 30_000
/** After a start: the first sweep, V8, and PostgreSQL's counters, which idle connections report after 10 s. */
const SETTLE_MS = 15_000
const PER_SECOND = 500

const KEY = randomBytes(32)
const SETTINGS = {
  ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(),
  WEBHOOK_SEALING_KEY: KEY.toString('base64'),
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
}

const withWebhooks = (databaseUrl: string): Contender => {
  const contender = ours(databaseUrl)
  return { ...contender, env: { ...contender.env, ...SETTINGS } }
}

const receiver: Contender = { script: 'test/bench/contenders/receiver.mjs', readyPath: '/' }

/** What telling merchants costs: each change, each create, each delivery, and an instance that has nothing to tell. */
export const webhooks: Section = async (bench) => {
  const changes = await bench.createDatabase('webhooks_changes')
  const creates = {
    without: await bench.createDatabase('webhooks_none'),
    with: await bench.createDatabase('webhooks_many'),
  }
  const queues = {
    1: await bench.createDatabase('webhooks_queue_1'),
    10: await bench.createDatabase('webhooks_queue_10'),
  }
  const idle = {
    0: await bench.createDatabase('webhooks_idle_0'),
    [IDLE_ENDPOINTS]: await bench.createDatabase('webhooks_idle'),
  }
  return async () => {
    const hook = await startContender(receiver)
    const findings = [
      await measureChanges(changes, hook),
      await measureCreates(creates, hook),
      await measureDrain(bench, queues, hook),
      await measureIdle(bench, idle, hook),
    ]
    await hook.stop()
    return findings
  }
}

async function addEndpoint(db: Database, mid: string, url: string): Promise<void> {
  await newWebhook(db, { mid, url, endpointId: `ep_${mid}`, sealingKey: createSecretKey(KEY) }, new Date())
}

/** Makes open orders of `mid`; returns their orderIds. */
async function addOrders(db: Database, mid: string, count: number): Promise<string[]> {
  const { rows } = await db.query<{ orderId: string }>(
    `insert into payment_intents
       (mid, order_id, merchant_order_id, amount, redirect_url, note, customer_name, customer_email, customer_mobile,
        payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select $1, id, id, 200, 'https://shop.example.in/thanks?order=1001', 'Order 1001', 'Asha Rao', 'asha@example.in',
            '0123456789', 'chaipoint@examplebank', 'Chai Point', '5814', now(), now() + interval '15 minutes'
       from (select replace(uuidv7()::text, '-', '') as id from generate_series(1, $2)) ids
     returning order_id as "orderId"`,
    [mid, count],
  )
  return rows.map(({ orderId }) => orderId)
}

async function measureChanges({ db, url }: WorkspaceDatabase, hook: Service): Promise<Finding> {
  const mids = { without: 'WITHOUT', written: 'WRITTEN', with: 'WITH' }
  for (const mid of Object.values(mids)) await newMerchant(db, { mid })
  await addEndpoint(db, mids.written, hook.url)
  await addEndpoint(db, mids.with, hook.url)
  // As if another instance, which is not on these cores, delivered to it.
  await db.query(`update webhook_endpoints set leased_by = 'another', leased_until = 'infinity' where mid = $1`, [
    mids.written,
  ])
  const service = await startContender(withWebhooks(url))
  const client = createHttpClient()
  let lastUtr = 100_000_000_000
  const pay = async (mid: string, count: number): Promise<number> => {
    const orderIds = await addOrders(db, mid, count)
    const requests = orderIds.map((orderId) => notificationRequest(orderId, String(++lastUtr)))
    const begun = performance.now()
    await forEach(requests, CONNECTIONS, async (request) => {
      const { status, text } = await client.send(service.url, request)
      if (status !== 200) throw new Error(`a notification was answered ${status}: ${text}`)
    })
    const perSecond = (count / (performance.now() - begun)) * 1_000
    await until('all was delivered', async () => (await waiting(db, mids.written)) === 0, {
      timeoutMs: 120_000,
      pollMs: 200,
    })
    return perSecond
  }
  for (const mid of Object.values(mids)) await pay(mid, WARM_UP_PAYMENTS)
  const series = await alternate(['without', 'written', 'with'], ROUNDS, async (name, round) => {
    const perSecond = await pay(mids[name], PAYMENTS)
    progress(`webhooks: round ${round} of ${ROUNDS}, ${name}: ${Math.round(perSecond)} changes/s`)
    return perSecond
  })
  client.close()
  await service.stop()
  const unit = 'changes/s'
  return {
    title: 'Payments reported by the bank, of a merchant with an endpoint beside one without',
    series: [
      { contender: 'without', unit, samples: series.without },
      { contender: 'with one endpoint, to which another instance delivers', unit, samples: series.written },
      { contender: 'with one endpoint, delivered to meanwhile', unit, samples: series.with },
    ],
    figures: [
      { what: 'with an endpoint / without', samples: ratios(series.written, series.without), unit: '×', atLeast: 0.8 },
      { what: 'the same, delivered to by the same cores', samples: ratios(series.with, series.without), unit: '×' },
    ],
  }
}

/** How many deliveries wait, but for those of the merchant `without`. */
async function waiting(db: Database, without = ''): Promise<number> {
  const { rows } = await db.query<{ count: number }>(
    'select count(*)::integer as count from webhook_deliveries where due_at is not null and mid <> $1',
    [without],
  )
  return rows[0]?.count ?? 0
}

async function measureCreates(
  databases: Record<'without' | 'with', WorkspaceDatabase>,
  hook: Service,
): Promise<Finding> {
  const prepare = async ({ db, url }: WorkspaceDatabase) => {
    const merchant = await newMerchant(db, { mid: 'BENCH_MERCHANT' })
    return { service: await startContender(withWebhooks(url)), request: createRequest(merchant) }
  }
  await addIdleEndpoints(databases.with.db, hook)
  const contenders = { without: await prepare(databases.without), with: await prepare(databases.with) }
  await addEndpoint(databases.with.db, 'BENCH_MERCHANT', hook.url)
  const loadFor = async (name: 'without' | 'with', seconds: number) => {
    const { service, request } = contenders[name]
    return (await load(service.url, request, { seconds })).requestsPerSecond
  }
  for (const name of ['without', 'with'] as const) await loadFor(name, CREATE_WARM_UP_SECONDS)
  const series = await alternate(['without', 'with'], ROUNDS, async (name, round) => {
    const perSecond = await loadFor(name, CREATE_SECONDS)
    progress(`webhooks: round ${round} of ${ROUNDS}, ${name} webhooks: ${Math.round(perSecond)} creates/s`)
    return perSecond
  })
  await Promise.all(Object.values(contenders).map(({ service }) => service.stop()))
  const unit = 'requests/s'
  return {
    title: `createPaymentIntent with ${IDLE_ENDPOINTS} endpoints in the database, one of them the merchant's, beside none`,
    series: [
      { contender: 'none', unit, samples: series.without },
      { contender: `${IDLE_ENDPOINTS} endpoints`, unit, samples: series.with },
    ],
    figures: [{ what: 'with / without', samples: ratios(series.with, series.without), unit: '×', atLeast: 0.95 }],
  }
}

async function addIdleEndpoints(db: Database, hook: Service): Promise<void> {
  const mids = Array.from({ length: IDLE_ENDPOINTS }, (_, number) => `IDLE${number}`)
  await db.query(
    `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at)
     select mid, 'Chai Point', 'chaipoint@examplebank', '5814', 'link', now() from unnest($1::text[]) mid`,
    [mids],
  )
  await forEach(mids, 4, (mid) => addEndpoint(db, mid, hook.url))
}

async function measureDrain(
  { quick, postgres }: Bench,
  queues: Record<1 | 10, WorkspaceDatabase>,
  hook: Service,
): Promise<Finding> {
  const count = quick ? QUICK_QUEUE : QUEUE
  const rates = new Map<number, number>()
  const notes: string[] = []
  for (const [endpoints, { db, url }] of Object.entries(queues)) {
    for (let number = 0; number < Number(endpoints); number++) {
      const mid = `QUEUE${number}`
      await newMerchant(db, { mid })
      await addEndpoint(db, mid, hook.url)
      await addOrders(db, mid, count / Number(endpoints))
    }
    await db.query(
      `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, utr, occurred_at, due_at)
       select mid, 'ep_' || mid, order_id, 1, 'payment.succeeded', 'SUCCESS', order_id, now(), now() from payment_intents`,
    )
    const service = await startContender(withWebhooks(url))
    await until('the first were delivered', async () => (await waiting(db)) < count)
    const before = { left: await waiting(db), at: performance.now(), service: cpuSeconds(service.pid) }
    const database = cpuSeconds(postgres.pid())
    while (performance.now() - before.at < DRAIN_MS && (await waiting(db)) > 0) await sleep(500)
    const seconds = (performance.now() - before.at) / 1_000
    const done = before.left - (await waiting(db))
    rates.set(Number(endpoints), done / seconds)
    const each = (seconds: number) => Math.round((seconds / done) * 1e6)
    notes.push(
      `${endpoints} endpoint(s): a delivery took the service ${each(cpuSeconds(service.pid) - before.service)} µs of processor time, PostgreSQL ${each(cpuSeconds(postgres.pid()) - database)} µs.`,
    )
    progress(`webhooks: ${endpoints} endpoint(s): ${Math.round(done / seconds)} deliveries/s`)
    await service.stop()
  }
  return {
    title: `${count.toLocaleString('en')} deliveries that are due, to a receiver on the same machine`,
    series: [],
    figures: [...rates].map(([endpoints, rate]) => ({
      what: `delivered to ${endpoints} endpoint(s)`,
      samples: [rate],
      unit: '/s',
      atLeast: PER_SECOND,
    })),
    notes,
  }
}

async function measureIdle(
  { postgres }: Bench,
  databases: Record<number, WorkspaceDatabase>,
  hook: Service,
): Promise<Finding> {
  const figures: Finding['figures'] = []
  for (const [endpoints, { db, url, name }] of Object.entries(databases)) {
    if (Number(endpoints) > 0) await addIdleEndpoints(db, hook)
    const service = await startContender(withWebhooks(url))
    await sleep(SETTLE_MS)
    const commits = async () => {
      const { rows } = await db.query('select xact_commit::integer as n from pg_stat_database where datname = $1', [
        name,
      ])
      return Number(rows[0].n)
    }
    const before = { commits: await commits(), service: cpuSeconds(service.pid), database: cpuSeconds(postgres.pid()) }
    await sleep(IDLE_MS)
    const seconds = IDLE_MS / 1_000
    const percent = (cpu: number) => (cpu / seconds) * 100
    const what = `idle with ${endpoints} endpoints`
    figures.push(
      {
        what: `${what}, service`,
        unit: '% of a core',
        samples: [percent(cpuSeconds(service.pid) - before.service)],
        atMost: 1,
      },
      {
        what: `${what}, database`,
        unit: '% of a core',
        samples: [percent(cpuSeconds(postgres.pid()) - before.database)],
        atMost: 1,
      },
      {
        what: `${what}, transactions`,
        unit: '/s',
        samples: [((await commits()) - before.commits - 1) / seconds],
        atMost: 4,
      },
    )
    await service.stop()
  }
  return { title: 'An instance that has nothing to tell', series: [], figures }
}
