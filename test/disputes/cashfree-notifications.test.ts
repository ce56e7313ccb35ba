import { beforeAll, describe, expect, it } from 'vitest'
import { createReports } from '../../src/gateway/payments/reports.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import type { CashfreeDispute } from '../support/cashfree-forms.ts'
import { disputeEvents, exceptionsOf, storedDispute, storedStates } from '../support/disputes.ts'
import { CASHFREE, CASHFREE_SECRETS, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { createOrder } from '../support/orders.ts'
import { type TestService, unique } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const DAY = 86_400
const MOST = 1_000

let service: TestService
let bank: FakeCashfree
let merchant: NewMerchant
beforeAll(async () => {
  const limits = { webhooks: { lookIntervalMs: 3_600_000 }, outbound: { acquirerMs: 30_000 } }
  ;({ service, bank } = await startServiceBeside(CASHFREE, { asServiceRole: true, limits }))
  merchant = await newCashfreeMerchant(service)
  await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/' }, service.clock.now())
})

async function paidOrder() {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  const { payment } = await bank.pay(orderId)
  return { orderId, payment, order: bank.orders.get(orderId) as NonNullable<ReturnType<typeof bank.orders.get>> }
}

/** Opens a dispute of a new paid order, whose first notification is sent. */
async function opened(changes: Partial<CashfreeDispute> = {}) {
  const { orderId, payment } = await paidOrder()
  const dispute = bank.dispute(orderId, changes)
  expect(await bank.sendEvent(bank.disputeEventOf(dispute))).toBe(200)
  const change = (state: string, more: Partial<CashfreeDispute> = {}) =>
    bank.changeDispute(dispute.id, { state, ...more })
  return { orderId, payment, dispute, id: dispute.id, change }
}

/** The notification without these fields of its dispute. */
function without(event: ReturnType<typeof bank.disputeEventOf>, fields: string[]) {
  const kept = Object.entries(event.data.dispute).filter(([name]) => !fields.includes(name))
  return { ...event, data: { ...event.data, dispute: Object.fromEntries(kept) } }
}

const statusOf = async (id: string) => (await storedDispute(service.db, id))?.status
const rowsOf = async (table: string) => (await service.db.query(`select count(*) as n from ${table}`)).rows[0].n

describe('a Cashfree dispute', () => {
  it('stores a dispute with its facts, and sends dispute.opened with the order’s next sequence number', async () => {
    const { orderId, payment, dispute, id } = await opened({ amount: 50_50 })
    expect(await storedDispute(service.db, id)).toEqual({
      ...{ mid: merchant.mid, utr: payment.rrn, status: 'open', amount: 50_50, respondBy: dispute.respondBy },
      ...{ openedAt: dispute.createdAt, checkAt: new Date(service.clock.now().getTime() + DAY * 1000) },
    })
    const { rows } = await service.db.query(
      'select kind, reason_code, reason_text, acquirer from disputes where dispute_id = $1',
      [id],
    )
    const reason = { reason_code: '1402', reason_text: 'Duplicate Processing' }
    expect(rows).toEqual([{ kind: 'CHARGEBACK', ...reason, acquirer: 'cashfree' }])
    expect(await disputeEvents(service.db, orderId)).toMatchObject([
      { type: 'dispute.opened', sequence: 2, dispute_id: id, amount: '50.50', status: 'OPEN', UTR: payment.rrn },
    ])
  })

  it.each([
    ['MERCHANT_WON', 'won'],
    ['MERCHANT_LOST', 'lost'],
    ['MERCHANT_ACCEPTED', 'accepted'],
  ])(
    'follows a dispute through evidence, further evidence and %s, with one event per change',
    async (state, status) => {
      const { orderId, id, change } = await opened()
      for (const next of ['DOCS_RECEIVED', 'UNDER_REVIEW', 'INSUFFICIENT_EVIDENCE', 'UNDER_REVIEW', state]) {
        service.clock.advance(DAY)
        const event = change(next)
        for (let i = 0; i < 2; i++) expect(await bank.sendEvent(event)).toBe(200)
      }
      expect(await statusOf(id)).toBe(status)
      expect((await disputeEvents(service.db, orderId)).map((event) => event.status)).toEqual([
        'OPEN',
        'UNDER_REVIEW',
        'OPEN',
        'UNDER_REVIEW',
        status.toUpperCase(),
      ])
      expect((await storedDispute(service.db, id))?.checkAt).toBeNull()
    },
  )

  it('stores the second phase of a dispute, which has an id of its own, beside the first', async () => {
    const { orderId, id, change } = await opened()
    service.clock.advance(DAY)
    await bank.sendEvent(change('MERCHANT_WON'))
    const second = bank.dispute(orderId, { type: 'PRE_ARBITRATION' })
    expect(await bank.sendEvent(bank.disputeEventOf(second))).toBe(200)
    expect([await statusOf(id), await statusOf(second.id)]).toEqual(['won', 'open'])
  })

  it('reads every published status of every type of dispute', async () => {
    const { orderId } = await paidOrder()
    const seen: (string | undefined)[] = []
    for (const type of ['DISPUTE', 'PRE_ARBITRATION', 'ARBITRATION', 'RETRIEVAL'] as const) {
      for (const state of ['CREATED', 'DOCS_RECEIVED', 'INSUFFICIENT_EVIDENCE', 'UNDER_REVIEW']) {
        const dispute = bank.dispute(orderId, { type, state })
        await bank.sendEvent(bank.disputeEventOf(dispute))
        seen.push(await statusOf(dispute.id))
      }
    }
    expect(new Set(seen)).toEqual(new Set(['open', 'under review']))
    expect(seen).toHaveLength(16)
  })

  it('adds the facts of an older notification that are unknown, and keeps the newer time to respond by', async () => {
    const { orderId, id, dispute, change } = await opened()
    const older = bank.disputeEventOf({ ...dispute, state: 'CREATED' })
    service.clock.advance(DAY)
    const respondBy = new Date(service.clock.now().getTime() + 9 * DAY * 1000)
    expect(await bank.sendEvent(change('INSUFFICIENT_EVIDENCE', { respondBy, amount: 10_00 }))).toBe(200)
    expect(await bank.sendEvent(older)).toBe(200)
    expect(await storedDispute(service.db, id)).toMatchObject({ status: 'open', respondBy, amount: 10_00 })
    expect(await disputeEvents(service.db, orderId)).toHaveLength(2)
  })

  it('reads the time of a notification whose dispute has none from the event', async () => {
    const { id, change } = await opened()
    service.clock.advance(DAY)
    await bank.sendEvent(change('UNDER_REVIEW'))
    service.clock.advance(DAY)
    expect(await bank.sendEvent(without(change('INSUFFICIENT_EVIDENCE'), ['updated_at']))).toBe(200)
    expect(await statusOf(id)).toBe('open')
  })

  it('does not replace known facts by those of a notification without any time', async () => {
    const { id, dispute, change } = await opened()
    const later = change('CREATED', { respondBy: new Date(0), updatedAt: new Date(0) })
    expect(await bank.sendEvent({ ...without(later, ['updated_at']), event_time: undefined })).toBe(200)
    expect((await storedDispute(service.db, id))?.respondBy).toEqual(dispute.respondBy)
  })

  it('corrects the state by a later notification, although earlier ones came from a clock that is ahead', async () => {
    const at = (minutes: number) => new Date(service.clock.now().getTime() + minutes * 60_000)
    const { id, change } = await opened({ createdAt: at(30), updatedAt: at(30) })
    expect((await storedDispute(service.db, id))?.openedAt).toEqual(service.clock.now())
    await bank.sendEvent(change('UNDER_REVIEW', { updatedAt: at(31) }))
    const event = change('INSUFFICIENT_EVIDENCE', { updatedAt: at(32) })
    service.clock.advance(3_600)
    await bank.sendEvent(event)
    expect(await statusOf(id)).toBe('open')
  })

  it('stores the first verdict, and an exception for another one', async () => {
    const { orderId, id, change } = await opened()
    await bank.sendEvent(change('MERCHANT_LOST'))
    service.clock.advance(DAY)
    for (let i = 0; i < 2; i++) expect(await bank.sendEvent(change('MERCHANT_WON'))).toBe(200)
    expect(await statusOf(id)).toBe('lost')
    expect(await exceptionsOf(service.db, orderId, 'dispute differs')).toMatchObject([
      { mid: merchant.mid, account: 'cashfree', note: `dispute ${id}: won`, isOpen: true },
    ])
    expect(await storedStates(service.db, id)).toEqual(['open', 'lost'])
  })

  it('stores a dispute of 0 rupees, whose amount is unknown', async () => {
    const { id } = await opened({ amount: 0 })
    expect(await storedDispute(service.db, id)).toMatchObject({ status: 'open', amount: null })
  })

  it('stores a dispute whose amount exceeds the payment', async () => {
    const { id } = await opened({ amount: 99_999_999_999_00 })
    expect(await storedDispute(service.db, id)).toMatchObject({ status: 'open', amount: 99_999_999_999_00 })
  })

  it('assigns a dispute to the duplicate payment that it names', async () => {
    const { orderId, payment, order } = await paidOrder()
    const other = (number: string) => `${number.startsWith('9') ? 8 : 9}${number.slice(1)}`
    const second = { ...payment, id: other(payment.id), rrn: other(payment.rrn) }
    order.payments.push(second)
    expect(await bank.sendEvent(bank.eventOf(order, second))).toBe(200)
    for (const { id, rrn } of [second, payment]) {
      const dispute = bank.dispute(id)
      expect(await bank.sendEvent(bank.disputeEventOf(dispute))).toBe(200)
      expect(await storedDispute(service.db, dispute.id)).toMatchObject({ utr: rrn })
      // The id of a dispute belongs to one payment.
      const moved = { ...dispute, payment: dispute.payment === second ? payment : second }
      expect(await bank.sendEvent(bank.disputeEventOf(moved))).toBe(200)
    }
    expect(await exceptionsOf(service.db, orderId, 'dispute differs')).toHaveLength(2)
  })
})

describe('a rejected Cashfree dispute', () => {
  it('returns 401 for a forged signature, and stores nothing', async () => {
    const { orderId } = await paidOrder()
    const dispute = bank.dispute(orderId)
    expect(await bank.sendEvent(bank.disputeEventOf(dispute), { secret: 'of-somebody-else' })).toBe(401)
    expect(await storedDispute(service.db, dispute.id)).toBeUndefined()
    expect(await bank.sendEvent(bank.disputeEventOf(dispute), { secret: CASHFREE_SECRETS[1] })).toBe(200)
  })

  it('returns 404 for a dispute of another account’s payment, and stores the exception', async () => {
    const { mid, key } = await newCashfreeMerchant(service)
    const orderId = await createOrder(service, { mid, key })
    const { payment } = await bank.pay(orderId)
    await service.db.query(`update merchants set acquirer = 'cashfree:other' where mid = $1`, [mid])
    await service.db.query('alter table payments disable trigger all')
    await service.db.query(`update payments set acquirer = 'cashfree:other' where utr = $1`, [payment.rrn])
    await service.db.query('alter table payments enable trigger all')
    const dispute = bank.dispute(orderId)
    expect(await bank.sendEvent(bank.disputeEventOf(dispute))).toBe(404)
    expect(await exceptionsOf(service.db, orderId, 'unknown dispute')).toMatchObject([
      { mid: '', account: 'cashfree', isOpen: true },
    ])
  })

  it('returns 404 for a dispute of an unconfirmed payment, and resolves the exception when the report is repeated', async () => {
    const orderId = await createOrder(service, merchant, { order_id: unique('O') })
    const { payment } = await bank.pay(orderId, { faults: { lost: 1 } })
    const dispute = bank.dispute(orderId)
    for (let i = 0; i < 2; i++) expect(await bank.sendEvent(bank.disputeEventOf(dispute))).toBe(404)
    expect(await exceptionsOf(service.db, orderId, 'unknown dispute')).toMatchObject([
      { mid: '', amount: dispute.amount, note: `dispute ${dispute.id}: open`, isOpen: true },
    ])
    const paid = { orderId, status: 'SUCCESS' as const, utr: payment.rrn, amount: 20_000, acquirer: 'cashfree' }
    await createReports(service.db).record(
      { ...paid, acquirerPaymentId: payment.id, paidAt: service.clock.now() } as never,
      { source: 'operator', now: service.clock.now },
    )
    expect(await bank.sendEvent(bank.disputeEventOf(dispute))).toBe(200)
    expect(await exceptionsOf(service.db, orderId, 'unknown dispute')).toMatchObject([{ isOpen: false }])
  })

  it('returns 400 for an unreadable dispute, and stores it without customer data', async () => {
    const { orderId } = await paidOrder()
    const event = bank.disputeEventOf(bank.dispute(orderId, { id: 'not an id' }))
    event.data.dispute.reason_description = 'Canaryname Rao did not receive the goods'
    expect(await bank.sendEvent(event)).toBe(400)
    const { rows } = await service.db.query(`select body from payment_exceptions where kind = 'unreadable'`)
    const bodies = rows.map(({ body }) => body).join()
    expect(bodies).toContain('not an id')
    expect(bodies).toContain(orderId)
    expect(bodies).not.toMatch(/canary|customer|9{10}/i)
  })

  it('accepts a dispute of an unknown status, which changes nothing', async () => {
    const { id, change } = await opened()
    service.clock.advance(DAY)
    const before = await rowsOf('dispute_states')
    expect(await bank.sendEvent(change('ESCALATED'))).toBe(200)
    expect([await statusOf(id), await rowsOf('dispute_states')]).toEqual(['open', before])
  })
})

describe('many disputes', () => {
  it('stores at most 20 disputes of one payment', async () => {
    const { orderId } = await paidOrder()
    const disputes = Array.from({ length: 22 }, () => bank.dispute(orderId))
    for (const dispute of disputes) expect(await bank.sendEvent(bank.disputeEventOf(dispute))).toBe(200)
    const { rowCount } = await service.db.query('select from disputes where order_id = $1', [orderId])
    expect(rowCount).toBe(20)
    expect(await exceptionsOf(service.db, orderId, 'dispute differs')).toHaveLength(2)
    // A verdict on a stored one is accepted.
    const [{ id } = { id: '' }] = disputes
    expect(await bank.sendEvent(bank.changeDispute(id, { state: 'MERCHANT_WON' }))).toBe(200)
    expect(await statusOf(id)).toBe('won')
  })

  it('stores at most 100 states of a dispute before its verdict, and the status of the dispute is one of them', async () => {
    const { orderId, id, change } = await opened()
    for (let i = 0; i < 105; i++) {
      service.clock.advance(60)
      expect(await bank.sendEvent(change(i % 2 ? 'INSUFFICIENT_EVIDENCE' : 'UNDER_REVIEW'))).toBe(200)
    }
    const states = await storedStates(service.db, id)
    expect(states).toHaveLength(100)
    expect(await statusOf(id)).toBe(states.at(-1))
    const events = await disputeEvents(service.db, orderId)
    expect(events).toHaveLength(100)
    service.clock.advance(60)
    expect(await bank.sendEvent(change('MERCHANT_LOST'))).toBe(200)
    expect(await statusOf(id)).toBe('lost')
  })

  it('leaves sequence numbers for refunds, however often an acquirer changes the facts of a dispute', async () => {
    const { orderId, id, change } = await opened()
    await service.db.query('update payment_intents set event_sequence = 10000 where order_id = $1', [orderId])
    service.clock.advance(60)
    expect(await bank.sendEvent(change('UNDER_REVIEW'))).toBe(200)
    expect(await statusOf(id)).toBe('open')
    expect(await bank.sendEvent(change('MERCHANT_LOST'))).toBe(200)
    expect(await statusOf(id)).toBe('lost')
    service.clock.advance(60)
    expect(await bank.sendEvent(change('MERCHANT_LOST', { amount: 1_00 }))).toBe(200)
    const { rows } = await service.db.query('select event_sequence as n from payment_intents where order_id = $1', [
      orderId,
    ])
    expect(rows).toEqual([{ n: 10_001 }])
  })

  it('limits the open exceptions of one account’s disputes of unknown payments', async () => {
    const { order, payment } = await paidOrder()
    const unknown = (n: number) => {
      const other = { ...order, orderId: `unknown${n}` }
      return bank.disputeEventOf({ ...bank.dispute(order.orderId), order: other, payment })
    }
    await service.db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, received_at, acquirer_account)
       select '', 'filler' || i, 'unknown dispute', '', 1, now(), 'cashfree' from generate_series(1, $1::integer) i`,
      [MOST],
    )
    for (let n = 0; n < 3; n++) expect(await bank.sendEvent(unknown(n))).toBe(404)
    const { rows } = await service.db.query(`select from payment_exceptions where order_id like 'unknown%'`)
    expect(rows).toEqual([])
  })
})

it('notifications of one dispute, its refunds and its payment neither deadlock nor store two events for one change', async () => {
  const { orderId, order, payment } = await paidOrder()
  const disputes = Array.from({ length: 5 }, () => bank.dispute(orderId))
  const events = disputes.flatMap((one) => Array.from({ length: 6 }, () => bank.disputeEventOf(one)))
  const others = Array.from({ length: 10 }, () => bank.eventOf(order, payment))
  const statuses = await Promise.all([...events, ...others].map((event) => bank.sendEvent(event)))
  expect(new Set(statuses)).toEqual(new Set([200]))
  const stored = await disputeEvents(service.db, orderId)
  expect(stored.map(({ sequence }) => sequence)).toEqual([2, 3, 4, 5, 6])
  expect(service.log.filter((line) => /deadlock/.test(line))).toEqual([])
})
