import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it, vi } from 'vitest'
import { setReturnUrlCallback } from '../../src/gateway/webhooks/endpoints.ts'
import { newUtr } from '../support/acquirer.ts'
import { checkedFields, createWithHistory, HISTORIES, listedFields } from '../support/order-states.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  CANCEL,
  errorResponse,
  newKey,
  newMerchant,
  newPartner,
  OWN_ORDERS,
  post,
  startService,
  unique,
} from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'

const service = await startService({ asServiceRole: true })

const YEARS = { s_date: '01-01-2020', e_date: '31-12-2029' }
const list = ({ mid, key }: NewMerchant, fields: Record<string, string> = {}) =>
  post(service.app, OWN_ORDERS, { mid, ...YEARS, ...fields }, key)
const orderIds = async (merchant: NewMerchant, s_date: string, e_date: string) =>
  (await list(merchant, { s_date, e_date })).body.data.map(({ orderId }: { orderId: string }) => orderId)

/** Longer than storing a reported status takes. */
const SAVED_MS = 100

/** Moments after the creation of an order that expires after 15 minutes, before and after each change of its status. */
const MOMENTS_MS = [0, 15 * 60_000 - 1, 15 * 60_000, 25 * 60_000 - 1, 25 * 60_000, 25 * 60_000 + 1, 30 * 24 * 3_600_000]

describe('fetchOrderList with valid requests', () => {
  it('fetchOrderList returns records with exactly the documented fields, whose values are all strings', async () => {
    const merchant = await newMerchant(service.db, { input: 'shop' })
    const { mid } = merchant
    service.clock.set('2026-02-03T04:05:06.789+05:30')
    const paid = await createOrder(service, merchant, { order_id: '1001', amount: '588.82' })
    service.clock.advance(60)
    const UTR = newUtr()
    await reportPayment(service, paid, { UTR, amount: '588.82', paidAt: '2026-02-03T04:05:30+05:30' })
    for (const [paise, status] of [
      [5000, 'SUCCESS'],
      [100, 'FAIL'],
    ] as const) {
      await service.db.query(
        `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by,
                              created_at, status, ended_at)
         values ($1, $2, $2, $3, $4, $5, 'Cold tea', 'direct', 'merchant', now(), $6, now())`,
        [mid, unique('R'), paid, UTR, paise, status],
      )
    }
    const failed = await createOrder(service, merchant, { order_id: '1002' })
    await reportPayment(service, failed, { status: 'FAIL', reason: 'wrong_pin', UTR: undefined })
    const common = { merchant_id: mid }
    expect((await list(merchant)).body).toEqual({
      status: true,
      statusCode: 200,
      msg: 'Orders found',
      data: [
        {
          ...{ ...common, orderId: paid, order_id: '1001', amount: '588.82' },
          ...{ status: 'SUCCESS', msg: 'Payment successful', reason: '', UTR, refunded: '50.00' },
          created_at: '2026-02-02T22:35:06.789Z',
          expires_at: '2026-02-02T22:50:06.789Z',
          paid_at: '2026-02-02T22:35:30.000Z',
        },
        {
          ...{ ...common, orderId: failed, order_id: '1002', amount: '200.00' },
          ...{
            status: 'PENDING',
            msg: 'Last attempt failed; still open',
            reason: 'wrong_pin',
            UTR: '',
            refunded: '0.00',
          },
          created_at: '2026-02-02T22:36:06.789Z',
          expires_at: '2026-02-02T22:51:06.789Z',
          paid_at: '',
        },
      ],
    })
    const none = { status: true, statusCode: 200, msg: 'No orders found', data: [] }
    expect((await list(merchant, { s_date: '04-02-2026', e_date: '04-02-2026' })).body).toEqual(none)
  })

  it('fetchOrderList returns what checkPaymentStatus returns, for every history of an order at every moment, and filters by it', async () => {
    const merchant = await newMerchant(service.db)
    service.clock.set('2026-03-03T10:00:00+05:30')
    const created = service.clock.now().getTime()
    const orders: string[] = []
    for (const history of Object.keys(HISTORIES)) orders.push(await createWithHistory(service, merchant, history))
    const statuses = new Set<string>()
    for (const moment of MOMENTS_MS) {
      service.clock.set(new Date(created + moment).toISOString())
      const listed = (await list(merchant)).body.data.map(listedFields)
      const checked = await Promise.all(orders.toSorted().map((orderId) => checkedFields(service, merchant, orderId)))
      expect(listed, `${moment} ms`).toEqual(checked)
      for (const status of ['PENDING', 'SUCCESS', 'FAIL', 'REJECT']) {
        const filtered = (await list(merchant, { status })).body.data.map(listedFields)
        expect(filtered, `${status} at ${moment} ms`).toEqual(checked.filter((order) => order.status === status))
        if (filtered.length > 0) statuses.add(status)
      }
    }
    expect(statuses.size).toBe(4)
    for (const orderId of orders.slice(0, 2)) {
      await reportPayment(service, orderId, { UTR: newUtr(), paidAt: service.clock.now().toISOString() })
    }
    const late = (await list(merchant, { status: 'SUCCESS' })).body.data
    expect(late.map(({ orderId }: { orderId: string }) => orderId)).toEqual(expect.arrayContaining(orders.slice(0, 2)))
  })

  it('fetchOrderList selects orders by IST days of creation, and sorts orders by time of creation, then by orderId', async () => {
    const merchant = await newMerchant(service.db)
    const at = async (moment: string) => {
      service.clock.set(moment)
      return createOrder(service, merchant)
    }
    const before = await at('2025-05-05T23:59:59.999+05:30')
    const first = await at('2025-05-06T00:00:00+05:30')
    const noon: string[] = []
    for (let i = 0; i < 5; i++) noon.push(await at('2025-05-06T12:00:00+05:30'))
    const last = await at('2025-05-06T23:59:59.999+05:30')
    expect(await orderIds(merchant, '06-05-2025', '06-05-2025')).toEqual([first, ...noon.toSorted(), last])
    expect(await orderIds(merchant, '05-05-2025', '05-05-2025')).toEqual([before])
    expect(await orderIds(merchant, '01-01-0001', '31-12-9999')).toHaveLength(8)
  })

  it('fetchOrderList lists each order once, with its own payment, and orders of no other merchant', async () => {
    const merchant = await newMerchant(service.db)
    await createOrder(service, await newMerchant(service.db))
    service.clock.set('2025-06-06T12:00:00Z')
    const orderId = await createOrder(service, merchant)
    const UTR = newUtr()
    await reportPayment(service, orderId, { paidAt: '2025-06-06T12:00:00Z', UTR })
    service.clock.advance(60)
    await reportPayment(service, orderId, { paidAt: '2025-06-06T12:01:00Z', UTR: newUtr() })
    expect((await list(merchant)).body.data).toMatchObject([{ orderId, UTR, paid_at: '2025-06-06T12:00:00.000Z' }])
  })

  it('fetchOrderList is no receipt of a final status: it stores no reported failure and stops no return-URL callback', async () => {
    const merchant = await newMerchant(service.db)
    service.clock.set('2026-03-04T10:00:00+05:30')
    await setReturnUrlCallback(service.db, { mid: merchant.mid, isOn: true, now: service.clock.now() })
    const expired = await createOrder(service, merchant)
    const paid = await createWithHistory(service, merchant, 'paid')
    service.clock.advance(25 * 60)
    const messages = ['Payment intent expired', 'Payment successful']
    expect((await list(merchant)).body.data.map(({ msg }: { msg: string }) => msg).toSorted()).toEqual(messages)
    const reported = async () =>
      (
        await service.db.query(
          `select (select failure_reported_at is not null from payment_intents where mid = $1 and order_id = $2) as failure,
                  (select outcome is not distinct from 'reported' from webhook_deliveries where mid = $1 and order_id = $3) as payment`,
          [merchant.mid, expired, paid],
        )
      ).rows[0]
    await sleep(SAVED_MS)
    expect(await reported()).toEqual({ failure: false, payment: false })
    for (const orderId of [expired, paid]) await checkedFields(service, merchant, orderId)
    await vi.waitFor(async () => expect(await reported()).toEqual({ failure: true, payment: true }))
  })

  it('fetchOrderList returns CSV with the same values', async () => {
    const merchant = await newMerchant(service.db)
    for (const history of ['open', 'failed attempt', 'paid']) await createWithHistory(service, merchant, history)
    const { data } = (await list(merchant)).body
    const { text } = await post(service.app, OWN_ORDERS, { mid: merchant.mid, ...YEARS }, merchant.key, {
      accept: 'text/csv',
    })
    const lines = [Object.keys(data[0]), ...data.map((record: object) => Object.values(record))]
    expect(text).toBe(lines.map((values) => `${values}\r\n`).join(''))
  })
})

