import { randomBytes, randomUUID } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Database } from '../../../src/platform/db/pool.ts'
import { newUtr, notificationRequest } from '../../support/acquirer.ts'
import { createHttpClient, type HttpClient, type HttpResponse, type Request } from '../../support/http-client.ts'
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
 * The shared statements. Another session locks the row that a statement needs last. `marked` is the table whose rows
 * then contain the transaction of the statement, because it has locked or changed them.
 */
const BATCHES = {
  'new orders': { begins: 'insert into payment_intents', lock: 'merchants where mid = $1', marked: 'merchants' },
  'first payments': { begins: 'with limited', lock: 'webhook_endpoints where mid = $1', marked: 'payment_intents' },
  outcomes: { begins: 'with given', lock: 'webhook_deliveries where order_id = $1', marked: 'webhook_deliveries' },
}
type BatchName = keyof typeof BATCHES
const NAMES = Object.keys(BATCHES) as BatchName[]

/** The batch is rolled back, or committed after the kill, or committed before the kill while the service is paused. */
const ENDINGS = ['rolled back', 'committed after the kill', 'committed before the kill'] as const
type Ending = (typeof ENDINGS)[number]

const KILLS_OF_ENDING = 5
/** A kill is repeated if its batch had one item, or if PostgreSQL ended the statement first. */
const MOST_TRIES = 25
const MERCHANTS = 5
/** As many as the concurrent calls to an endpoint. */
const ORDERS_OF_MERCHANT = 4
/** Of at most MERCHANTS × ORDERS_OF_MERCHANT calls. */
const HELD_CALLS = 12
const ORDERS_WITHOUT_KILLS = 1_000
const CONCURRENT_ORDERS = 48
const RETRY_MS = 100
/** PostgreSQL limits the wait of first payments to 100 ms. */
const POLL_MS = 2
/** The deliveries of a killed instance are sent again after 40 s. */
const DRAIN_LIMIT_MS = 150_000

type Order = { merchant: NewMerchant; names: { orderId: string; idempotencyKey: string }; orderId: string; utr: string }

type Run = {
  db: Database
  client: HttpClient
  merchants: NewMerchant[]
  start: () => Promise<ServerProcess>
  service: ServerProcess
  orders: Order[]
  /** Calls to endpoints that wait for their response; undefined while the endpoints respond immediately. */
  held: { orderId: string; respond: () => void }[] | undefined
  /** Number of requests that were repeated. */
  repeats: number
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
  const created = await forEach(Array(MERCHANTS).fill(db), 1, (database) => newMerchant(database))
  const merchants = created.sort((one, other) => (one.mid < other.mid ? -1 : 1))
  const start = () => startService(url, environment)
  const client = createHttpClient()
  const run: Run = { db, client, merchants, start, service: await start(), orders: [], held: undefined, repeats: 0 }
  const conduct = (response: ServerResponse) => {
    const [, orderId = ''] = String(response.req.headers['webhook-id']).split('_')
    const respond = () => void response.end('ok')
    if (run.held) run.held.push({ orderId, respond })
    else respond()
  }
  const stand = await startReceivers(Object.fromEntries(merchants.map(({ mid }) => [mid, conduct])))
  const notified = await forEach(merchants, 1, async ({ mid }): Promise<Notified> => {
    const receiver = stand.add(mid)
    const add = ['webhooks', 'add', '--mid', mid, '--url', receiver.url]
    receiver.secrets.push(String((await runBuiltOps(BUILT_OPS, { DATABASE_URL: url, ...environment }, ...add)).secret))
    return { mid, receiver, isWhole: true }
  })

  const notes: string[] = []
  for (const name of NAMES) for (const ending of ENDINGS) notes.push(await killOften(run, name, ending))
  progress('batches: waiting for the repeats of the killed instances')
  await untilDelivered(db)
  const events = notified.flatMap(({ receiver }) => [...receiver.events.values()])
  const again = events.filter(({ calls }) => calls > 1).length
  progress(`batches: ${ORDERS_WITHOUT_KILLS} orders without a kill`)
  const undisturbed = addOrders(run, ORDERS_WITHOUT_KILLS / MERCHANTS)
  await forEach(undisturbed, CONCURRENT_ORDERS, async (order) => pay(run, await create(run, order)))
  await untilDelivered(db)

  const { broken } = await undelivered(db, notified)
  broken.push(...(await compareOrders(run)))
  const callsOf = new Map(
    notified.flatMap(({ receiver }) => [...receiver.events]).map(([id, { calls }]) => [id, calls]),
  )
  const notOnce = undisturbed.filter(({ orderId }) => callsOf.get(`msg_${orderId}_1`) !== 1)
  if (notOnce.length > 0) broken.push(`without a kill each event is delivered once: ${notOnce.length} are not`)
  if (again === 0) broken.push('the test itself: no event was delivered again')
  notes.push(
    `${run.orders.length} orders, each with one payment and one event; ${run.repeats} requests were repeated, and ${again} of ${events.length} events were delivered again`,
  )
  client.close()
  await run.service.stop()
  stand.close()
  await db.end()
  return [{ fault: `batches: ${NAMES.length * ENDINGS.length * KILLS_OF_ENDING} kills`, notes, broken }]
}

