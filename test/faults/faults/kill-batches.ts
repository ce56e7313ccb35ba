import { randomBytes, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/platform/db/pool.ts'
import { newUtr, notificationRequest } from '../../support/acquirer.ts'
import { createHttpClient, type HttpClient, type HttpResponse, type Request, tally } from '../../support/http-client.ts'
import { creation } from '../../support/load.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { createdOrderId, forEach } from '../../support/requests.ts'
import { BUILT_OPS, type ServerProcess } from '../../support/server-process.ts'
import { type NewMerchant, newMerchant } from '../../support/tenants.ts'
import { until } from '../../support/wait.ts'
import { progress } from '../../support/workspace.ts'
import { type Notified, undelivered } from '../notified.ts'
import { startReceivers } from '../receivers.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import type { Finding } from '../verdict.ts'

/**
 * The shared statements. Another session locks the row that a statement needs last. `marked` is the table in which the
 * transaction of the statement then has locked or changed rows.
 */
const BATCHES = {
  'new orders': { begins: 'insert into payment_intents', lock: 'merchants where mid = $1', marked: 'merchants' },
  'first payments': { begins: 'with limited', lock: 'webhook_endpoints where mid = $1', marked: 'payment_intents' },
  outcomes: { begins: 'with given', lock: 'webhook_deliveries where order_id = $1', marked: 'webhook_deliveries' },
}
type BatchName = keyof typeof BATCHES

/** The status of the batch's transaction. It is committed before the kill while the service is paused. */
const ENDINGS = { 'rolled back': 'aborted', 'committed after the kill': 'committed', 'committed before': 'committed' }
type Kill = { batch: BatchName; ending: keyof typeof ENDINGS }
const KILLS = (Object.keys(BATCHES) as BatchName[]).flatMap((batch) =>
  (Object.keys(ENDINGS) as Kill['ending'][]).map((ending) => ({ batch, ending })),
)
const REPEATED_KILLS = 5
/** A kill is repeated if its batch had few items, or if PostgreSQL ended the statement in another way. */
const MOST_TRIES = 25
const MERCHANTS = 10
const ORDERS_OF_MERCHANT = 2
/** Of at most MERCHANTS × ORDERS_OF_MERCHANT calls. */
const HELD_CALLS = 12
const ORDERS_WITHOUT_KILLS = 1_000
const CONCURRENT_ORDERS = 48
const RETRY_MS = 100
/** PostgreSQL limits the wait of first payments to 100 ms. */
const POLL_MS = 2
/** The deliveries of a killed instance are sent again after 40 s. */
const DRAIN_LIMIT_MS = 150_000

/** `name` is the merchant's order_id and the Idempotency-Key. */
type Order = { merchant: NewMerchant; name: string; orderId: string; utr: string }

type Run = {
  db: Database
  client: HttpClient
  /** In the order in which batches sort them. */
  merchants: NewMerchant[]
  start: () => Promise<ServerProcess>
  service: ServerProcess
  orders: Order[]
  /** Responses of endpoints that wait; undefined while the endpoints respond immediately. */
  held: ServerResponse[] | undefined
  repeats: number
  /** Responses other than 200 and 503. */
  rejected: HttpResponse[]
}

/**
 * Kills the service while PostgreSQL executes a batch, and between the commit and the response. Senders repeat requests
 * without a response. Then sends orders without a kill, and compares the stored rows and the received events.
 */
export async function killBatches({ postgres }: Stage): Promise<Finding[]> {
  const { url, db } = await setScene(postgres, 'batches')
  const environment = {
    WEBHOOK_SEALING_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
  }
  const start = () => startService(url, environment)
  const client = createHttpClient()
  const collected = { merchants: [], orders: [], held: undefined, repeats: 0, rejected: [] }
  const run: Run = { db, client, start, service: await start(), ...collected }
  const conduct = (response: ServerResponse) => void (run.held ? run.held.push(response) : response.end('ok'))
  const mids = Array.from({ length: MERCHANTS }, (_, number) => `MERCHANT${number}`)
  const stand = await startReceivers(Object.fromEntries(mids.map((mid) => [mid, conduct])))
  const notified = await forEach(mids, 1, async (mid): Promise<Notified> => {
    run.merchants.push(await newMerchant(db, { mid }))
    const receiver = stand.add(mid)
    const add = ['webhooks', 'add', '--mid', mid, '--url', receiver.url]
    receiver.secrets.push(String((await runBuiltOps(BUILT_OPS, { DATABASE_URL: url, ...environment }, ...add)).secret))
    return { mid, receiver, isWhole: true }
  })

  const notes = await forEach(KILLS, 1, (kill) => killOften(run, kill))
  progress('batches: waiting for deliveries of the killed instances')
  await untilDelivered(db)
  const countOf = (orders: Order[]) => {
    const events = new Map(notified.flatMap(({ receiver }) => [...receiver.events]))
    const calls = orders.map(({ orderId }) => events.get(`msg_${orderId}_1`)?.calls ?? 0)
    return { once: calls.filter((of) => of === 1).length, again: calls.filter((of) => of > 1).length }
  }
  const { again } = countOf(run.orders)
  notes.push(`${run.orders.length} orders; ${run.repeats} requests were repeated, and ${again} events delivered again`)
  progress(`batches: ${ORDERS_WITHOUT_KILLS} orders without a kill`)
  const undisturbed = addOrders(run, ORDERS_WITHOUT_KILLS / MERCHANTS)
  await forEach(undisturbed, CONCURRENT_ORDERS, async (order) => pay(run, await create(run, order)))
  await untilDelivered(db)

  const broken = [...(await undelivered(db, notified)).broken, ...(await compareOrders(run))]
  const { once } = countOf(undisturbed)
  if (once < undisturbed.length) broken.push(`without a kill each event is delivered once: only ${once} are`)
  if (again === 0) broken.push('the test itself: no event was delivered again')
  client.close()
  await run.service.stop()
  stand.close()
  await db.end()
  return [{ fault: `batches: ${KILLS.length * REPEATED_KILLS} kills`, notes, broken }]
}

/** Kills the service REPEATED_KILLS times in batches of several items with the intended ending. */
async function killOften(run: Run, kill: Kill): Promise<string> {
  const name = `${kill.batch}, ${kill.ending}`
  progress(`batches: ${name}`)
  const marked: number[] = []
  for (let tries = 1; marked.length < REPEATED_KILLS; tries++) {
    if (tries > MOST_TRIES) throw new Error(`too few kills: ${name}`)
    const rows = await killOnce(run, kill)
    if (rows > 1) marked.push(rows)
  }
  return `${name}: rows that the batches had locked or changed: ${marked.join(', ')}`
}

/** Pays and delivers new orders, and kills the service in a batch of them. */
async function killOnce(run: Run, kill: Kill): Promise<number> {
  const orders = addOrders(run, ORDERS_OF_MERCHANT)
  const lastMid = orders.at(-1)?.merchant.mid as string
  const createAll = () => Promise.all(orders.map((order) => create(run, order)))
  const payAll = () => Promise.all(orders.map((order) => pay(run, order)))
  if (kill.batch === 'new orders') {
    const rows = await killIn(run, { ...kill, key: lastMid }, createAll)
    await payAll()
    return rows
  }
  await createAll()
  if (kill.batch === 'first payments') return killIn(run, { ...kill, key: lastMid }, payAll)
  const held: ServerResponse[] = []
  run.held = held
  await payAll()
  await until('the endpoints receive events', () => held.length >= HELD_CALLS)
  run.held = undefined
  const keyOf = ({ req }: ServerResponse) => `${req.url} ${req.headers['webhook-id']}`
  const [, key = ''] = held.map(keyOf).sort().at(-1)?.split('_') ?? []
  return killIn(run, { ...kill, key }, async () => held.forEach((response) => void response.end('ok')))
}

/**
 * Locks the row of `key`, begins `work`, kills the service once a batch waits for the row, and starts it again. Returns
 * how many rows the batch had marked; 0 if it did not end as intended.
 */
async function killIn(run: Run, { batch, ending, key }: Kill & { key: string }, work: () => Promise<unknown>) {
  const { begins, lock, marked } = BATCHES[batch]
  const { db, service } = run
  const holder = await db.connect()
  await holder.query('begin')
  await holder.query(`select from ${lock} for update`, [key])
  const { rows: sessions } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
  const done = work()
  const waiting: { pid: number; xid: string }[] = []
  const isWaiting = async () => {
    waiting.push(...(await db.query<{ pid: number; xid: string }>(WAITING_BATCH, [begins, sessions[0]?.pid])).rows)
    return waiting.length > 0
  }
  await until(`a batch of ${batch} waits`, isWaiting, { pollMs: POLL_MS })
  if (ending === 'committed before') process.kill(service.pid, 'SIGSTOP')
  else await service.killHard()
  const [{ pid, xid }] = waiting as [{ pid: number; xid: string }]
  const { rowCount } = await db.query(`select from ${marked} where xmax = $1::xid`, [xid])
  if (ending === 'rolled back') await db.query('select pg_terminate_backend($1)', [pid])
  await holder.query('rollback')
  holder.release()
  const hasStatus = async (condition: string) =>
    (await db.query(`select where pg_xact_status($1::xid8) ${condition}`, [xid])).rowCount === 1
  await until('PostgreSQL has ended the batch', () => hasStatus("<> 'in progress'"))
  const isIntended = await hasStatus(`= '${ENDINGS[ending]}'`)
  await service.killHard()
  run.service = await run.start()
  await done
  return isIntended ? (rowCount ?? 0) : 0
}

/** Adds `count` orders of each merchant, in the order of the merchants. */
function addOrders(run: Run, count: number): Order[] {
  const added = run.merchants.flatMap((merchant) =>
    Array.from({ length: count }, () => ({ merchant, name: randomUUID(), orderId: '', utr: newUtr() })),
  )
  run.orders.push(...added)
  return added
}

async function create(run: Run, order: Order): Promise<Order> {
  const { merchant, name } = order
  const response = await insist(run, creation(merchant, { orderId: name, idempotencyKey: name }))
  order.orderId = createdOrderId(response) ?? ''
  return order
}

const pay = (run: Run, { orderId, utr }: Order) => insist(run, notificationRequest(orderId, utr))

/** Sends a request until it gets a response other than 503. */
async function insist(run: Run, request: Request): Promise<HttpResponse> {
  for (;;) {
    const response = await run.client.send(run.service.url, request)
    if (response.status !== undefined && response.status !== 503) {
      if (response.status !== 200) run.rejected.push(response)
      return response
    }
    run.repeats++
    await sleep(RETRY_MS)
  }
}

const untilDelivered = (db: Database) =>
  until('every event is delivered', async () => (await db.query(PENDING)).rowCount === 0, { timeoutMs: DRAIN_LIMIT_MS })

async function compareOrders({ db, orders, rejected }: Run): Promise<string[]> {
  const { rows } = await db.query<{ name: string; orderId: string; utr: string; isWhole: boolean }>(STORED)
  const stored = new Map(rows.map((row) => [row.name, row]))
  const lost = orders.filter(({ name, orderId, utr }) => {
    const row = stored.get(name)
    return !(row?.orderId === orderId && row.utr === utr && row.isWhole)
  })
  const promises: [boolean, string][] = [
    [rejected.length === 0, `every request gets 200, 503 or no response: ${tally(rejected)}`],
    [rows.length === orders.length, `each order is stored once: ${rows.length} of ${orders.length}`],
    [lost.length === 0, `each order has its payment and its delivered event, once: ${lost.length} have not`],
  ]
  return promises.flatMap(([holds, promise]) => (holds ? [] : promise))
}

const WAITING_BATCH = `
  select pid, backend_xid::text as xid
    from pg_stat_activity
   where starts_with(query, $1) and state = 'active' and backend_xid is not null and $2 = any (pg_blocking_pids(pid))`

const PENDING = 'select from webhook_deliveries where due_at is not null limit 1'

const STORED = `
  select merchant_order_id as name, order_id as "orderId", utr,
         status = 'SUCCESS' and not exists (select from payment_exceptions e where e.mid = i.mid and e.order_id = i.order_id)
         and (select array_agg(p.utr) from payments p where p.mid = i.mid and p.order_id = i.order_id) = array[i.utr]
         and (select array_agg(d.delivered_at is not null) from webhook_deliveries d
               where d.mid = i.mid and d.order_id = i.order_id) = array[true] as "isWhole"
    from payment_intents i`
