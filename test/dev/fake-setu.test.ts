import { createHmac } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type FakeSetu, startFakeSetu } from '../../src/dev/fake-setu.ts'
import type { NotificationFaults } from '../../src/dev/fake-setu-faults.ts'
import { departure } from '../support/setu-schema.ts'

const SECRET = 'secret0of0the0bank0test'

/** What has arrived where the notifications go, and what is answered there. */
const arrived: { eventType: string; amount: number; signed: boolean }[] = []
let answer = 200
const shop = createServer(async (request, response) => {
  const body = await text(request)
  const signature = createHmac('sha256', SECRET).update(body).digest('base64')
  const { eventType, amount } = JSON.parse(body)
  arrived.push({ eventType, amount, signed: request.headers['x-setu-signature'] === signature })
  response.writeHead(answer).end()
})

let now = new Date('2026-03-31T18:29:59Z')
let bank: FakeSetu
const banks: FakeSetu[] = []
async function startBank(seed?: number): Promise<FakeSetu> {
  const credentials = { clientId: 'client', clientSecret: 'secret', notificationSecret: SECRET }
  const started = await startFakeSetu({ ...credentials, now: () => now, check: departure, ...(seed && { seed }) })
  started.notifyUrl = `http://127.0.0.1:${(shop.address() as AddressInfo).port}/`
  banks.push(started)
  return started
}

beforeAll(async () => {
  await new Promise<void>((resolve) => shop.listen(0, '127.0.0.1', resolve))
  bank = await startBank()
})
afterAll(async () => {
  for (const started of banks) await started.goAway()
  shop.closeAllConnections()
  shop.close()
})
beforeEach(() => {
  arrived.length = 0
  answer = 200
})

async function logIn(at = bank): Promise<string> {
  const headers = { client: 'bridge', 'content-type': 'application/json' }
  const body = JSON.stringify({ clientID: 'client', secret: 'secret', grant_type: 'client_credentials' })
  const response = await fetch(at.loginUrl, { method: 'POST', headers, body })
  return ((await response.json()) as { access_token: string }).access_token
}

const QR = {
  merchantVpa: 'shop@examplebank',
  amount: 20_000,
  expiryDate: '2026-03-31T18:45:00Z',
  referenceId: 'order-1',
}

async function create(token: string, changes: object = {}, at = bank) {
  const headers = { authorization: `Bearer ${token}`, merchantId: '01MERCHANT', 'content-type': 'application/json' }
  const body = JSON.stringify({ ...QR, ...changes })
  const response = await fetch(`${at.url}/api/v1/merchants/dqr`, { method: 'POST', headers, body })
  return { status: response.status, body: (await response.json()) as { id: string } }
}

const types = () => arrived.map(({ eventType }) => eventType.replace('payment.', ''))

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
  const { status, body } = await create(await logIn(), changes)
  expect([status, Object.keys(body)]).toEqual([400, ['code', 'detail', 'docUrl']])
  expect(bank.violations.splice(0)).toEqual([expect.stringMatching(/^createDqr: request\/body/)])
})

it('takes a token for 300 s, and no other', async () => {
  const token = await logIn()
  now = new Date(now.getTime() + 299_000)
  expect((await create(token)).status).toBe(201)
  now = new Date(now.getTime() + 1_000)
  expect((await create(token)).status).toBe(401)
  expect((await create('another')).status).toBe(401)
})

describe('its notifications', () => {
  const pay = async (faults: NotificationFaults, at = bank) => {
    const { body } = await create(await logIn(at), {}, at)
    return at.pay(body.id, { faults })
  }

  it.each<[NotificationFaults, string[]]>([
    [{}, ['initiated', 'success']],
    [{ lost: 1 }, []],
    [{ repeated: 1 }, ['initiated', 'success', 'initiated', 'success']],
    [{ reordered: 1 }, ['success', 'initiated']],
    [{ late: 1 }, []],
    [{ forged: 1 }, ['initiated', 'success', 'success']],
    [{ contradicted: 1 }, ['initiated', 'success', 'success']],
  ])('with %j are %j', async (faults, expected) => {
    await pay(faults)
    expect(types()).toEqual(expected)
    expect(arrived.filter(({ signed }) => !signed)).toHaveLength(faults.forged ?? 0)
    expect(arrived.filter(({ amount }) => amount !== QR.amount)).toHaveLength(faults.contradicted ?? 0)
    arrived.length = 0
    await bank.sendWaiting()
    expect(types()).toEqual(faults.late ? ['initiated', 'success'] : [])
  })

  it('that are not taken are sent three times more, and then no more', async () => {
    bank.retriesNotifications = true
    answer = 503
    await pay({ lost: 0 })
    for (let i = 0; i < 5; i++) await bank.sendWaiting()
    expect(types().filter((type) => type === 'success')).toHaveLength(4)
    bank.retriesNotifications = false
  })

  it('meet the same faults with the same seed', async () => {
    const faultsOf = async (seed: number) => {
      const seeded = await startBank(seed)
      arrived.length = 0
      for (let i = 0; i < 20; i++) await pay({ lost: 0.4, repeated: 0.3, reordered: 0.5 }, seeded)
      return types().join()
    }
    const faults = await faultsOf(7)
    expect(await faultsOf(7)).toBe(faults)
    expect(await faultsOf(8)).not.toBe(faults)
  })

  it('are not what was paid: that it knows by itself', async () => {
    const { payment } = await pay({ lost: 1 })
    expect(bank.paid().at(-1)).toMatchObject({ rrn: payment.rrn, amount: QR.amount, qr: { referenceId: 'order-1' } })
  })
})