describe('fetchOrderList with errors', () => {
  it('fetchOrderList returns 400 and names the invalid fields, and treats an empty status as absent', async () => {
    const merchant = await newMerchant(service.db)
    await createOrder(service, merchant)
    expect((await list(merchant, { status: '' })).body.data).toHaveLength(1)
    const rule = 'status must be PENDING, SUCCESS, FAIL or REJECT'
    for (const status of ['CANCELLED', 'pending', "'"]) {
      expect((await list(merchant, { status })).body).toEqual(errorResponse(400, rule))
    }
    const { body } = await list(merchant, { s_date: '31-02-2026', status: 'x' })
    expect(body).toEqual(errorResponse(400, `s_date must be an existing date in the format dd-mm-yyyy; ${rule}`))
  })

  it('fetchOrderList returns 403 for another merchant’s mid, to a partner and to a disabled merchant', async () => {
    const [merchant, other] = [await newMerchant(service.db), await newMerchant(service.db)]
    const partner = await newPartner(service.db, merchant.mid)
    expect((await list({ mid: merchant.mid, key: other.key })).status).toBe(403)
    expect((await list({ mid: merchant.mid, key: partner.key })).status).toBe(403)
    const { app, db } = service
    const order_id = await createOrder(service, other)
    expect((await post(app, CANCEL, { mid: other.mid, order_id }, other.key)).status).toBe(200)
    await db.query('update merchants set disabled_at = now() where mid = $1', [other.mid])
    expect((await list({ mid: other.mid, key: await newKey(db, other) })).status).toBe(403)
  })
})
