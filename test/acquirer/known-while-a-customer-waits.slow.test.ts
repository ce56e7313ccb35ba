import { beforeAll, describe, expect, it } from 'vitest'
import { createAccounts, createAcquirers, statusCheckRulesOf } from '../../src/gateway/acquirers/acquirers.ts'
import { statusCheckJobs } from '../../src/gateway/acquirers/check-status.ts'
import { createIntents } from '../../src/gateway/payments/intents.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { createStatusChecks, createWaiting } from '../../src/gateway/payments/status-checks.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import type { JobSource } from '../../src/platform/scheduler.ts'
import { seeded } from '../support/bank-faults.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { CASHFREE, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { newRazorpayMerchant, RAZORPAY } from '../support/fake-razorpay.ts'
import { newSetuMerchant, SETU } from '../support/fake-setu.ts'
import { createOrder } from '../support/orders.ts'
import type { FakeRazorpay } from '../support/razorpay-bank.ts'
import { post, STATUS, startService, type TestService, unique } from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { allow } from '../support/webhooks.ts'

// Three acquirers lose all notifications. The test plays an hour of their orders second by second, on a simulated clock.

const ORDERS = 300
const CREATED_WITHIN_SECONDS = 60
const TO_PAY_SECONDS = 15 * 60
const HOUR_SECONDS = 3_600
const POLL_SECONDS = 3
const POLLED_ORDERS = 5_000
const KNOWN_WITHIN_SECONDS = 100

const ACQUIRERS = ['setu', 'cashfree', 'razorpay'] as const
type Acquirer = (typeof ACQUIRERS)[number]

/**
 * An order; times are in seconds from its creation. `way` is how the merchant or the customer waits for the result.
 */
type Order = {
  acquirer: Acquirer
  way: 'page' | 'polling' | 'nobody'
  merchant: NewMerchant
  orderId: string
  createdAt: number
  paidAt: number
  cameBackAt: number
  recordedAt?: number
}

let service: TestService
let banks: { setu: FakeSetu; cashfree: FakeCashfree; razorpay: FakeRazorpay }
beforeAll(async () => {
  const clock = { now: () => new Date() }
  banks = {
    setu: await startBank(SETU, () => clock.now()),
    cashfree: await startBank(CASHFREE, () => clock.now()),
    razorpay: await startBank(RAZORPAY, () => clock.now()),
  }
  const limits = { webhooks: { lookIntervalMs: 3_600_000 } }
  // The test itself runs pending jobs, so the service's timer must not.
  service = await startService({ asServiceRole: true, acquirers: settings(), limits })
  clock.now = service.clock.now
})

const settings = () => ({
  ...SETU.settings(banks.setu),
  ...CASHFREE.settings(banks.cashfree),
  ...RAZORPAY.settings(banks.razorpay),
})

/** The acquirers of one instance, with its own HTTP client. */
function startInstance() {
  const { db, clock } = service
  const log = { warn: () => undefined, error: () => undefined }
  const http = createOutboundClient({ allowedNetworks: allow(), limits: LIMITS.outbound, now: clock.now })
  const options = { log, onCall: () => undefined, limits: LIMITS.acquirers, elapsedMs: clock.elapsedMs }
  const { clientOf } = createAcquirers(createAccounts({ direct: [], ...settings() }), http, options)
  const recording = { reports: createReports(db), now: clock.now }
  const statusChecks = createStatusChecks(db)
  const rulesOf = statusCheckRulesOf
  return statusCheckJobs({ statusChecks, clientOf, rulesOf, limits: LIMITS.acquirers, ...recording })
}

/** Runs one second of the scheduler: each queue until it is empty. A killed job is never run. */
async function lookAndDo({ findQueues, concurrency }: JobSource, isKilled: () => boolean) {
  const never = new AbortController().signal
  for (const { claim } of await findQueues()) {
    for (let jobs = await claim(concurrency.ofQueue); jobs.length > 0; jobs = await claim(concurrency.ofQueue)) {
      await Promise.all(jobs.map((job) => isKilled() || job(never)))
    }
  }
}

/** Creates orders with random times, for one merchant at each acquirer; `ways` alternate. */
async function newOrders(count: number, random: () => number, ways: readonly Order['way'][]): Promise<Order[]> {
  const merchants = {
    setu: await newSetuMerchant(service),
    cashfree: await newCashfreeMerchant(service),
    razorpay: await newRazorpayMerchant(service),
  }
  return Array.from({ length: count }, (_, i) => {
    const acquirer = ACQUIRERS[i % ACQUIRERS.length] as Acquirer
    const paidAt = 5 + random() * (TO_PAY_SECONDS - 10)
    return {
      acquirer,
      way: ways[Math.floor(i / ACQUIRERS.length) % ways.length] as Order['way'],
      merchant: merchants[acquirer],
      orderId: '',
      createdAt: Math.floor(random() * CREATED_WITHIN_SECONDS),
      paidAt,
      cameBackAt: paidAt + 2 + random() * 18,
    }
  })
}

