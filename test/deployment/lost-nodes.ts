import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../src/db/pool.ts'
import { groupBy } from '../../src/group-by.ts'
import { tally } from '../support/http-client.ts'
import { faultOfForm, isUnsure, type Journal, statusOf } from '../support/journal.ts'
import { type Load, startLoad } from '../support/load.ts'
import type { PostgresServer } from '../support/postgres-server.ts'
import { type Reconciled, reconcile } from '../support/reconcile.ts'
import type { ServerProcess } from '../support/server-process.ts'
import type { Tenant } from '../support/tenants.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { newWebhook } from '../support/webhooks.ts'
import { type CitusTrial, newTenants } from './citus-trial.ts'
import type { Check } from './deployment.ts'

/** How many merchants each worker has while it is silent. */
const MERCHANTS = 20
/** Of each worker's merchants together. */
const REQUESTS_PER_SECOND = 160
const BEGINNING_MS = 2_000
const SERVING_MS = 2_000
const KILLED_MS = 6_000
const SILENT_MS = 12_000
const LOOK_MS = 1_000
/** An instance has 14 for itself and one for each second; PostgreSQL notices within 1 s that one was given up. */
const CONNECTIONS_LIMIT = 50
/** A webhook is due within 2 s; each look for what is due waits twice for a node that does not answer, 0.9 s each time. */
const TOLD_WITHIN_MS = 5_000
/** Longest time to an answer, so that what was sent earlier before the end of a fault has seen nothing of the return. */
const ANSWERED_WITHIN_MS = 1_500

/** What the first merchant of the first worker was told by its webhook while the fault lasted, of payments long before its end. */
type Told = { payments: number; webhooks: number }

/** The traffic of merchants, as many on each worker, with a fault in the middle. */
async function underLoad(
  trial: CitusTrial,
  merchants: number,
  fault: () => Promise<void>,
): Promise<{ here: Journal; there: Journal; from: number; until: number; told: Told; checks: Check[] }> {
  const { instances, db, cluster } = trial
  const tenants: Tenant[] = []
  while (tenants.length < 2 * merchants) tenants.push(...(await newTenants(db, cluster)))
  const receiver = await startReceiver()
  const [watched] = tenants as [Tenant]
  await newWebhook(db, { mid: watched.merchant.mid, url: receiver.url }, new Date())
  const url = () => (instances[Math.floor(Math.random() * instances.length)] as ServerProcess).url
  const loads: Load[] = []
  for (const tenant of tenants) {
    loads.push(startLoad(url, tenant, { without: 'long list', perSecond: REQUESTS_PER_SECOND / merchants }))
    // Else all would send the same kind of request at the same moment.
    await sleep(BEGINNING_MS / tenants.length)
  }
  await sleep(SERVING_MS)
  const from = performance.now()
  await fault()
  const until = performance.now()
  await sleep(SERVING_MS)
  await Promise.all(loads.map((load) => load.end()))
  const reconciled: Reconciled[] = []
  for (const [at, { journal, client }] of loads.entries()) {
    reconciled.push(await reconcile({ journal, tenant: tenants[at] as Tenant, url: instances[0].url, client, db }))
  }
  for (const { client } of loads) client.close()
  receiver.close()
  const sum = (key: keyof Reconciled) => reconciled.reduce((total, one) => total + one[key], 0)
  const journals = loads.map(({ journal }) => journal)
  const faults = journals.flat().flatMap((entry) => faultOfForm(entry) ?? [])
  const answers = journals.flat().flatMap(({ answer }) => answer ?? [])
  const ofWorker = (worker: number) => journals.filter((_, at) => at % 2 === worker).flat()
  const paid = (journals[0] as Journal).filter(
    (entry) => entry.paid && statusOf(entry) === 200 && entry.sentAt > from && entry.sentAt < until - TOLD_WITHIN_MS,
  )
  const toldOf = new Set(
    receiver.to('/').flatMap(({ at, body }) => (at < until ? [JSON.parse(body).data.orderId as string] : [])),
  )
  return {
    here: ofWorker(0),
    there: ofWorker(1),
    from,
    until,
    told: { payments: paid.length, webhooks: paid.filter(({ paid }) => toldOf.has(paid?.orderId as string)).length },
    checks: [
      {
        promise:
          'nothing that was acknowledged is lost or doubled, what was unsure is settled; only 503 with Retry-After',
        found: `${tally(answers)}; ${sum('lost')} lost, ${sum('doubled')} doubled, ${sum('resolved')} of ${sum('unsure')} settled${faults.length > 0 ? `; ${faults[0]}` : ''}`,
        kept:
          sum('lost') + sum('doubled') + sum('orphaned') === 0 &&
          sum('resolved') === sum('unsure') &&
          faults.length === 0 &&
          answers.every(({ status }) => status === 200 || status === 503),
      },
    ],
  }
}

