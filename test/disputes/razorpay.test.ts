import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { disputeCheckJobs } from '../../src/gateway/acquirers/check-disputes.ts'
import { createPendingDisputes } from '../../src/gateway/disputes/pending-disputes.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createClients, disputeEvents, exceptionsOf, storedDispute, storedStates } from '../support/disputes.ts'
import { newRazorpayMerchant, RAZORPAY } from '../support/fake-razorpay.ts'
import { createOrder } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import type { FakeRazorpay, RazorpayDispute } from '../support/razorpay-bank.ts'
import { type TestService, unique } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const DAY = 86_400

let service: TestService
let bank: FakeRazorpay
let merchant: NewMerchant
let check: () => Promise<void>
beforeAll(async () => {
  const limits = { webhooks: { lookIntervalMs: 3_600_000 }, outbound: { acquirerMs: 30_000 } }
  ;({ service, bank } = await startServiceBeside(RAZORPAY, { asServiceRole: true, limits }))
  merchant = await newRazorpayMerchant(service)
  await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/' }, service.clock.now())
  const { clientOf } = createClients(service, RAZORPAY.settings(bank))
  const { due } = service.pools
  const options = { clientOf, now: service.clock.now }
  const source = disputeCheckJobs({ pending: createPendingDisputes(due), disputes: createDisputes(due), ...options })
  // A run claims one dispute of each merchant.
  check = async () => {
    for (let i = 0; i < 3; i++) await runPendingJobs(source)
  }
})
beforeEach(async () => {
  await service.db.query('update disputes set check_at = null')
})

async function paidOrder() {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  const { payment, order } = await bank.pay(orderId)
  return { orderId, payment, order }
}

const send = (dispute: RazorpayDispute, name: string) => bank.sendEvent(bank.disputeEventOf(dispute, name))

async function opened(changes: Partial<RazorpayDispute> = {}) {
  const paid = await paidOrder()
  const dispute = bank.dispute(paid.payment, changes)
  expect(await send(dispute, 'created')).toBe(200)
  return { ...paid, dispute, id: dispute.id }
}

const statusOf = async (id: string) => (await storedDispute(service.db, id))?.status

