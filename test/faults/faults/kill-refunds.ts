import { setTimeout as sleep } from 'node:timers/promises'
import { createAccounts, createAcquirers } from '../../../src/gateway/acquirers/acquirers.ts'
import { refundJobs } from '../../../src/gateway/acquirers/carry-out-refunds.ts'
import { createRefund, type RefundResult } from '../../../src/gateway/refunds/create-refund.ts'
import { createPendingRefunds } from '../../../src/gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from '../../../src/gateway/refunds/record-update.ts'
import { LIMITS } from '../../../src/limits.ts'
import type { Database } from '../../../src/platform/db/pool.ts'
import { createOutboundClient } from '../../../src/platform/outbound/http-client.ts'
import { createHttpClient } from '../../support/http-client.ts'
import { runPendingJobs } from '../../support/pending-jobs.ts'
import { freePort } from '../../support/processes.ts'
import { createdOrderId, createRequest, forEach } from '../../support/requests.ts'
import type { FakeSetu } from '../../support/setu-bank.ts'
import { type NewMerchant, newMerchant } from '../../support/tenants.ts'
import { allow } from '../../support/webhooks.ts'
import { openBank } from '../bank.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, ms } from '../verdict.ts'

const PAYMENTS = 2_000
/** Of ten concurrent refunds of one payment, three fit. */
const STORMS = 20
const STORM = 10
/** Single payments with a full refund or one of half the amount. */
const SINGLES = 540
const KILLS = 20
const KILL_EVERY_MS = 2_000
const DATABASE_KILLS = 5
const CONCURRENT_MERCHANTS = 16
const MERCHANTS = 4
const RETRY_MS = 250
/** Faults of refund calls. A rejected call has no effect; one that arrives later is not listed until then. */
const SENDINGS = [
  { call: 'refund', fault: 'no response', chance: 0.2 },
  { call: 'refund', fault: { status: 400 }, chance: 0.06 },
  { call: 'refund', fault: { arrivesAfterMs: 4_000 }, chance: 0.07 },
] as const
const ENDS = { late: 0.1, failed: 0.02, lost: 0.2, repeated: 0.2, contradicted: 0.01 }
/** Seconds by which every refund is aged after the kills, until it has been checked after 24 hours. */
const PASSING_SECONDS = [60, 540, 3_000, 21_600, 21_600, 21_600, 21_600]
const DONE_LIMIT_MS = 120_000
const MOST_EXCEPTIONS = 0.03

type Refund = {
  mid: string
  our_refund_id: string
  order_id: string
  utr: string
  amount_paise: number
  status: string
  reference: string
  kinds: string[]
}

/**
 * Sends refunds to a bank that loses responses, completes refunds late, rejects, contradicts itself and executes some
 * calls only later, while one of two instances and the database are killed, and two instances pause between marking a
 * refund as sent and sending it. Then compares the bank's records with the database.
 */
