import type { ServerResponse } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createMerchants } from '../../src/gateway/tenants/merchants.ts'
import { createDeliveries, type Delivery } from '../../src/gateway/webhooks/deliveries.ts'
import {
  enableEndpoint,
  listEndpoints,
  resendDeliveries,
  resendDelivery,
  rotateSecret,
  setReturnUrlCallback,
} from '../../src/gateway/webhooks/endpoints.ts'
import { newSigningSecret } from '../../src/gateway/webhooks/signature.ts'
import { contextOf, encryptSecret } from '../../src/platform/encryption.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  basic,
  form,
  type Key,
  newMerchant,
  post,
  STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { until } from '../support/wait.ts'
import { type Received, type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

const SCHEDULE_SECONDS = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400]
const DAY_SECONDS = 86_400

let service: TestService
let receiver: Receiver
const webhooks = { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') }
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({
    webhooks,
    limits: { webhooks: { lookIntervalMs: 100 } },
  })
})
afterAll(() => receiver.close())

let mid: string
let key: Key
let path: string
beforeEach(async () => {
  ;({ mid, key } = await newMerchant(service.db))
  path = `/${unique('hook')}`
})

const addWebhook = (of = mid, at = path) =>
  newWebhook(service.db, { mid: of, url: `${receiver.url}${at}` }, service.clock.now())

const newOrder = (fields = {}, of = { mid, key }) => createOrder(service, of, fields)

const pay = (orderId: string, changes = {}) => reportPayment(service, orderId, changes)

async function deliveryOf(orderId: string) {
  const { rows } = await service.db.query(
    `select attempts, due_at, delivered_at, outcome, response from webhook_deliveries where order_id = $1`,
    [orderId],
  )
  return rows[0]
}

const settled = (orderId: string, attempts = 1) =>
  expect.poll(async () => (await deliveryOf(orderId)).attempts, { timeout: 20_000, interval: 20 }).toBe(attempts)

async function stateOf(endpointId: string) {
  const [endpoint] = await listEndpoints(service.db, { endpointId })
  return endpoint
}

