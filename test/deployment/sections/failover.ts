import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/db/pool.ts'
import { ACQUIRER_SECRETS } from '../../support/acquirer.ts'
import { createHttpClient, tally } from '../../support/http-client.ts'
import { faultOfForm, type Journal, statusOf } from '../../support/journal.ts'
import { type Load, startLoad } from '../../support/load.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { connects, openPool } from '../../support/postgres-server.ts'
import { ROOT } from '../../support/processes.ts'
import { reconcile } from '../../support/reconcile.ts'
import { createdOrderId, createRequest, forEach, sendPatiently, withFields } from '../../support/requests.ts'
import type { ServerProcess } from '../../support/server-process.ts'
import { addSettlements } from '../../support/settlements.ts'
import { newTenant, type Tenant, unique } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import { type Check, type Deployment, limitRole, PASSWORD, startInstance } from '../deployment.ts'
import { type Node, type PostgresCluster, startPostgresCluster } from '../patroni.ts'

export const FAILOVER_NEEDS = {
  haproxy: 'haproxy',
  patroni: 'patroni',
  etcd: 'etcd-server',
  etcdctl: 'etcd-client',
  ip: 'iproute2',
  '/usr/lib/postgresql/15/bin/postgres': 'postgresql-15',
}

const KILLS = 5
const SERVING_MS = 2_000
const ANSWERED_AGAIN_WITHIN_MS = 30_000
/** How long the trial waits for what has to be within less; it tells then how long it took. */
const PATIENCE = { timeoutMs: 90_000 }
/** 503 within 2 s, and some more for a machine that is busy; a status call waits for the database for 8 s. */
const REFUSED_WITHIN_MS = 3_000
const STATUS_REFUSED_WITHIN_MS = 10_000
/** As many as have a connection each to a server that is cut off. */
const CUSTOMERS_INSIDE = 4
const PAUSE_MS = 20
/** Of PostgreSQL's 100: commits that wait for a standby must not take the connections by which a standby comes back. */
const ROLE_CONNECTIONS = 80
const COMMITS_TIMED = 500

type Trial = {
  deployment: Deployment
  cluster: PostgresCluster
  environment: Record<string, string>
  /** A superuser's connections to whoever is primary. */
  db: Database
  tenant: Tenant
  /** The two instances take turns. */
  url: () => string
  load: Load
}

/** The database's server dies, is cut off and is paused under load: another one takes over, with all that was acknowledged. */
export async function failover(deployment: Deployment): Promise<Check[]> {
  progress('failover: starting three PostgreSQL servers with Patroni and etcd')
  const cluster = await startPostgresCluster(deployment.directory)
  const { environment, db } = await setUpDatabase(deployment, cluster)
  const tenant = await newTenant(db)
  await addSettlements(db, tenant.merchant.mid)
  const checks = [await costOfSynchronousStandby(db)]

  const instances = [await startInstance(deployment, environment), await startInstance(deployment, environment)]
  let turn = 0
  const url = () => (instances[turn++ % instances.length] as ServerProcess).url
  const load = startLoad(url, tenant, { without: 'long list' })
  const trial: Trial = { deployment, cluster, environment, db, tenant, url, load }
  for (const part of [primaryKilled, primaryCutOff, primaryPaused, standbyCutOff]) {
    progress(`failover: ${part.name}`)
    await sleep(SERVING_MS)
    checks.push(...(await part(trial)))
  }
  await sleep(SERVING_MS)
  await load.end()

  progress('failover: comparing what was answered with what is stored')
  checks.push(...judgeAnswers(load.journal), ...(await judgeStored(trial)))
  checks.push({
    promise: 'no instance has ended meanwhile',
    found: `${instances.filter((instance) => instance.hasEnded()).length} of 2 ended`,
    kept: !instances.some((instance) => instance.hasEnded()),
  })
  load.client.close()
  await Promise.all(instances.map((instance) => instance.stop()))
  await db.end()
  for (const node of cluster.nodes) await node.kill()
  return checks
}