export async function killRefunds({ postgres }: Stage): Promise<Finding[]> {
  const { url, db } = await setScene(postgres, 'refunds')
  const { bank, merchant, settings } = await openBank(db)
  const others = Array.from({ length: MERCHANTS - 1 }, (_, number) =>
    newMerchant(db, { acquirer: 'setu', acquirerMerchantId: `01ARZ3NDEKTSV4RRFFQ69G5F0${number}` }),
  )
  const merchants = [merchant, ...(await Promise.all(others))]
  const environment = { PORT: String(await freePort()), ...settings }
  let service = await startService(url, environment)
  const second = await startService(url, settings)
  bank.notifyUrl = `${service.url}/acquirer/setu/notification`
  const orders = await takePayments(bank, merchants, service.url)

  Object.assign(bank, { faults: [...SENDINGS], retriesNotifications: true })
  bank.refunds.faults = ENDS
  const startedAt = performance.now()
  const [created] = await Promise.all([makeRefunds(db, orders), killServices(), killDatabases()])
  const loadMs = performance.now() - startedAt

  bank.faults = []
  for (const instance of [service, second]) await instance.stop()
  const stoodStill = await standStill()
  service = await startService(url, environment)
  let passed = 0
  for (const seconds of PASSING_SECONDS) {
    await untilNothingIsPending()
    await db.query(`update refunds set sent_at = sent_at - $1::interval, due_at = due_at - $1::interval`, [
      `${seconds} seconds`,
    ])
    passed += seconds
    if (passed > 4_000) await bank.refunds.endLate()
    await bank.sendWaiting()
  }
  await untilNothingIsPending()
  const { broken, notes } = await compareBooks(db, bank, created)
  await bank.goAway()
  await service.stop()
  await db.end()
  return [
    {
      fault: `refunds, ${KILLS} kills of the service, ${DATABASE_KILLS} of PostgreSQL`,
      notes: [`${created} refunds of ${orders.length} payments in ${ms(loadMs)}; ${stoodStill}`, ...notes],
      broken,
    },
  ]

  async function killServices() {
    for (let kill = 0; kill < KILLS; kill++) {
      // Varies the time, so that not every kill meets the start of a run, when most refunds are marked and not yet
      // sent.
      await sleep(KILL_EVERY_MS + ((kill * 137) % 1_000))
      await service.killHard()
      service = await startService(url, environment)
    }
  }

  async function killDatabases() {
    for (let kill = 0; kill < DATABASE_KILLS; kill++) {
      await sleep((KILLS * KILL_EVERY_MS) / DATABASE_KILLS)
      postgres.killHard()
      await postgres.restart()
    }
  }

  /**
   * Lets two instances mark refunds and wait for a token. Stops both, checks the status of all marked refunds from
   * this process, and then lets both continue.
   */
  async function standStill(): Promise<string> {
    let hand: (value?: unknown) => void = () => undefined
    const token = { until: new Promise((resolve) => (hand = resolve)) }
    bank.nextFaults = { logIn: [token, token] }
    const instances = await Promise.all([startService(url, settings), startService(url, settings)])
    const before = bank.countOf('refund')
    await db.query('update refunds set due_at = null where status = $1', ['PENDING'])
    const held = orders.slice(-16)
    await forEach(held, 16, (order) => refundOnce(db, order, `held-${order.orderId}`, 100))
    const marked = await until(8, `status = 'PENDING' and refund_id like 'held-%' and sent_at is not null`)
    for (const { child } of instances) child.kill('SIGSTOP')
    hand()
    const { look, statusChecks } = startChecking()
    await db.query(`update refunds set due_at = now() where refund_id like 'held-%' and sent_at is not null`)
    await look()
    const checked = statusChecks()
    for (const { child } of instances) child.kill('SIGCONT')
    await until(held.length, `refund_id like 'held-%' and status <> 'PENDING'`)
    for (const instance of instances) await instance.stop()
    await db.query(`update refunds set due_at = now() where status = 'PENDING'`)
    return `${marked} were marked by two paused instances, ${checked} were checked in the meantime, ${bank.countOf('refund') - before} sent`
  }

  function startChecking() {
    const now = () => new Date()
    const limits = LIMITS.outbound
    const http = createOutboundClient({ allowedNetworks: allow(), limits, now })
    const log = { warn: () => undefined, error: () => undefined } as never
    const setu = {
      apiUrl: bank.url,
      loginUrl: bank.loginUrl,
      clientId: settings.SETU_CLIENT_ID as string,
      clientSecret: settings.SETU_CLIENT_SECRET as string,
      notificationSecrets: ['of0nobody0of0nobody0'],
    }
    const { clientOf } = createAcquirers(createAccounts({ direct: [], setu }), http, {
      ...{ log, onCall: () => undefined, limits: LIMITS.acquirers, elapsedMs: () => performance.now() },
    })
    const before = bank.countOf('refundsOfPayment')
    const due = createPendingRefunds(db)
    const source = refundJobs({
      pending: due,
      updates: createRefundUpdates(db),
      clientOf,
      now,
      limits: LIMITS.acquirers,
    })
    return { look: () => runPendingJobs(source), statusChecks: () => bank.countOf('refundsOfPayment') - before }
  }

  /** Waits until at least `most` refunds meet the condition, or for 30 s. */
  async function until(most: number, condition: string): Promise<number> {
    for (const end = performance.now() + 30_000; ; await sleep(50)) {
      const { rows } = await db.query(`select count(*)::integer as count from refunds where ${condition}`)
      if (rows[0].count >= most || performance.now() > end) return rows[0].count
    }
  }

  async function untilNothingIsPending() {
    for (const end = performance.now() + DONE_LIMIT_MS; ; await sleep(300)) {
      const { rows } = await db.query('select count(*)::integer as due from refunds where due_at <= now()')
      if (rows[0].due === 0) break
      if (performance.now() > end) throw new Error(`${rows[0].due} refunds were not processed`)
    }
    // Waits for the responses to the last calls.
    await sleep(LIMITS.outbound.acquirerMs + 500)
  }
}

