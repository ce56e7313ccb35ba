import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildIntent, type Intent } from '../../../src/gateway/payments/intent.ts'
import { createIntents } from '../../../src/gateway/payments/intents.ts'
import { EXPIRY_GRACE_MINUTES } from '../../../src/gateway/payments/outcome.ts'
import { createMerchants } from '../../../src/gateway/tenants/merchants.ts'
import { LIMITS } from '../../../src/limits.ts'
import { NOTIFY, newUtr, notification, sign } from '../../support/acquirer.ts'
import { createHttpClient, type HttpClient, type Request } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { freePort } from '../../support/processes.ts'
import { CANCEL, forEach, newPayment, statusRequest } from '../../support/requests.ts'
import { BUILT_OPS, type ServerProcess } from '../../support/server-process.ts'
import { type NewMerchant, newMerchant } from '../../support/tenants.ts'
import { progress } from '../../support/workspace.ts'
import { type Notified, undelivered } from '../notified.ts'
import { type Conduct, type Receiver, startReceivers } from '../receivers.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, ms } from '../verdict.ts'

const EXPIRY_MINUTES = 15
const PAYMENTS_PER_SECOND = 110
const CONCURRENT_PAYMENTS = 48
const RETRY_MS = 250
const SERVICE_KILLS = 10
const SERVICE_KILL_EVERY_MS = 9_000
const DATABASE_KILLS = 5
const DATABASE_KILL_EVERY_MS = 17_000
const DATABASE_AWAY_MS = 1_000
/** Time after the start at which unpaid orders become final. */
const EXPIRE_FROM_MS = 30_000
const EXPIRE_UNTIL_MS = 90_000
/** Deliveries scheduled later than this wait for the third attempt: after 5 min, or on the operator's resend. */
const SOON_MS = 15_000
/** A killed instance blocks an endpoint for 40 s, and the slowest responses take as long. */
const DRAIN_LIMIT_MS = 150_000
/** Four for each of the two instances. */
const MOST_CALLS_UNDER_WAY = 2 * LIMITS.webhooks.callsOfEndpoint

const ok = (response: ServerResponse) => void response.end('ok')
const firstly =
  (first: (response: ServerResponse) => void): Conduct =>
  (response, call) =>
    call === 1 ? first(response) : ok(response)
const unlessHealed =
  (broken: (response: ServerResponse) => void): Conduct =>
  (response, _call, isHealed) =>
    isHealed ? ok(response) : broken(response)

const upgrade = ({ socket }: ServerResponse) =>
  void socket?.write('HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n')

const CONDUCTS: Record<string, Conduct> = {
  prompt: ok,
  'a second one': ok,
  '500 at first': firstly((response) => void response.writeHead(500).end('<h1>Oops</h1>')),
  '429 at first': firstly((response) => void response.writeHead(429, { 'retry-after': '7' }).end()),
  '301 at first': firstly((response) => void response.writeHead(301, { location: '/elsewhere' }).end()),
  'cuts at first': firstly((response) => void response.destroy()),
  'cuts in the middle at first': firstly((response) => {
    response.writeHead(200, { 'content-length': '1000' }).write('half')
    response.destroy()
  }),
  'another protocol at first': firstly((response) => upgrade(response)),
  'another protocol and a reset at first': firstly((response) => {
    upgrade(response)
    setTimeout(() => response.socket?.resetAndDestroy(), 50)
  }),
  'endless body': (response) => {
    const more = () => {
      while (!response.destroyed && response.write('x'.repeat(65_536)));
    }
    response.on('drain', more)
    more()
  },
  slow: (response) => void setTimeout(() => ok(response), 300),
  'very slow': (response) => void setTimeout(() => ok(response), 5_000),
  'never, until fixed': unlessHealed(() => undefined),
  '500, until fixed': unlessHealed((response) => void response.writeHead(500).end()),
  '410, until fixed': unlessHealed((response) => void response.writeHead(410).end()),
}

const UNTIL_MENDED = ', until fixed'
/** Disabled by its first response, so it gets no events until it is enabled. */
const GONE = '410, until fixed'