/** Plays an hour with two alternating instances, and notes when the payment of each order is recorded. */
async function play(orders: Order[], random: () => number, killedShare = 0) {
  const { pools, clock, app, db } = service
  const instances = [startInstance(), startInstance()] as const
  const waiting = createWaiting(pools.due, statusCheckRulesOf)
  const start = clock.now().getTime()
  const at = (second: number) => new Date(start + second * 1000)
  let open = orders
  for (let second = 0; second < HOUR_SECONDS && open.length > 0; second++) {
    if (second > 0) clock.advance(1)
    const ageOf = ({ createdAt }: Order) => second - createdAt
    for (const order of open) {
      if (ageOf(order) === 0) order.orderId = await createOrder(service, order.merchant, { order_id: unique('O') })
      if (ageOf(order) === Math.floor(order.paidAt))
        await banks[order.acquirer].pay(order.orderId, { faults: { lost: 1 } })
    }
    const created = open.filter((order) => ageOf(order) > 0)
    const pages = created.filter((order) => order.way === 'page' && ageOf(order) >= order.cameBackAt)
    const cameBackAt = (order: Order) => at(order.createdAt + order.cameBackAt)
    await waiting.schedule(new Map(pages.map((order) => [order.orderId, cameBackAt(order)])), clock.now())
    for (const order of created.filter(({ way }) => way === 'polling')) {
      if (ageOf(order) % POLL_SECONDS > 0) continue
      const { mid, key } = order.merchant
      const { body } = await post(app, STATUS, { mid, order_id: order.orderId }, key)
      if (body.txnStatus === 'SUCCESS') order.recordedAt = ageOf(order)
    }
    await lookAndDo(instances[second % 2 === 0 ? 0 : 1], () => random() < killedShare)
    const { rows } = await db.query(
      `select order_id as "orderId" from payment_intents where order_id = any ($1) and status = 'SUCCESS'`,
      [created.filter(({ way }) => way !== 'polling').map(({ orderId }) => orderId)],
    )
    const known = new Set(rows.map(({ orderId }) => orderId))
    for (const order of created) if (known.has(order.orderId)) order.recordedAt = ageOf(order)
    open = open.filter(({ recordedAt }) => recordedAt === undefined)
  }
}

const isInTime = ({ recordedAt = Number.POSITIVE_INFINITY, paidAt }: Order) =>
  recordedAt - paidAt <= KNOWN_WITHIN_SECONDS
const shareOf = (orders: readonly Order[]) => orders.filter(isInTime).length / orders.length

/** How the paths of an order's status checks end. */
const STATUS_PATHS: Record<Acquirer, (orderId: string) => string> = {
  setu: (orderId) => `/${banks.setu.find(orderId)?.id}/last`,
  cashfree: (orderId) => `/orders/${orderId}`,
  razorpay: (orderId) => `/orders/${banks.razorpay.find(orderId)?.id}/payments`,
}

/** Returns the largest number of status checks of one order that reached a bank. */
function mostStatusChecks(orders: readonly Order[]): number {
  const counts = orders.map(({ acquirer, orderId }) => {
    const end = STATUS_PATHS[acquirer](orderId)
    return banks[acquirer].requests.filter(({ path }) => path.endsWith(end)).length
  })
  return Math.max(...counts)
}

