import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/platform/db/pool.ts'
import { createHttpClient, type HttpResponse, tally } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { end, hasEnded, start } from '../../support/processes.ts'
import { createRequest } from '../../support/requests.ts'
import { BUILT_OPS } from '../../support/server-process.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import { type Receiver, startReceivers } from '../receivers.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, ms } from '../verdict.ts'

const ORDERS = 240_000
/** Each order has two events for each of two endpoints. */
const SEQUENCES = 2
const DELIVERIES = ORDERS * SEQUENCES * 2
/** Of this many orders, one has pending deliveries, one deliveries of tomorrow, one payment.expired, one was resent. */
const ONE_OF = 500
/** Period in which the pending deliveries are scheduled: longer than the runs of the command. */
const PENDING_SECONDS = 120
const PRUNE = ['webhooks', 'prune', '--older-than-days', '31']
/** In each round, creates are sent beside a run until it is killed, and for the same time without a run. */
const KILLS = 10
const CREATES_PER_SECOND = 200
/** Only limits a failing run: the machine may be slow. */
const KILL_LIMIT_MS = 60_000
const DRAIN_LIMIT_MS = 150_000

/**
 * Deletes most of 960,000 deliveries while the service creates orders and sends pending deliveries. The command is
 * killed ten times, and its last run completes. Then compares the stored deliveries with those that must stay.
 */
export async function killPrune({ postgres }: Stage): Promise<Finding[]> {
  const { url, db, tenant } = await setScene(postgres, 'prune')
  const environment = {
    WEBHOOK_SEALING_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
  }
  const ops = (...args: string[]) => runBuiltOps(BUILT_OPS, { DATABASE_URL: url, ...environment }, ...args)
  const stand = await startReceivers({ first: respond, second: respond })
  const receivers: Receivers = new Map()
  for (const name of ['first', 'second']) {
    const receiver = stand.add(name)
    const { id, secret } = await ops('webhooks', 'add', '--mid', tenant.merchant.mid, '--url', receiver.url)
    receiver.secrets.push(String(secret))
    receivers.set(String(id), receiver)
  }
  progress(`prune: storing ${DELIVERIES} deliveries`)
  await storeDeliveries(db, tenant.merchant.mid, [...receivers.keys()])

  const service = await startService(url, environment)
  const client = createHttpClient()
  const create = () => client.send(service.url, createRequest(tenant.merchant))
  const beside: HttpResponse[] = []
  const without: HttpResponse[] = []
  for (let kill = 1; kill <= KILLS; kill++) {
    progress(`prune: kill ${kill} of ${KILLS}`)
    const began = performance.now()
    beside.push(...(await repeatDuring(killOnceGone({ url, db }, kill), create)))
    without.push(...(await repeatDuring(sleep(performance.now() - began), create)))
  }
  const { pruned } = await ops(...PRUNE)
  progress('prune: waiting for the pending deliveries')
  await until('no delivery is pending', async () => (await count(db, PENDING)) === 0, { timeoutMs: DRAIN_LIMIT_MS })

  const failed = [...beside, ...without].filter(({ status }) => status !== 200 && status !== 503)
  const broken = await compareDeliveries(db, receivers)
  if (failed.length > 0) broken.push(`every create gets 200 or 503: ${tally(failed)}`)
  client.close()
  await service.stop()
  stand.close()
  await db.end()
  return [
    {
      fault: `webhooks prune, ${KILLS} kills`,
      notes: [
        `${DELIVERIES} deliveries, of which the last run deleted ${pruned}`,
        `creates beside starts and runs of the command: ${timesOf(beside)}; without the command: ${timesOf(without)}`,
      ],
      broken,
    },
  ]
}

type Receivers = Map<string, Receiver>

const respond = (response: ServerResponse) => void response.end()

/** Starts the command, and kills it once it has deleted the delivery of this kill. */
async function killOnceGone({ url, db }: { url: string; db: Database }, kill: number): Promise<void> {
  const child = start(process.execPath, [BUILT_OPS, ...PRUNE], { env: { DATABASE_URL: url }, stdio: 'ignore' })
  const isGone = async () => (await count(db, MARKED, [kill])) === 0
  const isOver = async () => hasEnded(child) || (await isGone())
  await until(`the command reaches kill ${kill}`, isOver, { timeoutMs: KILL_LIMIT_MS })
  if (hasEnded(child)) throw new Error('the command ended before it was killed')
  await end(child, 'SIGKILL')
}

/** Sends creates at a steady rate, whatever the responses, until `work` is done. */
async function repeatDuring(work: Promise<unknown>, create: () => Promise<HttpResponse>): Promise<HttpResponse[]> {
  let isDone = false
  const done = work.finally(() => {
    isDone = true
  })
  const began = performance.now()
  const sent: Promise<HttpResponse>[] = []
  while (!isDone) {
    await sleep(began + (sent.length * 1_000) / CREATES_PER_SECOND - performance.now())
    sent.push(create())
  }
  await done
  return Promise.all(sent)
}

function timesOf(responses: HttpResponse[]): string {
  const times = responses.map(({ tookMs }) => tookMs).sort((a, b) => a - b)
  const quantile = (share: number) => ms(times[Math.floor(share * times.length)] as number)
  return `${tally(responses)}, median ${quantile(0.5)}, 99 % within ${quantile(0.99)}`
}