/** Kills the service KILLS_OF_ENDING times in batches of several items with this ending. */
async function killOften(run: Run, name: BatchName, ending: Ending): Promise<string> {
  progress(`batches: ${name}, ${ending}`)
  const marked: number[] = []
  let tries = 0
  while (marked.length < KILLS_OF_ENDING) {
    if (++tries > MOST_TRIES) throw new Error(`no batch of ${name} was ${ending}`)
    const { rows, isAsIntended } = await killOnce(run, name, ending)
    if (rows > 1 && isAsIntended) marked.push(rows)
  }
  return `${name}, ${ending}: rows marked before each kill: ${marked.join(', ')}; ${tries} tries`
}

/** Pays and delivers new orders, and kills the service in a batch of them. */
async function killOnce(run: Run, name: BatchName, ending: Ending) {
  const orders = addOrders(run, ORDERS_OF_MERCHANT)
  const lastMid = orders.at(-1)?.merchant.mid as string
  const createAll = () => Promise.all(orders.map((order) => create(run, order)))
  const payAll = () => Promise.all(orders.map((order) => pay(run, order)))
  if (name === 'new orders') {
    const kill = await killIn(run, { name, ending, key: lastMid }, createAll)
    await payAll()
    return kill
  }
  await createAll()
  if (name === 'first payments') return killIn(run, { name, ending, key: lastMid }, payAll)
  const held: NonNullable<Run['held']> = []
  run.held = held
  await payAll()
  await until('the endpoints receive events', () => held.length >= HELD_CALLS)
  run.held = undefined
  // The statement processes the deliveries in the order of their merchants.
  const places = new Map(orders.map(({ orderId }, place) => [orderId, place]))
  const calls = held.sort((one, other) => (places.get(one.orderId) ?? -1) - (places.get(other.orderId) ?? -1))
  const respondAll = async () => calls.forEach(({ respond }) => void respond())
  return killIn(run, { name, ending, key: calls.at(-1)?.orderId as string }, respondAll)
}