describe('payments whose notifications are lost', () => {
  it(`records each payment of ${ORDERS} orders within ${KNOWN_WITHIN_SECONDS} s while the customer is back on the page or the merchant polls`, {
    timeout: 900_000,
  }, async () => {
    const random = seeded(20261125)
    const orders = await newOrders(ORDERS, random, ['page', 'polling'])
    await play(orders, random)
    const of = (acquirer: Order['acquirer'], way: Order['way']) =>
      orders.filter((order) => order.acquirer === acquirer && order.way === way)
    const shares = {
      setuPage: shareOf(of('setu', 'page')),
      setuPolling: shareOf(of('setu', 'polling')),
      setuPollingEarly: shareOf(of('setu', 'polling').filter(({ paidAt }) => paidAt <= 80)),
      cashfreePage: shareOf(of('cashfree', 'page')),
      cashfreePolling: shareOf(of('cashfree', 'polling')),
      razorpayPage: shareOf(of('razorpay', 'page')),
      razorpayPolling: shareOf(of('razorpay', 'polling')),
    }
    console.info('recorded in time, by acquirer and waiting party:', shares)
    expect(shares).toMatchObject({ setuPage: 1, setuPollingEarly: 1, cashfreePage: 1, cashfreePolling: 1 })
    expect(shares).toMatchObject({ razorpayPage: 1, razorpayPolling: 1 })
    expect(orders.every(({ recordedAt }) => recordedAt !== undefined)).toBe(true)
  })

  it('never exceeds the acquirer’s limit on status checks per order, even if a tenth of the checks never finishes', {
    timeout: 900_000,
  }, async () => {
    for (const bank of Object.values(banks)) bank.requests.length = 0
    const random = seeded(815)
    const orders = await newOrders(360, random, ['page', 'polling', 'nobody'])
    await play(orders, random, 0.1)
    const of = (acquirer: Order['acquirer']) => orders.filter((order) => order.acquirer === acquirer)
    expect(mostStatusChecks(of('setu'))).toBeLessThanOrEqual(3)
    for (const acquirer of ['cashfree', 'razorpay'] as const) {
      const most = mostStatusChecks(of(acquirer))
      expect(most).toBeGreaterThan(0)
      expect(most).toBeLessThanOrEqual(12)
    }
    const { rows } = await service.db.query(
      'select acquirer, max(status_checks) from acquirer_intents group by 1 order by 1',
    )
    expect(rows).toEqual([
      { acquirer: 'cashfree', max: expect.any(Number) },
      { acquirer: 'razorpay', max: expect.any(Number) },
      { acquirer: 'setu', max: 3 },
    ])
    for (const { max } of rows) expect(max).toBeLessThanOrEqual(12)
    // Nothing waits for these orders, so their first check is scheduled 90 s after the expiry.
    const endsAt = TO_PAY_SECONDS + 90
    const early = orders.filter(({ way, recordedAt = endsAt }) => way === 'nobody' && recordedAt < endsAt)
    expect(early).toEqual([])
    // A payment still unrecorded has lost both checks of the hour after expiry to kills.
    const unknown = orders.flatMap(({ orderId, recordedAt }) => (recordedAt === undefined ? [orderId] : []))
    const { rows: left } = await service.db.query(
      'select order_id, status_checks from acquirer_intents where order_id = any ($1) and status_checks < 2',
      [unknown],
    )
    expect(left).toEqual([])
    expect(unknown.length).toBeLessThan(orders.length / 20)
  })

  it(`writes to the database in at most one call in five while merchants poll ${POLLED_ORDERS} open Cashfree orders every ${POLL_SECONDS} s`, {
    timeout: 900_000,
  }, async () => {
    const { db, clock, pools } = service
    const { mid } = await newCashfreeMerchant(service)
    const created = clock.now()
    await db.query(
      `with orders as (
         insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, payee_vpa,
                                      payee_name, payee_mcc, created_at, expires_at, customer_name, customer_email, customer_mobile)
         select $1, lpad(to_hex(number), 32, '0'), number::text, 20000, 'https://shop.example/', 'Tea', 'a@b', 'A', '5814',
                $2, $3, '', '', ''
           from generate_series(1, ${POLLED_ORDERS}) number
         returning mid, order_id
       )
       insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks,
                                     status_check_at)
       select mid, order_id, 'cashfree', 'CF', order_id, order_id, 'upi://pay?', 0, $4 from orders`,
      [mid, created, new Date(created.getTime() + 900_000), new Date(created.getTime() + 990_000)],
    )
    const instance = startInstance()
    const waiting = createWaiting(pools.due, statusCheckRulesOf)
    const intents = createIntents(pools, () => undefined)
    clock.advance(20)
    let [calls, writes] = [0, 0]
    const poll = async (orderIds: IterableIterator<number>) => {
      for (const number of orderIds) {
        const payment = await intents.findStatus(mid, String(number + 1))
        const makeDue = payment && waiting.statusCheckFor(payment, clock.now())
        calls++
        if (!makeDue) continue
        writes++
        await makeDue()
      }
    }
    for (let round = 0; round < 10; round++) {
      const orderIds = Array.from({ length: POLLED_ORDERS }).keys()
      await Promise.all(Array.from({ length: 8 }, () => poll(orderIds)))
      for (let second = 0; second < POLL_SECONDS; second++) {
        clock.advance(1)
        await lookAndDo(instance, () => true)
      }
    }
    console.info(`${writes} of ${calls} calls wrote to the database`)
    expect(calls).toBe(10 * POLLED_ORDERS)
    expect(writes).toBeLessThanOrEqual(calls / 5)
    // The checks of 30 s are within the limit per minute.
    const { rows } = await db.query(
      'select sum(status_checks)::integer as count from acquirer_intents where mid = $1',
      [mid],
    )
    expect(rows[0].count).toBe(200)
  })
})
