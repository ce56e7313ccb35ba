import { beforeAll, describe, expect, it } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { createAccounts, createAcquirers } from '../../src/gateway/acquirers/acquirers.ts'
import { refundJobs } from '../../src/gateway/acquirers/carry-out-refunds.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { createPendingRefunds, retryRefund } from '../../src/gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import type { Refund } from '../../src/gateway/refunds/refund.ts'
import { findRefund } from '../../src/gateway/refunds/store.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import { newSetuMerchant, setuSettings, startServiceWithBank } from '../support/fake-setu.ts'
import { createOrder } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { type TestService, unique } from '../support/service.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { allow } from '../support/webhooks.ts'

const HOUR = 3_600
const DAY = 24 * HOUR

let service: TestService
let bank: FakeSetu
let merchant: NewMerchant
beforeAll(async () => {
  // Each test runs pending jobs itself.
  const limits = { webhooks: { lookIntervalMs: 3_600_000 } }
  ;({ service, bank } = await startServiceWithBank({ asServiceRole: true, limits }))
})

/** Starts the part of an instance that sends refunds, and collects its logged errors. */
function startInstance() {
  const errors: object[] = []
  const { now, elapsedMs } = service.clock
  const log = { warn: () => undefined, error: (facts: object) => void errors.push(facts) }
  const http = createOutboundClient({
    allowedNetworks: allow(),
    limits: { ...LIMITS.outbound, acquirerMs: 30_000 },
    now,
  })
  const options = { log: log as never, onCall: () => undefined, limits: LIMITS.acquirers, elapsedMs }
  const { clientOf } = createAcquirers(createAccounts({ direct: [], setu: setuSettings(bank) }), http, options)
  const source = sourceOf(clientOf)
  return { errors, source, look: () => runPendingJobs(source) }
}

const sourceOf = (clientOf: Parameters<typeof refundJobs>[0]['clientOf']) =>
  refundJobs({
    pending: createPendingRefunds(service.pools.due),
    updates: createRefundUpdates(service.pools.due),
    clientOf,
    now: service.clock.now,
    limits: LIMITS.acquirers,
  })

async function newRefund(amount = 20_000, orderId?: string): Promise<Refund> {
  const of = orderId ?? (await newPaid())
  const requested = {
    mid: merchant.mid,
    orderId: of,
    refundId: unique('R'),
    amount,
    note: 'sold out',
    createdBy: 'merchant',
  }
  const created = await createRefund(service.pools.due, requested, service.clock.now())
  if (!('refund' in created)) throw new Error(created.rejected)
  return created.refund
}

async function newPaid(notified = true): Promise<string> {
  merchant = await newSetuMerchant(service)
  const orderId = await createOrder(service, merchant, { order_id: unique('O') })
  await bank.pay(orderId, { faults: notified ? {} : { lost: 1 } })
  return orderId
}

const stored = async ({ mid, ourRefundId }: Refund) => (await findRefund(service.db, mid, { ourRefundId })) as Refund
const booked = ({ ourRefundId }: Refund) => bank.refunds.all.filter((booked) => booked.ourRefundId === ourRefundId)
const sendings = ({ ourRefundId }: Refund) =>
  bank.requests.filter(
    ({ call, body }) => call === 'refund' && (body as { referenceId: string }).referenceId === ourRefundId,
  )

async function exceptionsOf({ mid, ourRefundId }: Refund) {
  const { rows } = await service.db.query(
    `select e.kind, r.exception_id is null as open
       from payment_exceptions e
       left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      where e.mid = $1 and e.our_refund_id = $2`,
    [mid, ourRefundId],
  )
  return rows.map(({ kind, open }) => (open ? kind : `${kind}, resolved`))
}

