import { beforeAll, describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import {
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  post,
  STATUS,
  startService,
  type TestService,
} from '../support/service.ts'

const EXPIRY_MINUTES = 15
const GRACE_MINUTES = 10

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  service = await startService({ expiryMinutes: EXPIRY_MINUTES })
  ;({ mid, key } = await newMerchant(service.db))
})

let purchases = 0

/**
 * A shop as the public clients make them: it takes `status: true` for the end, never asks again after it, and opens
 * another order for the same purchase when the end was not SUCCESS.
 */
async function startPurchase() {
  const purchase = ++purchases
  const books = { orders: [] as string[], shipped: 0, ends: [] as string[] }
  await open()

  async function open() {
    const order_id = `${purchase}-${books.orders.length + 1}`
    const { body } = await post(service.app, CREATE, intentFields(mid, { order_id }), key)
    books.orders.push(body.data.orderId)
  }

  return {
    books,
    /** Asks for the last order as long as its end is open. */
    async ask() {
      if (books.ends.length === books.orders.length) return
      const order_id = `${purchase}-${books.orders.length}`
      const { body } = await post(service.app, STATUS, { mid, order_id }, key)
      if (!body.status) return
      books.ends.push(body.txnStatus)
      if (body.txnStatus === 'SUCCESS') books.shipped++
      else await open()
    },
  }
}

/** The bank reports an attempt of the customer at the order. */
async function bank(orderId: string, status: 'SUCCESS' | 'FAIL' | 'REJECT') {
  expect((await notify(service, notification(orderId, { status, UTR: newUtr() }))).status).toBe(200)
}

const received = async (orders: string[]) =>
  (await service.db.query(`select from payment_intents where order_id = any ($1) and status = 'SUCCESS'`, [orders]))
    .rowCount

describe('a customer who mistypes the PIN and then pays', () => {
  it('has paid once, for one order that is shipped', async () => {
    const { books, ask } = await startPurchase()
    const [first = ''] = books.orders
    await ask()
    for (const failure of ['FAIL', 'REJECT', 'FAIL'] as const) {
      await bank(first, failure)
      await ask()
      service.clock.advance(60)
    }
    // The customer pays whatever the shop shows: the first order's QR is open, and a second order's would be as well.
    for (const orderId of [...books.orders]) await bank(orderId, 'SUCCESS')
    for (let i = 0; i < 3; i++) await ask()
    expect(books).toEqual({ orders: [first], shipped: 1, ends: ['SUCCESS'] })
    expect(await received(books.orders)).toBe(1)
  })

  it('is not called failed before the bank has had its time, and then is', async () => {
    const { books, ask } = await startPurchase()
    const [first = ''] = books.orders
    await bank(first, 'FAIL')
    service.clock.advance((EXPIRY_MINUTES + GRACE_MINUTES) * 60 - 1)
    await ask()
    expect(books.ends).toEqual([])
    service.clock.advance(1)
    await ask()
    expect(books.ends).toEqual(['FAIL'])
  })
})

describe('a success that is stored only after the shop was told the end', () => {
  it('is kept as a late payment, though the bank told of it in time', async () => {
    const { books, ask } = await startPurchase()
    const [orderId = ''] = books.orders
    service.clock.advance((EXPIRY_MINUTES + GRACE_MINUTES) * 60 - 2)
    const blocker = await service.db.connect()
    try {
      await blocker.query('begin')
      await blocker.query('select from payment_intents where order_id = $1 for update', [orderId])
      const told = bank(orderId, 'SUCCESS')
      await expect.poll(waitingForLocks).toBe(1)
      service.clock.advance(3)
      await ask()
      await blocker.query('commit')
      await told
    } finally {
      blocker.release(true)
    }
    expect(books.ends).toEqual(['FAIL'])
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows).toEqual([{ kind: 'late payment' }])
  })
})

const waitingForLocks = async () =>
  (
    await service.db.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    )
  ).rowCount
