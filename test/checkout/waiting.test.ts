import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { newSetuMerchant, startServiceWithBank } from '../support/fake-setu.ts'
import { createOrder } from '../support/orders.ts'
import { post, STATUS, type TestService } from '../support/service.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

// Setu notifies of nothing here, and is asked 90 s after an order was made if somebody waits for it.

let service: TestService
let setu: FakeSetu
let merchant: NewMerchant
let url: string
beforeAll(async () => {
  const limits = { webhooks: { lookIntervalMs: 20 }, pages: { lookUpIntervalMs: 20 } }
  ;({ service, bank: setu } = await startServiceWithBank({ asServiceRole: true, limits }))
  merchant = await newSetuMerchant(service)
  url = String(setu.notifyUrl?.replace(/\/acquirer\/.*/, ''))
})

const left = new AbortController()
afterEach(() => service.db.query('update acquirer_intents set status_check_at = null'))

async function paidUnheard(): Promise<string> {
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
  'its shop calls checkPaymentStatus': (orderId) =>
    post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key),
  'its pay page has come back from an app': (orderId) => openEvents(orderId, '?back'),
  'its pay page without JavaScript has reloaded itself': (orderId) => fetch(`${url}/pay/${orderId}?reload`),
}

const NOBODY: Record<string, (orderId: string) => Promise<unknown>> = {
  'a pay page has opened its events': (orderId) => openEvents(orderId, ''),
  'the browser of a page that had come back has reconnected': (orderId) =>
    openEvents(orderId, '?back', { 'last-event-id': '1' }),
  'the pay page was loaded': (orderId) => fetch(`${url}/pay/${orderId}`),
}

describe('a payment whose notification is lost', () => {
  it.each(Object.keys(WAITING))('is known before the order expires once %s', async (name) => {
    const orderId = await paidUnheard()
    await WAITING[name]?.(orderId)
    await until('it is known', () => isPaid(orderId))
    expect(setu.requests.filter(({ path }) => path.includes(`${setu.find(orderId)?.id}/last`))).toHaveLength(1)
  })

  it.each(Object.keys(NOBODY))('is not asked about because %s', async (name) => {
    const orderId = await paidUnheard()
    await NOBODY[name]?.(orderId)
    // The enquiry about the second order is looked for after the first one.
    const second = await paidUnheard()
    await WAITING['its shop calls checkPaymentStatus']?.(second)
    await until('the second one is known', () => isPaid(second))
    expect(await isPaid(orderId)).toBe(false)
  })
})