/** As the operator's guide says, but all of it through the balancer. */
async function setUpDatabase({ programs }: Deployment, { port }: PostgresCluster) {
  const urlOf = (role: string, database: string) => `postgres://${role}:${PASSWORD}@127.0.0.1:${port}/${database}`
  await until('the balancer had found the primary', () => connects(urlOf('postgres', 'postgres')))
  const admin = openPool(urlOf('postgres', 'postgres'))
  await admin.query(`create database upi template template0 encoding 'UTF8' locale 'C'`)
  await admin.end()
  const db = openPool(urlOf('postgres', 'upi'))
  await db.query(readFileSync(join(ROOT, 'src/db/roles.sql'), 'utf8'))
  for (const role of ['upi_owner', 'upi_service']) await db.query(`alter role ${role} password '${PASSWORD}'`)
  await limitRole(db, 'upi_service')
  await db.query(`alter role upi_service connection limit ${ROLE_CONNECTIONS}`)
  await runBuiltOps(programs.ops, { DATABASE_URL: urlOf('upi_owner', 'upi') }, 'migrate')
  const environment = {
    DATABASE_URL: urlOf('upi_service', 'upi'),
    ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(),
    SHUTDOWN_DRAIN_SECONDS: '0',
  }
  return { environment, db }
}

/** On this machine, where no network adds to it; in turns, so that whatever else it does delays both alike. */
async function costOfSynchronousStandby(db: Database): Promise<Check> {
  await db.query('create table commits_timed (n int)')
  const modes = await Promise.all(
    ['local', 'on'].map(async (mode) => {
      const client = await db.connect()
      await client.query(`set synchronous_commit = ${mode}`)
      return { client, took: [] as number[] }
    }),
  )
  for (let n = 0; n < COMMITS_TIMED; n++) {
    for (const { client, took } of modes) {
      const startedAt = performance.now()
      await client.query('insert into commits_timed values ($1)', [n])
      took.push(performance.now() - startedAt)
    }
  }
  for (const { client } of modes) client.release(true)
  await db.query('drop table commits_timed')
  const medians = modes.map(({ took }) => took.sort((a, b) => a - b)[COMMITS_TIMED / 2] as number)
  return {
    promise: 'a commit takes, by its median: on the primary alone; on the synchronous standby too',
    found: medians.map((ms) => `${ms.toFixed(1)} ms`).join('; '),
    kept: true,
  }
}

/** For good: a new machine, empty, takes its place before the next one is killed. */
async function primaryKilled({ cluster, load: { journal } }: Trial): Promise<Check[]> {
  const took: number[] = []
  for (let kill = 1; kill <= KILLS; kill++) {
    progress(`failover: kill ${kill} of ${KILLS}`)
    if (kill > 1) await sleep(SERVING_MS)
    const primary = await cluster.primary()
    await primary.kill()
    took.push(await firstWriteAfter(journal, performance.now()))
    await cluster.replace(primary)
    await cluster.untilWhole()
  }
  return [
    {
      promise: `the primary is killed for good, ${KILLS} times: writes are answered again within 30 s`,
      found: took.map(seconds).join(', '),
      kept: took.every((ms) => ms <= ANSWERED_AGAIN_WITHIN_MS),
    },
  ]
}

/** Its machine loses the network: peers, balancer, and the majority of etcd. What runs on that machine goes on. */
async function primaryCutOff(trial: Trial): Promise<Check[]> {
  const { cluster, load } = trial
  const old = await cluster.primary()
  const inside = await openInside(trial, old)
  old.cutNetwork()
  const cutAt = performance.now()
  const [answeredAgain, endedAt] = await Promise.all([firstWriteAfter(load.journal, cutAt), inside.endOfPrimary()])
  await sleep(SERVING_MS)
  const known = logOf(old).length
  const healedAt = performance.now()
  old.healNetwork()
  await cluster.untilWhole()
  const returned = performance.now() - healedAt
  const isRewound = logOf(old).slice(known).includes('pg_rewind')
  return [
    {
      promise: 'the primary is cut off: writes are answered again within 30 s, by the new one only',
      found: `${seconds(answeredAgain)}; the old one ended after ${seconds(endedAt - cutAt)}`,
      kept: answeredAgain <= ANSWERED_AGAIN_WITHIN_MS && endedAt - cutAt < answeredAgain,
    },
    ...(await inside.judge('the primary that is cut off', cutAt)),
    {
      promise: 'its network is back: it becomes a replica by pg_rewind',
      found: `after ${seconds(returned)}${isRewound ? '' : ', without pg_rewind'}`,
      kept: isRewound,
    },
  ]
}

