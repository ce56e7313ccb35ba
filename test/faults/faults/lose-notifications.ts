import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { createHttpClient } from '../../support/http-client.ts'
import { runBuiltOps } from '../../support/ops.ts'
import { freePort } from '../../support/processes.ts'
import { createdOrderId, createRequest, forEach } from '../../support/requests.ts'
import { BUILT_OPS } from '../../support/server-process.ts'
import { type AnyBank, type AnyPaid, BANKS } from '../bank.ts'
import { type Stage, setScene, startService } from '../stage.ts'
import { type Finding, ms } from '../verdict.ts'

const PAYMENTS = 2_000
const CONCURRENT_MERCHANTS = 16
/** Pause before a merchant repeats an order that got 503 or no response. */
const RETRY_MS = 250
/** Slow enough that kills and the bank's downtime meet orders in progress. */
const ORDERS_PER_SECOND = 60
const KILL_EVERY_MS = 7_000
const KILLS_UNDER_LOAD = 4
const AWAY_AFTER_MS = 10_000
const AWAY_MS = 30_000
/** Faults of each payment's notifications. No acquirer guarantees a sequence, so all arrive in reverse. */
const NOTIFICATIONS = { lost: 0.2, repeated: 0.2, reordered: 1, late: 0.05, forged: 0.05, contradicted: 0.02 }
const STATUS_CHECK_FAILS = 0.1
/** Seconds after the expiry; a status check is scheduled just before each. */
const STATUS_CHECKS_AFTER_SECONDS = [91, 481, 7_201]
const EXPIRY_MINUTES = 1
/** The service polls once a minute if no status check is scheduled sooner. */
const CHECKED_LIMIT_MS = 240_000

/**
 * A bank loses, repeats, reorders, delays, forges and contradicts its notifications and is down for 30 s, while the
 * service is killed five times. Then its orders expire, their status is checked, and its daily transaction report is
 * imported.
 */
export const loseNotifications =
  (acquirer: keyof typeof BANKS) =>
  async (stage: Stage): Promise<Finding[]> => {
    const { postgres, directory } = stage
    const { url, db } = await setScene(postgres, `acquirer_${acquirer}`)
    const { bank, merchant, settings, path, paid, statusChecks, failStatusChecks } = await BANKS[acquirer](db)
    Object.assign(bank, { notificationFaults: NOTIFICATIONS, retriesNotifications: true })
    const environment = {
      PORT: String(await freePort()),
      INTENT_EXPIRY_MINUTES: String(EXPIRY_MINUTES),
      ...settings,
    }
    let service = await startService(url, environment)
    bank.notifyUrl = service.url + path
    let kills = 0
    const killAndRestart = async () => {
      await service.killHard()
      service = await startService(url, environment)
      kills++
    }

    const startedAt = performance.now()
    const shops = buy(bank, merchant, () => service.url)
    await Promise.all([shops.done, beAway(bank), killWhileOpen()])
    const { rejected, faults, acknowledged, customers } = shops
    await Promise.all(customers)
    const loadMs = performance.now() - startedAt

    failStatusChecks(STATUS_CHECK_FAILS)
    let before = 0
    for (const [number, seconds] of STATUS_CHECKS_AFTER_SECONDS.entries()) {
      await moveIntoThePast(seconds - before)
      before = seconds
      if (number === 0) await killAndRestart()
      // Some notifications arrive only after the merchant received the final status.
      if (number === 1) await bank.sendWaiting()
      await untilChecked()
    }
    const unpaidBefore = await unpaidHere()
    const imported = await importDailyReport()
    const broken = await judgeBooks()
    await bank.goAway()
    await service.stop()
    await db.end()
    return [
      {
        fault: `an acquirer (${acquirer}) that loses notifications, ${kills} kills`,
        notes: [
          `${PAYMENTS} orders in ${ms(loadMs)}; ${rejected.size} got 503 or no response at first`,
          `${paid().length} were paid; ${checked().length} status checks; the transaction report added the last ${unpaidBefore}: ${JSON.stringify(imported)}`,
        ],
        broken: [...faults, ...broken],
      },
    ]

    async function killWhileOpen() {
      for (let kill = 0; kill < KILLS_UNDER_LOAD; kill++) {
        await sleep(KILL_EVERY_MS)
        await killAndRestart()
      }
    }

    /** Ages every order by this time. */
    async function moveIntoThePast(seconds: number) {
      const expiry = before === 0 ? 60 * EXPIRY_MINUTES : 0
      const past = `${seconds + expiry} seconds`
      await db.query('update payment_intents set expires_at = expires_at - $1::interval', [past])
      await db.query('update acquirer_intents set status_check_at = status_check_at - $1::interval', [past])
    }

    function checked() {
      return bank.requests.filter(({ call }) => call === statusChecks)
    }

    async function untilChecked() {
      const until = performance.now() + CHECKED_LIMIT_MS
      for (;;) {
        const { rows } = await db.query<{ due: number }>(
          'select count(*)::integer as due from acquirer_intents where status_check_at <= now()',
        )
        if (rows[0]?.due === 0) break
        if (performance.now() > until) throw new Error(`${rows[0]?.due} status checks were not run after ${before} s`)
        await sleep(500)
      }
      // Waits for the responses to the last calls.
      await sleep(1_000)
    }

    async function unpaidHere(): Promise<number> {
      const orderIds = paid().map(({ orderId }) => orderId)
      const { rowCount } = await db.query(
        `select from payment_intents where order_id = any ($1) and status <> 'SUCCESS'`,
        [orderIds],
      )
      return rowCount ?? 0
    }

    function importDailyReport() {
      const lines = paid().map(({ orderId, utr, amount, paidAt }) => {
        return [orderId, 'SUCCESS', utr, (amount / 100).toFixed(2), paidAt.toISOString()].join()
      })
      const file = join(directory, 'day-file.csv')
      writeFileSync(file, ['order_id,status,utr,amount,paid_at', ...lines, ''].join('\n'))
      return runBuiltOps(BUILT_OPS, { DATABASE_URL: url }, 'payments', 'import', file)
    }

    async function judgeBooks(): Promise<string[]> {
      const { rows } = await db.query<{
        order_id: string
        status: string
        utr: string | null
        acquirer_order_id: string | null
      }>(
        `select i.order_id, i.status, i.utr, a.acquirer_order_id
         from payment_intents i
         left join acquirer_intents a on a.mid = i.mid and a.order_id = i.order_id`,
      )
      const paidThere = new Map(paid().map((payment): [string, AnyPaid] => [payment.orderId, payment]))
      const here = new Map(rows.map((row) => [row.order_id, row]))
      const missing = [...paidThere].filter(([orderId, { utr }]) => here.get(orderId)?.utr !== utr)
      const invented = rows.filter(({ order_id, status }) => status === 'SUCCESS' && !paidThere.has(order_id))
      const half = rows.filter(({ acquirer_order_id }) => acquirer_order_id === null)
      const lost = acknowledged.filter((orderId) => !here.has(orderId))
      const times = new Map<string, number>()
      for (const { path: of } of checked()) times.set(of, (times.get(of) ?? 0) + 1)
      const tooOften = [...times].filter(([, times]) => times > 3)
      const promises: [boolean, string][] = [
        [paidThere.size > PAYMENTS / 2, `most orders are paid: ${paidThere.size}`],
        [missing.length === 0, `every payment of the bank is SUCCESS: ${missing.length} are not`],
        [invented.length === 0, `no other order is SUCCESS: ${invented.length} are`],
        [half.length === 0, `no intent is stored without its link: ${half.length} are`],
        [lost.length === 0, `every acknowledged order is stored: ${lost.length} are not`],
        [rows.length === PAYMENTS, `each order is stored once: ${rows.length} of ${PAYMENTS}`],
        [tooOften.length === 0, `no payment is checked more than three times: ${tooOften.length} were`],
        [bank.violations.length === 0, `every request follows the acquirer's documents: ${bank.violations[0]}`],
      ]
      return promises.flatMap(([holds, promise]) => (holds ? [] : promise))
    }
  }

