import { writeFileSync } from 'node:fs'
import { Agent, request as httpRequest, type IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/db/pool.ts'
import type { LoadRequest } from '../../bench/load.ts'
import { progress } from '../../bench/report.ts'
import { newMerchantRequest, newPartnerRequest } from '../../bench/tenants.ts'
import { type Check, type Deployment, type DeploymentDatabase, openPool, ops, ROLE } from '../deployment.ts'
import { type Instance, startInstance } from '../instance.ts'
import { connects, type Pooler, SERVER_CONNECTIONS, startPgbouncer } from '../pgbouncer.ts'
import {
  ACQUIRER_SECRET,
  type Answer,
  countRowsPatiently,
  forEach,
  paymentNotification,
  send,
  sendPatiently,
  tally,
  withFields,
} from '../requests.ts'
import { fillSettlements, LONG_LIST_FROM, SHORT_LIST_ROWS, SHORT_LIST_TILL } from '../settlements.ts'
import { until } from '../wait.ts'

const ORDERS = 2_000
const REPLAYED = 500
const PAID = 500
const LONG_LIST_ROWS = 100_000
/** More than all buffers between PostgreSQL and a reader that takes nothing can hold. */
const STALLED_LIST_ROWS = 300_000
const IMPORTED_ROWS = 100_000
const READERS_GONE = 200
/** As many long lists as two instances read at once; see LIST_POOL_SIZE in server.ts. */
const STALLED_READERS = 8
const AT_ONCE = 64
const OUTAGES = 3
const OUTAGE_MS = 1_000
/** What .env.example tells the operator to set; lists and imports must outlive them. */
const ROLE_LIMITS = {
  statement_timeout: '5s',
  idle_in_transaction_session_timeout: '10s',
  client_connection_check_interval: '1s',
}
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
  instances: [Instance, Instance]
  agent: Agent
  create: LoadRequest
  /** Of M1: SHORT_LIST_ROWS, and LONG_LIST_ROWS more. */
  shortList: LoadRequest
  /** The same of as many partners as readers: each partner reads one long list at a time. */
  longLists: LoadRequest[]
}

