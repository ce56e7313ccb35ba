import { connect } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { type FakeCashfree, startFakeCashfree } from '../support/cashfree-bank.ts'
import { departure } from '../support/cashfree-schema.ts'
import { runOps } from '../support/ops.ts'
import { createOrder } from '../support/orders.ts'
import {
  CREATE,
  intentFields,
  newMerchant,
  post,
  REFUND,
  REFUND_STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'
import { newKey } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { allow, ENCRYPTION_KEYS } from '../support/webhooks.ts'

// The account acme is hostile and signs arbitrary notifications. The tests protect the operator and a merchant of
// `direct`.
const KEY = `${ENCRYPTION_KEYS[0]?.export().toString('base64')}`
const SECRET = 'secret-of-acme'
const MOST = 3

let service: TestService
let bank: FakeCashfree
let url: string
beforeAll(async () => {
  service = await startService({
    asServiceRole: true,
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow() },
    limits: {
      webhooks: { lookIntervalMs: 100 },
      lookUps: { cachedMs: 20 },
      reports: { openOfAccount: MOST, openCountedMs: 0 },
    },
  })
  const start = (now: () => Date) =>
    startFakeCashfree({ clientId: 'acme', clientSecret: SECRET, now, check: departure })
  bank = await startBank({ start }, service.clock.now)
  url = `${await service.app.listen({ host: '127.0.0.1', port: 0 })}/acquirer/cashfree/notification/acme`
  bank.notifyUrl = url
  const lines = `CASHFREE_API_URL=${bank.apiUrl}\nCASHFREE_CLIENT_ID=acme\nCASHFREE_CLIENT_SECRET=${SECRET}\n`
  expect(await ops(['accounts', 'add', ...ACME], lines)).toMatchObject({ code: 0 })
  // A new account takes effect once the cached lookup expires.
  const isKnown = async () => (await fetch(url, { method: 'POST', body: '{}' })).status !== 404
  await until('the account is known', isKnown)
})

const ACME = ['--account', 'acme', '--acquirer', 'cashfree']
const ops = (args: string[], input = '') => runOps(service.databaseUrl, args, input, { WEBHOOK_SEALING_KEY: KEY })

async function send(event: object): Promise<number> {
  const { body, headers } = bank.encrypt(event)
  return (await fetch(url, { method: 'POST', body, headers })).status
}

const payment = (orderId: string) => ({
  type: 'PAYMENT_SUCCESS_WEBHOOK',
  data: {
    order: { order_id: orderId, order_amount: 200 },
    payment: {
      cf_payment_id: newUtr(),
      payment_status: 'SUCCESS',
      payment_amount: 200,
      payment_time: service.clock.now().toISOString(),
      bank_reference: newUtr(),
    },
  },
})
const unknownOrder = () => payment(unique('unknown'))
const unreadable = () => ({ data: { order: { order_id: unique('O') }, payment: { payment_status: 'SUCCESS' } } })
const unknownDispute = () => ({
  type: 'DISPUTE_CREATED',
  data: {
    dispute: { dispute_id: newUtr(), dispute_status: 'CHARGEBACK_CREATED' },
    order_details: { order_id: unique('unknown') },
  },
})
const ownRefund = (orderId: string, rupees: number) => ({
  type: 'AUTO_REFUND_STATUS_WEBHOOK',
  data: {
    auto_refund: {
      cf_refund_id: unique('8'),
      order_id: orderId,
      refund_amount: rupees,
      refund_currency: 'INR',
      refund_status: 'SUCCESS',
      refund_arn: newUtr(),
    },
  },
})

async function openExceptions(kind: string): Promise<Record<string, number>> {
  const { rows } = await service.db.query<{ account: string; count: number }>(
    `select coalesce(acquirer_account, '') as account, count(*)::integer as count
       from payment_exceptions e
      where kind = $1 and not exists (select from payment_resolutions r where r.mid = e.mid and r.exception_id = e.exception_id)
      group by acquirer_account`,
    [kind],
  )
  return Object.fromEntries(rows.map(({ account, count }) => [account, count]))
}

const resolveAll = (kind: string) =>
  ops(['payments', 'resolve', '--all', '--acquirer', 'cashfree:acme', '--kind', kind, '--reason', 'made up', '--yes'])

async function paidOrder() {
  const { mid } = await newMerchant(service.db, {
    acquirer: 'cashfree:acme',
    acquirerMerchantId: unique('CF'),
    payees: ['cf.demo*@icici'],
  })
  const merchant = { mid, key: await newKey(service.db, { mid }, RIGHTS) }
  const orderId = await createOrder(service, merchant)
  return { merchant, orderId, pay: () => bank.pay(orderId) }
}