/** Merchants send each order until it is accepted, and customers pay most of them. */
function buy(bank: AnyBank, merchant: Parameters<typeof createRequest>[0], url: () => string) {
  const client = createHttpClient()
  const rejected = new Set<string>()
  const faults: string[] = []
  const acknowledged: string[] = []
  const customers: Promise<unknown>[] = []

  async function order(name: string) {
    // With a key, a merchant gets the order that a killed instance stored without a response.
    const request = createRequest(merchant, { order_id: name })
    request.headers['idempotency-key'] = name
    for (;;) {
      const response = await client.send(url(), request)
      const orderId = createdOrderId(response)
      if (orderId !== undefined) {
        acknowledged.push(orderId)
        customers.push(customer(orderId, customers.length))
        return
      }
      if (response.status !== 503 && response.status !== undefined) {
        faults.push(`${name} got ${response.status}: ${response.text}`)
        return
      }
      rejected.add(name)
      await sleep(RETRY_MS)
    }
  }

  /** Of 20 customers one never pays, one only fails, and four succeed at the second attempt. */
  async function customer(orderId: string, number: number) {
    const kind = number % 20
    if (kind === 0) return
    await sleep(100)
    if (kind <= 5) await bank.pay(orderId, { outcome: 'failed' })
    if (kind === 1) return
    await bank.pay(orderId)
  }

  const begin = performance.now()
  const names = Array.from({ length: PAYMENTS }, (_, number) => `order-${number}`)
  const done = forEach(names, CONCURRENT_MERCHANTS, async (name, number) => {
    await sleep(Math.max(0, begin + (number * 1_000) / ORDERS_PER_SECOND - performance.now()))
    await order(name)
  }).finally(() => client.close())
  return { rejected, faults, acknowledged, customers, done }
}

async function beAway(bank: AnyBank) {
  await sleep(AWAY_AFTER_MS)
  await bank.goAway()
  await sleep(AWAY_MS)
  await bank.comeBack()
}