type Order = { mid: string; orderId: string; paise: number }

async function takePayments(bank: FakeSetu, merchants: NewMerchant[], url: string): Promise<Order[]> {
  const client = createHttpClient()
  const numbers = Array.from({ length: PAYMENTS }, (_, number) => number)
  const orders: Order[] = []
  await forEach(numbers, CONCURRENT_MERCHANTS, async (number) => {
    const merchant = merchants[number % merchants.length] as NewMerchant
    const response = await client.send(url, createRequest(merchant, { order_id: `order-${number}` }))
    const orderId = createdOrderId(response)
    if (orderId === undefined) throw new Error(`a create returned ${response.status}: ${response.text}`)
    const { payment, responses } = await bank.pay(orderId)
    if (responses.at(-1) !== 200) throw new Error(`a payment notification returned ${responses}`)
    orders.push({ mid: merchant.mid, orderId, paise: payment.amount })
  })
  client.close()
  return orders
}

/** Creates the refunds, each until it is stored or rejected. Returns how many were stored. */
async function makeRefunds(db: Database, orders: Order[]): Promise<number> {
  let created = 0
  const refund = async (order: Order, name: string, paise: number | undefined) => {
    if ('refund' in (await refundOnce(db, order, name, paise))) created++
  }
  const storms = orders.slice(0, STORMS)
  const singles = orders.slice(STORMS, STORMS + SINGLES)
  const begin = performance.now()
  const pauseMs = (KILLS * KILL_EVERY_MS) / SINGLES
  await Promise.all([
    forEach(storms, 1, async (order) => {
      const part = Math.floor(order.paise * 0.3)
      await Promise.all(Array.from({ length: STORM }, (_, number) => refund(order, `storm-${number}`, part)))
      await sleep((KILLS * KILL_EVERY_MS) / STORMS)
    }),
    forEach(singles, CONCURRENT_MERCHANTS, async (order, number) => {
      await sleep(Math.max(0, begin + number * pauseMs - performance.now()))
      if (number % 2 === 0) return refund(order, 'full', undefined)
      await refund(order, 'part', Math.ceil(order.paise / 2))
    }),
  ])
  return created
}

/** Retries like a merchant's server until the result is known. */
async function refundOnce(db: Database, order: Order, name: string, paise: number | undefined): Promise<RefundResult> {
  const { mid, orderId } = order
  const refundId = `${name}-${orderId}`.slice(0, 40)
  for (;;) {
    const checked = { mid, orderId, refundId, amount: paise, note: 'sold out', createdBy: 'merchant' }
    const created = await createRefund(db, checked, new Date()).catch(() => undefined)
    if (created) return created
    await sleep(RETRY_MS)
  }
}

