import { describe, expect, it } from 'vitest'
import type { DisputeReport } from '../../src/gateway/disputes/dispute.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { createPendingRefunds } from '../../src/gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr } from '../support/acquirer.ts'
import { exceptionsOf, storedDispute } from '../support/disputes.ts'
import { CASHFREE, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { errorResponse, newKey, newMerchant, post, REFUND, unique } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import { newWebhook } from '../support/webhooks.ts'

const limits = { webhooks: { lookIntervalMs: 3_600_000 }, outbound: { acquirerMs: 30_000 } }
const { service, bank } = await startServiceBeside(CASHFREE, { asServiceRole: true, limits })
const newRefunder = async ({ mid }: { mid: string }) => {
  await newWebhook(service.db, { mid, url: 'https://shop.example/' }, service.clock.now())
  return { mid, key: await newKey(service.db, { mid }, RIGHTS) }
}
const merchants = {
  cashfree: await newRefunder(await newCashfreeMerchant(service)),
  direct: await newRefunder(await newMerchant(service.db)),
}
const { now } = service.clock
const disputes = createDisputes(service.pools.reports)
const updates = createRefundUpdates(service.pools.due)
const pending = createPendingRefunds(service.pools.due)

/** A paid order of ₹200. The service would send a refund at `cashfree` by a call, but runs no jobs. */
async function paidOrder(acquirer: 'direct' | 'cashfree' = 'cashfree') {
  const { mid, key } = merchants[acquirer]
  const orderId = await createOrder(service, { mid, key }, { order_id: unique('O') })
  if (acquirer === 'cashfree') await bank.pay(orderId)
  else await reportPayment(service, orderId, { UTR: newUtr() })
  const id = unique('D')
  const report = (status: DisputeReport['status'], facts: Partial<DisputeReport> = {}) =>
    disputes.record(acquirer, { id, orderId, status, ...facts }, { source: 'notification', now })
  const refund = (refund_id: string, amount?: string) =>
    post(service.app, REFUND, { mid, order_id: orderId, refund_id, note: 'sold out', ...(amount && { amount }) }, key)
  return { mid, orderId, id, report, refund }
}

const refundsOf = async (orderId: string) =>
  (
    await service.db.query<{ status: string; reason: string | null; ourRefundId: string }>(
      'select status, reason, our_refund_id as "ourRefundId" from refunds where order_id = $1 order by created_at, refund_id',
      [orderId],
    )
  ).rows

const eventsOf = async (orderId: string) =>
  (
    await service.db.query('select type from webhook_deliveries where order_id = $1 order by sequence', [orderId])
  ).rows.map(({ type }) => type)

const DISPUTED = errorResponse(409, 'Payment is disputed')
const EXCEEDS = errorResponse(409, 'Refund exceeds what was paid')
const KIND = 'refund of a disputed payment'

describe('refundPayment of a disputed payment', () => {
  it.each(['open', 'under review'] as const)(
    'returns 409 `Payment is disputed` while a dispute is %s',
    async (status) => {
      const { report, refund } = await paidOrder()
      await report(status, { amount: 1_00 })
      const { status: statusCode, body, headers } = await refund(unique('R'), '500')
      expect([statusCode, body, headers['x-error-code']]).toEqual([409, DISPUTED, 'payment_disputed'])
    },
  )

  it('returns `Payment is not successful` for an unpaid order before it considers disputes', async () => {
    const { mid, key } = merchants.direct
    const orderId = await createOrder(service, { mid, key }, { order_id: unique('O') })
    const { body } = await post(service.app, REFUND, { mid, order_id: orderId, refund_id: 'R', note: 'sold out' }, key)
    expect(body).toMatchObject({ msg: 'Payment is not successful' })
  })

  it('returns the refund for a repeated refund_id', async () => {
    const { report, refund } = await paidOrder()
    const id = unique('R')
    const first = await refund(id)
    await report('open')
    expect(await refund(id)).toMatchObject({ status: 200, body: { data: { refundId: first.body.data.refundId } } })
  })

  it.each(['won', 'closed'] as const)('accepts a refund of the whole payment again after %s', async (verdict) => {
    const { report, refund } = await paidOrder()
    await report('open')
    await report(verdict)
    expect(await refund(unique('R'))).toMatchObject({ status: 200, body: { data: { amount: 200 } } })
  })

  it.each(['lost', 'accepted'] as const)('refunds only what a dispute that is %s has left', async (verdict) => {
    const { report, refund } = await paidOrder()
    await report('open', { amount: 50_50 })
    await report(verdict)
    expect(await refund(unique('R'), '150')).toMatchObject({ status: 409, body: EXCEEDS })
    expect(await refund(unique('R'))).toMatchObject({ status: 200, body: { data: { amount: 149.5 } } })
  })

  it('refunds nothing after a lost dispute whose amount is unknown', async () => {
    const { report, refund } = await paidOrder()
    await report('lost')
    expect(await refund(unique('R'), '1')).toMatchObject({ status: 409, body: EXCEEDS })
  })

  it('accepts an operator’s refund despite the dispute', async () => {
    const { mid, orderId, report } = await paidOrder()
    await report('open')
    const request = { mid, orderId, amount: 100_00, note: 'sold out', createdBy: 'asha' }
    expect(await createRefund(service.db, request, now())).toEqual({ rejected: 'disputed' })
    expect(await createRefund(service.db, { ...request, despiteDispute: true }, now())).toMatchObject({ created: true })
    // The refund is not ended when the dispute changes.
    await report('under review')
    expect(await refundsOf(orderId)).toMatchObject([{ status: 'PENDING' }])
  })
})

describe('a dispute of a payment with refunds', () => {
  it('ends unsent refunds as FAIL, with their webhook before the dispute’s', async () => {
    const { mid, orderId, report, refund } = await paidOrder()
    await refund(unique('R'), '50')
    await refund(unique('R'), '60')
    await report('open')
    const failed = { status: 'FAIL', reason: 'The payment is disputed' }
    expect(await refundsOf(orderId)).toMatchObject([failed, failed])
    expect(await eventsOf(orderId)).toEqual(['payment.succeeded', 'refund.failed', 'refund.failed', 'dispute.opened'])
    expect(await exceptionsOf(service.db, orderId, KIND)).toEqual([])
    const [{ ourRefundId } = { ourRefundId: '' }] = await refundsOf(orderId)
    expect(await pending.markSent({ mid, ourRefundId }, now(), true)).toBe(false)
  })

  it('continues a refund that was sent, with an exception that names the amount that may be returned twice', async () => {
    const { mid, orderId, id, report, refund } = await paidOrder()
    await refund(unique('R'), '150')
    const [sent] = await refundsOf(orderId)
    expect(await pending.markSent({ mid, ourRefundId: `${sent?.ourRefundId}` }, now(), false)).toBe(true)
    await report('open', { amount: 120_00 })
    expect(await refundsOf(orderId)).toMatchObject([{ status: 'PENDING' }])
    expect(await exceptionsOf(service.db, orderId, KIND)).toMatchObject([
      {
        amount: 70_00,
        note: `dispute ${id}: 70.00 may be returned twice`,
        ...(sent && { ourRefundId: sent.ourRefundId }),
      },
    ])
  })

  it.each([
    [
      'the refund fails',
      async ({ mid, orderId }: Awaited<ReturnType<typeof paidOrder>>) => {
        const [refund] = await refundsOf(orderId)
        const name = { mid, ourRefundId: `${refund?.ourRefundId}` }
        const reporting = { source: 'notification', by: 'acquirer', now } as const
        await updates.record(name, { status: 'FAIL', reference: '', reason: 'closed' }, reporting)
      },
    ],
    ['the dispute is won', ({ report }: Awaited<ReturnType<typeof paidOrder>>) => report('won')],
    ['the dispute is closed', ({ report }: Awaited<ReturnType<typeof paidOrder>>) => report('closed')],
  ])('resolves the exception of an open refund of direct when %s', async (_when, resolve) => {
    const order = await paidOrder('direct')
    await order.refund(unique('R'))
    await order.report('open')
    expect(await refundsOf(order.orderId)).toMatchObject([{ status: 'PENDING' }])
    const [exception] = await exceptionsOf(service.db, order.orderId, KIND)
    expect(exception).toMatchObject({ amount: 200_00, isOpen: true })
    await order.report('under review')
    await resolve(order)
    expect(await exceptionsOf(service.db, order.orderId, KIND)).toMatchObject([{ isOpen: false }])
  })

  it('stores the exception when a later report names a larger amount', async () => {
    const { orderId, report, refund } = await paidOrder('direct')
    const refundId = unique('R')
    await refund(refundId, '150')
    await service.db.query(
      `update refunds set status = 'SUCCESS', reference = 'X', ended_at = now() where refund_id = $1`,
      [refundId],
    )
    await report('open', { amount: 50_00, statedAt: now() })
    expect(await exceptionsOf(service.db, orderId, KIND)).toEqual([])
    service.clock.advance(60)
    await report('under review', { amount: 120_00, statedAt: now() })
    expect(await exceptionsOf(service.db, orderId, KIND)).toMatchObject([{ amount: 70_00 }])
  })

  it('names the amount of a refund that was made despite the dispute when the dispute is lost', async () => {
    const order = await paidOrder()
    await order.report('open', { amount: 150_00 })
    const { mid, orderId } = order
    const refund = { mid, orderId, amount: 80_00, note: 'sold out', createdBy: 'asha', despiteDispute: true }
    const created = await createRefund(service.db, refund, now())
    if (!('refund' in created)) throw new Error(created.rejected)
    await updates.record(
      created.refund,
      { status: 'SUCCESS', reference: 'RRN1' },
      { source: 'answer', by: 'acquirer', now },
    )
    expect(await exceptionsOf(service.db, orderId, KIND)).toEqual([])
    await order.report('lost', { amount: 150_00 })
    expect(await exceptionsOf(service.db, orderId, KIND)).toMatchObject([{ amount: 30_00 }])
  })

  it('regards the lost disputes of a payment as returned when another phase begins', async () => {
    const order = await paidOrder()
    const { mid, orderId } = order
    const refund = { mid, orderId, amount: 80_00, note: 'sold out', createdBy: 'merchant' }
    const created = await createRefund(service.pools.due, refund, now())
    if (!('refund' in created)) throw new Error(created.rejected)
    await updates.record(
      created.refund,
      { status: 'SUCCESS', reference: 'RRN2' },
      { source: 'answer', by: 'acquirer', now },
    )
    await order.report('lost', { amount: 100_00 })
    expect(await exceptionsOf(service.db, orderId, KIND)).toEqual([])
    await order.report('open', { id: unique('D'), amount: 50_00 })
    expect(await exceptionsOf(service.db, orderId, KIND)).toMatchObject([{ amount: 30_00 }])
  })

  it('names a refund that failed and succeeded after all when the dispute is lost', async () => {
    const { orderId, report, refund } = await paidOrder('direct')
    await refund(unique('R'))
    await report('open')
    const [{ ourRefundId } = { ourRefundId: '' }] = await refundsOf(orderId)
    const name = { mid: merchants.direct.mid, ourRefundId }
    const recording = { source: 'enquiry', by: 'acquirer', now } as const
    await updates.record(name, { status: 'FAIL', reference: '', reason: 'closed' }, recording)
    await updates.record(name, { status: 'SUCCESS', reference: 'RRN3' }, recording)
    await report('lost')
    const open = (await exceptionsOf(service.db, orderId, KIND)).filter(({ isOpen }) => isOpen)
    expect(open).toMatchObject([{ amount: 200_00 }])
  })

  it('ends a refund whose call changed nothing instead of sending it again', async () => {
    const { mid, orderId, report, refund } = await paidOrder()
    await refund(unique('R'))
    const [{ ourRefundId } = { ourRefundId: '' }] = await refundsOf(orderId)
    const name = { mid, ourRefundId }
    const sentAt = now()
    expect(await pending.markSent(name, sentAt, true)).toBe(true)
    service.clock.advance(1)
    await report('open')
    await pending.unmarkSent(name, sentAt)
    expect(await pending.markSent(name, now(), true)).toBe(false)
    await report('under review')
    expect(await refundsOf(orderId)).toMatchObject([{ status: 'FAIL', reason: 'The payment is disputed' }])
  })

  it('continues refunds if the first report says that the dispute is won', async () => {
    const { orderId, report, refund } = await paidOrder()
    await refund(unique('R'))
    await report('won')
    expect(await refundsOf(orderId)).toMatchObject([{ status: 'PENDING' }])
  })

  it('resolves the exception of a late payment that a lost dispute has returned', async () => {
    const { orderId, report } = await paidOrder()
    await service.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       select mid, order_id, 'late payment', utr, amount_paise, 'SUCCESS', now() from payments where order_id = $1`,
      [orderId],
    )
    await report('open')
    expect(await exceptionsOf(service.db, orderId, 'late payment')).toMatchObject([{ isOpen: true }])
    await report('lost')
    expect(await exceptionsOf(service.db, orderId, 'late payment')).toMatchObject([{ isOpen: false }])
  })

  it('stores `refunded above what was paid` when a refund succeeds beside a lost dispute', async () => {
    const { mid, orderId, report, refund } = await paidOrder('direct')
    await refund(unique('R'), '150')
    await report('lost', { amount: 100_00 })
    const [open] = await refundsOf(orderId)
    await updates.record(
      { mid, ourRefundId: `${open?.ourRefundId}` },
      { status: 'SUCCESS', reference: 'UTR1' },
      { source: 'notification', by: 'acquirer', now },
    )
    expect(await exceptionsOf(service.db, orderId, 'refunded above what was paid')).toHaveLength(1)
  })

  it('stores an operator’s report and a concurrent notification of one dispute once', async () => {
    const { orderId, id, report } = await paidOrder()
    const byOperator = (status: DisputeReport['status']) =>
      createDisputes(service.db).record('cashfree', { id, orderId, status }, { source: 'asha', now })
    await Promise.all([report('open'), byOperator('open'), report('open'), byOperator('open')])
    expect((await eventsOf(orderId)).filter((type) => type.startsWith('dispute'))).toEqual(['dispute.opened'])
    await Promise.all([report('lost'), byOperator('won'), report('lost'), byOperator('won')])
    const { status } = (await storedDispute(service.db, id)) ?? {}
    expect(['lost', 'won']).toContain(status)
    expect(await exceptionsOf(service.db, orderId, 'dispute differs')).toHaveLength(1)
    expect((await eventsOf(orderId)).filter((type) => type.startsWith('dispute'))).toHaveLength(2)
  })
})