/** Locks the row of `key`, begins `work`, and kills the service once a batch waits for the row. Then starts it again. */
async function killIn(
  run: Run,
  { name, ending, key }: { name: BatchName; ending: Ending; key: string },
  work: () => Promise<unknown>,
): Promise<{ rows: number; isAsIntended: boolean }> {
  const { begins, lock, marked } = BATCHES[name]
  const { db, service } = run
  const holder = await db.connect()
  await holder.query('begin')
  await holder.query(`select from ${lock} for update`, [key])
  const { rows: sessions } = await holder.query<{ pid: number }>('select pg_backend_pid() as pid')
  const done = work()
  let batch: { pid: number; xid: string } | undefined
  const findBatch = async () => {
    batch = (await db.query<{ pid: number; xid: string }>(WAITING_BATCH, [begins, sessions[0]?.pid])).rows[0]
    return batch !== undefined
  }
  await until(`a batch of ${name} waits`, findBatch, { pollMs: POLL_MS })
  const { pid, xid } = batch as unknown as { pid: number; xid: string }
  if (ending === 'committed before the kill') process.kill(service.pid, 'SIGSTOP')
  else await service.killHard()
  const { rowCount } = await db.query(`select from ${marked} where xmax = $1::xid`, [xid])
  if (ending === 'rolled back') await db.query('select pg_terminate_backend($1)', [pid])
  await holder.query('rollback')
  holder.release()
  let status = ''
  const isOver = async () => {
    status = (await db.query<{ status: string }>(STATUS_OF_TRANSACTION, [xid])).rows[0]?.status as string
    return status !== 'in progress'
  }
  await until('PostgreSQL has ended the batch', isOver)
  await service.killHard()
  run.service = await run.start()
  await done
  const intended = ending === 'rolled back' ? 'aborted' : 'committed'
  return { rows: rowCount ?? 0, isAsIntended: status === intended }
}

/** Adds `count` orders of each merchant, in the order of the merchants. */
function addOrders(run: Run, count: number): Order[] {
  const names = () => ({ orderId: randomUUID(), idempotencyKey: randomUUID() })
  const added = run.merchants.flatMap((merchant) =>
    Array.from({ length: count }, () => ({ merchant, names: names(), orderId: '', utr: newUtr() })),
  )
  run.orders.push(...added)
  return added
}

async function create(run: Run, order: Order): Promise<Order> {
  order.orderId = createdOrderId(await insist(run, creation(order.merchant, order.names))) as string
  return order
}

const pay = (run: Run, { orderId, utr }: Order) => insist(run, notificationRequest(orderId, utr))

/** Sends a request until it gets a response other than 503. */
async function insist(run: Run, request: Request): Promise<HttpResponse> {
  for (;;) {
    const response = await run.client.send(run.service.url, request)
    if (response.status === 200) return response
    if (response.status !== undefined && response.status !== 503)
      throw new Error(`${request.path}: ${response.status} ${response.text}`)
    run.repeats++
    await sleep(RETRY_MS)
  }
}

const untilDelivered = (db: Database) =>
  until('every event is delivered', async () => (await db.query(PENDING)).rowCount === 0, { timeoutMs: DRAIN_LIMIT_MS })

async function compareOrders({ db, orders }: Run): Promise<string[]> {
  const { rows } = await db.query<{ name: string; orderId: string; utr: string; isWhole: boolean }>(STORED)
  const stored = new Map(rows.map((row) => [row.name, row]))
  const lost = orders.filter(({ names, orderId, utr }) => {
    const row = stored.get(names.orderId)
    return !(row?.orderId === orderId && row.utr === utr && row.isWhole)
  })
  const promises: [boolean, string][] = [
    [rows.length === orders.length, `each order is stored once: ${rows.length} of ${orders.length}`],
    [lost.length === 0, `each order has its payment and its delivered event, once: ${lost.length} have not`],
  ]
  return promises.flatMap(([holds, promise]) => (holds ? [] : promise))
}

const WAITING_BATCH = `
  select pid, backend_xid::text as xid
    from pg_stat_activity
   where starts_with(query, $1) and state = 'active' and backend_xid is not null and $2 = any (pg_blocking_pids(pid))`

const STATUS_OF_TRANSACTION = 'select pg_xact_status($1::xid8) as status'

const PENDING = 'select from webhook_deliveries where due_at is not null limit 1'

const STORED = `
  select merchant_order_id as name, order_id as "orderId", utr,
         status = 'SUCCESS' and not exists (select from payment_exceptions e where e.mid = i.mid and e.order_id = i.order_id)
         and (select array_agg(p.utr) from payments p where p.mid = i.mid and p.order_id = i.order_id) = array[i.utr]
         and (select array_agg(d.delivered_at is not null) from webhook_deliveries d
               where d.mid = i.mid and d.order_id = i.order_id) = array[true] as "isWhole"
    from payment_intents i`