/** As a virtual machine that its host stops: when it goes on, it takes itself for the primary that it was. */
async function primaryPaused(trial: Trial): Promise<Check[]> {
  const { cluster, load } = trial
  const old = await cluster.primary()
  const inside = await openInside(trial, old)
  old.pause()
  const pausedAt = performance.now()
  const answeredAgain = await firstWriteAfter(load.journal, pausedAt)
  await sleep(SERVING_MS)
  const resumedAt = performance.now()
  old.resume()
  const endedAt = await inside.endOfPrimary()
  await cluster.untilWhole()
  return [
    {
      promise: 'the primary is paused: writes are answered again within 30 s',
      found: `${seconds(answeredAgain)}; once it went on, the old one ended after ${seconds(endedAt - resumedAt)}`,
      kept: answeredAgain <= ANSWERED_AGAIN_WITHIN_MS,
    },
    ...(await inside.judge('the primary that was paused', pausedAt)),
  ]
}

/** The primary acknowledges nothing until Patroni has chosen the other standby. */
async function standbyCutOff({ cluster, load }: Trial): Promise<Check[]> {
  const standby = await cluster.synchronousStandby()
  standby.cutNetwork()
  const answeredAgain = await firstWriteAfter(load.journal, performance.now())
  standby.healNetwork()
  await cluster.untilWhole()
  return [
    {
      promise: 'the synchronous standby is cut off: writes are answered again within 30 s',
      found: seconds(answeredAgain),
      kept: answeredAgain <= ANSWERED_AGAIN_WITHIN_MS,
    },
  ]
}

type Attempt = { key: string; sentAt: number; status: number | undefined; orderId: string | undefined }

/** An instance that reaches the server of `node` without the network, and customers who repeat until they are answered. */
async function openInside({ deployment, environment, db, url }: Trial, node: Node) {
  const { merchant } = await newTenant(db)
  const urlOf = (role: string) =>
    `postgres://${role}:${PASSWORD}@localhost/upi?host=${encodeURIComponent(node.directory)}`
  const instance = await startInstance(deployment, { ...environment, DATABASE_URL: urlOf('upi_service') })
  const server = openPool(urlOf('upi_owner'))
  const client = createHttpClient()
  const create = createRequest(merchant)
  const attempts: Attempt[] = []
  let going = true

  const creation = (key: string) => withFields(create, { order_id: key }, key)
  const customer = async () => {
    while (going) {
      const key = unique('inside')
      for (let orderId: string | undefined; going && orderId === undefined; ) {
        const sentAt = performance.now()
        const answer = await client.send(instance.url, creation(key))
        orderId = createdOrderId(answer)
        attempts.push({ key, sentAt, status: answer.status, orderId })
        await sleep(PAUSE_MS)
      }
    }
  }
  const customers = Promise.all(Array.from({ length: CUSTOMERS_INSIDE }, customer))
  await until('customers inside were answered', () => attempts.filter(({ orderId }) => orderId).length > 100)
  return {
    /** The moment at which the server of `node` was primary no more. */
    async endOfPrimary(): Promise<number> {
      const hasEnded = () =>
        server.query('select pg_is_in_recovery() as is_replica').then(
          ({ rows }) => rows[0].is_replica as boolean,
          // Shut down. One that is only too busy to answer has not ended.
          ({ code }) => /^(ENOENT|57P)/.test(code),
        )
      await until(`${node.name} was not primary`, hasEnded, PATIENCE)
      return performance.now()
    },
    /** Compares, once the cluster is whole again, what was answered inside with what is stored. `from` is when the fault began. */
    async judge(name: string, from: number): Promise<Check[]> {
      going = false
      await customers
      const { rows } = await db.query<{ key: string; order_id: string }>(
        'select idempotency_key as key, order_id from payment_intents where mid = $1',
        [merchant.mid],
      )
      const stored = new Map(rows.map(({ key, order_id }) => [key, order_id]))
      const late = attempts.filter(({ sentAt }) => sentAt > from)
      const early = new Set(attempts.filter(({ sentAt }) => sentAt <= from).map(({ key }) => key))
      const lateStored = new Set(late.map(({ key }) => key).filter((key) => !early.has(key) && stored.has(key)))
      const acknowledged = new Map(attempts.filter(({ status }) => status === 200).map((it) => [it.key, it.orderId]))
      const kept = [...acknowledged].filter(([key, orderId]) => stored.get(key) === orderId)
      const unsure = [...new Set(attempts.map(({ key }) => key))].filter((key) => !acknowledged.has(key))
      const repeated = await forEach(unsure, CUSTOMERS_INSIDE, (key) => sendPatiently(client, url(), creation(key)))
      const [lateTally, repeatedTally] = [tally(late), tally(repeated)]
      client.close()
      await instance.stop()
      await server.end()
      return [
        {
          promise: `${name} takes no write any more`,
          found: `asked on its own machine ${late.length} times: ${lateTally}; ${lateStored.size} stored`,
          kept: late.length > 0 && late.every(({ status }) => status === 503) && lateStored.size === 0,
        },
        {
          promise: 'what it had acknowledged is kept; what was unsure succeeds elsewhere with its Idempotency-Key',
          found: `${kept.length} of ${acknowledged.size} kept; ${repeatedTally}`,
          kept: kept.length === acknowledged.size && repeated.every(({ status }) => status === 200),
        },
      ]
    },
  }
}