describe('a webhook', () => {
  it('sends a webhook that the Standard Webhooks library verifies, with the data that a merchant’s server needs and no customer data', async () => {
    const { secret } = await addWebhook()
    const orderId = await newOrder({ order_id: 'ORDER-1', amount: '200', customer_email: 'asha@example.in' })
    await pay(orderId, { UTR: '523504870405' })
    await until('the webhook is received', () => receiver.to(path).length === 1)
    const [{ headers, body, method } = {} as Received] = receiver.to(path)
    expect(method).toBe('POST')
    expect(headers['content-type']).toBe('application/json')
    // The library compares with the machine's clock, while the service's clock stands still.
    const at = new Date(Number(headers['webhook-timestamp']) * 1000)
    expect(at.getTime()).toBe(service.clock.now().getTime() - service.clock.now().getMilliseconds())
    expect(new Webhook(secret).sign(String(headers['webhook-id']), at, body)).toBe(headers['webhook-signature'])
    expect(JSON.parse(body)).toEqual({
      type: 'payment.succeeded',
      timestamp: service.clock.now().toISOString(),
      data: {
        mid,
        orderId,
        order_id: 'ORDER-1',
        txnStatus: 'SUCCESS',
        amount: '200',
        UTR: '523504870405',
        sequence: 1,
      },
    })
    await settled(orderId)
    expect(await deliveryOf(orderId)).toMatchObject({ due_at: null, outcome: '200', response: 'thanks' })
  })

  it('retries a webhook ten times on schedule with one id and body, and with a new signature each time', async () => {
    await addWebhook()
    receiver.responses.set(path, (response) => response.writeHead(500).end('broken\u0000 here'))
    const orderId = await newOrder()
    await pay(orderId)
    for (const [index, seconds] of SCHEDULE_SECONDS.entries()) {
      await settled(orderId, index + 1)
      const { due_at, outcome, response } = await deliveryOf(orderId)
      expect([outcome, response]).toEqual(['500', 'broken here'])
      const pause = (due_at.getTime() - service.clock.now().getTime()) / 1000
      expect(pause).toBeGreaterThanOrEqual(0.9 * seconds)
      expect(pause).toBeLessThanOrEqual(1.1 * seconds)
      service.clock.advance(1.1 * seconds)
    }
    await settled(orderId, 10)
    expect(await deliveryOf(orderId)).toMatchObject({ due_at: null, delivered_at: null })
    const sent = receiver.to(path)
    expect(sent).toHaveLength(10)
    expect(new Set(sent.map(({ headers, body }) => `${headers['webhook-id']} ${body}`)).size).toBe(1)
    expect(new Set(sent.map(({ headers }) => headers['webhook-signature'])).size).toBe(10)
  })

  it.each([
    ['a redirect', 301, {}, 5],
    ['another error status', 404, {}, 5],
    ['429 with Retry-After of an hour', 429, { 'retry-after': '3600' }, 3_600],
    ['503 with Retry-After of a week, limited to a day', 503, { 'retry-after': '604800' }, DAY_SECONDS],
    ['503 with Retry-After of a second', 503, { 'retry-after': '1' }, 5],
    ['another status with Retry-After of a day', 404, { 'retry-after': '86400' }, 5],
  ])('sends a webhook again after %s', async (_, status, headers, seconds) => {
    await addWebhook()
    receiver.responses.set(path, (response) => response.writeHead(status, { location: receiver.url, ...headers }).end())
    const orderId = await newOrder()
    await pay(orderId)
    await settled(orderId)
    const { due_at, delivered_at } = await deliveryOf(orderId)
    expect(delivered_at).toBeNull()
    const pause = (due_at.getTime() - service.clock.now().getTime()) / 1000
    expect(pause).toBeGreaterThanOrEqual(0.9 * seconds)
    expect(pause).toBeLessThanOrEqual(1.1 * seconds)
    expect(receiver.to('/')).toEqual([])
  })

  it('disables a webhook endpoint on 410, and sends the webhook once the endpoint is enabled again', async () => {
    const { endpointId } = await addWebhook()
    receiver.responses.set(path, (response, count) => response.writeHead(count === 1 ? 410 : 200).end())
    const orderId = await newOrder()
    await pay(orderId)
    await settled(orderId)
    expect(await stateOf(endpointId)).toMatchObject({ disabledReason: 'answered 410' })
    service.clock.advance(DAY_SECONDS)
    expect(await createDeliveries(service.db).findPending(1_000, service.clock.now())).not.toContainEqual(
      expect.objectContaining({ endpointId }),
    )
    await enableEndpoint(service.db, { endpointId })
    await settled(orderId, 2)
    expect(await deliveryOf(orderId)).toMatchObject({ outcome: '200' })
    expect(await service.metrics()).toContain('webhook_endpoints_switched_off_total{reason="answered 410"} 1')
  })

  it('disables a webhook endpoint after 5 days of failures, unless a delivery succeeded in between', async () => {
    const { endpointId } = await addWebhook()
    let broken = true
    receiver.responses.set(path, (response) => response.writeHead(broken ? 500 : 200).end())
    const attempt = async () => {
      const orderId = await newOrder()
      await pay(orderId)
      await settled(orderId)
    }
    await attempt()
    service.clock.advance(4 * DAY_SECONDS)
    broken = false
    await attempt()
    broken = true
    service.clock.advance(2 * DAY_SECONDS)
    await attempt()
    expect(await stateOf(endpointId)).toMatchObject({ disabledReason: null })
    // The retry of the last failed delivery is scheduled for this time.
    service.clock.advance(5 * DAY_SECONDS)
    await expect.poll(async () => (await stateOf(endpointId))?.disabledReason).toBe('failed for 5 days')
  })

  it('delivers webhooks to other endpoints without delay while a slow endpoint occupies at most 4 concurrent calls', async () => {
    await addWebhook()
    const quick = await newMerchant(service.db)
    await addWebhook(quick.mid, `${path}-quick`)
    const underWay = new Set<ServerResponse>()
    let most = 0
    receiver.responses.set(path, (response) => {
      most = Math.max(most, underWay.add(response).size)
      response.on('close', () => underWay.delete(response))
    })
    for (let i = 0; i < 12; i++) await pay(await newOrder())
    await until('4 webhooks are received', () => underWay.size === 4)
    const paid = await newOrder({}, quick)
    await pay(paid)
    await settled(paid)
    for (let received = 4; received <= 12; received += 4) {
      await until('the next webhooks are received', () => receiver.to(path).length === received)
      for (const response of underWay) response.end()
    }
    expect(most).toBe(4)
  })

  it('signs webhooks with both secrets during a rotation, and with only the new secret a day later', async () => {
    const { endpointId, secret: earlier } = await addWebhook()
    const secret = newSigningSecret()
    const name = { mid, endpointId }
    const encrypted = encryptSecret(ENCRYPTION_KEYS, secret, contextOf(name))
    const earlierUntil = new Date(service.clock.now().getTime() + DAY_SECONDS * 1000)
    await rotateSecret(service.db, { ...name, secret: encrypted, earlierUntil })
    const signaturesOf = async () => {
      const orderId = await newOrder()
      await pay(orderId)
      await settled(orderId)
      const { headers, body } = receiver.to(path).at(-1) as Received
      const at = new Date(Number(headers['webhook-timestamp']) * 1000)
      const by = (one: string) => new Webhook(one).sign(String(headers['webhook-id']), at, body)
      return { sent: headers['webhook-signature'], by }
    }
    const both = await signaturesOf()
    expect(both.sent).toBe(`${both.by(secret)} ${both.by(earlier)}`)
    service.clock.advance(DAY_SECONDS)
    const one = await signaturesOf()
    expect(one.sent).toBe(one.by(secret))
  })

  it('sends a webhook again unchanged when an operator resends the webhook', async () => {
    const { endpointId } = await addWebhook()
    const orderId = await newOrder()
    await pay(orderId)
    await settled(orderId)
    const { db, clock } = service
    const resend = (sequence: number) => resendDelivery(db, { endpointId, orderId, sequence, now: clock.now() })
    expect(await resend(1)).toHaveLength(1)
    await until('the webhook is received again', () => receiver.to(path).length === 2)
    expect(await resend(2)).toHaveLength(0)
    await settled(orderId)
    const since = new Date(clock.now().getTime() - 3_600_000)
    const later = new Date(clock.now().getTime() + 1)
    expect(await resendDeliveries(db, { mid, since, until: later, now: clock.now() })).toEqual([{ resent: 1 }])
    await until('the webhook is received a third time', () => receiver.to(path).length === 3)
    expect(new Set(receiver.to(path).map(({ headers, body }) => `${headers['webhook-id']} ${body}`)).size).toBe(1)
  })
})

