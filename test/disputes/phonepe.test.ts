import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDisputeReader } from '../../src/gateway/acquirers/check-disputes.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createClients, disputeEvents, exceptionsOf, storedDispute, storedStates } from '../support/disputes.ts'
import { newPhonepeMerchant, PHONEPE, PHONEPE_SECRETS } from '../support/fake-phonepe.ts'
import { createOrder } from '../support/orders.ts'
import { runAllPendingJobs } from '../support/pending-jobs.ts'
import type { FakePhonepe, PhonepeDisputeStatus } from '../support/phonepe-bank.ts'
import { post, type TestService } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const DAY = 86_400

let service: TestService
let bank: FakePhonepe
let merchant: NewMerchant
beforeAll(async () => {
  const limits = { webhooks: { lookIntervalMs: 3_600_000 }, outbound: { acquirerMs: 30_000 } }
  ;({ service, bank } = await startServiceBeside(PHONEPE, { asServiceRole: true, limits }))
  merchant = await newPhonepeMerchant(service)
  await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/' }, service.clock.now())
})
beforeEach(() => {
  bank.disputes.splice(0)
})

/** Starts the reader of an instance, whose first daily read is done. */
async function startReader({ isDisabled = false, disputes = createDisputes(service.pools.due) as Recorder } = {}) {
  const { clientOf } = createClients(service, PHONEPE.settings(bank))
  const accounts = { clientOf, notifierOf: async () => ({ isDisabled }), namesOf: async () => ['direct', 'phonepe'] }
  const reader = createDisputeReader({ disputes, ...accounts, now: service.clock.now })
  const run = () => runAllPendingJobs(reader.source)
  await run()
  service.clock.advance(600)
  await run()
  return { reader, run, reads: () => readsSince(bank.requests.length) }
}
type Recorder = Pick<ReturnType<typeof createDisputes>, 'record'>

/** Returns a function that counts the reads of the list of one status since the request `start`. */
const readsSince = (start: number) => () =>
  bank.requests.slice(start).filter(({ path }) => /status=WON&offset=0/.test(path)).length

async function disputed(status: PhonepeDisputeStatus = 'ACTION_REQUIRED') {
  const orderId = await createOrder(service, merchant)
  const { payment } = await bank.pay(orderId, { faults: { lost: 1 } })
  await service.db.query(
    `with paid as (update payment_intents set status = 'SUCCESS', utr = $2 where order_id = $1 returning mid, amount_paise)
     insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source, acquirer_payment_id)
     select mid, $2, $1, amount_paise, now(), 'first', 'phonepe', 'enquiry', $3 from paid`,
    [orderId, payment.rrn, payment.id],
  )
  return { orderId, payment, dispute: bank.dispute(orderId, status) }
}

const statusOf = async (id: string) => (await storedDispute(service.db, id))?.status

/** Sends an SHA webhook, whose body is unsigned. */
const send = async (event: object) => {
  const { body, headers } = bank.encrypt(event, PHONEPE_SECRETS[1])
  return (await post(service.app, PHONEPE.path, body, undefined, headers)).status
}