const MERCHANTS: { payments: number; endpoints: (keyof typeof CONDUCTS)[] }[] = [
  { payments: 4_220, endpoints: ['prompt', 'a second one'] },
  { payments: 1_500, endpoints: ['500 at first'] },
  { payments: 900, endpoints: ['429 at first'] },
  { payments: 800, endpoints: ['301 at first'] },
  { payments: 700, endpoints: ['cuts at first'] },
  { payments: 500, endpoints: ['cuts in the middle at first'] },
  { payments: 200, endpoints: ['another protocol at first'] },
  { payments: 200, endpoints: ['another protocol and a reset at first'] },
  { payments: 400, endpoints: ['endless body'] },
  { payments: 300, endpoints: ['slow'] },
  { payments: 30, endpoints: ['very slow'] },
  { payments: 40, endpoints: ['never, until fixed'] },
  { payments: 150, endpoints: ['500, until fixed'] },
  { payments: 60, endpoints: [GONE] },
]

type Step = 'SUCCESS' | 'FAIL' | 'REJECT' | 'CANCEL' | 'WAIT FOR EXPIRY'

/** The course of payments, assigned in rotation: of 20 orders 13 are paid immediately. */
const STORIES: Step[][] = [
  ...Array.from({ length: 13 }, (): Step[] => ['SUCCESS']),
  ['FAIL', 'SUCCESS'],
  ['REJECT', 'FAIL', 'SUCCESS'],
  ['CANCEL'],
  ['CANCEL', 'SUCCESS'],
  ['WAIT FOR EXPIRY'],
  ['FAIL', 'WAIT FOR EXPIRY'],
  ['WAIT FOR EXPIRY', 'SUCCESS'],
]

type Merchant = { merchant: NewMerchant; receivers: Receiver[] }
type Payment = { merchant: Merchant; orderId: string; finalAt: number; story: Step[] }

/**
 * Two instances deliver the events of 10,000 payments to endpoints that fail in every way, while one instance is
 * killed every 9 s and PostgreSQL five times. Then the merchants fix their endpoints, and the operator resends the
 * missing events.
 */
