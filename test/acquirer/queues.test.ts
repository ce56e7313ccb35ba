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

// Merchants with long queues at hanging banks must not delay other merchants.

const QUEUE = 12
/** Seconds from an order's creation to its first status check. */
const CHECKED_AFTER = 15 * 60 + 90
/** Maximum concurrent calls of one merchant. */
const QUARTER = LIMITS.acquirers.concurrentJobs / 4

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
    // Long time limits, so that a bank hangs for the whole test.
    limits: {
      webhooks: { lookIntervalMs: 100, stopMs: 0 },
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
  // Removes pending jobs before the banks respond again, so that no more are claimed.
  await service.db.query('update refunds set due_at = null')
  await service.db.query('update acquirer_intents set status_check_at = null')
  for (const bank of [setu, cashfree]) Object.assign(bank, { faults: [], requests: [] })
  letGo()
})

/** Blocks each of these calls until the test ends. */
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
  const requested = { mid, orderId, refundId: unique('R'), amount: 100, note: 'sold out', createdBy: 'merchant' }
  expect(await createRefund(service.db, requested, service.clock.now())).toHaveProperty('refund')
}

async function statusesOf({ mid }: NewMerchant): Promise<string[]> {
  const { rows } = await service.db.query('select status from refunds where mid = $1', [mid])
  return rows.map(({ status }) => status)
}

/** Returns the number of a merchant's calls that reached Setu. */
async function callsOf({ mid }: NewMerchant, call: 'refund' | 'last'): Promise<number> {
  const { rows } = await service.db.query('select acquirer_merchant_id as id from acquirer_intents where mid = $1', [
    mid,
  ])
  const isOfMerchant = rows.map(({ id }) => id)
  return setu.requests.filter((one) => one.call === call && isOfMerchant.includes(one.headers.merchantid)).length
}

describe('refunds while an acquirer hangs', () => {
  /** Creates a Setu merchant with a queue of refunds scheduled before those of later merchants. */
  async function withQueue(): Promise<NewMerchant> {
    const merchant = await newSetuMerchant(service)
    const orderId = await newPaid(setu, merchant)
    for (let i = 0; i < QUEUE; i++) await refund(merchant, orderId)
    service.clock.advance(1)
    return merchant
  }

  it('sends a refund while two other merchants’ hanging refunds each occupy at most a quarter of the acquirer’s calls', async () => {
    const merchant = await newSetuMerchant(service)
    const orderId = await newPaid(setu, merchant)
    hang(setu, 'refund')
    const strangers = [await withQueue(), await withQueue()]
    for (const stranger of strangers) {
      await until(
        'the other merchant uses its quarter of the calls',
        async () => (await callsOf(stranger, 'refund')) >= QUARTER,
      )
    }
    await refund(merchant, orderId)
    await until('the merchant’s refund is sent', async () => (await callsOf(merchant, 'refund')) > 0)
    for (const stranger of strangers) expect(await callsOf(stranger, 'refund')).toBe(QUARTER)
  })

  it('completes a refund at Cashfree while refunds at Setu hang, even for the same merchant', async () => {
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
      await until('Setu’s call limit is reached', async () => (await callsOf(one, 'refund')) === QUARTER)
    }
    service.clock.advance(1)
    await refund(merchant, ofCashfree)
    await until('the refund is completed', async () => (await statusesOf(merchant)).includes('SUCCESS'))
    expect(setu.countOf('refund')).toBe(LIMITS.acquirers.concurrentJobs)
  })
})

describe('status checks while an acquirer hangs', () => {
  /** Creates a Setu merchant with a queue of unpaid orders with checks scheduled before those of later merchants. */
  async function withQueue(): Promise<NewMerchant> {
    const merchant = await newSetuMerchant(service)
    for (let i = 0; i < QUEUE; i++) await createOrder(service, merchant, { order_id: unique('O') })
    service.clock.advance(1)
    return merchant
  }

  it('sends a status check while two other merchants’ hanging checks each occupy at most a quarter of the acquirer’s calls', async () => {
    hang(setu, 'last')
    const strangers = [await withQueue(), await withQueue()]
    const merchant = await newSetuMerchant(service)
    await createOrder(service, merchant)
    service.clock.advance(CHECKED_AFTER - 1)
    for (const stranger of strangers) {
      await until(
        'the other merchant uses its quarter of the calls',
        async () => (await callsOf(stranger, 'last')) >= QUARTER,
      )
    }
    expect(await callsOf(merchant, 'last')).toBe(0)
    service.clock.advance(1)
    await until('the merchant’s status check is sent', async () => (await callsOf(merchant, 'last')) > 0)
    for (const stranger of strangers) expect(await callsOf(stranger, 'last')).toBe(QUARTER)
  })

  it('finds a payment at Cashfree while status checks at Setu hang', async () => {
    hang(setu, 'last')
    const strangers = [await withQueue(), await withQueue(), await withQueue(), await withQueue()]
    service.clock.advance(1)
    const merchant = await newCashfreeMerchant(service)
    const orderId = await createOrder(service, merchant)
    await cashfree.pay(orderId, { faults: { lost: 1 } })
    service.clock.advance(CHECKED_AFTER)
    for (const one of strangers) {
      await until('Setu’s call limit is reached', async () => (await callsOf(one, 'last')) === QUARTER)
    }
    await until('the payment is recorded', async () => {
      const { rows } = await service.db.query('select status from payment_intents where order_id = $1', [orderId])
      return rows[0].status === 'SUCCESS'
    })
    expect(setu.countOf('last')).toBe(LIMITS.acquirers.concurrentJobs)
  })
})
