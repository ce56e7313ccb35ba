import { writeFileSync } from 'node:fs'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/db/pool.ts'
import { ACQUIRER_SECRETS, notificationRequest } from '../../support/acquirer.ts'
import { type Answer, createHttpClient, type HttpClient, tally } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { connects, openPool } from '../../support/postgres-server.ts'
import {
  countRowsPatiently,
  createRequest,
  type FormRequest,
  forEach,
  listRequest,
  sendPatiently,
  statusRequest,
  withFields,
} from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { addSettlements, longList, SHORT_LIST_ROWS, shortList } from '../../support/settlements.ts'
import { newMerchant, newPartner, newTenant, type Tenant } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import {
  type Check,
  type Deployment,
  type DeploymentDatabase,
  limitRole,
  ROLE,
  ROLE_LIMITS,
  startInstance,
} from '../deployment.ts'
import { type Pooler, SERVER_CONNECTIONS, startPgbouncer } from '../pgbouncer.ts'

const ORDERS = 2_000
const REPLAYED = 500
const PAID = 500
const LONG_LIST_ROWS = 100_000
/** More than all buffers between PostgreSQL and a reader that takes nothing can hold. */
const STALLED_LIST_ROWS = 300_000
const IMPORTED_ROWS = 100_000
const READERS_GONE = 200
/** As many long lists as two instances read at once; see listDatabase.size in limits.ts. */
const STALLED_READERS = 8
const AT_ONCE = 64
const OUTAGES = 3
const OUTAGE_MS = 1_000
/** Longer than the statement_timeout. */
const STALLED_MS = 6_000
/** 503 within 2 s, and some more for a machine that is busy. */
const REFUSED_WITHIN_MS = 3_000
/** The first success within 1 s of the return, and one more of the pooler's own; see server_login_retry in pgbouncer.ini. */
const RECOVERY_WITHIN_MS = 3_000

type Trial = {
  deployment: Deployment
  database: DeploymentDatabase
  pooler: Pooler
  instances: [ServerProcess, ServerProcess]
  client: HttpClient
  tenant: Tenant
  create: FormRequest
  /** Of LONG_LIST_ROWS, by as many partners as there are readers: each partner may read one long list at a time. */
  longLists: FormRequest[]
}

/** Two instances share a small pool of a transaction-pooling PgBouncer: nothing may rely on what a session remembers. */
export async function pgbouncer(deployment: Deployment): Promise<Check[]> {
  const database = await deployment.createDatabase('payments_pooled')
  await limitRole(database.db, ROLE)
  const pooler = await startPgbouncer(deployment.directory, database.url)
  const migrated = await runBuiltOps(
    deployment.programs.ops,
    { DATABASE_URL: pooler.url, DATABASE_MIGRATE_URL: database.url },
    'migrate',
  )
  const environment = {
    DATABASE_URL: pooler.url,
    ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(),
    SHUTDOWN_DRAIN_SECONDS: '0',
    // One key sends in seconds what its merchant would in an hour.
    RATE_LIMIT_PER_MINUTE: '1000000',
  }
  const { db } = database
  const tenant = await newTenant(db)
  const { mid } = tenant.merchant
  const trial: Trial = {
    deployment,
    database,
    pooler,
    instances: [await startInstance(deployment, environment), await startInstance(deployment, environment)],
    client: createHttpClient({ maxSockets: AT_ONCE }),
    tenant,
    create: createRequest(tenant.merchant),
    longLists: await Promise.all(
      Array.from({ length: STALLED_READERS }, async () => longList(await newPartner(db, mid), mid)),
    ),
  }
  await addSettlements(db, mid, LONG_LIST_ROWS)

  const connections = watchConnections(deployment.admin)
  const checks = [
    {
      promise: 'ops migrate goes past the pooler by DATABASE_MIGRATE_URL',
      found: `${(migrated.applied as string[]).length} migrations`,
      kept: (migrated.applied as string[]).length > 0,
    },
    await limitsOfTheRole(trial),
  ]
  for (const part of [
    oneWinnerPerOrder,
    replays,
    notifications,
    lists,
    importThroughThePooler,
    readersGone,
    stalledReaders,
    poolerRestarts,
    databaseAway,
  ]) {
    progress(`pgbouncer: ${part.name}`)
    checks.push(...(await part(trial)))
  }
  const most = await connections.stop()
  checks.push({
    promise: `both instances share ${SERVER_CONNECTIONS} connections to PostgreSQL`,
    found: `at most ${most} at once`,
    kept: most <= SERVER_CONNECTIONS,
  })
  trial.client.close()
  checks.push({
    promise: 'no instance has ended meanwhile',
    found: `${trial.instances.filter((instance) => instance.hasEnded()).length} of 2 ended`,
    kept: !trial.instances.some((instance) => instance.hasEnded()),
  })
  await Promise.all(trial.instances.map((instance) => instance.stop()))
  await pooler.stop()
  await db.end()
  return checks
}

