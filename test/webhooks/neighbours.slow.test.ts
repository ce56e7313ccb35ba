import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createDeliveries, type Delivery } from '../../src/gateway/webhooks/deliveries.ts'
import { disableEndpoint, resendDelivery, setReturnUrlCallback } from '../../src/gateway/webhooks/endpoints.ts'
import { watchOpenOrders } from '../../src/gateway/webhooks/expiries.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { type Receiver, startReceiver } from '../support/webhook-receiver.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

const ENDPOINTS = 4
const CALLS = 4 * ENDPOINTS
/** Longer than the test waits for the responsive endpoint. */
const RESPONSE_MS = 8_000

let receiver: Receiver
let service: TestService
beforeAll(async () => {
  receiver = await startReceiver()
  service = await startService({
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') },
    limits: {
      webhooks: { lookIntervalMs: 50, concurrentCalls: CALLS },
      outbound: { merchantMs: RESPONSE_MS },
    },
  })
})
afterAll(() => receiver.close())

async function addWebhook(mid: string, path: string): Promise<string> {
  return (await newWebhook(service.db, { mid, url: `${receiver.url}${path}` }, service.clock.now())).endpointId
}

const newOrder = (merchant: NewMerchant, fields = {}) => createOrder(service, merchant, fields)

const pay = (orderId: string) => reportPayment(service, orderId)

async function paidOrder(merchant: NewMerchant): Promise<string> {
  const orderId = await newOrder(merchant)
  await pay(orderId)
  return orderId
}

async function deliveryOf(orderId: string) {
  return (await service.db.query('select * from webhook_deliveries where order_id = $1', [orderId])).rows[0]
}

const later = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1000)

it('the service reserves half of the concurrent webhook calls for endpoints that are not failing', async () => {
  const dead = await newMerchant(service.db)
  receiver.responses.set('/dead', () => undefined)
  for (let i = 0; i < ENDPOINTS; i++) await addWebhook(dead.mid, '/dead')
  await service.db.query('update webhook_endpoints set failing_since = $2 where mid = $1', [dead.mid, later(-60)])
  for (let i = 0; i < 5; i++) await paidOrder(dead)
  await until('the failing endpoints are called', () => receiver.to('/dead').length >= ENDPOINTS / 2)
  const good = await newMerchant(service.db)
  await addWebhook(good.mid, '/good')
  const began = performance.now()
  await paidOrder(good)
  await until('the good endpoint is called', () => receiver.to('/good').length === 1)
  expect(performance.now() - began).toBeLessThan(RESPONSE_MS / 2)
  await service.db.query(
    "update webhook_endpoints set disabled_at = created_at, disabled_reason = 'operator' where mid = $1",
    [dead.mid],
  )
})

it('the service sends a webhook again if an operator resends the webhook while the service is sending the webhook', async () => {
  const merchant = await newMerchant(service.db)
  const endpointId = await addWebhook(merchant.mid, '/resent')
  const ends: (() => void)[] = []
  receiver.responses.set('/resent', (response) => void ends.push(() => response.writeHead(500).end()))
  const orderId = await paidOrder(merchant)
  await until('the call is in progress', () => ends.length === 1)
  expect(await resendDelivery(service.db, { endpointId, orderId, sequence: 1, now: later(-1) })).toHaveLength(1)
  ends[0]?.()
  await until('the webhook is received again', () => receiver.to('/resent').length === 2)
  ends[1]?.()
})

it('the service does not overwrite the outcome stored by another instance with a late failure', async () => {
  const merchant = await newMerchant(service.db)
  await setReturnUrlCallback(service.db, { mid: merchant.mid, isOn: true, now: service.clock.now() })
  const orderId = await paidOrder(merchant)
  const deliveries = createDeliveries(service.db)
  const take = async (now: number, until: number) => {
    const [delivery] = await deliveries.claim(
      { mid: merchant.mid, endpointId: 'return-call' },
      1,
      later(now),
      later(until),
    )
    return { delivery: delivery as Delivery, response: '', at: later(now + 1) }
  }
  const [first, second] = [await take(20, 60), await take(61, 101)]
  const given = { delivered: false, next: undefined }
  await deliveries.settle({ ...second, ...given, outcome: 'not allowed' })
  await deliveries.settle({ ...first, ...given, outcome: 'timed out', next: later(70) })
  expect(await deliveryOf(orderId)).toMatchObject({ due_at: null, outcome: 'not allowed' })
})