export async function notifyMerchants({ postgres }: Stage): Promise<Finding[]> {
  const { url, db } = await setScene(postgres, 'webhooks')
  const environment = {
    INTENT_EXPIRY_MINUTES: String(EXPIRY_MINUTES),
    WEBHOOK_SEALING_KEY: randomBytes(32).toString('base64'),
    WEBHOOK_ALLOWED_NETWORKS: '127.0.0.1/32',
  }
  const ops = (...args: string[]) => runBuiltOps(BUILT_OPS, { DATABASE_URL: url, ...environment }, ...args)
  const stand = await startReceivers(CONDUCTS)
  const endpointIds = new Map<Receiver, string>()
  const shops: Merchant[] = []
  await addShops()
  const everyone = shops.flatMap(({ receivers }) => receivers)
  const startedAt = Date.now()
  const payments = await makePayments()

  const instances = await Promise.all([startInstance(), startInstance()])
  let endedByItself = 0
  const client = createHttpClient()
  const loadBegan = performance.now()
  progress(`webhooks: ${payments.length} payments`)
  const killing = Promise.all([killInstances(), killDatabase()])
  const responded = await payAll(client)
  await killing
  const loadMs = performance.now() - loadBegan

  const { resent, left } = await healAndResend()
  const { broken, events } = await judge(left)
  const repeats = everyone.flatMap(({ events }) => [...events.values()]).filter(({ calls }) => calls > 1).length
  await Promise.all(instances.map(({ process }) => process.stop()))
  client.close()
  stand.close()
  await db.end()
  return [
    {
      fault: `webhooks: ${SERVICE_KILLS} kills of two instances, ${DATABASE_KILLS} of PostgreSQL`,
      notes: [
        `${payments.length} payments in ${ms(loadMs)}; ${responded.again} requests got 503 or no response and were repeated`,
        `${events} events arrived in ${everyone.reduce((sum, { calls }) => sum + calls, 0)} calls, ${repeats} of them more than once; the operator resent ${resent}`,
      ],
      broken: [...responded.faults, ...broken],
    },
  ]

  async function addShops() {
    for (const { endpoints } of MERCHANTS) {
      const store: Merchant = { merchant: await newMerchant(db), receivers: [] }
      for (const name of endpoints) {
        const receiver = stand.add(name)
        const added = await ops('webhooks', 'add', '--mid', store.merchant.mid, '--url', receiver.url)
        receiver.secrets.push(String(added.secret))
        endpointIds.set(receiver, String(added.id))
        store.receivers.push(receiver)
      }
      shops.push(store)
    }
  }

  /** Lets the merchants fix their endpoints and the operator resend. Returns the number of events resent, and left over. */
  async function healAndResend() {
    progress('webhooks: waiting for the second attempts')
    const isBroken = ({ name }: Receiver) => name.endsWith(UNTIL_MENDED)
    const ids = (receivers: Receiver[]) => receivers.map((receiver) => endpointIds.get(receiver) as string)
    await untilOver(ids(everyone.filter((receiver) => !isBroken(receiver))), SOON_MS)
    progress('webhooks: the merchants fix their endpoints')
    for (const receiver of everyone) receiver.isHealed = true
    for (const receiver of everyone) {
      if (receiver.name === GONE) await ops('webhooks', 'enable', '--endpoint', endpointIds.get(receiver) as string)
    }
    await untilOver(ids(everyone), SOON_MS)
    progress('webhooks: the operator resends events that wait for a third attempt')
    const since = new Date(startedAt - 60_000).toISOString()
    let resent = 0
    for (const { merchant } of shops) {
      const { rowCount } = await db.query(
        'select from webhook_deliveries where mid = $1 and due_at is not null limit 1',
        [merchant.mid],
      )
      if (rowCount) resent += Number((await ops('webhooks', 'resend', '--mid', merchant.mid, '--since', since)).resent)
    }
    const left = await untilOver(ids(everyone), Number.POSITIVE_INFINITY)
    return { resent, left }
  }

  /** Returns the promises that were broken, with the number of events that arrived. */
  async function judge(left: number) {
    const notified: Notified[] = shops.flatMap(({ merchant: { mid }, receivers }) => {
      return receivers.map((receiver) => ({ mid, receiver, isWhole: receiver.name !== GONE }))
    })
    const { broken, events } = await undelivered(db, notified)
    if (left > 0) broken.push(`every event is delivered in the end: ${left} are not`)
    const tooMany = everyone.filter(({ mostUnderWay }) => mostUnderWay > MOST_CALLS_UNDER_WAY)
    broken.push(
      ...tooMany.map(
        ({ name, mostUnderWay }) => `at most ${MOST_CALLS_UNDER_WAY} concurrent calls: ${mostUnderWay} to "${name}"`,
      ),
    )
    if (stand.strays.length > 0) broken.push(`no redirect is followed: ${stand.strays.length} were`)
    endedByItself += instances.filter(({ process }) => process.hasEnded()).length
    if (endedByItself > 0) broken.push(`no response stops an instance: ${endedByItself} exited by themselves`)
    const open = await stand.openConnections()
    if (open > 0) broken.push(`no connection is left open: ${open} are`)
    return { broken, events }
  }

  /** Creates orders, of which expiring ones are old enough to become final during the run. */
  async function makePayments(): Promise<Payment[]> {
    const intents = createIntents({ creates: db, requests: db, pages: db }, () => undefined)
    const merchants = createMerchants(db)
    const created: { intent: Intent; payment: Payment }[] = []
    for (const [number, store] of shops.entries()) {
      const merchant = await merchants.find(store.merchant.mid)
      if (merchant === undefined) throw new Error('the merchant was created above')
      for (let i = 0; i < (MERCHANTS[number]?.payments ?? 0); i++) {
        const story = STORIES[i % STORIES.length] as Step[]
        const minutes = EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES
        const finalAt = startedAt + EXPIRE_FROM_MS + Math.random() * (EXPIRE_UNTIL_MS - EXPIRE_FROM_MS)
        const createdAt = story.includes('WAIT FOR EXPIRY') ? new Date(finalAt - minutes * 60_000) : new Date()
        const intent = buildIntent(newPayment(merchant.mid), merchant, {
          now: createdAt,
          expiryMinutes: EXPIRY_MINUTES,
        })
        const final = createdAt.getTime() + minutes * 60_000
        created.push({ intent, payment: { merchant: store, orderId: intent.orderId, finalAt: final, story } })
      }
    }
    await forEach(created, 500, ({ intent }) => intents.insert(intent))
    // Orders with failed attempts before their expiry come first.
    const order = new Map(created.map(({ payment }) => [payment, isUrgent(payment) ? 0 : 1 + Math.random()]))
    return created.map(({ payment }) => payment).toSorted((a, b) => (order.get(a) as number) - (order.get(b) as number))
  }

  async function startInstance() {
    const port = String(await freePort())
    const start = () => startService(url, { ...environment, PORT: port })
    return { process: await start(), start }
  }

  async function killInstances() {
    for (let kill = 0; kill < SERVICE_KILLS; kill++) {
      await sleep(SERVICE_KILL_EVERY_MS)
      const instance = instances[kill % 2] as { process: ServerProcess; start: () => Promise<ServerProcess> }
      if (instance.process.hasEnded()) endedByItself++
      await instance.process.killHard()
      instance.process = await instance.start()
    }
  }

  async function killDatabase() {
    for (let kill = 0; kill < DATABASE_KILLS; kill++) {
      await sleep(DATABASE_KILL_EVERY_MS)
      postgres.killHard()
      await sleep(DATABASE_AWAY_MS)
      await postgres.restart()
    }
  }

  /** Reports every payment to the service like bank and merchant, until it is accepted. */
  async function payAll(client: HttpClient) {
    const faults: string[] = []
    let again = 0
    const insist = async (request: () => Request) => {
      for (;;) {
        const { process } = instances[Math.floor(Math.random() * 2)] as { process: ServerProcess }
        const { status, text } = await client.send(process.url, request())
        if (status === 200) return
        if (status !== 503 && status !== undefined) return void faults.push(`${request().path}: ${status} ${text}`)
        again++
        await sleep(RETRY_MS)
      }
    }
    const live = async ({ merchant: store, orderId, finalAt, story }: Payment) => {
      for (const step of story) {
        if (step === 'WAIT FOR EXPIRY') {
          if (story.at(-1) !== step) await sleep(Math.max(0, finalAt - Date.now()) + Math.random() * 3_000)
        } else if (step === 'CANCEL') {
          await insist(() => ({ ...statusRequest(store.merchant, orderId), path: CANCEL }))
        } else {
          const report = { status: step, UTR: newUtr(), paidAt: new Date().toISOString() }
          await insist(() => reportRequest(orderId, report))
          // Banks repeat notifications.
          if (Math.random() < 0.1) await insist(() => reportRequest(orderId, report))
        }
      }
    }
    const began = performance.now()
    const waiting: Promise<void>[] = []
    await forEach(payments, CONCURRENT_PAYMENTS, async (payment, number) => {
      await sleep(Math.max(0, began + (number * 1_000) / PAYMENTS_PER_SECOND - performance.now()))
      const done = live(payment)
      // Orders that wait for an expiry do not use the concurrency of the others.
      if (payment.story[0] === 'WAIT FOR EXPIRY') waiting.push(done)
      else await done
    })
    await Promise.all(waiting)
    return { again, faults }
  }

  /**
   * Waits until no order is about to expire and no delivery to these endpoints is scheduled within `soonMs`. Returns the
   * number left.
   */
  async function untilOver(endpoints: string[], soonMs: number): Promise<number> {
    const until = performance.now() + DRAIN_LIMIT_MS
    for (;;) {
      const { rows } = await db.query<{ waiting: number }>(
        `select (select count(*) from webhook_deliveries d join webhook_endpoints e using (mid, endpoint_id)
                  where e.disabled_at is null and e.endpoint_id = any ($1) and d.due_at <= $2)::integer
                + (select count(*) from webhook_expiries where final_at <= now() + interval '2 minutes')::integer as waiting`,
        [endpoints, Number.isFinite(soonMs) ? new Date(Date.now() + soonMs) : 'infinity'],
      )
      const waiting = rows[0]?.waiting ?? 0
      if (waiting === 0 || performance.now() > until) return waiting
      await sleep(500)
    }
  }
}

const isUrgent = ({ story }: Payment) => story.length > 1 && story.at(-1) === 'WAIT FOR EXPIRY'

function reportRequest(orderId: string, changes: { status: string; UTR: string; paidAt: string }): Request {
  const body = notification(orderId, changes)
  const headers = { 'content-type': 'application/json', 'x-signature': sign(body, new Date()) }
  return { method: 'POST', path: NOTIFY, headers, body }
}