async function limitsOfTheRole({ pooler }: Trial): Promise<Check> {
  const pool = openPool(pooler.url)
  const { rows } = await pool.query<{ statement_timeout: string }>('show statement_timeout')
  await pool.end()
  const isRefused = !(await connects(pooler.url, { statement_timeout: 60_000 }))
  return {
    promise: 'alter role … set statement_timeout holds behind it, a start-up parameter is refused',
    found: `${rows[0]?.statement_timeout}, ${isRefused ? 'refused' : 'accepted'}`,
    kept: rows[0]?.statement_timeout === ROLE_LIMITS.statement_timeout && isRefused,
  }
}

async function oneWinnerPerOrder({ instances: [one, two], client, create, database }: Trial): Promise<Check[]> {
  const orders = Array.from({ length: ORDERS }, (_, i) => `order-${i}`)
  const attempts = orders.flatMap((order_id) => [one, two, one].map(({ url }) => ({ url, order_id })))
  const answers = await forEach(attempts, AT_ONCE, ({ url, order_id }) =>
    sendPatiently(client, url, withFields(create, { order_id })),
  )
  const winners = new Map<string, number>()
  for (const [i, { status }] of answers.entries()) {
    const { order_id } = attempts[i] as (typeof attempts)[number]
    winners.set(order_id, (winners.get(order_id) ?? 0) + (status === 200 ? 1 : 0))
  }
  const stored = await count(database, `payment_intents where merchant_order_id like 'order-%'`)
  const known = answers.every(({ status }) => status === 200 || status === 409)
  return [
    {
      promise: `${ORDERS} order_ids, three times each over both instances: one wins each`,
      found: `${tally(answers)}; ${stored} stored`,
      kept: known && stored === ORDERS && [...winners.values()].every((wins) => wins === 1),
    },
  ]
}

async function replays({ instances, client, create }: Trial): Promise<Check[]> {
  const keys = Array.from({ length: REPLAYED }, (_, i) => `replay-${i}`)
  const pairs = await forEach(keys, AT_ONCE / 2, (key) =>
    Promise.all(instances.map(({ url }) => sendPatiently(client, url, withFields(create, { order_id: key }, key)))),
  )
  const others = await forEach(keys, AT_ONCE, (key, i) =>
    sendPatiently(
      client,
      (instances[i % 2] as ServerProcess).url,
      withFields(create, { order_id: key, amount: '201' }, key),
    ),
  )
  const same = pairs.filter(([a, b]) => a?.status === 200 && a.text === b?.text)
  return [
    {
      promise: `${REPLAYED} Idempotency-Keys to both at once: one answer; with other fields 422`,
      found: `${same.length} same, others ${tally(others)}`,
      kept: same.length === REPLAYED && others.every(({ status }) => status === 422),
    },
  ]
}

