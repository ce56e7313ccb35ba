import { describe, expect, it } from 'vitest'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import {
  CANCEL,
  CREATE,
  errorResponse,
  intentFields,
  newMerchant,
  post,
  STATUS,
  startService,
  unique,
} from '../support/service.ts'

const EXPIRY_MINUTES = 15
const GRACE_MINUTES = 10

const service = await startService({ expiryMinutes: EXPIRY_MINUTES })
const { mid, key } = await newMerchant(service.db)

async function newOrder() {
  const orderId = unique('order-')
  const { body } = await post(service.app, CREATE, intentFields(mid, { order_id: orderId }), key)
  return { order_id: orderId, ours: body.data.orderId as string }
}

const cancel = async (order_id: string) => (await post(service.app, CANCEL, { mid, order_id }, key)).body
const checkStatus = async (order_id: string) => (await post(service.app, STATUS, { mid, order_id }, key)).body
const exceptionsOf = async (orderId: string) =>
  (await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])).rows

const ended = (order_id: string, txnStatus: string, msg: string, UTR = '') => ({
  status: true,
  statusCode: 200,
  txnStatus,
  msg,
  data: { amount: 200, UTR, order_id },
})

describe('cancelPayment of an open order', () => {
  it('cancelPayment closes an open order once, by either order id, and does not change an expired order', async () => {
    for (const name of ['order_id', 'ours'] as const) {
      const [order, over] = [await newOrder(), await newOrder()]
      const id = order[name]
      const cancelled = ended(id, 'FAIL', 'Payment cancelled')
      for (let i = 0; i < 2; i++) expect(await cancel(id)).toEqual(cancelled)
      expect(await checkStatus(id)).toEqual(cancelled)
      service.clock.advance((EXPIRY_MINUTES + GRACE_MINUTES) * 60)
      expect(await checkStatus(id)).toEqual(cancelled)
      expect(await cancel(over[name])).toEqual(ended(over[name], 'FAIL', 'Payment intent expired'))
      const { rows } = await service.db.query('select status, cancelled_at from payment_intents where order_id = $1', [
        order.ours,
      ])
      expect(rows).toEqual([{ status: 'CANCELLED', cancelled_at: expect.any(Date) }])
    }
  })

  it('cancelPayment closes the pay page and the QR immediately, including pages that are already open', async () => {
    const { order_id, ours } = await newOrder()
    const events = service.app.inject(`/pay/${ours}/events`)
    await cancel(order_id)
    expect((await events).payload).toMatch(/data: cancelled\n\nevent: over/)
    const page = await service.app.inject(`/pay/${ours}`)
    expect([page.statusCode, page.headers['x-payment-state']]).toEqual([200, 'cancelled'])
    expect(page.payload).toContain('has cancelled this order. Please do not pay.')
    expect(page.payload).not.toContain('upi://')
    for (const file of ['qr.png', 'qr.svg']) {
      expect((await service.app.inject(`/pay/${ours}/${file}`)).statusCode).toBe(410)
    }
  })

  it('cancelPayment closes an order whose last attempt has failed, and a later failure does not reopen the order', async () => {
    const { order_id, ours } = await newOrder()
    await notify(service, notification(ours, { status: 'REJECT', UTR: newUtr() }))
    const cancelled = ended(order_id, 'FAIL', 'Payment cancelled')
    expect(await cancel(order_id)).toEqual(cancelled)
    await notify(service, notification(ours, { status: 'FAIL', UTR: newUtr() }))
    expect(await checkStatus(order_id)).toEqual(cancelled)
    expect(await exceptionsOf(ours)).toEqual([])
  })

  it('the service records a payment of a cancelled order as a late payment, and returns 409 for another cancelPayment', async () => {
    const { order_id, ours } = await newOrder()
    await cancel(order_id)
    const UTR = newUtr()
    expect((await notify(service, notification(ours, { UTR }))).status).toBe(200)
    expect(await checkStatus(order_id)).toEqual(ended(order_id, 'SUCCESS', 'Payment successful', UTR))
    expect(await exceptionsOf(ours)).toEqual([{ kind: 'late payment' }])
    expect(await cancel(order_id)).toEqual(errorResponse(409, 'Payment already successful'))
  })
})

describe('cancelPayment with errors', () => {
  it('cancelPayment returns 404 for an unknown order, 403 for another merchant’s order, and 400 for invalid fields', async () => {
    expect(await cancel('nobody')).toEqual(errorResponse(404, 'Order not found'))
    const other = await newMerchant(service.db)
    const another = await newOrder()
    const asOther = (fields: Record<string, string>) => post(service.app, CANCEL, fields, other.key)
    expect((await asOther({ mid, order_id: another.order_id })).status).toBe(403)
    expect((await asOther({ mid: other.mid, order_id: another.order_id })).status).toBe(404)
    expect(await checkStatus(another.order_id)).toMatchObject({ txnStatus: 'PENDING' })
    expect((await asOther({})).body).toEqual(errorResponse(400, 'mid is required; order_id is required'))
  })
})

it('a repeated cancelPayment does not wait for the lock on the order’s row', async () => {
  const { order_id } = await newOrder()
  await cancel(order_id)
  const holder = await service.db.connect()
  try {
    await holder.query('begin')
    await holder.query('select from payment_intents where mid = $1 for update', [mid])
    const responses = await Promise.all(Array.from({ length: 50 }, () => cancel(order_id)))
    expect(new Set(responses.map(({ msg }) => msg))).toEqual(new Set(['Payment cancelled']))
  } finally {
    holder.release(true)
  }
})