it('createPaymentIntent and webhooks return an amount with paise in the same format', async () => {
  await addWebhook()
  await createMerchants(service.db).update(mid, { input: 'shop' })
  const orderId = await newOrder({ amount: '588.82' })
  await pay(orderId, { amount: '588.82' })
  await until('the webhook is received', () => receiver.to(path).length === 1)
  expect(JSON.parse(receiver.to(path)[0]?.body ?? '').data).toMatchObject({ orderId, amount: '588.82' })
})

describe('a return-URL callback', () => {
  const checkStatus = async (order_id: string) => (await post(service.app, STATUS, { mid, order_id }, key)).body

  const reported = (orderId: string) =>
    until('the callback is complete', async () => (await deliveryOf(orderId)).delivered_at !== null)

  const dueNow = async () =>
    (await createDeliveries(service.db).findPending(1_000, service.clock.now())).filter((one) => one.mid === mid)

  const store = () => `${receiver.url}${path}?order=7&key=a%20b`

  it('sends a return-URL callback to the redirect_url 10 s after the payment, like a request from the customer’s browser', async () => {
    await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
    const orderId = await newOrder({ redirect_url: store() })
    await pay(orderId, { status: 'FAIL', UTR: '1' })
    await pay(orderId)
    service.clock.advance(9)
    const due = await createDeliveries(service.db).findPending(1_000, service.clock.now())
    expect(due).not.toContainEqual(expect.objectContaining({ mid }))
    service.clock.advance(1)
    await settled(orderId)
    expect(receiver.to(path).map(({ method, path }) => [method, path])).toEqual([['GET', `${path}?order=7&key=a%20b`]])
    expect(Object.keys(receiver.to(path)[0]?.headers ?? {}).filter((name) => name.startsWith('webhook'))).toEqual([])
  })

  it.each([
    [200, {}],
    [302, { location: '/thanks' }],
    [500, {}],
  ])(
    'repeats a return-URL callback with the response %i until checkPaymentStatus has returned SUCCESS',
    async (status, headers) => {
      await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
      receiver.responses.set(path, (response) => response.writeHead(status, headers).end('Asha Rao'))
      const orderId = await newOrder({ redirect_url: store() })
      await pay(orderId)
      service.clock.advance(10)
      await settled(orderId, 1)
      service.clock.advance(6)
      await settled(orderId, 2)
      // A thank-you page may contain the customer's name, so only an error response is stored for the operator.
      const response = status < 400 ? '' : 'Asha Rao'
      expect(await deliveryOf(orderId)).toMatchObject({ delivered_at: null, outcome: `${status}`, response })
      expect(await checkStatus(orderId)).toMatchObject({ txnStatus: 'SUCCESS' })
      await reported(orderId)
      service.clock.advance(DAY_SECONDS)
      expect(await dueNow()).toEqual([])
      expect(receiver.to(path)).toHaveLength(2)
      expect(receiver.to('/thanks')).toEqual([])
    },
  )

  it('sends no return-URL callback if checkPaymentStatus has already returned SUCCESS to the merchant', async () => {
    await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
    const orderId = await newOrder({ redirect_url: store(), order_id: 'ORDER-7' })
    expect(await checkStatus('ORDER-7')).toMatchObject({ txnStatus: 'PENDING' })
    await pay(orderId)
    expect((await deliveryOf(orderId)).due_at).not.toBeNull()
    expect(await checkStatus('ORDER-7')).toMatchObject({ txnStatus: 'SUCCESS' })
    await reported(orderId)
    service.clock.advance(DAY_SECONDS)
    expect(await dueNow()).toEqual([])
    expect(receiver.to(path)).toEqual([])
  })

  it('sends a return-URL callback if the caller of checkPaymentStatus disconnected before the response', async () => {
    await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
    const orderId = await newOrder({ redirect_url: store() })
    await pay(orderId)
    const { port } = new URL(await service.app.listen({ host: '127.0.0.1', port: 0 }))
    const lock = await service.db.connect()
    await lock.query('begin; lock table payment_intents in access exclusive mode')
    const body = form({ mid, order_id: orderId })
    const head = `POST ${STATUS} HTTP/1.1\r\nhost: localhost\r\nauthorization: ${basic(key)}\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}`
    const socket = connect(Number(port), '127.0.0.1').on('error', () => undefined)
    socket.write(`${head}\r\n\r\n${body}`)
    await until('the request waits for the table lock', async () => {
      const { rows } = await service.db.query(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return rows.length > 0
    })
    socket.resetAndDestroy()
    await sleep(50)
    await lock.query('commit')
    lock.release()
    service.clock.advance(10)
    await settled(orderId, 1)
    expect((await deliveryOf(orderId)).delivered_at).toBeNull()
  })

  it('sends no return-URL callback to WEBHOOK_ALLOWED_NETWORKS, because orders choose their own addresses', async () => {
    const inward = await startService({
      webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: { ...allow(), webhook: ['127.0.0.1/32'] } },
      limits: { webhooks: { lookIntervalMs: 100 } },
    })
    const merchant = await newMerchant(inward.db)
    await setReturnUrlCallback(inward.db, { mid: merchant.mid, isOn: true, now: inward.clock.now() })
    const orderId = await createOrder(inward, merchant, { redirect_url: `${receiver.url}${path}` })
    await reportPayment(inward, orderId)
    inward.clock.advance(10)
    await until('the delivery is abandoned', async () => {
      const { rows } = await inward.db.query('select outcome, due_at from webhook_deliveries')
      return rows[0].outcome === 'not allowed' && rows[0].due_at === null
    })
    expect(receiver.to(path)).toEqual([])
  })

  it('sends no return-URL callback for merchants who disabled or never enabled return-URL callbacks', async () => {
    await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
    await setReturnUrlCallback(service.db, { mid, isOn: false, now: service.clock.now() })
    const orderId = await newOrder({ redirect_url: store() })
    await pay(orderId)
    expect(await deliveryOf(orderId)).toBeUndefined()
  })
})