async function compareBooks(db: Database, bank: FakeSetu, created: number) {
  const { rows } = await db.query<Refund>(
    `select r.*, array(select e.kind from payment_exceptions e where e.mid = r.mid and e.our_refund_id = r.our_refund_id) as kinds
       from refunds r`,
  )
  const booked = mapBy(bank.refunds.all, ({ ourRefundId }) => ourRefundId)
  const here = new Map(rows.map((row) => [row.our_refund_id, row]))
  const wentBack = bank.refunds.all.filter(({ status }) => status === 'success')
  const sum = (amounts: number[]) => amounts.reduce((total, amount) => total + amount, 0)
  const bankPaise = sum(wentBack.map(({ amount }) => amount))
  const ourPaise = sum(rows.filter(({ status }) => status === 'SUCCESS').map((row) => row.amount_paise))
  const doubled = [...booked].filter(([, refunds]) => refunds.length > 1)
  const unknown = [...booked.keys()].filter((name) => !here.has(name))
  const isSo = ({ our_refund_id, status, reference, amount_paise }: Refund) => {
    const row = booked.get(our_refund_id)?.[0]
    if (row === undefined || row.status === 'failed') return status !== 'SUCCESS'
    return status === 'SUCCESS' && reference === row.reference && amount_paise === row.amount
  }
  const wrong = rows.filter((row) => !isSo(row))
  const open = rows.filter(({ status, kinds }) => status === 'PENDING' && kinds.length === 0)
  const kinds = mapBy(
    rows.flatMap((row) => row.kinds),
    (kind) => kind,
  )
  const exceptions = rows.filter((row) => row.kinds.length > 0)
  const { rows: above } = await db.query(
    `select p.utr from payments p join refunds r on r.mid = p.mid and r.utr = p.utr and r.status <> 'FAIL'
      group by p.mid, p.utr, p.amount_paise having sum(r.amount_paise) > p.amount_paise`,
  )
  const paidBack = mapBy(wentBack, ({ paymentId }) => paymentId)
  const aboveThere = bank.paid().filter(({ id, amount }) => sum((paidBack.get(id) ?? []).map((r) => r.amount)) > amount)
  const promises: [boolean, string][] = [
    [rows.length >= created, `every created refund is stored: ${rows.length} of ${created}`],
    [created >= SINGLES, `most refunds are created: ${created}`],
    [bankPaise === ourPaise, `the bank's refunded sum equals the database's: ${bankPaise} and ${ourPaise} paise`],
    [doubled.length === 0, `no refund is paid twice: ${doubled.length} are`],
    [unknown.length === 0, `the database has every refund of the bank: ${unknown.length} are missing`],
    [wrong.length === 0, `each refund has the bank's final status: ${wrong.length} differ`],
    [open.length === 0, `each refund has a final status or an exception: ${open.length} have neither`],
    [
      above.length + aboveThere.length === 0,
      `no payment is refunded above its amount: ${above.length} in the database and ${aboveThere.length} at the bank are`,
    ],
    [
      exceptions.length <= rows.length * MOST_EXCEPTIONS,
      `few refunds need the operator: ${exceptions.length} of ${rows.length} do`,
    ],
    [bank.violations.length === 0, `every request follows Setu's documents: ${bank.violations[0]}`],
  ]
  const counts = [...kinds].map(([kind, of]) => `${of.length} ${kind}`)
  const ended = [...mapBy(rows, ({ status }) => status)].map(([status, of]) => `${of.length} ${status}`)
  return {
    broken: promises.flatMap(([holds, promise]) => (holds ? [] : promise)),
    notes: [
      `${ended.join(', ')}; ${bank.countOf('refund')} refund calls, ${bank.countOf('refundsOfPayment')} status checks; ₹${ourPaise / 100} refunded`,
      `exceptions: ${counts.join(', ') || 'none'}`,
    ],
  }
}

function mapBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>()
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one])
  return groups
}
