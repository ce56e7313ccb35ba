import { describe, expect, it } from 'vitest'
import { CREATE, errorResponse, intentFields, newMerchant, post, startService } from '../support/service.ts'

const TAKEN = errorResponse(409, 'Order ID already exists')

const service = await startService()

describe('order guard', () => {
  it('rejects a repeated order_id with the exact text of the interface, whatever else differs', async () => {
    const { mid, key } = await newMerchant(service.db)
    expect((await post(service.app, CREATE, intentFields(mid, { order_id: '1001' }), key)).status).toBe(200)
    const repeat = await post(service.app, CREATE, intentFields(mid, { order_id: '1001', amount: '5' }), key)
    expect([repeat.status, repeat.body]).toEqual([409, TAKEN])
  })

  it('compares order_ids exactly and case-sensitively', async () => {
    const { mid, key } = await newMerchant(service.db)
    for (const order_id of ['a1', 'A1', 'a1.', 'a-1', 'é', 'e\u0301']) {
      expect((await post(service.app, CREATE, intentFields(mid, { order_id }), key)).status).toBe(200)
    }
  })

  it('accepts the order_id 1001 from each of two merchants', async () => {
    for (const { mid, key } of [await newMerchant(service.db), await newMerchant(service.db)]) {
      expect((await post(service.app, CREATE, intentFields(mid, { order_id: '1001' }), key)).status).toBe(200)
    }
  })

  it('accepts exactly one of 200 concurrent repeats of an order_id over two instances, and stores one row', async () => {
    const beside = await startService({ replicated: { url: service.databaseUrl } })
    const { mid, key } = await newMerchant(service.db)
    const fields = intentFields(mid, { order_id: 'storm' })
    const responses = await Promise.all(
      Array.from({ length: 200 }, (_, i) => post(i % 2 ? service.app : beside.app, CREATE, fields, key)),
    )
    const rejected = responses.filter(({ status }) => status !== 200)
    expect(rejected.map(({ body }) => body)).toEqual(Array.from({ length: 199 }, () => TAKEN))
    const { rowCount } = await service.db.query('select from payment_intents where mid = $1', [mid])
    expect(rowCount).toBe(1)
  })

  it('rejects a used order_id even after its payment intent has expired', async () => {
    const { mid, key } = await newMerchant(service.db)
    await post(service.app, CREATE, intentFields(mid, { order_id: 'old' }), key)
    service.clock.advance(365 * 86_400)
    expect((await post(service.app, CREATE, intentFields(mid, { order_id: 'old' }), key)).body).toEqual(TAKEN)
  })

  it('rejects the service’s orderId of an earlier intent as an order_id', async () => {
    const { mid, key } = await newMerchant(service.db)
    const { data } = (await post(service.app, CREATE, intentFields(mid), key)).body
    const reuse = await post(service.app, CREATE, intentFields(mid, { order_id: data.orderId }), key)
    expect(reuse.body).toEqual(TAKEN)
  })

  it('treats an empty order_id as absent, any number of times', async () => {
    const { mid, key } = await newMerchant(service.db)
    for (const order_id of ['', ' ', '']) {
      expect((await post(service.app, CREATE, intentFields(mid, { order_id }), key)).status).toBe(200)
    }
  })
})