it.each([
  ['unknown order', 404, unknownOrder, () => notify(service, notification(unique('other')))],
  ['unreadable', 400, unreadable, () => notify(service, `no JSON ${unique('')}`)],
])(
  'the service limits an account’s open exceptions of the kind "%s" and leaves room for exceptions of another account',
  async (kind, status, event, byOther) => {
    for (let i = 0; i < MOST + 2; i++) expect(await send(event())).toBe(status)
    expect(await openExceptions(kind)).toEqual({ 'cashfree:acme': MOST })
    await byOther()
    expect(await openExceptions(kind)).toEqual({ 'cashfree:acme': MOST, direct: 1 })

    expect(await resolveAll(kind)).toMatchObject({ code: 0 })
    expect(await openExceptions(kind)).toEqual({ direct: 1 })
    for (let i = 0; i < MOST + 2; i++) await send(event())
    expect(await openExceptions(kind)).toEqual({ 'cashfree:acme': MOST, direct: 1 })
    await resolveAll(kind)
  },
)

it('the service does not count exceptions of unknown orders that are stored as resolved, because their payment is stored', async () => {
  const { orderId, pay } = await paidOrder()
  const { payment: paid } = await pay()
  const event = () => {
    const unknown = unknownOrder()
    unknown.data.payment.bank_reference = paid.rrn
    return unknown
  }
  for (let i = 0; i < MOST + 2; i++) expect(await send(event())).toBe(404)
  const { rows } = await service.db.query(
    `select reason, resolved_by as by from payment_exceptions join payment_resolutions using (mid, exception_id) where utr = $1`,
    [paid.rrn],
  )
  const resolved = { reason: `the payment is recorded for order ${orderId}`, by: 'notification' }
  expect(rows).toEqual(Array.from({ length: MOST + 2 }, () => resolved))

  for (let i = 0; i < MOST + 2; i++) await send(unknownOrder())
  expect((await openExceptions('unknown order'))['cashfree:acme']).toBe(MOST)
  // Also while the account has reached its limit.
  expect(await send(event())).toBe(404)
  expect((await openExceptions('unknown order'))['cashfree:acme']).toBe(MOST)
  await resolveAll('unknown order')
})

it('the service limits an account’s open exceptions of disputes of unknown payments', async () => {
  for (let i = 0; i < MOST + 2; i++) expect(await send(unknownDispute())).toBe(404)
  expect(await openExceptions('unknown dispute')).toEqual({ 'cashfree:acme': MOST })
  await resolveAll('unknown dispute')
})

it('the service limits the number of stored reports whose amount differs from the order’s amount', async () => {
  const { orderId } = await paidOrder()
  for (let i = 0; i < MOST + 2; i++) {
    const event = payment(orderId)
    event.data.payment.payment_amount = 300 + i
    expect(await send(event)).toBe(409)
  }
  expect(await openExceptions('amount differs')).toEqual({ 'cashfree:acme': MOST })
})

it('the service shows a notification’s account in the log and in the list of exceptions, and the acquirer in the metric', async () => {
  const before = service.log.length
  const event = unknownOrder()
  await send(event)
  const requests = () => service.log.slice(before).map((line) => JSON.parse(line))
  await expect.poll(requests).toContainEqual(expect.objectContaining({ acquirerAccount: 'cashfree:acme', status: 404 }))
  const { stdout } = await ops(['payments', 'exceptions', '--acquirer', 'cashfree:acme', '--open', '--json'])
  expect(JSON.parse(stdout)).toContainEqual(
    expect.objectContaining({ orderId: event.data.order.order_id, acquirerAccount: 'cashfree:acme' }),
  )
  const metrics = await service.metrics()
  expect(metrics).toMatch(/^payment_exceptions_total\{kind="unknown order",acquirer="cashfree"\} [1-9]/m)
  expect(metrics).not.toContain('cashfree:')
})

it('the service stores no automatic refund above the payment’s amount, so that the merchant can still refund the payment', async () => {
  const { merchant, orderId, pay } = await paidOrder()
  await pay()
  const repeated = ownRefund(orderId, 500_000)
  for (let i = 0; i < 2; i++) expect(await send(repeated)).toBe(200)
  expect(await openExceptions('refunded above what was paid')).toEqual({ 'cashfree:acme': 1 })
  for (let i = 0; i < MOST + 2; i++) expect(await send(ownRefund(orderId, 200.01))).toBe(200)
  expect(await openExceptions('refunded above what was paid')).toEqual({ 'cashfree:acme': MOST })
  expect((await service.db.query('select from refunds where order_id = $1', [orderId])).rowCount).toBe(0)
  const refund = { mid: merchant.mid, order_id: orderId, refund_id: 'R1', note: 'sold out' }
  expect((await post(service.app, REFUND, refund, merchant.key)).body.data).toMatchObject({ amount: 200 })
})

