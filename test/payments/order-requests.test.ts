import { describe, expect, it } from 'vitest'
import { notification, notify } from '../support/acquirer.ts'
import {
  CREATE,
  errorResponse,
  intentFields,
  newMerchant,
  ORDER,
  PUBLIC_URL,
  post,
  STATUS,
  startService,
} from '../support/service.ts'

const service = await startService()
const { mid, key } = await newMerchant(service.db)

const create = (changes: Record<string, string | undefined> = {}, headers: Record<string, string> = {}, url = CREATE) =>
  post(service.app, url, intentFields(mid, changes), key, headers)
const check = (order_id: string) => post(service.app, STATUS, { mid, order_id }, key)

describe('createOrderRequest', () => {
  it('createOrderRequest returns the service’s orderId and the URL of the pay page', async () => {
    const { status, body } = await create({}, {}, ORDER)
    expect([status, body]).toEqual([
      200,
      {
        status: true,
        statusCode: 200,
        msg: 'Order request created successfully',
        data: {
          orderId: expect.stringMatching(/^[0-9a-f]{32}(?:[0-9A-Za-z]{3})?$/),
          payment_url: `${PUBLIC_URL}/pay/${body.data.orderId}`,
        },
      },
    ])
  })

  it('createOrderRequest and createPaymentIntent reject each other’s order_ids', async () => {
    await create({ order_id: 'both-1' })
    expect((await create({ order_id: 'both-1' }, {}, ORDER)).body).toEqual(
      errorResponse(409, 'Order ID already exists'),
    )
    await create({ order_id: 'both-2' }, {}, ORDER)
    expect((await create({ order_id: 'both-2' })).body).toEqual(errorResponse(409, 'Order ID already exists'))
  })

  it('createOrderRequest checks the same fields as createPaymentIntent', async () => {
    expect((await create({ amount: '0' }, {}, ORDER)).status).toBe(400)
  })
})

describe('checkPaymentStatus', () => {
  it('checkPaymentStatus finds a successful order by either order id, and returns SUCCESS as final with the order_id of the request', async () => {
    const { orderId } = (await create({ order_id: 'paid-1' })).body.data
    await notify(service, notification(orderId, { UTR: '523504870405' }))
    for (const order_id of ['paid-1', orderId]) {
      const { status, body } = await check(order_id)
      expect([status, body]).toEqual([
        200,
        {
          status: true,
          statusCode: 200,
          txnStatus: 'SUCCESS',
          msg: 'Payment successful',
          data: { amount: 200, UTR: '523504870405', order_id },
        },
      ])
    }
  })

  it.each([
    ['FAIL', 'Payment failed'],
    ['REJECT', 'Payment rejected'],
  ])('checkPaymentStatus returns %s as final only 10 minutes after expiry', async (outcome, msg) => {
    const { orderId } = (await create()).body.data
    await notify(service, notification(orderId, { status: outcome }))
    for (const seconds of [25 * 60 - 1, 1]) {
      expect((await check(orderId)).body).toEqual({
        status: false,
        statusCode: 200,
        txnStatus: 'PENDING',
        msg: 'Last attempt failed; still open',
        reason: 'other',
      })
      service.clock.advance(seconds)
    }
    expect((await check(orderId)).body).toEqual({
      status: true,
      statusCode: 200,
      txnStatus: outcome,
      msg,
      reason: 'other',
      data: { amount: 200, UTR: '', order_id: orderId },
    })
  })

  it('checkPaymentStatus returns PENDING for an unpaid order until 10 minutes after expiry, and then returns FAIL', async () => {
    const pending = { status: false, statusCode: 200, txnStatus: 'PENDING', msg: 'Payment pending' }
    const { orderId } = (await create()).body.data
    expect((await check(orderId)).body).toEqual(pending)
    service.clock.advance(25 * 60 - 1)
    expect((await check(orderId)).body).toEqual(pending)
    service.clock.advance(1)
    expect((await check(orderId)).body).toMatchObject({
      status: true,
      txnStatus: 'FAIL',
      msg: 'Payment intent expired',
    })
    await notify(service, notification(orderId))
    expect((await check(orderId)).body).toMatchObject({ status: true, txnStatus: 'SUCCESS' })
  })

  it('checkPaymentStatus finally returns the status of the last attempt, and ignores repeats of earlier attempts', async () => {
    const { orderId } = (await create()).body.data
    const first = notification(orderId, { status: 'FAIL', UTR: undefined, paidAt: undefined })
    const second = notification(orderId, { status: 'REJECT' })
    for (const body of [first, second, first, second, first]) await notify(service, body)
    service.clock.advance(25 * 60)
    expect((await check(orderId)).body).toMatchObject({ status: true, txnStatus: 'REJECT' })
  })

  it('checkPaymentStatus finds an order by the service’s orderId, which no other order can use as its order_id', async () => {
    const { orderId } = (await create({ order_id: 'first' })).body.data
    const shadow = await create({ order_id: orderId, amount: '7' })
    expect([shadow.status, shadow.body]).toEqual([409, errorResponse(409, 'Order ID already exists')])
    await notify(service, notification(orderId))
    expect((await check(orderId)).body).toMatchObject({ txnStatus: 'SUCCESS', data: { amount: 200 } })
  })

  it('createPaymentIntent accepts an order_id that equals an unknown orderId or another merchant’s orderId', async () => {
    const other = await newMerchant(service.db)
    const { orderId } = (await post(service.app, CREATE, intentFields(other.mid), other.key)).body.data
    for (const order_id of ['f'.repeat(32), orderId]) expect((await create({ order_id })).status).toBe(200)
  })

  it('checkPaymentStatus returns the same 404 for an unknown order and for another merchant’s order', async () => {
    const other = await newMerchant(service.db)
    const theirs = (await post(service.app, CREATE, intentFields(other.mid, { order_id: 'theirs' }), other.key)).body
      .data
    for (const order_id of ['nowhere', 'theirs', theirs.orderId]) {
      const { status, body } = await check(order_id)
      expect([status, body]).toEqual([404, errorResponse(404, 'Order not found')])
    }
  })

  it('checkPaymentStatus names every missing field', async () => {
    expect((await post(service.app, STATUS, {}, key)).body).toEqual(
      errorResponse(400, 'mid is required; order_id is required'),
    )
  })
})

