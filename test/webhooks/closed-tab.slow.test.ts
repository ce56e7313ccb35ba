import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { setReturnUrlCallback } from '../../src/gateway/webhooks/endpoints.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { ACQUIRER_SECRETS, NOTIFY, newUtr, notification, sign } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import { basic, form, intentFields, newMerchant, ORDER, STATUS } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

const FORM = 'application/x-www-form-urlencoded'
const ENVIRONMENT = {
  ACQUIRER_SECRETS: ACQUIRER_SECRETS.join(','),
  RETURN_CALL_ALLOWED_NETWORKS: '127.0.0.1/32',
}
/** A return-URL callback comes 10 s after the payment, and a second one would come 5 s later. */
const TWO_CALLS_MS = 7_000

/**
 * A store as built by the public plugins: on a visit to its return URL it checks the payment status without a session
 * and completes the order. It completes an order again even if it is complete already, like the public WHMCS module,
 * which credits an invoice twice. It redirects the visitor whatever the result.
 */
async function startStore({ mid, key }: NewMerchant) {
  const completed: string[] = []
  const returned: string[] = []
  /** Number of status checks to lose next, by order. */
  const lost = new Map<string, number>()
  let serviceUrl = ''
  const server = createServer(async (request, response) => {
    const order = new URL(request.url ?? '', 'http://shop').searchParams.get('order_id') ?? ''
    returned.push(order)
    const headers = { authorization: basic(key), 'content-type': FORM }
    const body = form({ mid, order_id: order })
    const left = lost.get(order) ?? 0
    lost.set(order, left - 1)
    if (left <= 0) {
      const reported = await fetch(`${serviceUrl}${STATUS}`, { method: 'POST', headers, body })
      const { txnStatus, data } = (await reported.json()) as { txnStatus: string; data?: { amount: number } }
      if (txnStatus === 'SUCCESS' && data?.amount === 200) completed.push(order)
    }
    response.writeHead(302, { location: '/checkout/order-received/' }).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    completed,
    returned,
    lost,
    returnUrl: (order: string) =>
      `http://127.0.0.1:${(server.address() as AddressInfo).port}/?wc-api=gateway&order_id=${order}`,
    requests: ({ url }: ServerProcess) => {
      serviceUrl = url
    },
    close: () => server.close(),
  }
}

let db: Database
let databaseUrl: string
let store: Awaited<ReturnType<typeof startStore>>
let merchant: NewMerchant
beforeAll(async () => {
  ;({ url: databaseUrl, db } = await createTestDatabase())
  merchant = await newMerchant(db)
  await setReturnUrlCallback(db, { mid: merchant.mid, isOn: true, now: new Date() })
  store = await startStore(merchant)
})
afterAll(() => store.close())

async function start(): Promise<ServerProcess> {
  const service = await startServerProcess(databaseUrl, ENVIRONMENT)
  store.requests(service)
  return service
}

/** Creates and pays an order whose customer has closed the tab. */
async function pay(service: ServerProcess, order_id: string) {
  const headers = { authorization: basic(merchant.key), 'content-type': FORM }
  const fields = intentFields(merchant.mid, { order_id, redirect_url: store.returnUrl(order_id) })
  const created = await fetch(`${service.url}${ORDER}`, { method: 'POST', headers, body: form(fields) })
  const { data } = (await created.json()) as { data: { orderId: string } }
  const body = notification(data.orderId, { UTR: newUtr() })
  const signed = { 'content-type': 'application/json', 'x-signature': sign(body, new Date()) }
  expect((await fetch(`${service.url}${NOTIFY}`, { method: 'POST', headers: signed, body })).status).toBe(200)
}

const calls = (order: string) => store.returned.filter((one) => one === order).length

describe('an order whose tab was closed after the payment', () => {
  it('a return-URL callback completes the order once, even after the service was killed', async () => {
    const first = await start()
    await pay(first, '1001')
    await pay(first, '1002')
    store.lost.set('1002', 1)
    await first.killHard()
    const second = await start()
    try {
      await pay(second, '1003')
      // This customer's browser returns immediately.
      await fetch(store.returnUrl('1003'), { redirect: 'manual' })
      await until('all orders are complete', () => store.completed.length >= 3)
      await new Promise((resolve) => setTimeout(resolve, TWO_CALLS_MS))
      expect(store.completed.toSorted()).toEqual(['1001', '1002', '1003'])
      expect(['1001', '1002', '1003'].map(calls)).toEqual([1, 2, 1])
    } finally {
      await second.stop()
    }
  }, 90_000)
})
