import { createHmac } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type FakeSetu, startFakeSetu } from '../support/setu-bank.ts'
import type { NotificationFaults } from '../support/setu-bank-faults.ts'
import { departure } from '../support/setu-schema.ts'

/*
 * What the tests of Setu rely on, and would not notice: the fake refuses what Setu does not document, and its notifications
 * fail as they are told to.
 */

const SECRET = 'secret0of0the0bank0test'

/** The events that have arrived where the notifications go; marked where the signature or the amount is another one. */
const arrived: string[] = []
const shop = createServer(async (request, response) => {
  const body = await text(request)
  const { eventType, amount } = JSON.parse(body)
  const signature = createHmac('sha256', SECRET).update(body).digest('base64')
  const forged = request.headers['x-setu-signature'] === signature ? '' : 'forged '
  arrived.push(`${forged}${eventType.replace('payment.', '')}${amount === QR.amount ? '' : ' of another amount'}`)
  response.writeHead(503).end()
})

let bank: FakeSetu
let token: string
beforeAll(async () => {
  await once(shop.listen(0, '127.0.0.1'), 'listening')
  const credentials = { clientId: 'client', clientSecret: 'secret', notificationSecret: SECRET }
  bank = await startFakeSetu({ ...credentials, now: () => new Date(), check: departure })
  bank.notifyUrl = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/`
  bank.retriesNotifications = true
  const headers = { client: 'bridge', 'content-type': 'application/json' }
  const body = JSON.stringify({ clientID: 'client', secret: 'secret', grant_type: 'client_credentials' })
  const answer = await fetch(bank.loginUrl, { method: 'POST', headers, body })
  token = ((await answer.json()) as { access_token: string }).access_token
})
afterAll(async () => {
  await bank.goAway()
  shop.closeAllConnections()
  shop.close()
})

const QR = {
  merchantVpa: 'shop@examplebank',
  amount: 20_000,
  expiryDate: '2026-03-31T18:45:00Z',
  referenceId: 'order-1',
}

async function create(changes: object = {}) {
  const headers = { authorization: `Bearer ${token}`, merchantId: '01MERCHANT', 'content-type': 'application/json' }
  const body = JSON.stringify({ ...QR, ...changes })
  const response = await fetch(`${bank.url}/api/v1/merchants/dqr`, { method: 'POST', headers, body })
  return { status: response.status, body: (await response.json()) as { id: string } }
}

it.each([
  { merchantVpa: 'Shop@examplebank' },
  { amount: 99 },
  { amount: 100.5 },
  { amount: '20000' },
  { referenceId: '' },
  { expiryDate: 'tomorrow' },
  { minAmount: 100 },
  { metadata: { a: 1 } },
])('refuses and remembers a request that Setu does not document: %j', async (changes) => {
  const { status, body } = await create(changes)
  expect([status, Object.keys(body)]).toEqual([400, ['code', 'detail', 'docUrl']])
  expect(bank.violations.splice(0)).toEqual([expect.stringMatching(/^createDqr: request\/body/)])
})

it.each<[NotificationFaults, string, string]>([
  [{}, 'initiated, success', 'initiated, success'],
  [{ lost: 1 }, '', ''],
  [{ repeated: 1 }, 'initiated, success, initiated, success', 'initiated, success, initiated, success'],
  [{ reordered: 1 }, 'success, initiated', 'success, initiated'],
  [{ late: 1 }, '', 'initiated, success'],
  [{ forged: 1 }, 'initiated, success, forged success', 'initiated, success'],
  [
    { contradicted: 1 },
    'initiated, success, success of another amount',
    'initiated, success, success of another amount',
  ],
])(
  'with the faults %j its notifications are "%s"; those not taken are sent again, "%s"',
  async (faults, sent, again) => {
    arrived.length = 0
    await bank.pay((await create()).body.id, { faults })
    expect(arrived.splice(0).join(', ')).toBe(sent)
    await bank.sendWaiting()
    expect(arrived.join(', ')).toBe(again)
    for (let tries = 0; tries < 4; tries++) await bank.sendWaiting()
    expect(bank.waiting).toEqual([])
  },
)