async function notifications({ instances: [one, two], client, tenant, create, database }: Trial): Promise<Check[]> {
  const orders = Array.from({ length: PAID }, (_, i) => `paid-${i}`)
  const results = await forEach(orders, AT_ONCE / 4, async (order_id, i) => {
    const created = await sendPatiently(client, one.url, withFields(create, { order_id }))
    const { orderId } = JSON.parse(created.text).data
    const notified = await Promise.all(
      [one, two, two].map(({ url }) =>
        sendPatiently(client, url, notificationRequest(orderId, `${700_000_000_000 + i}`)),
      ),
    )
    const status = await sendPatiently(client, two.url, statusRequest(tenant.merchant, order_id))
    return { notified, isPaid: JSON.parse(status.text).txnStatus === 'SUCCESS' }
  })
  const notified = results.flatMap((result) => result.notified)
  const changes = await count(database, 'payment_changes')
  const paid = results.filter(({ isPaid }) => isPaid).length
  return [
    {
      promise: `${PAID} payments, each notified three times at once: recorded once, known to both`,
      found: `${tally(notified)}; ${changes} changes, ${paid} paid`,
      kept: notified.every(({ status }) => status === 200) && changes === PAID && paid === PAID,
    },
  ]
}

async function lists({ instances, client, tenant, longLists }: Trial): Promise<Check[]> {
  const { merchant, partner } = tenant
  const asked = Array.from({ length: 200 }, (_, i) => instances[i % 2] as ServerProcess)
  const short = await forEach(asked, 16, ({ url }) => sendPatiently(client, url, shortList(partner, merchant.mid)))
  const utrs = short.map(({ text }) =>
    JSON.parse(text)
      .data.map((record: { UTR: string }) => record.UTR)
      .join(),
  )
  const inOrder = utrs.filter((all) => all === Array.from({ length: SHORT_LIST_ROWS }, (_, i) => utr(i + 1)).join())
  const long = await forEach(longLists, longLists.length, (list, i) =>
    countRowsPatiently((instances[i % 2] as ServerProcess).url, list),
  )
  return [
    {
      promise: `200 lists of ${SHORT_LIST_ROWS} rows, 8 of ${LONG_LIST_ROWS} at once: whole`,
      found: `${tally(short)}, ${inOrder.length} whole; ${long.filter((rows) => rows === LONG_LIST_ROWS).length} of 8`,
      kept: inOrder.length === asked.length && long.every((rows) => rows === LONG_LIST_ROWS),
    },
  ]
}

const utr = (number: number) => String(number).padStart(12, '0')

async function importThroughThePooler({ deployment, pooler, instances, database }: Trial) {
  const [, two] = instances
  const { merchant, partner } = await newTenant(database.db)
  const list = listRequest(partner, merchant.mid, '01-01-2026', '31-12-2026')
  const file = join(deployment.directory, 'settlements.csv')
  const lines = Array.from({ length: IMPORTED_ROWS }, (_, i) => {
    const at = new Date(Date.UTC(2026, 0, 1) + i * 60_000).toISOString()
    return `${merchant.mid},${i}.50,${utr(i)},BRN${i},SUCCESS,${at}`
  })
  writeFileSync(file, `mid,amount,utr,bank_reference_number,status,initiation_date\n${lines.join('\n')}\n`)
  let done = false
  const seen = new Set<number>()
  const reading = (async () => {
    while (!done) seen.add(await countRowsPatiently(two.url, list))
  })()
  const startedAt = performance.now()
  const environment = { DATABASE_URL: pooler.url }
  const ops = (...command: string[]) => runBuiltOps(deployment.programs.ops, environment, ...command)
  const first = await ops('settlements', 'import', file)
  const seconds = (performance.now() - startedAt) / 1000
  done = true
  await reading
  seen.add(await countRowsPatiently(two.url, list))
  const again = await ops('settlements', 'import', file)
  return [
    {
      promise: `ops settlements import of ${IMPORTED_ROWS} rows, again, and lists meanwhile: all or nothing`,
      found: `${first.inserted} in ${seconds.toFixed(1)} s, ${again.unchanged} unchanged; lists of ${[...seen].sort((a, b) => a - b).join(' and ')} rows`,
      kept:
        first.inserted === IMPORTED_ROWS &&
        again.unchanged === IMPORTED_ROWS &&
        [...seen].every((rows) => rows === 0 || rows === IMPORTED_ROWS) &&
        seen.has(IMPORTED_ROWS),
    },
  ]
}