it('the service stores a disabled account’s notifications only about the account’s own orders and refunds', async () => {
  const { merchant, orderId, pay } = await paidOrder()
  await resolveAll('unknown order')
  await resolveAll('unreadable')
  expect(await ops(['accounts', 'disable', ...ACME])).toMatchObject({ code: 0 })
  // The disabled account takes effect once the cached lookup expires.
  await expect
    .poll(async () => {
      const before = await openExceptions('unknown order')
      await send(unknownOrder())
      return JSON.stringify(before) === JSON.stringify(await openExceptions('unknown order'))
    })
    .toBe(true)
  await resolveAll('unknown order')
  expect(await send(unknownOrder())).toBe(404)
  expect(await send(unreadable())).toBe(400)
  expect(await send(unknownDispute())).toBe(404)
  for (const kind of ['unknown order', 'unreadable', 'unknown dispute']) {
    expect((await openExceptions(kind))['cashfree:acme'], kind).toBeUndefined()
  }

  expect((await pay()).responses).toEqual([200])
  const refund = { mid: merchant.mid, order_id: orderId, refund_id: 'R1', note: 'sold out' }
  expect((await post(service.app, REFUND, refund, merchant.key)).status).toBe(200)
  await expect
    .poll(async () => {
      const status = { mid: merchant.mid, refund_id: 'R1' }
      return (await post(service.app, REFUND_STATUS, status, merchant.key)).body.data.txnStatus
    })
    .toBe('SUCCESS')
  await ops(['accounts', 'enable', ...ACME])
  await expect
    .poll(async () => (await post(service.app, CREATE, intentFields(merchant.mid), merchant.key)).status)
    .toBe(200)
})

/** Locks an order while `during` runs. */
async function whileLocked(mid: string, orderId: string, during: () => Promise<void>): Promise<void> {
  const client = await service.db.connect()
  try {
    await client.query('begin')
    await client.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
    await during()
  } finally {
    await client.query('rollback')
    client.release()
  }
}

const busyReports = () => service.pools.reports.totalCount - service.pools.reports.idleCount

it('the service records a payment through one account while all notifications of another account wait for a locked order', async () => {
  const { merchant, orderId } = await paidOrder()
  const other = await createOrder(service, await newMerchant(service.db))
  let waiting: Promise<number>[] = []
  await whileLocked(merchant.mid, orderId, async () => {
    waiting = Array.from({ length: 8 }, () => send(payment(orderId)))
    await expect.poll(busyReports).toBeGreaterThan(1)
    const first = await Promise.race([notify(service, notification(other)), ...waiting])
    expect(first).toMatchObject({ status: 200 })
  })
  await Promise.all(waiting)
})

it('the service records a payment through one account after the clients of another account’s waiting notifications disconnect', async () => {
  const { merchant, orderId } = await paidOrder()
  const other = await createOrder(service, await newMerchant(service.db))
  const { body, headers } = bank.encrypt(payment(orderId))
  const { pathname, port, hostname } = new URL(url)
  const fields = Object.entries({ ...headers, host: 'x', 'content-length': String(Buffer.byteLength(body)) })
  const head = [`POST ${pathname} HTTP/1.1`, ...fields.map(([name, value]) => `${name}: ${value}`)].join('\r\n')
  await whileLocked(merchant.mid, orderId, async () => {
    const sockets = Array.from({ length: 8 }, () => connect(Number(port), hostname))
    for (const socket of sockets) socket.write(`${head}\r\n\r\n${body}`)
    // Not those in a batch, which stops waiting after its lock_timeout and lets each report wait alone.
    const alone = `select from pg_stat_activity
                    where datname = current_database() and state = 'active' and pid <> pg_backend_pid()
                      and query like '%payment_intents%' and query not like '%lock_timeout%'`
    await expect.poll(async () => (await service.db.query(alone)).rowCount, { timeout: 5_000 }).toBe(2)
    for (const socket of sockets) socket.destroy()
    // Long enough for waiting notifications to use the slots of the disconnected ones, if those were released.
    await setTimeout(200)
    expect(busyReports()).toBe(2)
    expect(await notify(service, notification(other))).toMatchObject({ status: 200 })
  })
  await expect.poll(busyReports).toBe(0)
})
