import { beforeAll, describe, expect, it } from 'vitest'
import { writeDeliveries } from '../../src/gateway/payments/outbox.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { createEndpoints } from '../../src/gateway/webhooks/endpoints.ts'
import { dueExpiries, watchOpenOrders } from '../../src/gateway/webhooks/expiries.ts'
import { LIMITS } from '../../src/limits.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { doWhatIsDue } from '../support/due-jobs.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  CANCEL,
  form,
  type Key,
  newMerchant,
  post,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

const FINAL_AFTER_SECONDS = 25 * 60
/** Failed attempts of one order that are stored. */
const ATTEMPTS = 3

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  // No instance delivers what is written here.
  service = await startService({
    limits: { webhooks: { lookIntervalMs: 3_600_000 }, reports: { attemptsOfOrder: ATTEMPTS } },
  })
  ;({ mid, key } = await newMerchant(service.db))
  await addWebhook(mid)
})

async function addWebhook(mid: string): Promise<string> {
  return (await newWebhook(service.db, { mid, url: 'https://shop.example/hook' }, service.clock.now())).endpointId
}

const newOrder = (of = { mid, key }, order_id = unique('O')) => createOrder(service, of, { order_id })

const cancel = (orderId: string) => post(service.app, CANCEL, form({ mid, order_id: orderId }), key)

async function eventsOf(orderId: string) {
  const { rows } = await service.db.query(
    `select type, txn_status, utr, sequence, occurred_at from webhook_deliveries where order_id = $1 order by sequence`,
    [orderId],
  )
  return rows.map(({ occurred_at, ...event }) => ({ ...event, occurred_at: occurred_at.toISOString() }))
}

const isTold = (orderId: string, changes = {}) => reportPayment(service, orderId, changes)

/** An instance that has just started, and looks once. */
const look = () => doWhatIsDue(dueExpiries({ db: service.db, now: service.clock.now, limits: LIMITS.webhooks }))

describe('an event is written together with its change', () => {
  it('a webhook event is written once for a payment, however often the bank repeats its notification', async () => {
    const orderId = await newOrder()
    const utr = newUtr()
    await Promise.all(Array.from({ length: 10 }, () => isTold(orderId, { UTR: utr })))
    expect(await eventsOf(orderId)).toEqual([
      {
        type: 'payment.succeeded',
        txn_status: 'SUCCESS',
        utr,
        sequence: 1,
        occurred_at: service.clock.now().toISOString(),
      },
    ])
  })

  it('a webhook event is written for each failed attempt and for the payment after them, in their true order', async () => {
    const orderId = await newOrder()
    for (const status of ['FAIL', 'REJECT']) await isTold(orderId, { status, UTR: newUtr() })
    await isTold(orderId)
    expect((await eventsOf(orderId)).map(({ type, txn_status, sequence }) => [type, txn_status, sequence])).toEqual([
      ['payment.attempt_failed', 'PENDING', 1],
      ['payment.attempt_failed', 'PENDING', 2],
      ['payment.succeeded', 'SUCCESS', 3],
    ])
  })

  it('a webhook event is written for a cancellation, and for a payment that arrives after it', async () => {
    const orderId = await newOrder()
    for (let i = 0; i < 2; i++) {
      expect((await post(service.app, CANCEL, form({ mid, order_id: orderId }), key)).status).toBe(200)
    }
    await isTold(orderId)
    expect((await eventsOf(orderId)).map(({ type, txn_status, sequence }) => [type, txn_status, sequence])).toEqual([
      ['payment.cancelled', 'FAIL', 1],
      ['payment.succeeded', 'SUCCESS', 2],
    ])
  })

  it('no webhook event is written for a wrong amount, a second payment or a failure after the payment', async () => {
    const orderId = await newOrder()
    expect((await notify(service, notification(orderId, { amount: 1 }))).status).toBe(409)
    expect(await eventsOf(orderId)).toEqual([])
    await isTold(orderId)
    await isTold(orderId)
    await isTold(orderId, { status: 'FAIL', UTR: newUtr() })
    expect(await eventsOf(orderId)).toHaveLength(1)
  })

  it('an event is written for each webhook of the merchant, and for no other merchant’s', async () => {
    const two = await newMerchant(service.db)
    const endpoints = [await addWebhook(two.mid), await addWebhook(two.mid)]
    const none = await newMerchant(service.db)
    const [ofTwo, ofNone] = [await newOrder(two), await newOrder(none)]
    await isTold(ofTwo)
    await isTold(ofNone)
    const { rows } = await service.db.query('select endpoint_id from webhook_deliveries where order_id = $1', [ofTwo])
    expect(rows.map(({ endpoint_id }) => endpoint_id).toSorted()).toEqual(endpoints.toSorted())
    expect(await eventsOf(ofNone)).toEqual([])
  })

  it('no event is written for a webhook that is switched off', async () => {
    const off = await newMerchant(service.db)
    const endpointId = await addWebhook(off.mid)
    const orderId = await newOrder(off)
    await createEndpoints(service.db).disable(endpointId, service.clock.now())
    await isTold(orderId)
    expect(await eventsOf(orderId)).toEqual([])
  })
})

