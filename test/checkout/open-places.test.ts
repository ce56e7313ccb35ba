import { beforeEach, describe, expect, it } from 'vitest'
import { networkOf } from '../../src/checkout/open-places.ts'
import { createMerchants, type Merchant } from '../../src/merchants/merchants.ts'
import { buildIntent } from '../../src/payments/intent.ts'
import { createIntents } from '../../src/payments/repository.ts'
import { intentFields, newMerchant, startService, type TestService } from '../support/service.ts'

/** As many as one address could fill before it was held to a share: 500 orders of a merchant, 20 pages each. */
const ORDERS = 500
const PAGES_OF_ORDER = 20
const SCARCE_FROM = 5_000
const SHARE_OF_ADDRESS = 200
const EXPIRY_MINUTES = 15

let service: TestService
/** Stored past the API, which refuses what comes faster than a busy machine can store it. */
async function newOrders(count: number): Promise<string[]> {
  const { mid } = await newMerchant(service.db)
  const merchant = (await createMerchants(service.db).list()).find((listed) => listed.mid === mid)
  const fields = { ...intentFields(mid), amount: 200 } as never
  const intents = createIntents(service.db, () => undefined)
  const made = Array.from({ length: count }, () =>
    buildIntent(fields, merchant as Merchant, service.clock.now(), EXPIRY_MINUTES),
  )
  for (const intent of made) await intents.insert(intent)
  return made.map(({ orderId }) => orderId)
}

/** Opens a page's events from `remoteAddress`, which may be refused, and stays. */
async function open(orderId: string, remoteAddress: string): Promise<number> {
  const url = `/pay/${orderId}/events`
  const answer = await service.app.inject({ method: 'GET', url, remoteAddress, payloadAsStream: true })
  return answer.statusCode
}

/** How many of the pages that `remoteAddress` opens for `orderIds`, `each` of every order, are given a place. */
async function openAll(orderIds: string[], each: number, remoteAddress: string): Promise<number> {
  let given = 0
  for (const orderId of orderIds) {
    const statuses = await Promise.all(Array.from({ length: each }, () => open(orderId, remoteAddress)))
    given += statuses.filter((status) => status === 200).length
  }
  return given
}

describe('places of pages that wait for events', () => {
  beforeEach(async () => {
    service = await startService()
  })

  it('one address cannot take them all: customers elsewhere still get theirs', async () => {
    const orders = await newOrders(ORDERS)
    expect(await openAll(orders, PAGES_OF_ORDER, '203.0.113.1')).toBe(SCARCE_FROM)
    const [order = ''] = await newOrders(1)
    expect(await open(order, '198.51.100.7')).toBe(200)
    expect(await open(order, '2001:db8:1::7')).toBe(200)
    // The next address gets a share, not the rest; a network of IPv6 is one address.
    const others = await newOrders(20)
    expect(await openAll(others, PAGES_OF_ORDER, '203.0.113.2')).toBe(SHARE_OF_ADDRESS)
    const more = await newOrders(20)
    const network = await Promise.all(
      more.map((orderId, i) => openAll([orderId], PAGES_OF_ORDER, `2001:db8:2:3::${i.toString(16)}`)),
    )
    expect(network.reduce((sum, given) => sum + given, 0)).toBe(SHARE_OF_ADDRESS)
    // Who was refused learns of the payment all the same: the page itself is served, and tells its state.
    const { statusCode, headers } = await service.app.inject({
      method: 'HEAD',
      url: `/pay/${orders[0]}`,
      remoteAddress: '203.0.113.1',
    })
    expect([statusCode, headers['x-payment-state']]).toEqual([200, 'open'])
  }, 60_000)

  it('are there for many customers behind one address', async () => {
    const orders = await newOrders(50)
    // Some may come too late for a busy machine, which is no refusal of theirs.
    expect(await openAll(orders, PAGES_OF_ORDER, '10.0.0.1')).toBeGreaterThan(0.9 * orders.length * PAGES_OF_ORDER)
  })

  it('are given back when there is no such payment', async () => {
    const unknown = '0'.repeat(32)
    for (let i = 0; i < 2 * PAGES_OF_ORDER; i++) expect(await open(unknown, '10.0.0.1')).toBe(404)
  })
})

describe('the network of an address', () => {
  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
    ['2001:db8:1:2::6', '2001:db8:1:2'],
    ['2001:db8::6', '2001:db8:0:0'],
    ['2001:db8::3:4:5:6', '2001:db8:0:0'],
    ['::1', '0:0:0:0'],
    ['fe80::1%eth0', 'fe80:0:0:0'],
  ])('of %s is %s', (ip, network) => {
    expect(networkOf(ip)).toBe(network)
  })
})