describe('a refund at Setu', () => {
  it('sends a refund once with the payment’s id and the service’s refund id, and stores the status that Setu returns', async () => {
    const refund = await newRefund(5_000)
    const { look } = startInstance()
    await look()
    await look()
    const [sent, ...others] = sendings(refund)
    const payment = bank.find(refund.orderId)?.payments.at(-1)
    const { ourRefundId: referenceId } = refund
    expect(sent?.body).toEqual({
      paymentId: payment?.id,
      amount: 5_000,
      referenceId,
      remarks: 'sold out',
      type: 'online',
    })
    expect(others).toEqual([])
    const { reference, id } = booked(refund)[0] ?? {}
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS', reference, acquirerRefundId: id, dueAt: null })
  })

  it('retries a refund with growing pauses while Setu is unreachable', async () => {
    const refund = await newRefund()
    const { look } = startInstance()
    await bank.goAway()
    for (const seconds of [0, 60, 120]) {
      service.clock.advance(seconds)
      await look()
      expect(await stored(refund)).toMatchObject({ status: 'PENDING', sentAt: null })
    }
    await bank.comeBack()
    service.clock.advance(239)
    await look()
    expect(sendings(refund)).toEqual([])
    service.clock.advance(1)
    await look()
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS' })
    expect(booked(refund)).toHaveLength(1)
  })

  it('leaves a refund to the operator again if Setu does not know it 24 hours after retry either (seed 301)', async () => {
    const refund = await newRefund()
    bank.nextFaults = { refund: [{ status: 503 }, { status: 503 }] }
    const { look } = startInstance()
    await look()
    await lookForADay(look)
    expect(await retryRefund(service.db, { ...refund, person: 'asha', now: service.clock.now() })).toHaveLength(1)
    await look()
    // No exception is open while the service waits for the acquirer, because the operator has nothing to decide.
    expect(await exceptionsOf(refund)).toEqual(['refund unsure, resolved'])
    await lookForADay(look)
    expect((await exceptionsOf(refund)).sort()).toEqual(['refund unsure', 'refund unsure, resolved'])
    expect(sendings(refund)).toHaveLength(2)
  })

  async function lookForADay(look: () => Promise<unknown>): Promise<void> {
    for (const hours of [1, 6, 6, 6, 6]) {
      service.clock.advance(hours * HOUR)
      await look()
    }
  }

  it.each([408, 409, 429, 500, 503])(
    'leaves a refund to the operator 24 hours after Setu returned %i, and sends the refund again on retry',
    async (status) => {
      const refund = await newRefund()
      bank.nextFaults = { refund: [{ status }] }
      const { look } = startInstance()
      await look()
      for (const seconds of [60, 540, 50 * 60, 6 * HOUR, 6 * HOUR, 6 * HOUR]) {
        service.clock.advance(seconds)
        await look()
        expect(await stored(refund)).toMatchObject({ status: 'PENDING', reason: null })
        expect(await retryRefund(service.db, { ...refund, person: 'asha', now: service.clock.now() })).toHaveLength(0)
      }
      service.clock.advance(5 * HOUR)
      await look()
      expect(await stored(refund)).toMatchObject({ status: 'PENDING', dueAt: null })
      expect(await exceptionsOf(refund)).toEqual(['refund unsure'])
      service.clock.advance(40 * DAY)
      await look()
      expect(sendings(refund)).toHaveLength(1)
      expect(await retryRefund(service.db, { ...refund, person: 'asha', now: service.clock.now() })).toHaveLength(1)
      expect(await retryRefund(service.db, { ...refund, person: 'asha', now: service.clock.now() })).toHaveLength(0)
      expect(await exceptionsOf(refund)).toEqual(['refund unsure, resolved'])
      await look()
      expect(await stored(refund)).toMatchObject({ status: 'SUCCESS' })
      expect(await exceptionsOf(refund)).toEqual(['refund unsure, resolved'])
      expect(booked(refund)).toHaveLength(1)
    },
  )

  it('stores no exception of the kind `refund unsure` while the refund’s status check fails', async () => {
    const refund = await newRefund()
    bank.nextFaults = { refund: [{ status: 500 }], refundsOfPayment: [{ status: 500 }] }
    const { look } = startInstance()
    await look()
    service.clock.advance(25 * HOUR)
    await look()
    expect(await exceptionsOf(refund)).toEqual([])
    service.clock.advance(6 * HOUR)
    await look()
    expect(await exceptionsOf(refund)).toEqual(['refund unsure'])
  })

  it('checks a refund for 35 days, and after 5 days stores an exception, which Setu’s notification resolves', async () => {
    const refund = await newRefund()
    bank.refunds.faults = { late: 1 }
    const { look } = startInstance()
    await look()
    const statusChecks = () => bank.requests.filter(({ path }) => path.includes(`/${booked(refund)[0]?.txnId}/`)).length
    for (let requested = 0; ; requested++) {
      const { dueAt } = await stored(refund)
      if (dueAt === null) break
      service.clock.advance((dueAt.getTime() - service.clock.now().getTime()) / 1000)
      await look()
      const age = service.clock.now().getTime() - refund.createdAt.getTime()
      expect(await exceptionsOf(refund)).toEqual(age < 5 * DAY * 1000 ? [] : ['refund without an end'])
      expect(statusChecks()).toBe(requested + 1)
    }
    expect(statusChecks()).toBe(3 + 20 + 30)
    expect(service.clock.now().getTime() - refund.createdAt.getTime()).toBe(35 * DAY * 1000)
    bank.refunds.faults = {}
    await bank.refunds.endLate()
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS' })
    expect(await exceptionsOf(refund)).toEqual(['refund without an end, resolved'])
  })

  it('does not send a refund while Setu returns another UTR for the payment, and stores an exception after 5 days', async () => {
    const orderId = await newPaid(false)
    const { qr, ...payment } = bank.paid().at(-1) as ReturnType<FakeSetu['paid']>[number]
    const { id: _, txnId: __, ...event } = bank.eventOf(qr, payment)
    expect(await bank.sendEvent(event)).toBe(200)
    const refund = await newRefund(20_000, orderId)
    bank.refunds.faults = { lost: 1 }
    bank.nextFaults = { refund: ['no response'] }
    const { look } = startInstance()
    const { rrn } = payment
    Object.assign(qr.payments[0] as object, { rrn: '999999999999' })
    await look()
    expect(await stored(refund)).toMatchObject({ status: 'PENDING', sentAt: null })
    service.clock.advance(5 * DAY - 1)
    await look()
    expect(await exceptionsOf(refund)).toEqual([])
    service.clock.advance(HOUR)
    await look()
    expect(await exceptionsOf(refund)).toEqual(['refund without an end'])
    Object.assign(qr.payments[0] as object, { rrn })
    service.clock.advance(HOUR)
    await look()
    expect(await stored(refund)).toMatchObject({ status: 'PENDING', sentAt: service.clock.now() })
    service.clock.advance(600)
    await look()
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS' })
    expect(await exceptionsOf(refund)).toEqual(['refund without an end, resolved'])
    const { rows } = await service.db.query('select * from payments where order_id = $1', [orderId])
    expect(rows).toEqual([expect.objectContaining({ acquirer_payment_id: payment.id, acquirer_txn_id: payment.txnId })])
    bank.refunds.faults = {}
  })
})