/** How long after `moment` the first create was answered with 200 that was sent since. */
async function firstWriteAfter(journal: Journal, moment: number): Promise<number> {
  const begin = journal.length
  const find = () =>
    journal.slice(begin).find((entry) => entry.kind === 'create' && entry.sentAt > moment && statusOf(entry) === 200)
  await until('a create was answered with 200', () => find() !== undefined, PATIENCE)
  return (find()?.answeredAt as number) - moment
}

function judgeAnswers(journal: Journal): Check[] {
  const refused = journal.filter((entry) => statusOf(entry) === 503)
  const slowest = (entries: Journal) => Math.max(0, ...entries.map(({ answer }) => answer?.tookMs ?? 0))
  const status = slowest(refused.filter(({ kind }) => kind === 'status'))
  const others = slowest(refused.filter(({ kind }) => kind !== 'status'))
  const faults = [...new Set(journal.map(faultOfForm).filter((it) => it !== undefined))]
  const answers = journal.flatMap(({ answer }) => answer ?? [])
  return [
    {
      promise: 'all the while: 200, or 503 with Retry-After',
      found: `${tally(answers)}${faults.map((fault) => `; ${fault}`).join('')}`,
      kept: answers.every((answer) => answer.status === 200 || answer.status === 503) && faults.length === 0,
    },
    {
      promise: '503 within 3 s, of a status call within 10 s',
      found: `at most ${seconds(others)}; ${seconds(status)}`,
      kept: others <= REFUSED_WITHIN_MS && status <= STATUS_REFUSED_WITHIN_MS,
    },
  ]
}

async function judgeStored({ load, tenant, db, url }: Trial): Promise<Check[]> {
  const { unsure, resolved, lost, doubled, orphaned } = await reconcile({ ...load, tenant, url: url(), db })
  const count = (kind: string) => load.journal.filter((it) => it.kind === kind && statusOf(it) === 200).length
  return [
    {
      promise: 'nothing that was acknowledged is lost, intents and payments; nothing is doubled',
      found: `of ${count('create')} intents and ${count('notification')} payments ${lost} lost, ${doubled} doubled`,
      kept: lost === 0 && doubled === 0,
    },
    {
      promise: 'what was unsure is settled by its Idempotency-Key or order_id',
      found: `${resolved} of ${unsure}; ${orphaned} stored that nobody knows of`,
      kept: resolved === unsure && orphaned === 0,
    },
  ]
}

const logOf = ({ directory }: Node) => readFileSync(join(directory, 'patroni.log'), 'utf8')

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`