describe('Idempotency-Key', () => {
  it('returns the first response to a retry with the same Idempotency-Key and fields, even after payment', async () => {
    const first = await create({ order_id: 'retry-1' }, { 'idempotency-key': 'k 1' })
    service.clock.advance(3_600)
    await notify(service, notification(first.body.data.orderId))
    const again = await create({ order_id: 'retry-1' }, { 'idempotency-key': 'k 1' })
    expect([again.status, again.body]).toEqual([200, first.body])
    const order = await create({}, { 'idempotency-key': 'k-order' }, ORDER)
    expect((await create({}, { 'idempotency-key': 'k-order' }, ORDER)).body).toEqual(order.body)
  })

  it('returns 422 for a used Idempotency-Key with other fields or with the other create operation', async () => {
    const headers = { 'idempotency-key': 'reused' }
    const reused = errorResponse(
      422,
      'This Idempotency-Key was already used with other fields. Use a new key for a new request.',
    )
    await create({ order_id: 'k-1' }, headers)
    expect((await create({ order_id: 'k-2' }, headers)).body).toEqual(reused)
    expect((await create({ order_id: 'k-1', note: 'other' }, headers)).body).toEqual(reused)
    expect((await create({ order_id: 'k-1' }, headers, ORDER)).body).toEqual(reused)
  })

  it('returns 409 for a new Idempotency-Key with a used order_id', async () => {
    await create({ order_id: 'guarded' }, { 'idempotency-key': 'g-1' })
    expect((await create({ order_id: 'guarded' }, { 'idempotency-key': 'g-2' })).status).toBe(409)
    expect((await create({ order_id: 'guarded' })).status).toBe(409)
  })

  it('treats one Idempotency-Key from two merchants as two keys', async () => {
    const other = await newMerchant(service.db)
    const mine = await create({}, { 'idempotency-key': 'shared' })
    const theirs = await post(service.app, CREATE, intentFields(other.mid), other.key, { 'idempotency-key': 'shared' })
    expect(theirs.status).toBe(200)
    expect(theirs.body.data.orderId).not.toBe(mine.body.data.orderId)
  })

  it.each(['', 'x'.repeat(65), 'schl\u00fcssel'])('rejects the invalid Idempotency-Key %j', async (value) => {
    expect((await create({}, { 'idempotency-key': value })).body).toEqual(
      errorResponse(400, 'Idempotency-Key must be 1 to 64 printable ASCII characters'),
    )
  })

  it('checks the access to the merchant in mid before the Idempotency-Key', async () => {
    const other = await newMerchant(service.db)
    expect((await create({ mid: other.mid }, { 'idempotency-key': '' })).status).toBe(403)
  })

  it('creates one intent from 50 concurrent retries with one Idempotency-Key, and returns one response to all retries', async () => {
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => create({ order_id: 'burst' }, { 'idempotency-key': 'burst' })),
    )
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1)
    expect(responses[0]?.status).toBe(200)
  })
})