/** Of what kinds they are; nothing where there are none. */
function kindsOf(journal: Journal): string {
  const kinds = groupBy(journal, ({ kind }) => kind).map((group) => `${group.length} × ${group[0]?.kind}`)
  return kinds.length === 0 ? '' : ` (${kinds.join(', ')})`
}

const killed = (node: PostgresServer) => async () => {
  node.killHard()
  await sleep(KILLED_MS)
  await node.restart()
}

/** The second worker: the first one, over which an instance is connected, has the other merchants. */
export function workerKilled(trial: CitusTrial): Promise<Check[]> {
  const worker = trial.cluster.nodes[2] as PostgresServer
  return withoutWorker('a worker is killed', trial, 1, killed(worker))
}

/** It refuses nothing, so that each statement for it holds a connection until the service gives it up. */
export async function workerSilent(trial: CitusTrial): Promise<Check[]> {
  const worker = trial.cluster.nodes[2] as PostgresServer
  let most = 0
  const checks = await withoutWorker('a worker is silent', trial, MERCHANTS, async () => {
    const resume = worker.silence()
    try {
      const until = performance.now() + SILENT_MS
      while (performance.now() < until) {
        await sleep(LOOK_MS)
        most = Math.max(most, await countConnections(trial.db))
      }
    } finally {
      resume()
    }
  })
  return [
    ...checks,
    {
      promise: `statements that were given up do not use up the coordinator's connections: at most ${CONNECTIONS_LIMIT}`,
      found: `${most}`,
      kept: most <= CONNECTIONS_LIMIT,
    },
  ]
}

async function countConnections(db: Database): Promise<number> {
  const { rows } = await db.query<{ n: number }>(
    `select count(*)::integer as n from pg_stat_activity where usename = 'upi_service' and datname = current_database()`,
  )
  return rows[0]?.n ?? 0
}

async function withoutWorker(
  what: string,
  trial: CitusTrial,
  merchants: number,
  fault: () => Promise<void>,
): Promise<Check[]> {
  const { here, there, from, until, told, checks } = await underLoad(trial, merchants, fault)
  const isAsked = ({ sentAt, kind }: Journal[number]) => sentAt > from && kind !== 'readyz'
  const isMeanwhile = ({ sentAt }: Journal[number]) => sentAt < until - ANSWERED_WITHIN_MS
  const served = here.filter(isAsked)
  const meanwhile = served.filter(isMeanwhile)
  const refused = meanwhile.filter(isUnsure)
  const after = served.filter((entry) => !isMeanwhile(entry))
  const away = there.filter(isAsked)
  return [
    {
      promise: `${what}: merchants of the other one, ${merchants} of each, notice nothing`,
      found: `${refused.length} of ${meanwhile.length} refused${kindsOf(refused)}; of those that lie there ${away.filter(isUnsure).length} of ${away.length}`,
      kept: refused.length === 0 && away.some(isUnsure),
    },
    {
      promise: `${what}: nor at its return, after which everybody is served again`,
      found: `${after.filter(isUnsure).length} of ${after.length} refused`,
      kept: !after.some(isUnsure) && [served, away].every((journal) => statusOf(lastSent(journal)) === 200),
    },
    {
      promise: `${what}: webhooks of the other one's merchants go on`,
      found: `${told.webhooks} of ${told.payments} payments told of while it was away`,
      kept: told.payments > 0 && told.webhooks === told.payments,
    },
    ...checks,
  ]
}

export async function coordinatorKilled(trial: CitusTrial): Promise<Check[]> {
  const { here, there, from, checks } = await underLoad(trial, 1, killed(trial.cluster.nodes[0] as PostgresServer))
  const after = [...here, ...there].filter(({ sentAt }) => sentAt > from)
  return [
    {
      promise: 'the coordinator is killed: it is served again once it is back',
      found: `${after.filter(isUnsure).length} of ${after.length} refused`,
      kept: after.some(isUnsure) && [here, there].every((journal) => statusOf(lastSent(journal)) === 200),
    },
    ...checks,
  ]
}

const lastSent = (journal: Journal) => journal.toSorted((a, b) => a.sentAt - b.sentAt).at(-1) as Journal[number]
