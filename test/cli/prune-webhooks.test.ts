import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { RETURN_URL_CALLBACK } from '../../src/gateway/payments/outbox.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { disableEndpoint, resendDelivery, setReturnUrlCallback } from '../../src/gateway/webhooks/endpoints.ts'
import { expiryJobs } from '../../src/gateway/webhooks/expiries.ts'
import { pruneDeliveries } from '../../src/gateway/webhooks/prune-deliveries.ts'
import { LIMITS } from '../../src/limits.ts'
import { newUtr } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { opsOn } from '../support/ops.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { newMerchant, startService, type TestService } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { untilBlocked } from '../support/wait.ts'
import { newWebhook } from '../support/webhooks.ts'

const MINUTE_MS = 60_000
const DAY_MS = 24 * 60 * MINUTE_MS
/** More than one statement reads. */
const MANY = 2_300

let service: TestService
let merchant: NewMerchant
let endpointId: string
beforeAll(async () => {
  // The service delivers nothing, so that the deliveries stay as the tests store them.
  service = await startService({ limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
})
beforeEach(async () => {
  service.clock.set(new Date().toISOString())
  merchant = await newMerchant(service.db)
  endpointId = (await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/' }, daysAgo(500)))
    .endpointId
})

const daysAgo = (days: number) => new Date(Date.now() - days * DAY_MS)

const { ops, json } = opsOn(() => service.databaseUrl, ['webhooks'])
const prune = (days: number) => json('prune', '--older-than-days', String(days))

type Stored = { type?: string; endpoint?: string; occurredAt: Date; attemptedAt?: Date | null } & {
  dueAt?: Date
  delivered?: boolean
}

/** Stores a paid order with one delivery, by default a delivered one. Returns the order's id. */
async function store({ type = 'payment.succeeded', occurredAt, dueAt, delivered = true, ...given }: Stored) {
  const { endpoint = endpointId, attemptedAt = occurredAt } = given
  const orderId = await storePaidOrder(service.db, { mid: merchant.mid, utr: newUtr(), paidAt: occurredAt })
  await service.db.query('update payment_intents set event_sequence = 1 where mid = $1 and order_id = $2', [
    merchant.mid,
    orderId,
  ])
  await service.db.query(
    `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, attempts, due_at,
       delivered_at, attempted_at, outcome, response)
     values ($1, $2, $3, 1, $4, 'SUCCESS', $5, 1, $6, $7, $8, '200', 'ok')`,
    [merchant.mid, endpoint, orderId, type, occurredAt, dueAt, delivered && !dueAt ? attemptedAt : null, attemptedAt],
  )
  return orderId
}

/** Stores many delivered deliveries of one endpoint, each 40 days old, of which every tenth is pending. */
async function storeMany() {
  await service.db.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
       customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select $1, order_id, order_id, 20000, '', '', '', '', '', '', '', '5814', $2, $2
       from (select lpad(to_hex(i), 32, '0') as order_id from generate_series(1, ${MANY}) i) ids`,
    [merchant.mid, daysAgo(40)],
  )
  await service.db.query(
    `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, attempts, due_at,
       delivered_at, attempted_at)
     select $1, $2, lpad(to_hex(i), 32, '0'), 1, 'payment.attempt_failed', 'PENDING', $3, 1,
            case when i % 10 = 0 then now() end, case when i % 10 > 0 then $3::timestamptz end, $3
       from generate_series(1, ${MANY}) i`,
    [merchant.mid, endpointId, daysAgo(40)],
  )
}

async function ordersWithDelivery(): Promise<string[]> {
  const { rows } = await service.db.query<{ orderId: string }>(
    'select order_id as "orderId" from webhook_deliveries where mid = $1 order by order_id, endpoint_id, sequence',
    [merchant.mid],
  )
  return rows.map(({ orderId }) => orderId)
}

async function deliveriesOf(condition: string): Promise<number> {
  const { rows } = await service.db.query<{ count: number }>(
    `select count(*) as count from webhook_deliveries where mid = $1 and ${condition}`,
    [merchant.mid],
  )
  return rows[0]?.count as number
}

describe('webhooks prune', () => {
  it('deletes delivered and abandoned deliveries whose last attempt is older than N days, of every merchant', async () => {
    await setReturnUrlCallback(service.db, { mid: merchant.mid, isOn: true, now: daysAgo(500) })
    const old = new Date(Date.now() - 31 * DAY_MS - MINUTE_MS)
    await store({ occurredAt: old })
    await store({ occurredAt: old, delivered: false })
    await store({ occurredAt: old, endpoint: RETURN_URL_CALLBACK })
    await store({ occurredAt: daysAgo(400), type: 'refund.failed' })
    const young = [await store({ occurredAt: new Date(Date.now() - 31 * DAY_MS + MINUTE_MS) })]
    young.push(await store({ occurredAt: daysAgo(1), delivered: false }))
    const first = merchant
    merchant = await newMerchant(service.db)
    endpointId = (await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/' }, daysAgo(500)))
      .endpointId
    await store({ occurredAt: old })
    expect(await prune(31)).toEqual({ pruned: 5 })
    expect(await ordersWithDelivery()).toEqual([])
    merchant = first
    expect(await ordersWithDelivery()).toEqual(young.toSorted())
    expect((await ops('prune', '--older-than-days', '31')).stdout).toBe('0 deliveries deleted.\n')
  })

  it('stores every delivery that waits, is sent again or was attempted recently, however old its event is', async () => {
    const occurredAt = daysAgo(300)
    const stored = [
      await store({ occurredAt, dueAt: daysAgo(299), attemptedAt: null }),
      await store({ occurredAt, dueAt: daysAgo(-1) }),
      await store({ occurredAt, attemptedAt: daysAgo(2) }),
      await store({ occurredAt, attemptedAt: daysAgo(30), delivered: false }),
    ]
    expect(await prune(31)).toEqual({ pruned: 0 })
    expect(await ordersWithDelivery()).toEqual(stored.toSorted())
  })

  it('stores payment.expired, so that a payment in a later transaction report stays a late payment', async () => {
    service.clock.set(daysAgo(60).toISOString())
    const orderId = await createOrder(service, merchant)
    for (const minutes of [10, 16]) {
      service.clock.advance(minutes * 60)
      await runPendingJobs(expiryJobs({ db: service.db, now: service.clock.now, limits: LIMITS.webhooks }))
    }
    await service.db.query(
      'update webhook_deliveries set due_at = null, delivered_at = occurred_at, attempted_at = occurred_at where mid = $1',
      [merchant.mid],
    )
    expect(await prune(31)).toEqual({ pruned: 0 })
    expect(await deliveriesOf(`type = 'payment.expired'`)).toBe(1)
    const paid = { orderId, status: 'SUCCESS' as const, utr: newUtr(), amount: 200_00, paidAt: undefined }
    await createReports(service.db).record(paid, { source: 'day file', now: service.clock.now })
    const { rows } = await service.db.query('select kind from payments where mid = $1', [merchant.mid])
    expect(rows).toEqual([{ kind: 'late' }])
  })

  it('continues after an interrupted run, and loses no undelivered event', async () => {
    await storeMany()
    const interrupted = pruneDeliveries(service.db, daysAgo(31), async (pruned) => {
      if (pruned > 0) throw new Error('interrupted after the first statement')
    })
    await expect(interrupted).rejects.toThrow('interrupted')
    expect(await deliveriesOf('true')).toBe(MANY - 900)
    expect(await prune(31)).toEqual({ pruned: MANY * 0.9 - 900 })
    expect(await deliveriesOf('due_at is not null')).toBe(MANY / 10)
    expect(await deliveriesOf('due_at is null')).toBe(0)
  })

  it.skipIf(ON_CITUS)('does not delete a delivery that an operator resends at the same time', async () => {
    const orderId = await store({ occurredAt: daysAgo(40) })
    const client = await service.db.connect()
    try {
      await client.query('begin')
      await resendDelivery(client, { endpointId, orderId, sequence: 1, now: new Date() })
      const pruned = prune(31)
      await untilBlocked(service.db)
      await client.query('commit')
      expect(await pruned).toEqual({ pruned: 0 })
    } finally {
      client.release()
    }
    expect(await deliveriesOf('due_at is not null')).toBe(1)
  })

  it('numbers the next event of an order after its deleted events', async () => {
    service.clock.set(daysAgo(60).toISOString())
    const orderId = await createOrder(service, merchant, { expiry_minutes: '15' })
    await reportPayment(service, orderId, { status: 'FAIL', UTR: newUtr() })
    await service.db.query(
      'update webhook_deliveries set due_at = null, delivered_at = occurred_at, attempted_at = occurred_at where mid = $1',
      [merchant.mid],
    )
    expect(await prune(31)).toEqual({ pruned: 1 })
    await reportPayment(service, orderId)
    expect(await deliveriesOf(`type = 'payment.succeeded' and sequence = 2`)).toBe(1)
  })

  it.each(['30', '0', '-31', '31.5', '36501', 'x'])('rejects --older-than-days %s with exit code 2', async (days) => {
    const occurredAt = daysAgo(400)
    const orderId = await store({ occurredAt })
    expect(await ops('prune', `--older-than-days=${days}`)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--older-than-days must be a whole number of days, 31 to 36500'),
    })
    expect(await ordersWithDelivery()).toEqual([orderId])
  })

  it('requires --older-than-days', async () => {
    expect(await ops('prune')).toMatchObject({ code: 2, stderr: expect.stringContaining('--older-than-days') })
  })
})

describe('webhooks resend of a deleted delivery', () => {
  it('reports that the delivery is no longer stored, unlike for an event that the order never had', async () => {
    const orderId = await store({ occurredAt: daysAgo(40) })
    expect(await prune(31)).toMatchObject({ pruned: expect.any(Number) })
    const resend = async (id: string) => (await ops('resend', '--delivery', id)).stderr
    expect(await resend(`${endpointId}.${orderId}.1`)).toBe(
      'ops: the delivery is not stored: ops webhooks prune has deleted it, or the endpoint was disabled or did not exist ' +
        'at the time of the event. Ask the merchant to check the payment status\n',
    )
    const unknown = 'ops: the delivery does not exist, or its endpoint is disabled: see ops webhooks deliveries\n'
    expect(await resend(`${endpointId}.${orderId}.2`)).toBe(unknown)
    expect(await resend(`ep_0.${orderId}.1`)).toBe(unknown)
    await disableEndpoint(service.db, { endpointId, now: new Date() })
    expect(await resend(`${endpointId}.${orderId}.1`)).toBe(unknown)
  })
})