async function readersGone({ instances, longLists, database, client, create }: Trial): Promise<Check[]> {
  const numbers = Array.from({ length: READERS_GONE }, (_, i) => i)
  await forEach(numbers, 8, async (i) => {
    const list = longLists[i % longLists.length] as FormRequest
    const { response, leave } = await openList((instances[i % 2] as ServerProcess).url, list)
    if (i % 2 === 0) await new Promise((resolve) => response.once('data', resolve))
    leave()
  })
  const leftAt = performance.now()
  await until('no list was read any more', async () => (await connectionsThatCopy(database)) === 0)
  const seconds = (performance.now() - leftAt) / 1000
  const after = await forEach(numbers.slice(0, 100), 16, (i) =>
    sendPatiently(client, (instances[i % 2] as ServerProcess).url, create),
  )
  const rows = await Promise.all(instances.map(({ url }, i) => countRowsPatiently(url, longLists[i] as FormRequest)))
  return [
    {
      promise: `${READERS_GONE} readers gone in mid-list: every connection is free again`,
      found: `after ${seconds.toFixed(1)} s; then creates ${tally(after)}, ${rows.length} long lists`,
      kept: after.every(({ status }) => status === 200) && rows.every((n) => n === LONG_LIST_ROWS),
    },
  ]
}

async function stalledReaders({ instances, longLists, database, client, create }: Trial): Promise<Check[]> {
  const { mid } = await newMerchant(database.db)
  await database.db.query('insert into partner_merchants (pid, mid) select pid, $1 from partners', [mid])
  await addSettlements(database.db, mid, STALLED_LIST_ROWS)
  const readers = await Promise.all(
    longLists.map((list, i) => openList((instances[i % 2] as ServerProcess).url, withFields(list, { mid }))),
  )
  const held = await connectionsThatCopy(database)
  await sleep(STALLED_MS)
  const numbers = Array.from({ length: 500 }, (_, i) => i)
  const answers = await forEach(numbers, 16, (i) => client.send((instances[i % 2] as ServerProcess).url, create))
  const heldAfter = await connectionsThatCopy(database)
  for (const { leave } of readers) leave()
  await until('no list was read any more', async () => (await connectionsThatCopy(database)) === 0)
  return [
    {
      promise: `${STALLED_READERS} readers that take nothing for ${STALLED_MS / 1000} s neither stop payments nor are stopped by the role's limit`,
      found: `${Math.min(held, heldAfter)} connections held, creates ${tally(answers)}`,
      kept: held === STALLED_READERS && heldAfter === STALLED_READERS && answers.every(({ status }) => status === 200),
    },
  ]
}

function poolerRestarts(trial: Trial): Promise<Check[]> {
  const { pooler } = trial
  return outages(trial, 'PgBouncer is away', { begin: pooler.stop, end: pooler.start })
}

/** As after a crash, or while another server takes over: no connection is left, and none is to be had. */
function databaseAway(trial: Trial): Promise<Check[]> {
  const { admin } = trial.deployment
  const name = new URL(trial.database.url).pathname.slice(1)
  return outages(trial, 'PostgreSQL is away behind PgBouncer', {
    async begin() {
      await admin.query(`alter database ${name} with allow_connections false`)
      await admin.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [ROLE])
    },
    end: () => admin.query(`alter database ${name} with allow_connections true`),
  })
}

type Outage = { begin: () => Promise<unknown>; end: () => Promise<unknown> }
type Attempt = Answer & { sentAt: number }

