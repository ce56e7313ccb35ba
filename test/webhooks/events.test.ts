import { beforeAll, describe, expect, it } from 'vitest'
import { writeDeliveries } from '../../src/gateway/payments/outbox.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { disableEndpoint, setReturnUrlCallback } from '../../src/gateway/webhooks/endpoints.ts'
import { expiryJobs, watchOpenOrders } from '../../src/gateway/webhooks/expiries.ts'
import { LIMITS } from '../../src/limits.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
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
/** Number of failed attempts stored per order. */
const ATTEMPTS = 3

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  // Prevents the service from delivering the events that these tests write.
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

const isNotified = (orderId: string, changes = {}) => reportPayment(service, orderId, changes)

/** Runs the job of an instance that has just started, once. */
const look = () => runPendingJobs(expiryJobs({ db: service.db, now: service.clock.now, limits: LIMITS.webhooks }))

describe('webhook events', () => {
  it('writes webhook events once for a payment, however often the bank repeats its notification', async () => {
    const orderId = await newOrder()
    const utr = newUtr()
    await Promise.all(Array.from({ length: 10 }, () => isNotified(orderId, { UTR: utr })))
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

  it('writes webhook events for each failed attempt and for the later payment, in sequence', async () => {
    const orderId = await newOrder()
    for (const status of ['FAIL', 'REJECT']) await isNotified(orderId, { status, UTR: newUtr() })
    await isNotified(orderId)
    expect((await eventsOf(orderId)).map(({ type, txn_status, sequence }) => [type, txn_status, sequence])).toEqual([
      ['payment.attempt_failed', 'PENDING', 1],
      ['payment.attempt_failed', 'PENDING', 2],
      ['payment.succeeded', 'SUCCESS', 3],
    ])
  })

  it('writes webhook events for a cancellation and for a payment after the cancellation', async () => {
    const orderId = await newOrder()
    for (let i = 0; i < 2; i++) {
      expect((await post(service.app, CANCEL, form({ mid, order_id: orderId }), key)).status).toBe(200)
    }
    await isNotified(orderId)
    expect((await eventsOf(orderId)).map(({ type, txn_status, sequence }) => [type, txn_status, sequence])).toEqual([
      ['payment.cancelled', 'FAIL', 1],
      ['payment.succeeded', 'SUCCESS', 2],
    ])
  })

  it('writes no webhook events for a wrong amount, a second payment or a failure after the payment', async () => {
    const orderId = await newOrder()
    expect((await notify(service, notification(orderId, { amount: 1 }))).status).toBe(409)
    expect(await eventsOf(orderId)).toEqual([])
    await isNotified(orderId)
    await isNotified(orderId)
    await isNotified(orderId, { status: 'FAIL', UTR: newUtr() })
    expect(await eventsOf(orderId)).toHaveLength(1)
  })

  it('writes webhook events for each endpoint of the merchant, and for no endpoint of another merchant', async () => {
    const two = await newMerchant(service.db)
    const endpoints = [await addWebhook(two.mid), await addWebhook(two.mid)]
    const none = await newMerchant(service.db)
    const [ofTwo, ofNone] = [await newOrder(two), await newOrder(none)]
    await isNotified(ofTwo)
    await isNotified(ofNone)
    const { rows } = await service.db.query('select endpoint_id from webhook_deliveries where order_id = $1', [ofTwo])
    expect(rows.map(({ endpoint_id }) => endpoint_id).toSorted()).toEqual(endpoints.toSorted())
    expect(await eventsOf(ofNone)).toEqual([])
  })

  it('writes no webhook events for a disabled endpoint', async () => {
    const off = await newMerchant(service.db)
    const endpointId = await addWebhook(off.mid)
    const orderId = await newOrder(off)
    await disableEndpoint(service.db, { endpointId, now: service.clock.now() })
    await isNotified(orderId)
    expect(await eventsOf(orderId)).toEqual([])
  })
})

describe('payment.expired', () => {
  it('writes payment.expired once across all instances when the status from checkPaymentStatus becomes final', async () => {
    const orderId = await newOrder()
    const paid = await newOrder()
    await isNotified(paid)
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
    await isNotified(orderId)
    expect((await eventsOf(orderId)).map(({ type, sequence }) => [type, sequence])).toEqual([
      ['payment.expired', 1],
      ['payment.succeeded', 2],
    ])
    expect((await eventsOf(paid)).map(({ type }) => type)).toEqual(['payment.succeeded'])
    service.clock.advance(60)
    await look()
    expect(await eventsOf(orderId)).toHaveLength(2)
  })

  it('payment.expired contains the status of the last attempt and the next sequence number', async () => {
    const orderId = await newOrder()
    await isNotified(orderId, { status: 'REJECT', UTR: newUtr() })
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    expect((await eventsOf(orderId)).map(({ type, txn_status, sequence }) => [type, txn_status, sequence])).toEqual([
      ['payment.attempt_failed', 'PENDING', 1],
      ['payment.expired', 'REJECT', 2],
    ])
  })

  it('writes payment.expired before the event of a later payment from a transaction report, and stores a late payment', async () => {
    const orderId = await newOrder()
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    const paid = { orderId, status: 'SUCCESS' as const, utr: newUtr(), amount: 200_00, paidAt: undefined }
    await createReports(service.db).record(paid, { source: 'day file', now: service.clock.now })
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows).toEqual([{ kind: 'late payment' }])
    expect((await eventsOf(orderId)).map(({ type }) => type)).toEqual(['payment.expired', 'payment.succeeded'])
  })

  it('writes no payment.expired for a cancelled order', async () => {
    const orderId = await newOrder()
    await post(service.app, CANCEL, form({ mid, order_id: orderId }), key)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    expect((await eventsOf(orderId)).map(({ type }) => type)).toEqual(['payment.cancelled'])
  })

  // On Citus, pg_stat_activity does not show a lock awaited on a worker.
  it.skipIf(ON_CITUS)(
    'payment.expired remains the final event of an order although cancelPayment waited for the order',
    async () => {
      const orderId = await newOrder()
      service.clock.advance(FINAL_AFTER_SECONDS - 1)
      const holder = await service.db.connect()
      try {
        await holder.query('begin')
        // Simulates another instance that writes the expiry of the order while the cancellation waits.
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
    },
  )

  it('writes payment.expired for orders that were open when their merchant added a webhook endpoint, but not for earlier orders', async () => {
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

  it('writes no payment.expired for an order that had a final status before its merchant added a webhook endpoint', async () => {
    const late = await newMerchant(service.db)
    const before = await newOrder(late)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await addWebhook(late.mid)
    await watchOpenOrders(service.db, late.mid, service.clock.now())
    await look()
    expect(await eventsOf(before)).toEqual([])
  })

  it('stops reading expired orders after the current statement when the instance shuts down', async () => {
    const sent: string[] = []
    const db = { query: async ({ text }: { text: string }) => ({ rows: [], fields: [], length: sent.push(text) }) }
    const { findQueues } = expiryJobs({ db: db as never, now: service.clock.now, limits: LIMITS.webhooks })
    const inserts = () => sent.filter((text) => text.includes('insert into webhook_expiries')).length
    await findQueues({ isStopped: () => inserts() === 2 })
    expect(inserts()).toBe(2)
  })

  describe('of an order that can be paid for 3 days', () => {
    const DAY_SECONDS = 24 * 60 * 60
    const THREE_DAYS = { expiry_minutes: '4320' }
    const LONG = { maxExpiryMinutes: 43_200 }
    const typesOf = async (orderId: string) => (await eventsOf(orderId)).map(({ type }) => type)

    it('follows its own expiry, although no instance was running on its first two days', async () => {
      const merchant = await newMerchant(service.db, LONG)
      await addWebhook(merchant.mid)
      const [open, paid] = [
        await createOrder(service, merchant, THREE_DAYS),
        await createOrder(service, merchant, THREE_DAYS),
      ]
      service.clock.advance(2 * DAY_SECONDS)
      await isNotified(paid, { paidAt: service.clock.now().toISOString() })
      service.clock.advance(DAY_SECONDS + 599)
      await look()
      expect(await typesOf(open)).toEqual([])
      service.clock.advance(1)
      await look()
      expect(await typesOf(open)).toEqual(['payment.expired'])
      expect(await typesOf(paid)).toEqual(['payment.succeeded'])
    })

    it('is written for a webhook that was added on day 2, but not for orders that had a final status before', async () => {
      const merchant = await newMerchant(service.db, LONG)
      const before = await createOrder(service, merchant, { expiry_minutes: '1441' })
      const open = await createOrder(service, merchant, THREE_DAYS)
      await look()
      service.clock.advance(1.5 * DAY_SECONDS)
      await addWebhook(merchant.mid)
      await watchOpenOrders(service.db, merchant.mid, service.clock.now())
      service.clock.advance(1.5 * DAY_SECONDS + 600)
      await look()
      expect(await typesOf(open)).toEqual(['payment.expired'])
      expect(await typesOf(before)).toEqual([])
    })

    it('is scheduled with the order only if its merchant has an enabled webhook', async () => {
      const [without, disabled, enabled] = [
        await newMerchant(service.db, LONG),
        await newMerchant(service.db, LONG),
        await newMerchant(service.db, LONG),
      ]
      const endpointId = await addWebhook(disabled.mid)
      await disableEndpoint(service.db, { endpointId, now: service.clock.now() })
      await addWebhook(enabled.mid)
      await addWebhook(enabled.mid)
      await setReturnUrlCallback(service.db, { mid: without.mid, isOn: true, now: service.clock.now() })
      // All are in one batch or in few.
      const orders = await Promise.all(
        [without, disabled, enabled].flatMap((merchant) => [
          createOrder(service, merchant, THREE_DAYS),
          createOrder(service, merchant, { expiry_minutes: '1440' }),
        ]),
      )
      const { rows } = await service.db.query(
        'select order_id, final_at from webhook_expiries where order_id = any ($1)',
        [orders],
      )
      const finalAt = new Date(service.clock.now().getTime() + (3 * DAY_SECONDS + 600) * 1000)
      expect(rows).toEqual([{ order_id: orders[4], final_at: finalAt }])
    })
  })

  it('an instance reads the orders of one day and 10 minutes at startup, however long orders may be open', async () => {
    const froms: Date[] = []
    const query = async ({ values: [from] }: { values: [Date] }) => ({ rows: [], fields: [], length: froms.push(from) })
    const db = { query }
    await expiryJobs({ db: db as never, now: service.clock.now, limits: LIMITS.webhooks }).findQueues()
    expect(froms[0]).toEqual(new Date(service.clock.now().getTime() - (24 * 60 + 10) * 60_000))
  })

  it('writes payment.expired for each order that expired while no instance was running', async () => {
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

describe('an order with many failed attempts', () => {
  const typesOf = async (orderId: string) =>
    (await eventsOf(orderId)).map(({ type, sequence }) => `${type.slice('payment.'.length)} ${sequence}`)
  const FAILED = Array.from({ length: ATTEMPTS }, (_, index) => `attempt_failed ${index + 1}`)

  /** Creates an order with two failed attempts more than are stored, each accepted with 200. */
  async function newFailingOrder(): Promise<string> {
    const orderId = await newOrder()
    for (let i = 0; i < ATTEMPTS + 2; i++) await isNotified(orderId, { status: 'FAIL', UTR: newUtr() })
    return orderId
  }

  it('stores and sends the first attempts of an order with many failed attempts, and only counts the other attempts', async () => {
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

  it('leaves sequence numbers for payment, cancellation and expiry after many failed attempts', async () => {
    const [paid, cancelled, expired] = [await newFailingOrder(), await newFailingOrder(), await newFailingOrder()]
    await isNotified(paid)
    await cancel(cancelled)
    service.clock.advance(FINAL_AFTER_SECONDS)
    await look()
    expect(await typesOf(paid)).toEqual([...FAILED, `succeeded ${ATTEMPTS + 1}`])
    expect(await typesOf(cancelled)).toEqual([...FAILED, `cancelled ${ATTEMPTS + 1}`])
    expect(await typesOf(expired)).toEqual([...FAILED, `expired ${ATTEMPTS + 1}`])
  })
})
