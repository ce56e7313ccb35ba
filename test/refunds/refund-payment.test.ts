import type { QueryConfig } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { findPayment } from '../../src/gateway/refunds/create-refund.ts'
import type { Queryable } from '../../src/platform/db/pool.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { postJson } from '../support/inject.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import {
  errorResponse,
  newKey,
  newMerchant,
  newPartner,
  post,
  REFUND,
  REFUND_STATUS,
  STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'

const service = await startService({ asServiceRole: true })
const { mid, key: plainKey } = await newMerchant(service.db)
const key = await newKey(service.db, { mid }, RIGHTS)

/** A paid order of ₹200, with its ids and its payment's UTR. */
async function paidOrder() {
  const [order_id, UTR] = [unique('order-'), newUtr()]
  const orderId = await createOrder(service, { mid, key }, { order_id })
  await reportPayment(service, orderId, { UTR })
  return { order_id, orderId, UTR }
}

const note = 'One cup was cold'
const requestRefund = (fields: Record<string, string>, by = key) =>
  post(service.app, REFUND, { mid, note, ...fields }, by)
const status = (refund_id: string, by = plainKey) => post(service.app, REFUND_STATUS, { mid, refund_id }, by)
const refundsOf = async (orderId: string) =>
  (
    await service.db.query(
      'select refund_id, amount_paise, requested_paise, status, utr from refunds where mid = $1 and order_id = $2 order by created_at',
      [mid, orderId],
    )
  ).rows

/** Reports the final status of a refund as the bank or the operator would. */
const end = (refund_id: string, to: 'SUCCESS' | 'FAIL', reference: string) =>
  service.db.query(
    'update refunds set status = $3, reference = $4, ended_at = now(), due_at = null where mid = $1 and refund_id = $2',
    [mid, refund_id, to, reference],
  )

const expectRejection = async (response: ReturnType<typeof requestRefund>, statusCode: number, msg: string) => {
  const { status, body } = await response
  expect([status, body]).toEqual([statusCode, errorResponse(statusCode, msg)])
}

describe('refundPayment with valid fields', () => {
  it('refunds a part of a payment, or the remaining amount if no amount is sent, by either id of the order', async () => {
    const { order_id, orderId, UTR } = await paidOrder()
    const part = await requestRefund({ order_id, refund_id: `${order_id}-1`, amount: '50' })
    expect([part.status, part.body]).toEqual([
      200,
      {
        status: true,
        statusCode: 200,
        msg: 'Refund accepted',
        data: {
          refundId: expect.stringMatching(/^[0-9a-f]{32}$/),
          refund_id: `${order_id}-1`,
          orderId,
          order_id,
          amount: 50,
          txnStatus: 'PENDING',
          reference: '',
          reason: '',
        },
      },
    ])
    const rest = await requestRefund({ order_id: orderId, refund_id: `${order_id}-2` })
    expect(rest.body.data).toMatchObject({ amount: 150, order_id, orderId })
    expect(await refundsOf(orderId)).toMatchObject([
      { amount_paise: 5000, requested_paise: 5000, status: 'PENDING', utr: UTR },
      { amount_paise: 15000, requested_paise: null, status: 'PENDING', utr: UTR },
    ])
    // The status that clients of checkPaymentStatus read does not change.
    const paid = await post(service.app, STATUS, { mid, order_id }, plainKey)
    expect(paid.body).toMatchObject({ txnStatus: 'SUCCESS', data: { amount: 200, UTR } })
  })

  it('returns the refund’s current status for a repeated refundPayment, whichever id identifies the order', async () => {
    const { order_id, orderId } = await paidOrder()
    const refund_id = unique('R-')
    const first = await requestRefund({ order_id, refund_id, amount: '50.00' })
    expect((await requestRefund({ order_id: orderId, refund_id, amount: '050' })).body).toEqual(first.body)
    await end(refund_id, 'SUCCESS', '523504870777')
    const { body } = await requestRefund({ order_id, refund_id, amount: '50' })
    expect(body.data).toEqual({ ...first.body.data, txnStatus: 'SUCCESS', reference: '523504870777' })
    expect(body.msg).toBe('Refund accepted')
    expect(await refundsOf(orderId)).toHaveLength(1)
  })

  it('accepts paise from a merchant with the input setting `shop`, and refunds the whole remaining amount in paise for any merchant', async () => {
    const pluginMerchant = await newMerchant(service.db, { input: 'shop' })
    const pluginKey = await newKey(service.db, { mid: pluginMerchant.mid }, RIGHTS)
    const order = { mid: pluginMerchant.mid, order_id: 'S1', note }
    const orderId = await createOrder(service, pluginMerchant, { order_id: 'S1', amount: '588.82' })
    await reportPayment(service, orderId, { amount: 588.82 })
    const by = (fields: object) => postJson(service.app, REFUND, { ...order, ...fields }, pluginKey)
    expect((await by({ refund_id: 'R1', amount: '0.01' })).body.data.amount).toBe(0.01)
    expect((await by({ refund_id: 'R2', amount: 88.8 })).body.data.amount).toBe(88.8)
    await service.db.query(`update merchants set input = 'strict' where mid = $1`, [pluginMerchant.mid])
    service.clock.advance(2)
    const left = (mid: string) => post(service.app, REFUND, { ...order, mid, refund_id: 'R3' }, pluginKey)
    expect((await left(pluginMerchant.mid)).body.data.amount).toBe(500.01)
    for (const amount of ['0', '0.00', '0.001', '500000.01', '-1', '1e2', '']) {
      const { body } = await post(service.app, REFUND, { ...order, refund_id: 'R4', amount }, pluginKey)
      expect(body.statusCode, amount).toBe(400)
    }
  })

  it('replaces line breaks in a refund’s note by spaces before comparing a repeated refundPayment', async () => {
    const { order_id } = await paidOrder()
    const refund = { order_id, refund_id: unique('R-') }
    const { body } = await requestRefund({ ...refund, note: ' cold\r\ntea ' })
    expect(await requestRefund({ ...refund, note: 'cold tea' })).toMatchObject({ status: 200, body })
  })
})

describe('checkRefundStatus', () => {
  it.each([
    ['PENDING', 'Refund pending', ''],
    ['SUCCESS', 'Refund successful', '523504870778'],
    ['FAIL', 'Refund failed', ''],
  ] as const)('checkRefundStatus returns %s to any key of the merchant', async (txnStatus, msg, reference) => {
    const { order_id } = await paidOrder()
    const refund_id = unique('R-')
    const { data } = (await requestRefund({ order_id, refund_id })).body
    if (txnStatus !== 'PENDING') await end(refund_id, txnStatus, reference)
    const { status: code, body } = await status(refund_id)
    expect([code, body]).toEqual([200, { status: true, statusCode: 200, msg, data: { ...data, txnStatus, reference } }])
  })

  it('checkRefundStatus returns 404 for another merchant’s refund, and for the service’s own refund id', async () => {
    const { order_id } = await paidOrder()
    const refund_id = unique('R-')
    const { data } = (await requestRefund({ order_id, refund_id })).body
    await expectRejection(status(data.refundId), 404, 'Refund not found')
    const other = await newMerchant(service.db)
    await expectRejection(
      post(service.app, REFUND_STATUS, { mid: other.mid, refund_id }, other.key),
      404,
      'Refund not found',
    )
    await expectRejection(
      status(refund_id, other.key),
      403,
      'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.',
    )
  })

  it('checkRefundStatus names missing and invalid fields', async () => {
    await expectRejection(
      post(service.app, REFUND_STATUS, { refund_id: 'R 1' }, key),
      400,
      'mid is required; refund_id must be 1 to 40 characters of A-Z a-z 0-9 _ -',
    )
  })
})

describe('refundPayment with 400', () => {
  it('refundPayment names every invalid field before checking the key', async () => {
    const fields = 'mid is required; order_id is required; refund_id is required; note is required'
    await expectRejection(post(service.app, REFUND, undefined, plainKey), 400, fields)
    const wrong = { order_id: 'x', refund_id: 'x'.repeat(41), amount: '0.50', note: 'ab' }
    await expectRejection(
      requestRefund(wrong, plainKey),
      400,
      'refund_id must be 1 to 40 characters of A-Z a-z 0-9 _ -; amount must be a whole number from 1 to 500000; ' +
        'note must be text of 3 to 100 characters, without control characters',
    )
  })

  it('refundPayment rejects an empty amount, and refunds the whole remaining amount only if the amount is absent', async () => {
    const { order_id, orderId } = await paidOrder()
    const pluginMerchant = await newMerchant(service.db, { input: 'shop' })
    const pluginKey = await newKey(service.db, { mid: pluginMerchant.mid }, RIGHTS)
    const whole = 'amount must be a whole number from 1 to 500000'
    const paise = 'amount must be rupees from 0.01 to 500000.00 with at most two decimals, such as 88.82'
    for (const amount of ['', ' ', null]) {
      const fields = { mid, order_id, refund_id: 'R-empty', note, amount }
      await expectRejection(postJson(service.app, REFUND, fields, key), 400, whole)
      await expectRejection(
        postJson(service.app, REFUND, { ...fields, mid: pluginMerchant.mid }, pluginKey),
        400,
        paise,
      )
    }
    await expectRejection(requestRefund({ order_id, refund_id: 'R-empty', amount: '' }), 400, whole)
    expect(await refundsOf(orderId)).toEqual([])
  })
})

describe('refundPayment with 403', () => {
  it('refundPayment returns the same instructions for a key without the right to refund, whether or not the order is known', async () => {
    const { order_id } = await paidOrder()
    for (const requested of [order_id, 'no-such-order']) {
      const msg = "This key lacks the right 'refund'. Ask the operator for a key with this right."
      await expectRejection(requestRefund({ order_id: requested, refund_id: 'R1' }, plainKey), 403, msg)
    }
  })

  it('refundPayment returns the same 403 for keys of other merchants, of partners and of disabled merchants', async () => {
    const { order_id } = await paidOrder()
    const other = await newMerchant(service.db)
    const partner = await newPartner(service.db, mid)
    const msg =
      'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.'
    for (const by of [other.key, await newKey(service.db, { mid: other.mid }, RIGHTS), partner.key]) {
      await expectRejection(requestRefund({ order_id, refund_id: 'R1' }, by), 403, msg)
    }
    await service.db.query('update merchants set disabled_at = now() where mid = $1', [other.mid])
    const late = await newKey(service.db, { mid: other.mid }, RIGHTS)
    await expectRejection(
      post(service.app, REFUND, { mid: other.mid, order_id, refund_id: 'R1', note }, late),
      403,
      msg,
    )
  })
})

describe('refundPayment with 404 or 409', () => {
  it('rejects a refund of an unknown order, of another merchant’s order, and of an unpaid order', async () => {
    const other = await newMerchant(service.db)
    const theirs = await createOrder(service, other)
    await expectRejection(requestRefund({ order_id: 'no-such-order', refund_id: 'R1' }), 404, 'Order not found')
    await expectRejection(requestRefund({ order_id: theirs, refund_id: 'R1' }), 404, 'Order not found')
    const open = await createOrder(service, { mid, key })
    await expectRejection(requestRefund({ order_id: open, refund_id: 'R1' }), 409, 'Payment is not successful')
    await notify(service, notification(open, { status: 'FAIL' }))
    await expectRejection(requestRefund({ order_id: open, refund_id: 'R1' }), 409, 'Payment is not successful')
  })

  it('rejects a refund above the remaining amount, and leaves the refund_id of the rejected refund unused', async () => {
    const { order_id } = await paidOrder()
    const refund_id = unique('R-')
    await expectRejection(requestRefund({ order_id, refund_id, amount: '201' }), 409, 'Refund exceeds what was paid')
    expect((await requestRefund({ order_id, refund_id, amount: '200' })).status).toBe(200)
    const another = unique('R-')
    await expectRejection(requestRefund({ order_id, refund_id: another }), 409, 'Refund exceeds what was paid')
    await end(refund_id, 'FAIL', '')
    expect((await requestRefund({ order_id, refund_id: another })).body.data.amount).toBe(200)
  })

  it('rejects a further refund after the acquirer has refunded more paise than an integer can store', async () => {
    const { order_id, orderId } = await paidOrder()
    await service.db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
                            ended_at, acquirer_refund_id)
       select p.mid, p.order_id || n, p.order_id || n, p.order_id, p.utr, 50000000, '', 'cashfree', 'acquirer', now(), 'SUCCESS',
              now(), n
         from payments p, generate_series(1, 43) n
        where p.mid = $1 and p.order_id = $2`,
      [mid, orderId],
    )
    const refund_id = unique('R-')
    await expectRejection(requestRefund({ order_id, refund_id }), 409, 'Refund exceeds what was paid')
    await expectRejection(requestRefund({ order_id, refund_id, amount: '1' }), 409, 'Refund exceeds what was paid')
  })

  it('rejects a used refund_id that is sent again with other fields', async () => {
    const { order_id } = await paidOrder()
    const second = await paidOrder()
    const refund_id = unique('R-')
    await requestRefund({ order_id, refund_id })
    for (const changed of [{ order_id: second.order_id }, { amount: '200' }, { note: 'Another note' }]) {
      await expectRejection(requestRefund({ order_id, refund_id, ...changed }), 409, 'Refund ID already exists')
    }
  })

  it('rejects the 101st refund of a payment, even if some of the first 100 refunds failed', async () => {
    const { order_id, orderId } = await paidOrder()
    const first = unique('R-')
    await requestRefund({ order_id, refund_id: first, amount: '1' })
    await service.db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
                            status, ended_at)
       select mid, $3 || i, 'F' || md5($3 || i::text), order_id, utr, 1, note, acquirer, created_by, created_at, 'FAIL', now()
         from refunds, generate_series(1, 99) i where mid = $1 and refund_id = $2`,
      [mid, first, `${orderId}-`],
    )
    const refund = { order_id, refund_id: unique('R-'), amount: '1' }
    await expectRejection(requestRefund(refund), 409, 'Too many refunds of this payment')
    expect((await requestRefund({ order_id, refund_id: first, amount: '1' })).status).toBe(200)
  })
})