describe('a Razorpay dispute', () => {
  it('stores a dispute with its facts, and sends dispute.opened', async () => {
    const { orderId, payment, dispute, id } = await opened({ amount: 50_50, reason_description: 'Goods not received' })
    expect(await storedDispute(service.db, id)).toMatchObject({
      ...{ mid: merchant.mid, utr: payment.rrn, status: 'open', amount: 50_50 },
      ...{
        respondBy: new Date(Number(dispute.respond_by) * 1000),
        openedAt: new Date(Number(dispute.created_at) * 1000),
      },
      checkAt: new Date(service.clock.now().getTime() + DAY * 1000),
    })
    const facts = 'select kind, reason_code, reason_text, acquirer from disputes where dispute_id = $1'
    const reason = { reason_code: 'chargeback', reason_text: 'Goods not received' }
    expect((await service.db.query(facts, [id])).rows).toEqual([
      { kind: 'chargeback', ...reason, acquirer: 'razorpay' },
    ])
    expect(await disputeEvents(service.db, orderId)).toMatchObject([
      { type: 'dispute.opened', dispute_id: id, amount: '50.50', status: 'OPEN', UTR: payment.rrn },
    ])
  })

  it.each(['won', 'lost', 'closed'])('follows a dispute through evidence, further evidence and %s', async (verdict) => {
    const { orderId, dispute, id } = await opened()
    for (const next of ['under_review', 'action_required', 'under_review', verdict]) {
      service.clock.advance(DAY)
      for (let i = 0; i < 2; i++) expect(await send(dispute, next)).toBe(200)
    }
    expect((await disputeEvents(service.db, orderId)).map(({ status }) => status)).toEqual([
      ...['OPEN', 'UNDER_REVIEW', 'OPEN', 'UNDER_REVIEW', verdict.toUpperCase()],
    ])
    expect(await storedDispute(service.db, id)).toMatchObject({ status: verdict, checkAt: null })
  })

  it('orders notifications by their time, whatever order they arrive in', async () => {
    const { dispute, id } = await opened()
    service.clock.advance(DAY)
    const review = bank.disputeEventOf(dispute, 'under_review')
    service.clock.advance(DAY)
    expect(await bank.sendEvent(bank.disputeEventOf(dispute, 'action_required'))).toBe(200)
    expect(await bank.sendEvent(review)).toBe(200)
    expect(await statusOf(id)).toBe('open')
  })

  it.each([
    ['amount', '50.50'],
    ['amount', 0],
    ['amount', null],
    ['respond_by', 'tomorrow'],
    ['respond_by', null],
    ['phase', null],
    ['reason_code', 7],
    ['reason_description', null],
    ['created_at', null],
    ['payment_id', null],
  ])('stores a dispute whose %s is %j', async (field, value) => {
    const { payment } = await paidOrder()
    const dispute = bank.dispute(payment)
    const event = bank.disputeEventOf(dispute, 'created')
    event.payload.dispute.entity = { ...dispute, [field]: value }
    expect(await bank.sendEvent(event)).toBe(200)
    expect(await storedDispute(service.db, dispute.id)).toMatchObject({ status: 'open', utr: payment.rrn })
  })

  it('returns 400 for a dispute without an id, and stores it without customer data', async () => {
    const { payment, orderId } = await paidOrder()
    const dispute = bank.dispute(payment, { id: 'not an id', reason_description: 'Canaryname Rao' })
    expect(await send(dispute, 'created')).toBe(400)
    const { rows } = await service.db.query(`select body from payment_exceptions where kind = 'unreadable'`)
    const bodies = rows.map(({ body }) => body).join()
    expect(bodies).toContain('not an id')
    expect(bodies).toContain(orderId)
    expect(bodies).not.toMatch(/canary|asha|customer|9{10}/i)
  })

  it('rejects a notification of a dispute that is not signed', async () => {
    const { payment } = await paidOrder()
    const dispute = bank.dispute(payment)
    const [headers, payload] = [{ 'content-type': 'application/json' }, bank.disputeEventOf(dispute, 'lost')]
    const url = '/acquirer/razorpay/notification'
    expect((await service.app.inject({ method: 'POST', url, headers, payload })).statusCode).toBe(401)
    expect(await statusOf(dispute.id)).toBeUndefined()
  })

  it.each(['escalated', 'constructor', 'closed.again'])(
    'accepts the unknown event payment.dispute.%s, which changes nothing',
    async (name) => {
      const { dispute, id } = await opened()
      service.clock.advance(DAY)
      expect(await send(dispute, name)).toBe(200)
      expect(await send({ ...dispute, id: 'not an id' }, name)).toBe(200)
      expect(await storedStates(service.db, id)).toEqual(['open'])
    },
  )

  it('accepts a dispute of a payment that the service did not create, and stores nothing', async () => {
    const { order, payment } = await paidOrder()
    const dispute = bank.dispute(payment)
    const event = bank.disputeEventOf(dispute, 'created')
    const entity = { ...event.payload.payment?.entity, notes: { receipt: 'INVOICE-1' } }
    expect(await bank.sendEvent({ ...event, payload: { ...event.payload, payment: { entity } } })).toBe(200)
    expect(await statusOf(dispute.id)).toBeUndefined()
    expect(await exceptionsOf(service.db, order.orderId, 'unknown dispute')).toEqual([])
  })
})

describe('the status check of a Razorpay dispute', () => {
  it('stores the verdict whose notification was lost, and checks no more', async () => {
    const { dispute, id } = await opened()
    dispute.status = 'lost'
    service.clock.advance(DAY)
    await check()
    expect(await storedDispute(service.db, id)).toMatchObject({ status: 'lost', checkAt: null })
  })

  it.each(['open', 'under_review', 'won', 'closed'])('reads the status %s', async (status) => {
    const { dispute, id } = await opened()
    dispute.status = status
    service.clock.advance(DAY)
    await check()
    expect(await statusOf(id)).toBe(status.replace('_', ' '))
  })

  it('checks again on the next day if Razorpay is unreachable, does not know the dispute, or returns another', async () => {
    const { dispute, id } = await opened()
    bank.nextFaults.dispute = [{ status: 503 }, { change: () => ({ id: 'disp_2', status: 'won' }) }, 'no JSON']
    for (let day = 1; day <= 5; day++) {
      service.clock.advance(DAY)
      if (day === 4) bank.disputes.delete(id)
      if (day === 5) bank.disputes.set(id, { ...dispute, status: 'won' })
      await check()
      expect(await statusOf(id)).toBe(day === 5 ? 'won' : 'open')
    }
    expect(await statusOf('disp_2')).toBeUndefined()
  })
})