describe('a refund that several instances may send', () => {
  it('sends a refund from exactly one of 4 instances', async () => {
    const orderId = await newPaid()
    const refunds = await Promise.all(Array.from({ length: 20 }, () => newRefund(1_000, orderId)))
    const instances = Array.from({ length: 4 }, startInstance)
    // A run processes some of the merchants, in random order, and other tests of this file left refunds behind.
    const sent = () => refunds.every((refund) => booked(refund).length > 0)
    for (let round = 0; round < 30 && !sent(); round++) await Promise.all(instances.map(({ look }) => look()))
    for (const refund of refunds) {
      expect(booked(refund)).toHaveLength(1)
      expect(await stored(refund)).toMatchObject({ status: 'SUCCESS' })
    }
  })

  it('does not send a refund again from an instance that stalled before marking the refund as sent', async () => {
    const refund = await newRefund()
    const [queue] = await startInstance().source.findQueues()
    const [job] = (await queue?.claim(1)) ?? []
    service.clock.advance(60)
    await startInstance().look()
    expect(booked(refund)).toHaveLength(1)
    await job?.(new AbortController().signal)
    expect(sendings(refund)).toHaveLength(1)
  })

  it('sends a refund only from the instance that marked the refund as sent, however long that instance stalls', async () => {
    const refund = await newRefund()
    let goOn: () => void = () => undefined
    const standsStill = new Promise<void>((resolve) => {
      goOn = resolve
    })
    const client = {
      refund: async () => {
        await standsStill
        return { status: 'SUCCESS', reference: '412345678901' }
      },
      getRefund: async () => undefined,
    }
    const stopped = runPendingJobs(sourceOf(async () => client as never))
    await expect.poll(async () => (await stored(refund)).sentAt).not.toBeNull()
    const { look } = startInstance()
    for (const seconds of [60, 540, 3_000]) {
      service.clock.advance(seconds)
      await look()
    }
    expect(sendings(refund)).toEqual([])
    goOn()
    await stopped
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS', reference: '412345678901' })
  })

  it('sends a refund again until the acquirer responds, if the acquirer recognises repeated refunds', async () => {
    const refund = await newRefund()
    const sent: string[] = []
    const client = {
      repeatsRefunds: true,
      refund: async ({ ourRefundId }: Refund) => {
        sent.push(ourRefundId)
        if (sent.length < 3) throw new AcquirerError('unavailable', 'no response')
        return { status: 'PENDING', id: 'THEIRS', reference: '' }
      },
      getRefund: async () => ({ status: 'SUCCESS', reference: 'ARN' }),
    }
    const source = sourceOf(async () => client as never)
    for (const seconds of [0, 60, 540, 3_000]) {
      service.clock.advance(seconds)
      await runPendingJobs(source)
    }
    expect(sent).toEqual([refund, refund, refund].map(({ ourRefundId }) => ourRefundId))
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS', reference: 'ARN', acquirerRefundId: 'THEIRS' })
  })
})