/** Two instances share a small pool of a transaction-pooling PgBouncer: nothing may rely on what a session remembers. */
export async function pgbouncer(deployment: Deployment): Promise<Check[]> {
  const database = await deployment.createDatabase('payments_pooled')
  for (const [name, value] of Object.entries(ROLE_LIMITS)) {
    await database.db.query(`alter role ${ROLE} set ${name} = '${value}'`)
  }
  const pooler = await startPgbouncer(deployment.directory, database.url)
  const migrated = await ops(deployment, { DATABASE_URL: pooler.url, DATABASE_MIGRATE_URL: database.url }, 'migrate')
  const environment = {
    DATABASE_URL: pooler.url,
    ACQUIRER_SECRETS: ACQUIRER_SECRET,
    SHUTDOWN_DRAIN_SECONDS: '0',
    // One key sends in seconds what its merchant would in an hour.
    RATE_LIMIT_PER_MINUTE: '1000000',
  }
  const { db } = database
  const create = await newMerchantRequest(db, 'M1')
  const shortList = await newPartnerRequest(db, 'M1', '01-01-2026', SHORT_LIST_TILL)
  const trial: Trial = {
    deployment,
    database,
    pooler,
    instances: [await startInstance(deployment, environment), await startInstance(deployment, environment)],
    agent: new Agent({ keepAlive: true, maxSockets: AT_ONCE }),
    create,
    shortList,
    longLists: await Promise.all(
      Array.from({ length: STALLED_READERS }, (_, i) =>
        newPartnerRequest(db, 'M1', LONG_LIST_FROM, '31-12-2026', `READER_${i}`),
      ),
    ),
  }
  await fillSettlements(db, 'M1', LONG_LIST_ROWS)

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
  trial.agent.destroy()
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

async function oneWinnerPerOrder({ instances: [one, two], agent, create, database }: Trial): Promise<Check[]> {
  const orders = Array.from({ length: ORDERS }, (_, i) => `order-${i}`)
  const attempts = orders.flatMap((order_id) => [one, two, one].map(({ url }) => ({ url, order_id })))
  const answers = await forEach(attempts, AT_ONCE, ({ url, order_id }) =>
    sendPatiently(url, withFields(create, { order_id }), agent),
  )
  const winners = new Map<string, number>()
  for (const [i, { statusCode }] of answers.entries()) {
    const { order_id } = attempts[i] as (typeof attempts)[number]
    winners.set(order_id, (winners.get(order_id) ?? 0) + (statusCode === 200 ? 1 : 0))
  }
  const stored = await count(database, `payment_intents where merchant_order_id like 'order-%'`)
  const known = answers.every(({ statusCode }) => statusCode === 200 || statusCode === 409)
  return [
    {
      promise: `${ORDERS} order_ids, three times each over both instances: one wins each`,
      found: `${tally(answers)}; ${stored} stored`,
      kept: known && stored === ORDERS && [...winners.values()].every((wins) => wins === 1),
    },
  ]
}

async function replays({ instances, agent, create }: Trial): Promise<Check[]> {
  const keys = Array.from({ length: REPLAYED }, (_, i) => `replay-${i}`)
  const pairs = await forEach(keys, AT_ONCE / 2, (key) =>
    Promise.all(instances.map(({ url }) => sendPatiently(url, withFields(create, { order_id: key }, key), agent))),
  )
  const others = await forEach(keys, AT_ONCE, (key, i) =>
    sendPatiently((instances[i % 2] as Instance).url, withFields(create, { order_id: key, amount: '201' }, key), agent),
  )
  const same = pairs.filter(([a, b]) => a?.statusCode === 200 && a.text === b?.text)
  return [
    {
      promise: `${REPLAYED} Idempotency-Keys to both at once: one answer; with other fields 422`,
      found: `${same.length} same, others ${tally(others)}`,
      kept: same.length === REPLAYED && others.every(({ statusCode }) => statusCode === 422),
    },
  ]
}

async function notifications({ instances: [one, two], agent, create, database }: Trial): Promise<Check[]> {
  const orders = Array.from({ length: PAID }, (_, i) => `paid-${i}`)
  const results = await forEach(orders, AT_ONCE / 4, async (order_id, i) => {
    const created = await sendPatiently(one.url, withFields(create, { order_id }), agent)
    const { orderId } = JSON.parse(created.text).data
    const notified = await Promise.all(
      [one, two, two].map(({ url }) =>
        sendPatiently(url, paymentNotification(orderId, `${700_000_000_000 + i}`), agent),
      ),
    )
    const check = { ...create, path: '/v1/payments/checkPaymentStatus' }
    const status = await sendPatiently(two.url, withFields(check, { order_id }), agent)
    return { notified, isPaid: JSON.parse(status.text).txnStatus === 'SUCCESS' }
  })
  const notified = results.flatMap((result) => result.notified)
  const changes = await count(database, 'payment_changes')
  const paid = results.filter(({ isPaid }) => isPaid).length
  return [
    {
      promise: `${PAID} payments, each notified three times at once: recorded once, known to both`,
      found: `${tally(notified)}; ${changes} changes, ${paid} paid`,
      kept: notified.every(({ statusCode }) => statusCode === 200) && changes === PAID && paid === PAID,
    },
  ]
}

async function lists({ instances, agent, shortList, longLists }: Trial): Promise<Check[]> {
  const asked = Array.from({ length: 200 }, (_, i) => instances[i % 2] as Instance)
  const short = await forEach(asked, 16, ({ url }) => sendPatiently(url, shortList, agent))
  const utrs = short.map(({ text }) =>
    JSON.parse(text)
      .data.map((record: { UTR: string }) => record.UTR)
      .join(),
  )
  const inOrder = utrs.filter((all) => all === Array.from({ length: SHORT_LIST_ROWS }, (_, i) => utr(i + 1)).join())
  const long = await forEach(longLists, longLists.length, (list, i) =>
    countRowsPatiently((instances[i % 2] as Instance).url, list),
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

async function importThroughThePooler({ deployment, pooler, instances, database, shortList }: Trial) {
  const [, two] = instances
  await newMerchantRequest(database.db, 'M2')
  await database.db.query(`insert into partner_merchants (pid, mid) values ('BENCH_PARTNER', 'M2')`)
  const list = withFields(shortList, { mid: 'M2', e_date: '31-12-2026' })
  const file = join(deployment.directory, 'settlements.csv')
  const lines = Array.from({ length: IMPORTED_ROWS }, (_, i) => {
    const at = new Date(Date.UTC(2026, 0, 1) + i * 60_000).toISOString()
    return `M2,${i}.50,${utr(i)},BRN${i},SUCCESS,${at}`
  })
  writeFileSync(file, `mid,amount,utr,bank_reference_number,status,initiation_date\n${lines.join('\n')}\n`)
  let done = false
  const seen = new Set<number>()
  const reading = (async () => {
    while (!done) seen.add(await countRowsPatiently(two.url, list))
  })()
  const startedAt = performance.now()
  const environment = { DATABASE_URL: pooler.url }
  const first = await ops(deployment, environment, 'settlements', 'import', file)
  const seconds = (performance.now() - startedAt) / 1000
  done = true
  await reading
  seen.add(await countRowsPatiently(two.url, list))
  const again = await ops(deployment, environment, 'settlements', 'import', file)
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

async function readersGone({ instances, longLists, database, agent, create }: Trial): Promise<Check[]> {
  const numbers = Array.from({ length: READERS_GONE }, (_, i) => i)
  await forEach(numbers, 8, async (i) => {
    const list = longLists[i % longLists.length] as LoadRequest
    const { response, leave } = await openList((instances[i % 2] as Instance).url, list)
    if (i % 2 === 0) await new Promise((resolve) => response.once('data', resolve))
    leave()
  })
  const leftAt = performance.now()
  await until('no list was read any more', async () => (await connectionsThatCopy(database)) === 0)
  const seconds = (performance.now() - leftAt) / 1000
  const after = await forEach(numbers.slice(0, 100), 16, (i) =>
    sendPatiently((instances[i % 2] as Instance).url, create, agent),
  )
  const rows = await Promise.all(instances.map(({ url }, i) => countRowsPatiently(url, longLists[i] as LoadRequest)))
  return [
    {
      promise: `${READERS_GONE} readers gone in mid-list: every connection is free again`,
      found: `after ${seconds.toFixed(1)} s; then creates ${tally(after)}, ${rows.length} long lists`,
      kept: after.every(({ statusCode }) => statusCode === 200) && rows.every((n) => n === LONG_LIST_ROWS),
    },
  ]
}

async function stalledReaders({ instances, longLists, database, agent, create }: Trial): Promise<Check[]> {
  await newMerchantRequest(database.db, 'M3')
  await database.db.query(`insert into partner_merchants (pid, mid) select pid, 'M3' from partners`)
  await fillSettlements(database.db, 'M3', STALLED_LIST_ROWS)
  const readers = await Promise.all(
    longLists.map((list, i) => openList((instances[i % 2] as Instance).url, withFields(list, { mid: 'M3' }))),
  )
  const held = await connectionsThatCopy(database)
  await sleep(STALLED_MS)
  const numbers = Array.from({ length: 500 }, (_, i) => i)
  const answers = await forEach(numbers, 16, (i) => send((instances[i % 2] as Instance).url, create, agent))
  const heldAfter = await connectionsThatCopy(database)
  for (const { leave } of readers) leave()
  await until('no list was read any more', async () => (await connectionsThatCopy(database)) === 0)
  return [
    {
      promise: `${STALLED_READERS} readers that take nothing for ${STALLED_MS / 1000} s neither stop payments nor are stopped by the role's limit`,
      found: `${Math.min(held, heldAfter)} connections held, creates ${tally(answers)}`,
      kept:
        held === STALLED_READERS &&
        heldAfter === STALLED_READERS &&
        answers.every(({ statusCode }) => statusCode === 200),
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
type Attempt = Answer & { sentAt: number; answeredAt: number }

/** Clients go on, each with an Idempotency-Key that it repeats until it is answered with 200. */
async function outages(
  { instances, agent, create, database }: Trial,
  name: string,
  { begin, end }: Outage,
): Promise<Check[]> {
  const prefix = name.replaceAll(/\W/g, '')
  const attempts: Attempt[] = []
  const acknowledged = new Map<string, string>()
  const recoveries: number[] = []
  let going = true

  const client = async (number: number) => {
    for (let i = 0; going; i++) {
      const key = `${prefix}-${number}-${i}`
      const request = withFields(create, { order_id: key }, key)
      for (let attempt = 0; !acknowledged.has(key); attempt++) {
        const { url } = instances[(i + attempt) % 2] as Instance
        const sentAt = performance.now()
        const answer = await send(url, request, agent)
        attempts.push({ ...answer, sentAt, answeredAt: performance.now() })
        if (answer.statusCode === 200) acknowledged.set(key, JSON.parse(answer.text).data.orderId)
        else await sleep(50)
      }
      await sleep(5)
    }
  }
  const traffic = Promise.all(Array.from({ length: 16 }, (_, number) => client(number)))
  for (let outage = 0; outage < OUTAGES; outage++) {
    await sleep(500)
    await begin()
    await sleep(OUTAGE_MS)
    await end()
    const endedAt = performance.now()
    const isRecovered = ({ sentAt, statusCode }: Attempt) => sentAt > endedAt && statusCode === 200
    await until('a request succeeded again', () => attempts.some(isRecovered))
    const first = attempts.filter(isRecovered).reduce((least, { answeredAt }) => Math.min(least, answeredAt), Infinity)
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
  const refused = attempts.filter(({ statusCode }) => statusCode !== 200)
  const longest = Math.max(0, ...refused.map(({ sentAt, answeredAt }) => answeredAt - sentAt))
  return [
    {
      promise: `${name}, ${OUTAGES} times under load: 200, or 503 with Retry-After`,
      found: `${tally(attempts)}; 503 after at most ${Math.round(longest)} ms`,
      kept:
        refused.length > 0 &&
        longest <= REFUSED_WITHIN_MS &&
        refused.every(({ statusCode, headers }) => statusCode === 503 && headers['retry-after'] !== undefined),
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
async function openList(url: string, list: LoadRequest): Promise<OpenList> {
  for (;;) {
    const open = await askForList(url, list)
    if (open.response.statusCode === 200) return open
    open.leave()
    await sleep(100)
  }
}

type OpenList = { response: IncomingMessage; leave: () => void }

function askForList(url: string, { path, headers, body }: LoadRequest): Promise<OpenList> {
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

/** Counts ROLE's connections to PostgreSQL over and over; `stop` answers the most that there were at once. */
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