it('another instance sends the claimed delivery of a killed instance after the visibility time', async () => {
  await setReturnUrlCallback(service.db, { mid, isOn: true, now: service.clock.now() })
  const orderId = await newOrder({ redirect_url: `${receiver.url}${path}` })
  await pay(orderId)
  const later = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1_000)
  const killed = createDeliveries(service.db)
  expect(await killed.claim({ mid, endpointId: 'return-call' }, 4, later(10), later(50))).toMatchObject([{ orderId }])
  expect(await killed.claim({ mid, endpointId: 'return-call' }, 4, later(10), later(50))).toEqual([])
  service.clock.advance(49)
  await sleep(100)
  expect(receiver.to(path)).toEqual([])
  service.clock.advance(1)
  await settled(orderId)
  expect(receiver.to(path)).toHaveLength(1)
})

it.skipIf(ON_CITUS)(
  'stores outcomes of concurrent deliveries to several endpoints in one statement, each for its own delivery',
  async () => {
    const others = [await newMerchant(service.db), await newMerchant(service.db)]
    const merchants = [{ mid, key }, ...others]
    const orders: string[] = []
    for (const merchant of merchants) {
      await setReturnUrlCallback(service.db, { mid: merchant.mid, isOn: true, now: service.clock.now() })
      const orderId = await newOrder({ redirect_url: `${receiver.url}${path}` }, merchant)
      await pay(orderId)
      orders.push(orderId)
    }
    const later = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1_000)
    const statements: string[] = []
    const counted = new Proxy(service.db, {
      get: (db, name) =>
        name === 'query'
          ? (statement: { text?: string }) => {
              statements.push(statement.text ?? '')
              return db.query(statement as never)
            }
          : Reflect.get(db, name),
    })
    const deliveries = createDeliveries(counted)
    const claimed: Delivery[] = []
    for (const merchant of merchants) {
      claimed.push(
        ...(await deliveries.claim({ mid: merchant.mid, endpointId: 'return-call' }, 4, later(10), later(500))),
      )
    }
    const outcome = (index: number) => ({
      delivered: true,
      outcome: `20${index}`,
      response: '',
      at: later(11),
      next: undefined,
    })
    const settle = (index: number, now = index) =>
      deliveries.settle({ delivery: claimed[index] as Delivery, ...outcome(now) })
    await settle(0)
    statements.length = 0
    await Promise.all([settle(1), settle(2)])
    expect(statements.filter((text) => text.includes('update webhook_deliveries'))).toHaveLength(1)
    for (const [index, orderId] of orders.entries())
      expect(await deliveryOf(orderId)).toMatchObject({ attempts: 1, outcome: `20${index}`, due_at: null })
    // A delivery that was settled keeps its outcome.
    await settle(0, 9)
    expect(await deliveryOf(orders[0] as string)).toMatchObject({ attempts: 1, outcome: '200' })
  },
)
