import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newSetuMerchant, startServiceWithBank } from '../support/fake-setu.ts'
import { createOrder } from '../support/orders.ts'
import { post, STATUS, type TestService } from '../support/service.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

// Setu sends no notifications here, and its status is checked 90 s after an order's creation if the merchant or the
// customer waits.

let service: TestService
let setu: FakeSetu
let merchant: NewMerchant
let url: string
beforeAll(async () => {
  const limits = { webhooks: { lookIntervalMs: 100 }, pages: { lookUpIntervalMs: 20 } }
  ;({ service, bank: setu } = await startServiceWithBank({ asServiceRole: true, limits }))
  merchant = await newSetuMerchant(service)
  url = String(setu.notifyUrl?.replace(/\/acquirer\/.*/, ''))
})

const left = new AbortController()
afterEach(() => service.db.query('update acquirer_intents set status_check_at = null'))

async function paidUnreported(): Promise<string> {
  const orderId = await createOrder(service, merchant)
  await setu.pay(orderId, { faults: { lost: 1 } })
  service.clock.advance(90)
  return orderId
}

const isPaid = async (orderId: string) => {
  const { rows } = await service.db.query('select status from payment_intents where order_id = $1', [orderId])
  return rows[0].status === 'SUCCESS'
}

const openEvents = (orderId: string, query: string, headers = {}) =>
  fetch(`${url}/pay/${orderId}/events${query}`, { headers, signal: left.signal })

const WAITING: Record<string, (orderId: string) => Promise<unknown>> = {
  'the merchant calls checkPaymentStatus': (orderId) =>
    post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key),
  'its pay page reports a return from an app': (orderId) => openEvents(orderId, '?back'),
  'its pay page without JavaScript reloads itself': (orderId) => fetch(`${url}/pay/${orderId}?reload`),
  'its pay page without JavaScript reports a return from an app': (orderId) => fetch(`${url}/pay/${orderId}?back=1`),
}

const UNKNOWN_ORDER: Record<string, (orderId: string) => Promise<unknown>> = {
  'a pay page opens its events': (orderId) => openEvents(orderId, ''),
  'the browser of a page that reported a return reconnects': (orderId) =>
    openEvents(orderId, '?back', { 'last-event-id': '1' }),
  'the pay page is loaded': (orderId) => fetch(`${url}/pay/${orderId}`),
  'a crawler loads the pay page for a preview': async (orderId) => {
    const headers = { 'user-agent': 'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)' }
    for (const method of ['HEAD', 'GET'])
      expect((await fetch(`${url}/pay/${orderId}`, { method, headers })).status).toBe(200)
  },
}

describe('a payment whose notification is lost', () => {
  it.each(Object.keys(WAITING))('is recorded before the order expires once %s', async (name) => {
    const orderId = await paidUnreported()
    await WAITING[name]?.(orderId)
    await until('the payment is recorded', () => isPaid(orderId))
    expect(setu.requests.filter(({ path }) => path.includes(`${setu.find(orderId)?.id}/last`))).toHaveLength(1)
  })

  it.each(Object.keys(UNKNOWN_ORDER))('is not checked at the acquirer because %s', async (name) => {
    const orderId = await paidUnreported()
    await UNKNOWN_ORDER[name]?.(orderId)
    // The second order's status check is claimed after one of the first order would be.
    const second = await paidUnreported()
    await WAITING['the merchant calls checkPaymentStatus']?.(second)
    await until('the second payment is recorded', () => isPaid(second))
    expect(await isPaid(orderId)).toBe(false)
  })
})
