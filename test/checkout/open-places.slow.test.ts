import { beforeEach, describe, expect, it } from 'vitest'
import { createOpenPlaces, type OpenPlaces } from '../../src/checkout/open-places.ts'
import { networkOf } from '../../src/http/places.ts'
import { LIMITS } from '../../src/limits.ts'
import { buildIntent } from '../../src/payments/intent.ts'
import { createIntents } from '../../src/payments/intents.ts'
import { createMerchants, type Merchant } from '../../src/tenants/merchants.ts'
import { newPayment } from '../support/requests.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'

const {
  open: PLACES,
  openOfOrder: PAGES_OF_ORDER,
  scarceFrom: SCARCE_FROM,
  scarceOfAddress: SHARE_OF_ADDRESS,
} = LIMITS.pages
const EXPIRY_MINUTES = 15

/** How many of `pages` get a place, 20 of each order, all from the addresses that `ipOf` names. */
function take({ take }: OpenPlaces, pages: number, ipOf: (page: number) => string): number {
  let given = 0
  const orders = `${ipOf(0)} order`
  for (let page = 0; page < pages; page++) {
    if (take(`${orders} ${Math.floor(page / PAGES_OF_ORDER)}`, ipOf(page))) given++
  }
  return given
}

describe('the rules of places', () => {
  it('one address cannot take them all, and the next ones get a share each', () => {
    const places = createOpenPlaces(LIMITS.pages)
    expect(take(places, PLACES, () => '203.0.113.1')).toBe(SCARCE_FROM)
    expect(take(places, PLACES, () => '203.0.113.2')).toBe(SHARE_OF_ADDRESS)
    // All that begin with the same 64 bits are one address.
    expect(take(places, PLACES, (page) => `2001:db8:2:3::${page.toString(16).slice(0, 4)}`)).toBe(SHARE_OF_ADDRESS)
    expect(take(places, 1, () => '198.51.100.7')).toBe(1)
  })

  it('many customers may share one address while there are enough', () => {
    expect(take(createOpenPlaces(LIMITS.pages), SCARCE_FROM, () => '10.0.0.1')).toBe(SCARCE_FROM)
  })

  it('an order has its share, wherever its pages are opened', () => {
    const places = createOpenPlaces(LIMITS.pages)
    const given = Array.from({ length: PAGES_OF_ORDER + 10 }, (_, i) => places.take('order', `10.0.0.${i}`)).filter(
      Boolean,
    )
    expect(given.length).toBe(PAGES_OF_ORDER)
  })

  it('there are no more than all, from however many addresses, and one given back is there for the next, once', () => {
    const places = createOpenPlaces(LIMITS.pages)
    expect(take(places, PLACES + 100, (page) => `10.${page >> 8}.${page & 255}.1`)).toBe(PLACES)
    expect(places.take('new', '192.0.2.1')).toBeUndefined()
    const others = createOpenPlaces(LIMITS.pages)
    const leave = others.take('order', '10.0.0.1')
    leave?.()
    leave?.()
    expect(take(others, PLACES, () => '10.0.0.1')).toBe(SCARCE_FROM)
  })
})

let service: TestService
/** Stored past the API, which refuses what comes faster than a busy machine can store it. */
async function newOrders(count: number): Promise<string[]> {
  const { mid } = await newMerchant(service.db)
  const merchant = (await createMerchants(service.db).list()).find((listed) => listed.mid === mid)
  const intents = createIntents(service.pools, () => undefined)
  const made = Array.from({ length: count }, () =>
    buildIntent(newPayment(mid), merchant as Merchant, service.clock.now(), EXPIRY_MINUTES),
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

describe('pages that wait for events', () => {
  beforeEach(async () => {
    service = await startService()
  })

  it('are open to the next customer when one address has taken all that it gets, and who is refused still learns', async () => {
    const orders = await newOrders(SCARCE_FROM / PAGES_OF_ORDER + 20)
    expect(await openAll(orders, PAGES_OF_ORDER, '203.0.113.1')).toBe(SCARCE_FROM)
    const [order = ''] = await newOrders(1)
    expect(await open(order, '203.0.113.1')).toBe(503)
    expect(await open(order, '198.51.100.7')).toBe(200)
    const answer = await service.app.inject({ method: 'HEAD', url: `/pay/${order}`, remoteAddress: '203.0.113.1' })
    expect([answer.statusCode, answer.headers['x-payment-state']]).toEqual([200, 'open'])
  }, 120_000)

  it('give their places back when there is no such payment', async () => {
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
