import { Readable } from 'node:stream'
import { describe, expect, it, vi } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { expiryJobs } from '../../src/gateway/webhooks/expiries.ts'
import { LIMITS } from '../../src/limits.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { CANCEL, CREATE, intentFields, newMerchant, post, STATUS, startService } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

const EXPIRY_MINUTES = 15
const GRACE_MINUTES = 10

// On Citus, a lock that is awaited on a worker is not visible.
it.skipIf(ON_CITUS)(
  'the service records a success as a late payment if the merchant received FAIL before the service stored the success, even if the report was in time',
  async () => {
    const service = await startService({ expiryMinutes: EXPIRY_MINUTES })
    const { mid, key } = await newMerchant(service.db)
    const { orderId } = (await post(service.app, CREATE, intentFields(mid), key)).body.data
    service.clock.advance((EXPIRY_MINUTES + GRACE_MINUTES) * 60 - 2)
    const blocker = await service.db.connect()
    try {
      await blocker.query('begin')
      await blocker.query('select from payment_intents where mid = $1 and order_id = $2 for update', [mid, orderId])
      const reported = notify(service, notification(orderId))
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await expect.poll(async () => (await service.db.query(waiting)).rowCount).toBe(1)
      service.clock.advance(3)
      const { body } = await post(service.app, STATUS, { mid, order_id: orderId }, key)
      expect([body.status, body.txnStatus]).toEqual([true, 'FAIL'])
      await blocker.query('commit')
      expect((await reported).status).toBe(200)
    } finally {
      blocker.release(true)
    }
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows).toEqual([{ kind: 'late payment' }])
  },
)

describe('a payment that only the daily transaction report contains, after its order has failed', async () => {
  const service = await startService({
    expiryMinutes: EXPIRY_MINUTES,
    // The test sends the webhooks.
    limits: { webhooks: { lookIntervalMs: 3_600_000 } },
  })
  const reported = expiryJobs({ db: service.db, now: service.clock.now, limits: LIMITS.webhooks })

  async function givenUp() {
    const merchant = await newMerchant(service.db)
    await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/hook' }, service.clock.now())
    const orderId = await createOrder(service, merchant)
    return { ...merchant, orderId }
  }
  type Order = Awaited<ReturnType<typeof givenUp>>

  const end = () => service.clock.advance((EXPIRY_MINUTES + GRACE_MINUTES) * 60)
  const checkStatus = async ({ mid, key, orderId }: Order, path = STATUS) =>
    (await post(service.app, path, { mid, order_id: orderId }, key)).body.txnStatus
  const failureReportedAt = async ({ orderId }: Order) =>
    (await service.db.query('select failure_reported_at from payment_intents where order_id = $1', [orderId])).rows[0]
      .failure_reported_at
  const untilStored = (order: Order) => vi.waitFor(async () => expect(await failureReportedAt(order)).not.toBeNull())
  const deliver = ({ mid }: Order) =>
    service.db.query('update webhook_deliveries set delivered_at = now(), due_at = null where mid = $1', [mid])

  async function load({ orderId }: Order) {
    const lines = `order_id,status,utr,amount,paid_at\n${orderId},SUCCESS,${newUtr()},200,2026-03-31 23:55:00\n`
    return importDailyReport(service.db, Readable.from([lines]), { now: service.clock.now })
  }

  async function stored({ orderId }: Order) {
    const select = async (column: string, table: string) => {
      const { rows } = await service.db.query(`select ${column} as one from ${table} where order_id = $1 order by 1`, [
        orderId,
      ])
      return rows.map(({ one }) => one)
    }
    return {
      status: await select('status', 'payment_intents'),
      payments: await select('kind', 'payments'),
      exceptions: await select('kind', 'payment_exceptions'),
      events: await select('type', 'webhook_deliveries'),
    }
  }

  it.each<[string, (order: Order) => Promise<unknown>, string[]]>([
    ['that was not notified', async () => end(), []],
    [
      'that checked the status while the order was open',
      async (order) => {
        expect(await checkStatus(order)).toBe('PENDING')
        end()
      },
      [],
    ],
    [
      'to which only a failed attempt was delivered',
      async (order) => {
        await notify(service, notification(order.orderId, { status: 'FAIL', UTR: newUtr() }))
        await deliver(order)
        end()
      },
      ['payment.attempt_failed'],
    ],
  ])(
    'the service records a payment found only in the daily transaction report as a success without exception for a merchant %s',
    async (_name, happens, events) => {
      const order = await givenUp()
      await happens(order)
      expect(await load(order)).toMatchObject({ recorded: 1, exceptions: { 'late payment': 0 } })
      expect(await stored(order)).toEqual({
        ...{ status: ['SUCCESS'], payments: ['first'], exceptions: [] },
        events: [...events, 'payment.succeeded'],
      })
      expect(await checkStatus(order)).toBe('SUCCESS')
    },
  )

  it.each<[string, (order: Order) => Promise<unknown>]>([
    ...[STATUS, CANCEL].map((path): [string, (order: Order) => Promise<unknown>] => [
      `received FAIL from ${path}`,
      async (order) => {
        end()
        expect(await checkStatus(order, path)).toBe('FAIL')
        await untilStored(order)
      },
    ]),
    [
      'had cancelled the order',
      async (order) => {
        expect(await checkStatus(order, CANCEL)).toBe('FAIL')
        end()
      },
    ],
    [
      'has a stored but undelivered webhook of the expiry',
      async () => {
        end()
        await runPendingJobs(reported)
      },
    ],
    [
      'was notified by a webhook',
      async (order) => {
        end()
        await runPendingJobs(reported)
        await deliver(order)
      },
    ],
  ])(
    'the service records a payment found only in the daily transaction report as a late payment for a merchant that %s',
    async (_name, happens) => {
      const order = await givenUp()
      await happens(order)
      expect(await load(order)).toMatchObject({ recorded: 1, exceptions: { 'late payment': 1 } })
      expect(await stored(order)).toMatchObject({
        status: ['SUCCESS'],
        payments: ['late'],
        exceptions: ['late payment'],
      })
    },
  )

  it('the service records a notified payment of a finally failed order as late, even if the merchant did not receive FAIL', async () => {
    const order = await givenUp()
    end()
    expect((await notify(service, notification(order.orderId))).status).toBe(200)
    expect(await stored(order)).toMatchObject({ payments: ['late'], exceptions: ['late payment'] })
  })

  it('the service stores the time of the merchant’s first FAIL response, and no later response changes the time', async () => {
    const order = await givenUp()
    end()
    await checkStatus(order)
    await untilStored(order)
    const first = service.clock.now()
    service.clock.advance(60)
    await checkStatus(order)
    await load(order)
    expect(await checkStatus(order)).toBe('SUCCESS')
    expect(await failureReportedAt(order)).toEqual(first)
  })

  it('checkPaymentStatus responds even if the service cannot store the time of the FAIL response', async () => {
    const order = await givenUp()
    end()
    await service.db.query(
      'alter table payment_intents add constraint untold check (failure_reported_at is null) not valid',
    )
    try {
      expect(await checkStatus(order)).toBe('FAIL')
    } finally {
      await service.db.query('alter table payment_intents drop constraint untold')
    }
  })
})