it('the service delivers a webhook once even if its scheduled time has microseconds, which a Date truncates', async () => {
  const merchant = await newMerchant(service.db)
  await addWebhook(merchant.mid, '/fine')
  let hold = true
  receiver.responses.set('/fine', (response) => response.writeHead(hold ? 500 : 200).end())
  const orderId = await paidOrder(merchant)
  await until('the attempt has failed', async () => (await deliveryOf(orderId)).attempts === 1)
  hold = false
  await service.db.query(
    `update webhook_deliveries set due_at = $2::timestamptz - interval '1.000001 seconds' where order_id = $1`,
    [orderId, service.clock.now()],
  )
  await until('the webhook is delivered', async () => (await deliveryOf(orderId)).delivered_at !== null)
  expect(receiver.to('/fine')).toHaveLength(2)
})

it('the service resends a return-URL callback by the callback’s id, for any merchant', async () => {
  const orders: string[] = []
  for (let i = 0; i < 2; i++) {
    const merchant = await newMerchant(service.db)
    await setReturnUrlCallback(service.db, { mid: merchant.mid, isOn: true, now: service.clock.now() })
    orders.push(await newOrder(merchant, { redirect_url: `${receiver.url}/return` }))
  }
  for (const orderId of orders) await pay(orderId)
  for (const orderId of orders) {
    const name = { endpointId: 'return-call', orderId, sequence: 1 }
    expect(await resendDelivery(service.db, { ...name, now: service.clock.now() })).toHaveLength(1)
  }
})

it('the service sends no calls to a disabled endpoint, except calls already in progress', async () => {
  const merchant = await newMerchant(service.db)
  const endpointId = await addWebhook(merchant.mid, '/off')
  receiver.responses.set('/off', (response) => void setTimeout(() => response.end(), 300))
  for (let i = 0; i < 60; i++) await paidOrder(merchant)
  await until('the endpoint receives calls', () => receiver.to('/off').length > 3)
  await disableEndpoint(service.db, { endpointId, now: service.clock.now() })
  const before = receiver.to('/off').length
  await sleep(2_000)
  expect(receiver.to('/off').length - before).toBeLessThanOrEqual(8)
})

it('the service expires other orders while one order is locked', async () => {
  const merchant = await newMerchant(service.db)
  await addWebhook(merchant.mid, '/expired')
  const [held, free] = [await newOrder(merchant), await newOrder(merchant)]
  const holder = await service.db.connect()
  try {
    await holder.query('begin')
    await holder.query('select from payment_intents where order_id = $1 for no key update', [held])
    service.clock.advance(25 * 60)
    await until('the event of the unlocked order is received', () =>
      receiver.to('/expired').some(({ body }) => body.includes(free)),
    )
  } finally {
    await holder.query('rollback')
    holder.release()
  }
  await until('the event of the locked order is received', () =>
    receiver.to('/expired').some(({ body }) => body.includes(held)),
  )
})

it('the service sends payment.expired once even if the clock of the operator’s machine is behind', async () => {
  const merchant = await newMerchant(service.db)
  await addWebhook(merchant.mid, '/once')
  const orderId = await newOrder(merchant)
  service.clock.advance(25 * 60)
  await until('the event is received', () => receiver.to('/once').length === 1)
  await watchOpenOrders(service.db, merchant.mid, later(-10))
  await sleep(500)
  const { rows } = await service.db.query('select type from webhook_deliveries where order_id = $1', [orderId])
  expect(rows).toEqual([{ type: 'payment.expired' }])
})