it('refundPayment refunds only the order’s own payment and leaves a duplicate payment to the operator', async () => {
  const { order_id, orderId, UTR } = await paidOrder()
  await reportPayment(service, orderId)
  await requestRefund({ order_id, refund_id: unique('R-') })
  await expectRejection(requestRefund({ order_id, refund_id: unique('R-') }), 409, 'Refund exceeds what was paid')
  expect(await refundsOf(orderId)).toMatchObject([{ utr: UTR, amount_paise: 20000 }])
})

describe('concurrent refunds', () => {
  let beside: TestService
  beforeAll(async () => {
    beside = await startService({ asServiceRole: true, replicated: { url: service.databaseUrl } })
  })

  it('creates one refund from 200 concurrent repeats of refundPayment over two instances, and returns the refund for each repeat', async () => {
    const { order_id, orderId } = await paidOrder()
    const fields = { mid, note, order_id, refund_id: unique('R-') }
    const responses = await Promise.all(
      Array.from({ length: 200 }, (_, i) => post(i % 2 ? service.app : beside.app, REFUND, fields, key)),
    )
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(responses.map(({ body }) => JSON.stringify(body))).size).toBe(1)
    expect(await refundsOf(orderId)).toHaveLength(1)
  })

  it('never refunds more than the paid amount in concurrent partial refunds of one payment', async () => {
    const { order_id, orderId } = await paidOrder()
    const responses = await Promise.all(
      Array.from({ length: 10 }, (_, i) =>
        post(
          i % 2 ? service.app : beside.app,
          REFUND,
          { mid, note, order_id, refund_id: `${order_id}-${i}`, amount: '60' },
          key,
        ),
      ),
    )
    expect(responses.map(({ status }) => status).sort()).toEqual([...Array(3).fill(200), ...Array(7).fill(409)])
    const rows = await refundsOf(orderId)
    expect(rows.reduce((sum, { amount_paise }) => sum + amount_paise, 0)).toBe(18_000)
  })

  it('creates one of two concurrent refunds with the same refund_id for two orders', async () => {
    const orders = await Promise.all(Array.from({ length: 2 }, paidOrder))
    for (let round = 1; round <= 10; round++) {
      const refund_id = unique('R-')
      const responses = await Promise.all(
        orders.map(({ order_id }, i) =>
          post(i ? service.app : beside.app, REFUND, { mid, note, order_id, refund_id, amount: '1' }, key),
        ),
      )
      expect(responses.map(({ body }) => body.msg).sort()).toEqual(
        ['Refund ID already exists', 'Refund accepted'].sort(),
      )
    }
  })
})

// A plan of Citus names shards.
it.skipIf(ON_CITUS)('the search for the payment of an order reads no other payment of the merchant', async () => {
  const { orderId, UTR } = await paidOrder()
  await service.db.query(
    `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
     select $1, 'OTHER' || i, 'of-another-order', 20000, now(), 'first', 'direct', 'notification' from generate_series(1, 5000) i`,
    [mid],
  )
  await service.db.query('analyze payments')
  type Plan = Record<string, unknown> & { Plans?: Plan[] }
  const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)]
  const plans: Plan[] = []
  const query = async (statement: QueryConfig) => {
    const { rows } = await service.db.query(`explain (analyze, format json) ${statement.text}`, statement.values)
    plans.push(...nodes(rows[0]['QUERY PLAN'][0].Plan))
    return service.db.query(statement)
  }
  expect(await findPayment({ query } as Queryable, { mid, orderId })).toMatchObject({ utr: UTR, left: 20_000 })
  const read = plans.filter((plan) => plan['Relation Name'] === 'payments' && plan['Actual Loops'] !== 0)
  expect(read).toMatchObject([{ 'Index Cond': expect.stringContaining('utr'), 'Actual Rows': 1 }])
})
