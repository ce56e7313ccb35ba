import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { disputeCheckJobs } from '../../src/gateway/acquirers/check-disputes.ts'
import { createPendingDisputes } from '../../src/gateway/disputes/pending-disputes.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import type { CashfreeDispute } from '../support/cashfree-forms.ts'
import { createClients, storedDispute, storedStates } from '../support/disputes.ts'
import { CASHFREE, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { newMerchant, type TestService, unique } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'

const DAY = 86_400

let service: TestService
let bank: FakeCashfree
let merchant: NewMerchant
let run: () => Promise<void>
beforeAll(async () => {
  const limits = { webhooks: { lookIntervalMs: 3_600_000 }, outbound: { acquirerMs: 30_000 } }
  ;({ service, bank } = await startServiceBeside(CASHFREE, { asServiceRole: true, limits }))
  merchant = await newCashfreeMerchant(service)
  const { clientOf } = createClients(service, CASHFREE.settings(bank))
  const { due } = service.pools
  const options = { clientOf, now: service.clock.now }
  const source = disputeCheckJobs({ pending: createPendingDisputes(due), disputes: createDisputes(due), ...options })
  // A run claims one dispute of each merchant.
  run = async () => {
    for (let i = 0; i < 3; i++) await runPendingJobs(source)
  }
})
beforeEach(async () => {
  await service.db.query('update disputes set check_at = null')
  bank.requests.splice(0)
})

async function opened(changes: Partial<CashfreeDispute> = {}) {
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  await bank.pay(orderId)
  const dispute = bank.dispute(orderId, changes)
  await bank.sendEvent(bank.disputeEventOf(dispute))
  return { orderId, id: dispute.id }
}

const checks = (id: string) => bank.requests.filter(({ path }) => path.endsWith(`/disputes/${id}`)).length
const statusOf = async (id: string) => (await storedDispute(service.db, id))?.status

describe('the status check of a dispute', () => {
  it('checks an open dispute once a day, a day after its notification', async () => {
    const { id } = await opened()
    await run()
    service.clock.advance(DAY - 1)
    await run()
    expect(checks(id)).toBe(0)
    for (let day = 1; day <= 3; day++) {
      service.clock.advance(day === 1 ? 1 : DAY)
      await run()
      expect(checks(id)).toBe(day)
    }
    expect(await storedStates(service.db, id)).toEqual(['open'])
  })

  it('stores the verdict whose notification was lost, and checks no more', async () => {
    const { id } = await opened()
    bank.changeDispute(id, { state: 'MERCHANT_LOST', updatedAt: new Date(service.clock.now().getTime() + 1_000) })
    service.clock.advance(DAY)
    await run()
    expect(await statusOf(id)).toBe('lost')
    service.clock.advance(DAY)
    await run()
    expect(checks(id)).toBe(1)
  })

  it('checks a dispute for 200 days after its opening', async () => {
    const { id } = await opened()
    service.clock.advance(199 * DAY)
    await run()
    service.clock.advance(DAY)
    await run()
    expect(checks(id)).toBe(2)
    service.clock.advance(DAY)
    await run()
    expect([checks(id), (await storedDispute(service.db, id))?.checkAt]).toEqual([2, null])
  })

  it('checks again on the next day if Cashfree is unreachable, does not know the dispute, or returns no dispute', async () => {
    const { id } = await opened()
    bank.nextFaults.dispute = [{ status: 503 }, { status: 404 }, { change: () => ({ dispute_id: 7 }) }]
    for (let day = 1; day <= 4; day++) {
      service.clock.advance(DAY)
      if (day === 4) bank.changeDispute(id, { state: 'UNDER_REVIEW' })
      await run()
      expect(checks(id)).toBe(day)
      expect(await statusOf(id)).toBe(day === 4 ? 'under review' : 'open')
    }
  })

  it('stores nothing of a response about another dispute', async () => {
    const { id } = await opened()
    const other = { dispute_id: `${id}0`, dispute_status: 'DISPUTE_MERCHANT_WON', order_details: null }
    bank.nextFaults.dispute = [{ change: (body) => ({ ...body, ...other }) }]
    service.clock.advance(DAY)
    await run()
    expect([await statusOf(id), await statusOf(`${id}0`)]).toEqual(['open', undefined])
  })

  it('corrects a state that a notification from a clock that is ahead has left', async () => {
    const { id } = await opened()
    const at = (seconds: number) => new Date(service.clock.now().getTime() + seconds * 1000)
    const review = bank.changeDispute(id, { state: 'UNDER_REVIEW', updatedAt: at(1_800) })
    const again = bank.changeDispute(id, { state: 'INSUFFICIENT_EVIDENCE', updatedAt: at(1_860) })
    service.clock.advance(1)
    await bank.sendEvent(again)
    service.clock.advance(1)
    await bank.sendEvent(review)
    expect(await statusOf(id)).toBe('under review')
    service.clock.advance(DAY)
    await run()
    expect(await statusOf(id)).toBe('open')
  })

  it('schedules no check of a dispute of direct, and calls no acquirer without such a call', async () => {
    const { mid, key } = await newMerchant(service.db)
    const orderId = await createOrder(service, { mid, key })
    await reportPayment(service, orderId)
    const report = { id: unique('D'), orderId, status: 'open' } as const
    await createDisputes(service.db).record('direct', report, { source: 'asha', now: service.clock.now })
    expect((await storedDispute(service.db, report.id))?.checkAt).toBeNull()
  })
})