async function compareDeliveries(db: Database, receivers: Receivers): Promise<string[]> {
  const { rows: pending } = await db.query<{ endpointId: string; orderId: string; sequence: number }>(WAS_PENDING)
  const callsOf = ({ endpointId, orderId, sequence }: (typeof pending)[number]) =>
    receivers.get(endpointId)?.events.get(`msg_${orderId}_${sequence}`)?.calls ?? 0
  const calls = pending.map(callsOf)
  const faults = [...receivers.values()].flatMap(({ faults }) => faults)
  const [lost, left] = [await count(db, LOST), await count(db, LEFT)]
  const promises: [boolean, string][] = [
    [lost === 0, `every delivery that is pending, recent or payment.expired stays: ${lost} are lost`],
    [left === 0, `the last run deletes every other delivery: ${left} are left`],
    [
      pending.length > 0 && !calls.includes(0),
      `every pending event arrives: ${calls.filter((of) => of === 0).length} did not`,
    ],
    [calls.every((of) => of <= 1), `each event arrives once: ${calls.filter((of) => of > 1).length} arrived again`],
    [faults.length === 0, `every call is signed: ${faults[0]}`],
  ]
  return promises.flatMap(([holds, promise]) => (holds ? [] : promise))
}

async function count(db: Database, condition: string, values: unknown[] = []): Promise<number> {
  const { rows } = await db.query<{ count: number }>(`select count(*) from ${condition}`, values)
  return rows[0]?.count as number
}

/** Stores old orders with their deliveries, the keys of those that must stay, and one key for each kill. */
async function storeDeliveries(db: Database, mid: string, endpoints: string[]): Promise<void> {
  const client = await db.connect()
  try {
    // Without the checks of foreign keys, which take most of the time.
    await client.query('set session_replication_role = replica')
    await client.query(ORDERS_STORED, [mid])
    await client.query(DELIVERIES_STORED, [mid, endpoints])
    await client.query('reset session_replication_role')
    await client.query(MUST_STAY)
    await client.query(MARKS)
    await client.query('vacuum (analyze) payment_intents, webhook_deliveries')
  } finally {
    client.release()
  }
}

/** The orders of 400 days ago to 40 days ago. */
const ORDERS_STORED = `
  insert into payment_intents
    (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email, customer_mobile,
     payee_vpa, payee_name, payee_mcc, created_at, expires_at, event_sequence)
  select $1, order_id, order_id, 20000, 'https://shop.example/', 'Order', 'Asha Rao', 'asha@shop.example', '9876543210',
         'chaipoint@examplebank', 'Chai Point', '5814', at, at, ${SEQUENCES}
    from generate_series(1, ${ORDERS}) i,
         lateral (select now() - interval '400 days' + interval '360 days' * (i / ${ORDERS}.0) as at) moments,
         lateral (select lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || lpad(to_hex(i), 20, '0') as order_id) ids`

const DELIVERIES_STORED = `
  insert into webhook_deliveries
    (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, attempts, due_at, delivered_at, attempted_at,
     outcome, response)
  select $1, endpoint_id, order_id, sequence,
         case kind when 2 then 'payment.expired' else 'payment.attempt_failed' end, 'FAIL', created_at, 1,
         case kind when 0 then now() + interval '1 second' * random() * ${PENDING_SECONDS} when 1 then now() + interval '1 day' end,
         case when kind > 1 and kind % 10 <> 4 then created_at end,
         case kind when 3 then now() else created_at end, '200', 'ok'
    from (select order_id, created_at, row_number() over (order by order_id) % ${ONE_OF} as kind
            from payment_intents where mid = $1) orders,
         unnest($2::text[]) endpoint_id, generate_series(1, ${SEQUENCES}) sequence`

const MUST_STAY = `
  create table must_stay as
    select mid, endpoint_id, order_id, sequence, due_at
      from webhook_deliveries
     where due_at is not null or type = 'payment.expired' or attempted_at > now() - interval '31 days'`

/** The command deletes the deliveries in the order of their key, so that the delivery of each kill is gone in turn. */
const MARKS = `
  create table marks as
    select number / ${DELIVERIES / (KILLS + 2)} as kill, mid, endpoint_id, order_id, sequence
      from (select *, row_number() over (order by endpoint_id, order_id, sequence) as number
              from webhook_deliveries
             where due_at is null and type <> 'payment.expired' and attempted_at < now() - interval '31 days') old
     where number % ${DELIVERIES / (KILLS + 2)} = 0`

const KEY = 'mid, endpoint_id, order_id, sequence'
const MARKED = `webhook_deliveries join marks using (${KEY}) where kill = $1`
const PENDING = `webhook_deliveries where due_at < now() + interval '1 hour'`
const LOST = `must_stay left join webhook_deliveries d using (${KEY}) where d.mid is null`
const LEFT = `webhook_deliveries left join must_stay s using (${KEY}) where s.mid is null`
const WAS_PENDING = `
  select endpoint_id as "endpointId", order_id as "orderId", sequence from must_stay where due_at < now() + interval '1 hour'`