describe('payment.expired', () => {
  it('payment.expired is written when checkPaymentStatus’s answer is final, and once over all instances', async () => {
    const orderId = await newOrder()
    const paid = await newOrder()
    await isTold(paid)
    for (const seconds of [600, FINAL_AFTER_SECONDS - 601]) {
      service.clock.advance(seconds)
      await look()
    }
    expect(await eventsOf(orderId)).toEqual([])
    service.clock.advance(1)
    await Promise.all([look(), look(), look()])
    expect(await eventsOf(orderId)).toEqual([
      {
        type: 'payment.expired',
        txn_status: 'FAIL',
        utr: null,
        sequence: 1,
        occurred_at: service.clock.now().toISOString(),
      },
    ])
    await isTold(orderId)
    expect((await eventsOf(orderId)).map(({ type, sequence }) => [type, sequence])).toEqual([
      ['payment.expired', 1],
      ['payment.succeeded', 2],
    ])
    expect((await eventsOf(paid)).map(({ type }) => type)).toEqual(['payment.succeeded'])
    service.clock.advance(60)
    await look()
    expect(await eventsOf(orderId)).toHaveLength(2)
  })

  it('payment.expired carries the status of the last attempt, and the next sequence number', async () => {
    const orderId = await newOrder()
    await isTold(orderId, { status: 'REJECT', UTR: newUtr() })
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    expect((await eventsOf(orderId)).map(({ type, txn_status, sequence }) => [type, txn_status, sequence])).toEqual([
      ['payment.attempt_failed', 'PENDING', 1],
      ['payment.expired', 'REJECT', 2],
    ])
  })

  it('a payment of the day file is late after payment.expired was written, and its own event comes next', async () => {
    const orderId = await newOrder()
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    const paid = { orderId, status: 'SUCCESS' as const, utr: newUtr(), amount: '200.00', paidAt: undefined }
    await createReports(service.db).record(paid, { source: 'day file', now: service.clock.now })
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows).toEqual([{ kind: 'late payment' }])
    expect((await eventsOf(orderId)).map(({ type }) => type)).toEqual(['payment.expired', 'payment.succeeded'])
  })

  it('payment.expired is not written for a cancelled order', async () => {
    const orderId = await newOrder()
    await post(service.app, CANCEL, form({ mid, order_id: orderId }), key)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    expect((await eventsOf(orderId)).map(({ type }) => type)).toEqual(['payment.cancelled'])
  })

  // A lock that is awaited on a worker of Citus is not seen.
  it.skipIf(ON_CITUS)('payment.expired stays the end of an order whose cancelPayment waited meanwhile', async () => {
    const orderId = await newOrder()
    service.clock.advance(FINAL_AFTER_SECONDS - 1)
    const holder = await service.db.connect()
    try {
      await holder.query('begin')
      // What another instance does for an expired order, while the cancellation waits.
      await holder.query('update payment_intents set event_sequence = 1 where mid = $1 and order_id = $2', [
        mid,
        orderId,
      ])
      const cancelled = cancel(orderId)
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await expect.poll(async () => (await service.db.query(waiting)).rowCount).toBe(1)
      service.clock.advance(1)
      await writeDeliveries(holder, 'payment.expired', mid, [
        { orderId, sequence: 1, txnStatus: 'FAIL', occurredAt: service.clock.now() },
      ])
      await holder.query('commit')
      expect((await cancelled).body).toMatchObject({
        statusCode: 200,
        txnStatus: 'FAIL',
        msg: 'Payment intent expired',
      })
    } finally {
      holder.release(true)
    }
    expect((await eventsOf(orderId)).map(({ type }) => type)).toEqual(['payment.expired'])
  })

  it('payment.expired is written for orders open when their merchant got a webhook, and for no earlier ones', async () => {
    const late = await newMerchant(service.db)
    const before = await newOrder(late)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    const open = await newOrder(late)
    service.clock.advance(15 * 60)
    await look()
    await addWebhook(late.mid)
    await watchOpenOrders(service.db, late.mid, service.clock.now())
    service.clock.advance(10 * 60)
    await look()
    expect((await eventsOf(open)).map(({ type }) => type)).toEqual(['payment.expired'])
    expect(await eventsOf(before)).toEqual([])
  })

  it('payment.expired is not written for an order that had ended before its merchant got a webhook', async () => {
    const late = await newMerchant(service.db)
    const before = await newOrder(late)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await addWebhook(late.mid)
    await watchOpenOrders(service.db, late.mid, service.clock.now())
    await look()
    expect(await eventsOf(before)).toEqual([])
  })

  it('the search for expired orders ends with the statement under way when its instance is stopped', async () => {
    const sent: string[] = []
    const db = { query: async (text: string) => ({ rows: [], length: sent.push(text) }) }
    const { findQueues } = dueExpiries({ db: db as never, now: service.clock.now, limits: LIMITS.webhooks })
    const inserts = () => sent.filter((text) => text.includes('insert into webhook_expiries')).length
    await findQueues(() => inserts() === 2)
    expect(inserts()).toBe(2)
  })

  it('payment.expired is written for each order that expired while no instance ran', async () => {
    const orders = []
    for (let i = 0; i < 4; i++) {
      orders.push(await newOrder())
      service.clock.advance(15 * 60)
    }
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    for (const orderId of orders) {
      expect((await eventsOf(orderId)).map(({ type }) => type)).toEqual(['payment.expired'])
    }
  })
})