describe('a notification from Setu about a refund', () => {
  /** Creates a refund that is pending at the bank, and returns the bank's record of it. */
  async function newPending() {
    const refund = await newRefund()
    bank.refunds.faults = { late: 1 }
    await startInstance().look()
    bank.refunds.faults = {}
    return { refund, row: booked(refund)[0] as ReturnType<typeof booked>[number] }
  }
  const report = (row: object, changes: object) => bank.sendEvent(bank.refunds.eventOf({ ...row, ...changes } as never))

  it('returns 409 for Setu’s refund notification with another merchant, and stores the notification', async () => {
    const { refund, row } = await newPending()
    expect(await report(row, { status: 'success', merchantId: 'ANOTHER' })).toBe(409)
    expect(await stored(refund)).toMatchObject({ status: 'PENDING' })
    expect(await exceptionsOf(refund)).toEqual(['refund differs'])
  })

  it('returns 400 for an unreadable refund notification from Setu, and stores the notification', async () => {
    const { refund, row } = await newPending()
    const saved = async () =>
      (await service.db.query(`select from payment_exceptions where kind = 'unreadable'`)).rowCount ?? 0
    const before = await saved()
    const names = [7, 'a\0b', '\ud800'].map((ourRefundId) => ({ ourRefundId }))
    const wrong = [...names, { amount: '1' }, { merchantId: '../x' }]
    for (const changes of wrong) expect(await report(row, { status: 'success', ...changes })).toBe(400)
    expect(await saved()).toBe(before + wrong.length)
    expect(await stored(refund)).toMatchObject({ status: 'PENDING' })
  })

  it('resolves the exception of an unsure refund on Setu’s notification, even before Setu lists the refund', async () => {
    const refund = await newRefund()
    bank.nextFaults = { refund: [{ status: 500 }] }
    const { look } = startInstance()
    await look()
    service.clock.advance(25 * HOUR)
    await look()
    expect(await exceptionsOf(refund)).toEqual(['refund unsure'])
    const row = { ...booked(await sentBefore(refund))[0], ourRefundId: refund.ourRefundId, amount: refund.amount }
    expect(await report(row, { status: 'pending', merchantId: refund.acquirerMerchantId })).toBe(200)
    expect(await exceptionsOf(refund)).toEqual(['refund unsure, resolved'])
    expect(await stored(refund)).toMatchObject({ status: 'PENDING', dueAt: new Date(+service.clock.now() + 60_000) })
    expect(await report(row, { status: 'success', merchantId: refund.acquirerMerchantId })).toBe(200)
    expect(await stored(refund)).toMatchObject({ status: 'SUCCESS' })
  })

  /** Returns another refund that the bank has. */
  const sentBefore = async (_: Refund) => (await newPending()).refund
})
