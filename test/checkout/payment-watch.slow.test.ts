import { request } from 'node:http'
import { connect as connectSocket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { createPaymentWatch } from '../../src/gateway/checkout/payment-watch.ts'
import type { Checkout } from '../../src/gateway/payments/intents.ts'
import type { Status } from '../../src/gateway/payments/outcome.ts'
import { LIMITS } from '../../src/limits.ts'
import { notification, notify } from '../support/acquirer.ts'
import { CREATE, intentFields, newMerchant, post, startService, type TestService } from '../support/service.ts'

const TICK_MS = LIMITS.pages.lookUpIntervalMs
const OPENED = new Date('2026-03-31T18:00:00Z')
const EXPIRY_MS = 15 * 60_000
const ABANDONED_MS = EXPIRY_MS + 10 * 60_000

const checkoutOf = (orderId: string): Checkout => ({
  mid: 'CHAI_POINT',
  orderId,
  merchantOrderId: '1001',
  amount: 20_000,
  note: 'Order 1001',
  payee: { vpa: 'chaipoint@examplebank', name: 'Chai Point', mcc: '5814' },
  redirectUrl: 'https://shop.example.in/thanks',
  createdAt: OPENED,
  expiresAt: new Date(OPENED.getTime() + EXPIRY_MS),
  status: 'PENDING',
  utr: null,
  failureReason: null,
  refunded: false,
  merchantDisabled: false,
  brand: { colour: null, website: null, support: null, logo: null },
  isUnreadable: false,
  paidAt: null,
  attemptedAt: OPENED,
  mismatch: null,
  bankReference: null,
})

const FAILED = `attemptFailed-other-${OPENED.getTime()}`

const utrOf = (status: Status) => (status === 'SUCCESS' ? '523504870405' : null)

/** A watch over statuses that the test sets; records its queries and errors. */
function watchOver(statuses: Map<string, Status>) {
  const requested: string[][] = []
  const errors: unknown[] = []
  let failure: Error | undefined
  const watch = createPaymentWatch({
    intents: {
      async findStates(orderIds) {
        requested.push([...orderIds])
        if (failure) throw failure
        const known = [...statuses].filter(([orderId]) => orderIds.includes(orderId))
        return new Map(
          known.map(([orderId, status]) => [orderId, { ...checkoutOf(orderId), status, utr: utrOf(status) }]),
        )
      },
    },
    waiting: { schedule: async () => undefined },
    now: () => new Date(),
    limits: LIMITS,
    onError: (error) => errors.push(error),
  })
  return { watch, requested, errors, failWith: (error?: Error) => (failure = error) }
}

/** Opens a page and returns its event stream, the parsed events and the number of heartbeats. */
function open(watch: ReturnType<typeof createPaymentWatch>, checkout: Checkout) {
  const page = { told: [] as string[], heartbeats: 0, events: watch.open(checkout) }
  page.events?.setEncoding('utf8').on('data', (text: string) => {
    for (const [, event, data = ''] of text.matchAll(/(?:event: (\w+)\n)?data:(.*)\n\n/g)) {
      if (event === 'heartbeat') page.heartbeats++
      else page.told.push(event === 'over' ? event : data.trim())
    }
  })
  page.events?.on('end', () => page.told.push('end'))
  return page
}

describe('the watch over open pay pages', () => {
  beforeEach(() => {
    vi.useFakeTimers({ now: OPENED })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('queries each order once per second for 1,000 pages together, and notifies every page', async () => {
    const statuses = new Map<string, Status>()
    const { watch, requested } = watchOver(statuses)
    // Two tabs per order.
    const pages = Array.from({ length: 1_000 }, (_, i) => open(watch, checkoutOf(`order-${i >> 1}`)))
    await vi.advanceTimersByTimeAsync(5 * TICK_MS)
    expect(requested.map((orderIds) => orderIds.length)).toEqual([500, 500, 500, 500, 500])
    expect(new Set(requested[0]).size).toBe(500)
    for (let i = 0; i < 250; i++) statuses.set(`order-${i}`, 'SUCCESS')
    for (let i = 250; i < 500; i++) statuses.set(`order-${i}`, 'FAIL')
    await vi.advanceTimersByTimeAsync(2 * TICK_MS)
    expect(pages.slice(0, 500).filter(({ told }) => told.join() !== 'open,paid,over,end')).toEqual([])
    expect(pages.slice(500).filter(({ told }) => told.join() !== `open,${FAILED}`)).toEqual([])
    expect(requested.map((orderIds) => orderIds.length).slice(5)).toEqual([500, 250])
    watch.close()
  })

  it('ends the stream of an expired order with a payment of another amount', async () => {
    const { watch } = watchOver(new Map())
    const mismatch = { amount: 20_100, utr: '523504870405' }
    const expiresAt = new Date(Date.now() - 10 * 60_000)
    const page = open(watch, { ...checkoutOf('a'), mismatch, expiresAt })
    await vi.advanceTimersByTimeAsync(TICK_MS)
    expect(page.told).toEqual(['amountMismatch', 'over', 'end'])
  })

  it('notifies a page of each state once: failed attempt, then payment, then nothing more', async () => {
    const statuses = new Map<string, Status>()
    const { watch } = watchOver(statuses)
    const page = open(watch, checkoutOf('a'))
    await vi.advanceTimersByTimeAsync(3 * TICK_MS)
    statuses.set('a', 'REJECT')
    await vi.advanceTimersByTimeAsync(3 * TICK_MS)
    statuses.set('a', 'SUCCESS')
    await vi.advanceTimersByTimeAsync(3 * TICK_MS)
    expect(page.told).toEqual(['open', FAILED, 'paid', 'over', 'end'])
  })

  it('notifies a page of the expiry, and of a later payment until the status is final', async () => {
    const statuses = new Map<string, Status>()
    const { watch } = watchOver(statuses)
    const [late, never, failed] = ['late', 'never', 'failed'].map((orderId) => open(watch, checkoutOf(orderId)))
    await vi.advanceTimersByTimeAsync(EXPIRY_MS + TICK_MS)
    statuses.set('late', 'SUCCESS')
    statuses.set('failed', 'FAIL')
    await vi.advanceTimersByTimeAsync(ABANDONED_MS - EXPIRY_MS)
    const states = (told: string[] = []) => told.filter((word) => word !== 'heartbeat')
    expect(states(late?.told)).toEqual(['open', 'timeUp', 'paid', 'over', 'end'])
    expect(states(never?.told)).toEqual(['open', 'timeUp', 'expired', 'over', 'end'])
    expect(states(failed?.told)).toEqual(['open', 'timeUp', 'failed', 'over', 'end'])
  })

  it('ends the stream of an order with a final status immediately', async () => {
    const { watch } = watchOver(new Map())
    const { told } = open(watch, { ...checkoutOf('a'), status: 'SUCCESS', utr: utrOf('SUCCESS') })
    await vi.advanceTimersByTimeAsync(0)
    expect(told).toEqual(['paid', 'over', 'end'])
  })

  it('queries again a second after a failed query', async () => {
    const statuses = new Map<string, Status>()
    const { watch, errors, failWith } = watchOver(statuses)
    const page = open(watch, checkoutOf('a'))
    const outage = new Error('the database does not respond')
    failWith(outage)
    await vi.advanceTimersByTimeAsync(3 * TICK_MS)
    expect([errors, page.told]).toEqual([[outage, outage, outage], ['open']])
    failWith(undefined)
    statuses.set('a', 'SUCCESS')
    await vi.advanceTimersByTimeAsync(TICK_MS)
    expect(page.told).toEqual(['open', 'paid', 'over', 'end'])
  })

  it('sends heartbeats on connections without other events', async () => {
    const { watch } = watchOver(new Map())
    const page = open(watch, checkoutOf('a'))
    await vi.advanceTimersByTimeAsync(60 * TICK_MS)
    // The first heartbeat contains the interval.
    expect([page.told, page.heartbeats]).toEqual([['open'], 4])
    watch.close()
  })

  it('rejects pages beyond the limit per order or in total, until another page has closed', async () => {
    const { watch } = watchOver(new Map())
    const { open: all, openOfOrder: ofOrder } = LIMITS.pages
    const pages = Array.from({ length: all - 1 }, (_, i) => open(watch, checkoutOf(`order-${Math.floor(i / ofOrder)}`)))
    expect(pages.filter(({ events }) => events === undefined)).toEqual([])
    expect(open(watch, checkoutOf('order-0')).events).toBeUndefined()
    expect(open(watch, checkoutOf('another')).events).toBeDefined()
    expect(open(watch, checkoutOf('another')).events).toBeUndefined()
    pages[0]?.events?.destroy()
    await vi.advanceTimersByTimeAsync(0)
    expect(open(watch, checkoutOf('order-0')).events).toBeDefined()
    watch.close()
  })

  it('ends every event stream when it is closed, including streams opened later, and sends no more queries', async () => {
    const { watch, requested } = watchOver(new Map())
    const early = open(watch, checkoutOf('a'))
    watch.close()
    const late = open(watch, checkoutOf('b'))
    await vi.advanceTimersByTimeAsync(5 * TICK_MS)
    expect([early.told, late.told, requested]).toEqual([['open', 'end'], ['end'], []])
  })
})

describe('open pay pages on real connections', () => {
  const CONNECTIONS = 50
  const PAGES_OF_ORDER = 20

  /** Opens a page's connection, and records the received text and whether the service has ended it. */
  function connect(url: string) {
    const connection = { text: '', ended: false, leave: () => sent.destroy() }
    const sent = request(url, { agent: false }, (response) => {
      response.setEncoding('utf8').on('data', (text) => {
        connection.text += text
      })
      response.on('end', () => {
        connection.ended = true
      })
      response.on('error', () => undefined)
    })
    sent.on('error', () => undefined).end()
    return connection
  }

  const looksUp = ({ pools }: TestService) => {
    const query = vi.spyOn(pools.pages, 'query')
    const isLookUp = ([statement]: unknown[]) => JSON.stringify(statement).includes('select i.order_id, i.expires_at')
    return () => query.mock.calls.filter(isLookUp).length
  }
  const SOON = { timeout: 10_000 }

  it('show a payment within seconds with one query per second, and end when the service stops', async () => {
    const service = await startService()
    const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
    const { mid, key } = await newMerchant(service.db)
    const orderIds = await Promise.all(
      Array.from({ length: CONNECTIONS }, async () => {
        return (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId as string
      }),
    )
    const lookUps = looksUp(service)
    const pages = orderIds.map((orderId) => connect(`${address}/pay/${orderId}/events`))
    await expect.poll(() => pages.filter(({ text }) => text.includes('data: open\n\n')).length, SOON).toBe(CONNECTIONS)
    expect(pages[0]?.text).toMatch(/^retry: [1-3]\d{3}\nid: 1\n\nevent: heartbeat\ndata: 20000\n\ndata: open\n\n$/)

    const before = lookUps()
    const since = performance.now()
    await notify(service, notification(orderIds[0] as string))
    await expect.poll(() => pages[0]?.ended, SOON).toBe(true)
    expect(pages[0]?.text).toMatch(
      /^retry: [1-3]\d{3}\nid: 1\n\nevent: heartbeat\ndata: 20000\n\ndata: open\n\ndata: paid\n\nevent: over\ndata:\n\n$/,
    )
    const seconds = (performance.now() - since) / 1_000
    expect(lookUps() - before).toBeLessThanOrEqual(Math.ceil(seconds) + 1)

    const last = pages[1]
    expect(last?.ended).toBe(false)
    await service.app.close()
    await expect.poll(() => last?.ended, SOON).toBe(true)
    // No `over` event: the browser has to reconnect to another instance.
    expect(last?.text).toMatch(/^retry: [1-3]\d{3}\nid: 1\n\nevent: heartbeat\ndata: 20000\n\ndata: open\n\n$/)
    const atClose = lookUps()
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    expect(lookUps()).toBe(atClose)
  })

  it('cause no queries after they were closed, in whatever way', async () => {
    const service = await startService()
    const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
    const { mid, key } = await newMerchant(service.db)
    const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
    const lookUps = looksUp(service)
    const pages = Array.from({ length: PAGES_OF_ORDER }, () => connect(`${address}/pay/${orderId}/events`))
    // Half of the pages leave before the response, half after it.
    for (const page of pages.slice(0, PAGES_OF_ORDER / 2)) page.leave()
    await expect.poll(() => pages.filter(({ text }) => text !== '').length, SOON).toBe(PAGES_OF_ORDER / 2)
    await expect.poll(lookUps, SOON).toBeGreaterThan(0)
    for (const page of pages) page.leave()
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const rest = lookUps()
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(lookUps()).toBe(rest)
  })

  it('requested together on one connection cause no queries once the connection is closed', async () => {
    const service = await startService()
    const address = await service.app.listen({ host: '127.0.0.1', port: 0 })
    const { mid, key } = await newMerchant(service.db)
    const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
    const lookUps = looksUp(service)
    const requested = `GET /pay/${orderId}/events HTTP/1.1\r\nHost: x\r\n\r\n`
    for (let i = 0; i < 5; i++) {
      const socket = connectSocket(Number(new URL(address).port), '127.0.0.1').on('error', () => undefined)
      socket.write(requested.repeat(5))
      await new Promise((resolve) => socket.resume().once('close', resolve))
    }
    await new Promise((resolve) => setTimeout(resolve, 1_500))
    const rest = lookUps()
    await new Promise((resolve) => setTimeout(resolve, 2_500))
    expect(lookUps()).toBe(rest)
  })
})