describe('a PhonePe dispute', () => {
  it('stores nothing from a notification, of which only the account is believed', async () => {
    const { dispute } = await disputed()
    for (const type of ['created', 'action_required', 'under_review', 'won', 'lost'])
      expect(await send(bank.disputeEventOf(dispute, type))).toBe(200)
    expect(await send({ event: 'payment.dispute.created' })).toBe(200)
    expect(await bank.sendEvent(bank.disputeEventOf(dispute), { secret: 'of-somebody-else' })).toBe(401)
    expect(await storedDispute(service.db, dispute.disputeId)).toBeUndefined()
  })

  it('stores what the list returns, without an amount and a time to respond by', async () => {
    const { orderId, payment, dispute } = await disputed()
    await startReader()
    expect(await storedDispute(service.db, dispute.disputeId)).toMatchObject({
      ...{ mid: merchant.mid, utr: payment.rrn, status: 'open', amount: null, respondBy: null },
    })
    expect(await disputeEvents(service.db, orderId)).toMatchObject([
      { type: 'dispute.opened', dispute_id: dispute.disputeId, amount: '', respond_by: '', reason_text: '' },
    ])
  })

  it('reads the list after a notification at most once in 60 s', async () => {
    const { reader, run, reads } = await startReader()
    service.clock.advance(60)
    const count = reads()
    for (let i = 0; i < 5; i++) {
      reader.readSoon('phonepe')
      await run()
    }
    expect(count()).toBe(1)
    service.clock.advance(59)
    await run()
    expect(count()).toBe(1)
    service.clock.advance(1)
    await run()
    await run()
    expect(count()).toBe(2)
  })

  it('follows a dispute back from review to open, by its list alone, and stores no row for a repeat', async () => {
    const { orderId, dispute } = await disputed()
    const { run } = await startReader()
    for (const status of ['UNDER_REVIEW', 'UNDER_REVIEW', 'ACTION_REQUIRED', 'LOST', 'LOST'] as const) {
      dispute.status = status
      service.clock.advance(DAY)
      await run()
    }
    expect(await storedStates(service.db, dispute.disputeId)).toEqual(['open', 'under review', 'open', 'lost'])
    expect(await disputeEvents(service.db, orderId)).toHaveLength(4)
  })

  it('finds a dispute by the daily read although its notification was lost', async () => {
    const { run } = await startReader()
    const { dispute } = await disputed('UNDER_REVIEW')
    await run()
    expect(await statusOf(dispute.disputeId)).toBeUndefined()
    service.clock.advance(DAY)
    await run()
    expect(await statusOf(dispute.disputeId)).toBe('under review')
  })

  it('reads a list of several pages of 100 disputes, and disputes of 200 days', async () => {
    const { dispute } = await disputed()
    const { dispute: last } = await disputed()
    bank.disputes.splice(1, 1)
    const others = Array.from({ length: 199 }, (_, i) => ({ ...dispute, disputeId: `other ${i}` }))
    const old = { ...dispute, disputeId: 'D201', createdMs: service.clock.now().getTime() - 201 * DAY * 1000 }
    bank.disputes.push(...others, last, old)
    await startReader()
    expect([await statusOf(last.disputeId), await statusOf('D201')]).toEqual(['open', undefined])
  })

  it('stores the exception of a dispute of an unknown order, but not for a disabled account', async () => {
    const { dispute } = await disputed()
    dispute.merchantOrderId = 'of-another-system'
    await startReader({ isDisabled: true })
    expect(await exceptionsOf(service.db, 'of-another-system', 'unknown dispute')).toEqual([])
    await startReader()
    expect(await exceptionsOf(service.db, 'of-another-system', 'unknown dispute')).toMatchObject([
      { mid: '', account: 'phonepe', isOpen: true },
    ])
  })

  it('reads the list again on the next day if PhonePe is unreachable', async () => {
    const { dispute } = await disputed()
    bank.faults = [{ call: 'disputes', fault: { status: 503 }, chance: 1 }]
    const { run } = await startReader()
    bank.faults = []
    service.clock.advance(3_600)
    await run()
    expect(await statusOf(dispute.disputeId)).toBeUndefined()
    service.clock.advance(DAY)
    await run()
    expect(await statusOf(dispute.disputeId)).toBe('open')
  })

  it('reads the list again after a minute if the database was unavailable', async () => {
    const { dispute } = await disputed()
    let isOut = true
    const stored = createDisputes(service.pools.due)
    const disputes: Recorder = {
      record: (...report) => (isOut ? Promise.reject(new Error('database')) : stored.record(...report)),
    }
    bank.disputes.splice(0)
    const { run } = await startReader({ disputes })
    bank.disputes.push(dispute)
    service.clock.advance(DAY)
    await expect(run()).rejects.toThrow('database')
    isOut = false
    await run()
    expect(await statusOf(dispute.disputeId)).toBeUndefined()
    service.clock.advance(60)
    await run()
    expect(await statusOf(dispute.disputeId)).toBe('open')
  })
})
