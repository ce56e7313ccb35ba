import { beforeAll, describe, expect, it } from 'vitest'
import { createRefund, type RefundRequest } from '../../src/gateway/refunds/create-refund.ts'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import type { Refund, RefundUpdate } from '../../src/gateway/refunds/refund.ts'
import { findRefund } from '../../src/gateway/refunds/store.ts'
import { createDeliveries } from '../../src/gateway/webhooks/deliveries.ts'
import { toMessage } from '../../src/gateway/webhooks/message.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { newMerchant, post, REFUND_STATUS, startService, type TestService, unique } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const PAID = 20_000
const SUCCESS: RefundUpdate = { status: 'SUCCESS', reference: '412345678901' }
const FAIL: RefundUpdate = { status: 'FAIL', reference: '', reason: 'R21' }

let service: TestService
let merchant: NewMerchant
let endpointId: string
beforeAll(async () => {
  // The service has only the rights that it needs, and delivers no webhooks in this test.
  service = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
  merchant = await newMerchant(service.db)
  const url = 'https://shop.example/hook'
  ;({ endpointId } = await newWebhook(service.db, { mid: merchant.mid, url }, service.clock.now()))
})

async function newPaid(): Promise<string> {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  await reportPayment(service, orderId)
  return orderId
}

async function newRefund(orderId: string, changes: Partial<RefundRequest> = {}): Promise<Refund> {
  const requested = {
    mid: merchant.mid,
    orderId,
    refundId: unique('R'),
    amount: PAID,
    note: 'sold out',
    createdBy: 'merchant',
  }
  const created = await createRefund(service.pools.due, { ...requested, ...changes }, service.clock.now())
  if (!('refund' in created)) throw new Error(created.rejected)
  return created.refund
}

const end = (refund: Refund, update: RefundUpdate) =>
  createRefundUpdates(service.pools.due).record(refund, update, {
    source: 'notification',
    by: 'acquirer',
    now: service.clock.now,
  })

async function exceptionsOf({ mid, ourRefundId }: Refund) {
  const { rows } = await service.db.query(
    `select e.kind, r.reason as ended
       from payment_exceptions e
       left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      where e.mid = $1 and e.our_refund_id = $2 order by e.kind`,
    [mid, ourRefundId],
  )
  return rows.map(({ kind, ended }) => [kind, ended])
}

async function messagesOf(orderId: string) {
  const now = new Date(service.clock.now().getTime() + 60_000)
  const taken = await createDeliveries(service.db).claim({ mid: merchant.mid, endpointId }, 1_000, now, now)
  return taken.filter((delivery) => delivery.orderId === orderId).map((one) => JSON.parse(toMessage(one).body))
}