/** Clients go on, each with an Idempotency-Key that it repeats until it is answered with 200. */
async function outages(
  { instances, client, create, database }: Trial,
  name: string,
  { begin, end }: Outage,
): Promise<Check[]> {
  const prefix = name.replaceAll(/\W/g, '')
  const attempts: Attempt[] = []
  const acknowledged = new Map<string, string>()
  const recoveries: number[] = []
  let going = true

  const customer = async (number: number) => {
    for (let i = 0; going; i++) {
      const key = `${prefix}-${number}-${i}`
      const request = withFields(create, { order_id: key }, key)
      for (let attempt = 0; !acknowledged.has(key); attempt++) {
        const { url } = instances[(i + attempt) % 2] as ServerProcess
        const sentAt = performance.now()
        const answer = await client.send(url, request)
        attempts.push({ ...answer, sentAt })
        if (answer.status === 200) acknowledged.set(key, JSON.parse(answer.text).data.orderId)
        else await sleep(50)
      }
      await sleep(5)
    }
  }
  const traffic = Promise.all(Array.from({ length: 16 }, (_, number) => customer(number)))
  for (let outage = 0; outage < OUTAGES; outage++) {
    await sleep(500)
    await begin()
    await sleep(OUTAGE_MS)
    await end()
    const endedAt = performance.now()
    const isRecovered = ({ sentAt, status }: Attempt) => sentAt > endedAt && status === 200
    await until('a request succeeded again', () => attempts.some(isRecovered))
    const first = Math.min(...attempts.filter(isRecovered).map(({ sentAt, tookMs }) => sentAt + tookMs))
    recoveries.push(Math.round(first - endedAt))
  }
  await sleep(500)
  going = false
  await traffic

  const { rows } = await database.db.query<{ key: string; order_id: string }>(
    `select idempotency_key as key, order_id from payment_intents where idempotency_key like $1`,
    [`${prefix}-%`],
  )
  const stored = new Map(rows.map(({ key, order_id }) => [key, order_id]))
  const kept = [...acknowledged].filter(([key, orderId]) => stored.get(key) === orderId)
  const refused = attempts.filter(({ status }) => status !== 200)
  const longest = Math.max(0, ...refused.map(({ tookMs }) => tookMs))
  return [
    {
      promise: `${name}, ${OUTAGES} times under load: 200, or 503 with Retry-After`,
      found: `${tally(attempts)}; 503 after at most ${Math.round(longest)} ms`,
      kept:
        refused.length > 0 &&
        longest <= REFUSED_WITHIN_MS &&
        refused.every(({ status, headers }) => status === 503 && headers['retry-after'] !== undefined),
    },
    {
      promise: 'first success after its return',
      found: `${recoveries.join(', ')} ms`,
      kept: recoveries.every((ms) => ms <= RECOVERY_WITHIN_MS),
    },
    {
      promise: 'what was answered is stored, what was not is settled by its Idempotency-Key',
      found: `${acknowledged.size} answered, ${kept.length} stored as answered, ${stored.size} stored`,
      kept: kept.length === acknowledged.size && stored.size === acknowledged.size,
    },
  ]
}

/** Asks for a list, patiently, and takes nothing but the head of the answer. */
async function openList(url: string, list: FormRequest): Promise<OpenList> {
  for (;;) {
    const open = await askForList(url, list)
    if (open.response.statusCode === 200) return open
    open.leave()
    await sleep(100)
  }
}

type OpenList = { response: IncomingMessage; leave: () => void }

function askForList(url: string, { path, headers, body }: FormRequest): Promise<OpenList> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url + path, { method: 'POST', headers, agent: false })
    request.on('error', reject).on('response', (response) => {
      response.on('error', () => undefined)
      resolve({ response, leave: () => request.destroy() })
    })
    request.end(body)
  })
}

/** A list whose reader takes its time waits between two pages, idle in its transaction. */
async function connectionsThatCopy({ db }: DeploymentDatabase): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*)::int as n from pg_stat_activity where usename = $1 and state <> 'idle' and query ~* '^\\s*copy'`,
    [ROLE],
  )
  return rows[0]?.n ?? 0
}

async function count({ db }: DeploymentDatabase, table: string): Promise<number> {
  const { rows } = await db.query<{ n: number }>(`select count(*)::int as n from ${table}`)
  return rows[0]?.n ?? 0
}

/** Counts ROLE's connections to PostgreSQL over and over; `stop` returns the most that there were at once. */
function watchConnections(admin: Database) {
  let most = 0
  let going = true
  const watching = (async () => {
    while (going) {
      const { rows } = await admin.query<{ n: number }>(
        'select count(*)::int as n from pg_stat_activity where usename = $1',
        [ROLE],
      )
      most = Math.max(most, rows[0]?.n ?? 0)
      await sleep(100)
    }
  })()
  return {
    async stop() {
      going = false
      await watching
      return most
    },
  }
}
