import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { LIMITS } from '../../src/limits.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { CASHFREE, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { newSetuMerchant, SETU } from '../support/fake-setu.ts'
import { createOrder } from '../support/orders.ts'
import { startService, type TestService, unique } from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

// Merchants with long queues at banks that hang, and what others notice of it.

const QUEUE = 12
/** Seconds from an order to the first question about it. */
const ASKED_AFTER = 15 * 60 + 90
/** Calls of one merchant that may be under way. */
const QUARTER = LIMITS.acquirers.dueAtOnce / 4

let service: TestService
let setu: FakeSetu
let cashfree: FakeCashfree
beforeAll(async () => {
  const clock = { now: () => new Date() }
  setu = await startBank(SETU, () => clock.now())
  cashfree = await startBank(CASHFREE, () => clock.now())
  service = await startService({
    asServiceRole: true,
    acquirers: { ...SETU.settings(setu), ...CASHFREE.settings(cashfree) },
    // A bank that hangs hangs for longer than the test takes.
    limits: {
      webhooks: { lookIntervalMs: 20, stopMs: 0 },
      outbound: { acquirerMs: 120_000 },
      acquirers: { requestMs: 120_000 },
      lookUps: { cachedMs: 1 },
    },
  })
  clock.now = service.clock.now
  const url = await service.app.listen({ host: '127.0.0.1', port: 0 })
  setu.notifyUrl = url + SETU.path
  cashfree.notifyUrl = url + CASHFREE.path
})

let letGo: () => void = () => undefined
afterEach(async () => {
  // Before the banks go on, so that no more is taken.
  await service.db.query('update refunds set due_at = null')
  await service.db.query('update acquirer_intents set enquire_at = null')
  for (const bank of [setu, cashfree]) Object.assign(bank, { faults: [], requests: [] })
  letGo()
})

/** From now on each of these calls waits, until the test ends. */
function hang(bank: FakeSetu | FakeCashfree, call: 'refund' | 'last' | 'payments') {
  const held = new Promise<void>((resolve) => {
    letGo = resolve
  })
  Object.assign(bank, { faults: [{ call, fault: { until: held }, chance: 1 }] })
}

async function newPaid(bank: FakeSetu | FakeCashfree, merchant: NewMerchant): Promise<string> {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  await bank.pay(orderId)
  return orderId
}

async function refund({ mid }: NewMerchant, orderId: string): Promise<void> {
  const asked = { mid, orderId, refundId: unique('R'), amount: 100, note: 'sold out', madeBy: 'merchant' }
  expect(await createRefund(service.db, asked, service.clock.now())).toHaveProperty('refund')
}

async function statusesOf({ mid }: NewMerchant): Promise<string[]> {
  const { rows } = await service.db.query('select status from refunds where mid = $1', [mid])
  return rows.map(({ status }) => status)
}

/** Calls of Setu that have come, by their merchant. */
async function callsOf({ mid }: NewMerchant, call: 'refund' | 'last'): Promise<number> {
  const { rows } = await service.db.query('select acquirer_merchant_id as id from acquirer_intents where mid = $1', [
    mid,
  ])
  const isOfMerchant = rows.map(({ id }) => id)
  return setu.requests.filter((one) => one.call === call && isOfMerchant.includes(one.headers.merchantid)).length
}

describe('a refund', () => {
  /** A merchant of Setu with a queue of refunds, due earlier than any that follow. */
  async function withQueue(): Promise<NewMerchant> {
    const merchant = await newSetuMerchant(service)
    const orderId = await newPaid(setu, merchant)
    for (let i = 0; i < QUEUE; i++) await refund(merchant, orderId)
    service.clock.advance(1)
    return merchant
  }

  it('a refund is sent while two other merchants’ refunds hang, which use a quarter of the acquirer’s call limit each', async () => {
    const merchant = await newSetuMerchant(service)
    const orderId = await newPaid(setu, merchant)
    hang(setu, 'refund')
    const strangers = [await withQueue(), await withQueue()]
    for (const stranger of strangers) {
      await until('a stranger fills his places', async () => (await callsOf(stranger, 'refund')) >= QUARTER)
    }
    await refund(merchant, orderId)
    await until('ours has left', async () => (await callsOf(merchant, 'refund')) > 0)
    for (const stranger of strangers) expect(await callsOf(stranger, 'refund')).toBe(QUARTER)
  })

  it('a refund at Cashfree succeeds while refunds at Setu hang, even refunds of the same merchant', async () => {
    const merchant = await newCashfreeMerchant(service)
    const ofCashfree = await newPaid(cashfree, merchant)
    await service.db.query(
      `update merchants set acquirer = 'setu', acquirer_merchant_id = $2, payees = '{}' where mid = $1`,
      [merchant.mid, unique('01SETU')],
    )
    const ofSetu = await newPaid(setu, merchant)
    hang(setu, 'refund')
    for (let i = 0; i < QUEUE; i++) await refund(merchant, ofSetu)
    const strangers = [await withQueue(), await withQueue(), await withQueue()]
    for (const one of [merchant, ...strangers]) {
      await until('Setu’s places are full', async () => (await callsOf(one, 'refund')) === QUARTER)
    }
    service.clock.advance(1)
    await refund(merchant, ofCashfree)
    await until('it has ended', async () => (await statusesOf(merchant)).includes('SUCCESS'))
    expect(setu.countOf('refund')).toBe(LIMITS.acquirers.dueAtOnce)
  })
})

describe('an enquiry about a payment', () => {
  /** A merchant of Setu with a queue of unpaid orders, asked about earlier than any that follow. */
  async function withQueue(): Promise<NewMerchant> {
    const merchant = await newSetuMerchant(service)
    for (let i = 0; i < QUEUE; i++) await createOrder(service, merchant, { order_id: unique('O') })
    service.clock.advance(1)
    return merchant
  }

  it('an enquiry is sent while two other merchants’ enquiries hang, which use a quarter of the acquirer’s call limit each', async () => {
    hang(setu, 'last')
    const strangers = [await withQueue(), await withQueue()]
    const merchant = await newSetuMerchant(service)
    await createOrder(service, merchant)
    service.clock.advance(ASKED_AFTER - 1)
    for (const stranger of strangers) {
      await until('a stranger fills his places', async () => (await callsOf(stranger, 'last')) >= QUARTER)
    }
    expect(await callsOf(merchant, 'last')).toBe(0)
    service.clock.advance(1)
    await until('ours has left', async () => (await callsOf(merchant, 'last')) > 0)
    for (const stranger of strangers) expect(await callsOf(stranger, 'last')).toBe(QUARTER)
  })

  it('an enquiry to Cashfree finds a payment while enquiries to Setu hang', async () => {
    hang(setu, 'last')
    const strangers = [await withQueue(), await withQueue(), await withQueue(), await withQueue()]
    service.clock.advance(1)
    const merchant = await newCashfreeMerchant(service)
    const orderId = await createOrder(service, merchant)
    await cashfree.pay(orderId, { faults: { lost: 1 } })
    service.clock.advance(ASKED_AFTER)
    for (const one of strangers) {
      await until('Setu’s places are full', async () => (await callsOf(one, 'last')) === QUARTER)
    }
    await until('it is known', async () => {
      const { rows } = await service.db.query('select status from payment_intents where order_id = $1', [orderId])
      return rows[0].status === 'SUCCESS'
    })
    expect(setu.countOf('last')).toBe(LIMITS.acquirers.dueAtOnce)
  })
})