describe('refund update', () => {
  it('sets the final status of a refund once, and the refund’s webhook has the next sequence number', async () => {
    const orderId = await newPaid()
    const refund = await newRefund(orderId, { amount: 5_000 })
    const words = await Promise.all(Array.from({ length: 10 }, () => end(refund, SUCCESS)))
    expect(words.filter((word) => word?.changed)).toHaveLength(1)
    expect(words[0]?.refund).toMatchObject({ status: 'SUCCESS', reference: SUCCESS.reference, dueAt: null })
    const { mid, refundId, ourRefundId, merchantOrderId } = refund
    const [, reported, ...others] = await messagesOf(orderId)
    expect(reported).toEqual({
      type: 'refund.succeeded',
      timestamp: service.clock.now().toISOString(),
      data: {
        ...{ mid, orderId, order_id: merchantOrderId, refundId: ourRefundId, refund_id: refundId },
        ...{ txnStatus: 'SUCCESS', amount: '50', reference: SUCCESS.reference, reason: '', sequence: 2 },
      },
    })
    expect(others).toEqual([])
  })

  it('accepts a refund’s success after its failure, and leaves a failure after a success to the operator as an exception', async () => {
    const orderId = await newPaid()
    const refund = await newRefund(orderId)
    expect(await end(refund, FAIL)).toMatchObject({ changed: true, refund: { status: 'FAIL', reason: 'R21' } })
    expect(await end(refund, SUCCESS)).toMatchObject({ changed: true, refund: { status: 'SUCCESS' } })
    const again = { changed: false, exception: 'refund failed after success', refund: { status: 'SUCCESS' } }
    expect(await end(refund, FAIL)).toMatchObject({ ...again, isNew: true })
    expect(await end(refund, FAIL)).toMatchObject({ ...again, isNew: false })
    expect(await exceptionsOf(refund)).toEqual([['refund failed after success', null]])
    // The webhook reports the failure as it was, although it is delivered after the success.
    expect((await messagesOf(orderId)).map(({ type, data }) => [type, data.sequence, data.reason])).toEqual([
      ['payment.succeeded', 1, undefined],
      ['refund.failed', 2, 'R21'],
      ['refund.succeeded', 3, ''],
    ])
  })

  it('checkRefundStatus returns the failure reason in at most 200 printable characters, and only for a failed refund', async () => {
    const refund = await newRefund(await newPaid())
    const reported = async () =>
      (await post(service.app, REFUND_STATUS, { mid: refund.mid, refund_id: refund.refundId }, merchant.key)).body.data
    await service.db.query(`update refunds set reason = 'unsure' where our_refund_id = $1`, [refund.ourRefundId])
    expect(await reported()).toMatchObject({ txnStatus: 'PENDING', reason: '' })
    await end(refund, { ...FAIL, reason: ` R21\u0000\n\u202eतीन ${'é'.repeat(300)}` })
    expect(await reported()).toMatchObject({ txnStatus: 'FAIL', reason: `R21 तीन ${'é'.repeat(192)}` })
    await end(refund, SUCCESS)
    expect(await reported()).toMatchObject({ txnStatus: 'SUCCESS', reason: '' })
  })

  it('stores an exception for the operator if a refund’s success exceeds the paid amount', async () => {
    const orderId = await newPaid()
    const first = await newRefund(orderId)
    await end(first, FAIL)
    const second = await newRefund(orderId)
    expect(await end(first, SUCCESS)).not.toHaveProperty('exception')
    expect(await end(second, SUCCESS)).toMatchObject({ changed: true, exception: 'refunded above what was paid' })
    expect(await exceptionsOf(second)).toEqual([['refunded above what was paid', null]])
  })

  it.each([
    ['amount', { ...SUCCESS, amount: PAID - 1 }],
    ['merchant', { ...FAIL, merchantId: 'another operator' }],
    ['order', { ...SUCCESS, orderId: 'f'.repeat(32) }],
    ['refund id', { ...SUCCESS, ourRefundId: 'f'.repeat(32) }],
    ['amount before the final status', { ...SUCCESS, status: 'PENDING' as const, amount: PAID + 1 }],
  ])('changes nothing if a refund update has another %s, and stores the update for the operator', async (_, word) => {
    const refund = await newRefund(await newPaid())
    expect(await end(refund, word)).toMatchObject({ changed: false, exception: 'refund differs' })
    expect(await findRefund(service.db, refund.mid, refund)).toEqual(refund)
    expect(await exceptionsOf(refund)).toEqual([['refund differs', null]])
  })

  it('resolves the exception for which a refund was created, and the refund’s own exceptions, on the refund’s success', async () => {
    const orderId = await newPaid()
    await reportPayment(service, orderId, { UTR: '523504999901' })
    const { rows } = await service.db.query(
      `select exception_id, utr from payment_exceptions where order_id = $1 and kind = 'double payment'`,
      [orderId],
    )
    const [{ exception_id: exceptionId, utr }] = rows
    const refund = await newRefund(orderId, { exceptionId, utr })
    await keep(refund, 'refund unsure')
    await keep(refund, 'refund without an end')
    await end(refund, FAIL)
    expect(await exceptionsOf(refund)).toEqual([
      ['refund unsure', 'the refund failed'],
      ['refund without an end', 'the refund failed'],
    ])
    expect(await resolutionOf(exceptionId)).toBeUndefined()
    await end(refund, SUCCESS)
    expect(await resolutionOf(exceptionId)).toBe(`the refund succeeded, reference ${SUCCESS.reference}`)
  })

  it('releases the amount of a failed refund for another refund, but not the amount of a pending or successful refund', async () => {
    const orderId = await newPaid()
    const refund = await newRefund(orderId, { amount: 15_000 })
    await expect(newRefund(orderId, { amount: 5_001 })).rejects.toThrow('exceeds')
    await end(refund, FAIL)
    await end(await newRefund(orderId), SUCCESS)
    await expect(newRefund(orderId, { amount: 1 })).rejects.toThrow('exceeds')
  })

  it('changes nothing on an update of an unknown refund', async () => {
    const refund = await newRefund(await newPaid())
    expect(await end({ ...refund, ourRefundId: 'unknown' }, SUCCESS)).toBeUndefined()
    expect(await end({ ...refund, mid: 'another' }, SUCCESS)).toBeUndefined()
  })
})

async function keep({ mid, orderId, utr, ourRefundId }: Refund, kind: string) {
  await service.db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, our_refund_id, received_at)
     values ($1, $2, $3, $4, 20000, '', $5, now())`,
    [mid, orderId, kind, utr, ourRefundId],
  )
}

async function resolutionOf(exceptionId: string): Promise<string | undefined> {
  const { rows } = await service.db.query('select reason from payment_resolutions where exception_id = $1', [
    exceptionId,
  ])
  return rows[0]?.reason
}