describe('an order whose attempts fail again and again', () => {
  const typesOf = async (orderId: string) =>
    (await eventsOf(orderId)).map(({ type, sequence }) => `${type.slice('payment.'.length)} ${sequence}`)
  const FAILED = Array.from({ length: ATTEMPTS }, (_, index) => `attempt_failed ${index + 1}`)

  /** An order with two failed attempts more than are stored, each answered by 200. */
  async function newFailingOrder(): Promise<string> {
    const orderId = await newOrder()
    for (let i = 0; i < ATTEMPTS + 2; i++) await isTold(orderId, { status: 'FAIL', UTR: newUtr() })
    return orderId
  }

  it('an order that fails again and again has its first attempts stored and sent, and the others only counted', async () => {
    const counted = async () =>
      Number(/^payment_attempts_surplus_total (\d+)$/m.exec(await service.metrics())?.[1] ?? Number.NaN)
    const before = await counted()
    const orderId = await newFailingOrder()
    expect((await counted()) - before).toBe(2)
    expect(await typesOf(orderId)).toEqual(FAILED)
    const { rows } = await service.db.query(
      `select event_sequence, (select count(*)::integer from payment_attempts where order_id = $1) as attempts
         from payment_intents
        where order_id = $1`,
      [orderId],
    )
    expect(rows).toEqual([{ event_sequence: ATTEMPTS, attempts: ATTEMPTS }])
  })

  it('an order that fails again and again has a sequence number left for payment, cancellation and expiry', async () => {
    const [paid, cancelled, expired] = [await newFailingOrder(), await newFailingOrder(), await newFailingOrder()]
    await isTold(paid)
    await cancel(cancelled)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    expect(await typesOf(paid)).toEqual([...FAILED, `succeeded ${ATTEMPTS + 1}`])
    expect(await typesOf(cancelled)).toEqual([...FAILED, `cancelled ${ATTEMPTS + 1}`])
    expect(await typesOf(expired)).toEqual([...FAILED, `expired ${ATTEMPTS + 1}`])
  })
})
