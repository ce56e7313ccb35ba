import { expect } from 'vitest'
import { createRefund } from '../../../src/gateway/refunds/create-refund.ts'
import type { Refund } from '../../../src/gateway/refunds/refund.ts'
import { findRefund } from '../../../src/gateway/refunds/store.ts'
import type { CallFault } from '../../support/bank-faults.ts'
import type { BookedRefund } from '../../support/bank-refunds.ts'
import { unique } from '../../support/service.ts'
import { type Case, ONLY_STATUS_CHECKS, type Stage } from './driver.ts'
import { startInstance } from './instance.ts'
import { bankOf, newOrder } from './orders.ts'

const BY_HAND = { direct: 'only the operator sends refunds at the bank' }
const HOUR = 3_600

/** Creates a refund of a payment that was reported to the service. */
async function newRefund(stage: Stage, amount = 20_000): Promise<Refund> {
  const { orderId, of } = await newOrder(stage)
  await bankOf(stage).pay(orderId)
  const requested = { mid: of.mid, orderId, refundId: unique('R'), amount, note: 'sold out', createdBy: 'merchant' }
  const created = await createRefund(stage.service.pools.due, requested, stage.service.clock.now())
  if ('refund' in created) return created.refund
  throw new Error(created.rejected)
}

/** Creates a refund that is pending at the bank. */
async function newPending(stage: Stage): Promise<{ refund: Refund; row: BookedRefund }> {
  const refund = await newRefund(stage)
  await withFaults(stage, { late: 1 }, startInstance(stage).look)
  return { refund, row: booked(stage, refund)[0] as BookedRefund }
}

async function withFaults(stage: Stage, faults: object, work: () => Promise<unknown>): Promise<void> {
  bankOf(stage).refunds.faults = faults
  await work()
  bankOf(stage).refunds.faults = {}
}

const stored = async ({ service: { db } }: Stage, { mid, ourRefundId }: Refund) =>
  (await findRefund(db, mid, { ourRefundId })) as Refund

const booked = (stage: Stage, { ourRefundId }: Refund) =>
  bankOf(stage).refunds.all.filter((one) => one.ourRefundId === ourRefundId)

const sendings = (stage: Stage, { ourRefundId }: Refund) =>
  bankOf(stage).requests.filter(
    ({ call, body }) => call === bankOf(stage).calls.refund && JSON.stringify(body).includes(ourRefundId),
  )

async function exceptionsOf({ service: { db } }: Stage, { mid }: Refund): Promise<string[]> {
  const { rows } = await db.query('select kind from payment_exceptions where mid = $1 order by kind', [mid])
  return rows.map(({ kind }) => kind)
}

/** Sends the bank's notification of a refund, with `changes`. */
const report = (stage: Stage, row: BookedRefund, changes: Partial<BookedRefund & { orderId: string }>) => {
  const { refunds, sendEvent } = bankOf(stage)
  return sendEvent(refunds.eventOf({ ...row, ...changes } as never))
}

/**
 * Runs pending refund jobs twice, a minute apart: PhonePe returns the final status of a refund only on a status check.
 */
async function lookAgain({ service: { clock } }: Stage, look: () => Promise<void>): Promise<void> {
  for (let i = 0; i < 2; i++) {
    clock.advance(60)
    await look()
  }
}

const meets = (fault: CallFault, name: string, run: (stage: Stage, refund: Refund) => Promise<void>): Case => ({
  name: `a refund whose call meets ${JSON.stringify(fault)} ${name}`,
  not: BY_HAND,
  async run(stage) {
    const refund = await newRefund(stage)
    bankOf(stage).nextFaults[bankOf(stage).calls.refund] = [fault]
    await run(stage, refund)
  },
})

const lost = (fault: CallFault): Case =>
  meets(fault, 'is found or sent again a minute later, and paid once', async (stage, refund) => {
    await withFaults(stage, { lost: 1 }, async () => {
      const isSlow = typeof fault === 'object'
      await startInstance(stage, isSlow ? 300 : undefined).look()
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING' })
      await expect.poll(() => booked(stage, refund)).toHaveLength(1)
      stage.service.clock.advance(60)
      await startInstance(stage).look()
      const [{ reference } = { reference: undefined }, ...others] = booked(stage, refund)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS', reference })
      expect(others).toEqual([])
    })
  })

export const REFUNDS: Case[] = [
  {
    name: 'sends a refund once and stores the bank’s reference',
    not: BY_HAND,
    async run(stage) {
      const refund = await newRefund(stage, 5_001)
      const { look } = startInstance(stage)
      for (let i = 0; i < 3; i++) {
        await look()
        stage.service.clock.advance(60)
      }
      expect(sendings(stage, refund)).toHaveLength(1)
      const [{ reference, id, amount } = {} as BookedRefund] = booked(stage, refund)
      expect(amount).toBe(5_001)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS', reference, acquirerRefundId: id })
      expect(await exceptionsOf(stage, refund)).toEqual([])
    },
  },
  ...(['no response', 'half a body', 'no JSON', 'no fields', 'another order', { arrivesAfterMs: 350 }] as const).map(
    lost,
  ),
  ...[408, 409, 429, 500, 503].map((status) =>
    meets({ status }, 'is paid at most once, or left to the operator', async (stage, refund) => {
      const { look } = startInstance(stage)
      for (const seconds of [0, 60, 540, 3_000, 6 * HOUR, 6 * HOUR, 6 * HOUR, 6 * HOUR]) {
        stage.service.clock.advance(seconds)
        await look()
      }
      const created = booked(stage, refund).length
      expect(await stored(stage, refund)).toMatchObject({ status: created === 1 ? 'SUCCESS' : 'PENDING' })
      expect(await exceptionsOf(stage, refund)).toEqual(created === 1 ? [] : ['refund unsure'])
    }),
  ),
  ...[401, 403].map((status) =>
    meets({ status }, 'is logged as an error and sent a minute later', async (stage, refund) => {
      const { bank } = stage
      const { look, errors } = startInstance(stage)
      // The login at Setu and PhonePe is repeated once, so the fault must occur twice.
      bank?.nextFaults[bank.calls.refund]?.push(
        ...(['setu', 'phonepe'].includes(stage.name) && status === 401 ? [{ status }] : []),
      )
      await look()
      expect(errors).toEqual([expect.objectContaining({ call: 'refund', outcome: 'refused', status })])
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING', sentAt: null })
      await lookAgain(stage, look)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS' })
      expect(booked(stage, refund)).toHaveLength(1)
    }),
  ),
  ...[400, 404, 422].map((status) =>
    meets({ status }, 'is stored as FAIL, if the rejection has the acquirer’s own format', async (stage, refund) => {
      await startInstance(stage).look()
      expect(await stored(stage, refund)).toMatchObject({ status: 'FAIL', reason: 'refused: fault', reference: '' })
      expect(booked(stage, refund)).toEqual([])
    }),
  ),
  {
    name: 'sends a refund a minute later when the acquirer could not be reached',
    not: BY_HAND,
    async run(stage) {
      const refund = await newRefund(stage)
      const { look } = startInstance(stage)
      await bankOf(stage).goAway()
      await look()
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING', sentAt: null })
      await bankOf(stage).comeBack()
      await lookAgain(stage, look)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS' })
      expect(booked(stage, refund)).toHaveLength(1)
    },
  },
  {
    name: 'checks the status of a pending refund without a notification and stores the result',
    not: BY_HAND,
    async run(stage) {
      const { refund } = await newPending(stage)
      await withFaults(stage, { lost: 1 }, bankOf(stage).refunds.endLate)
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING' })
      stage.service.clock.advance(60)
      await startInstance(stage).look()
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS' })
      expect(sendings(stage, refund)).toHaveLength(1)
    },
  },
  {
    name: 'stores a refund that the acquirer reports as failed as FAIL with a reason',
    not: BY_HAND,
    async run(stage) {
      const { refund } = await newPending(stage)
      await withFaults(stage, { failed: 1, repeated: 1 }, bankOf(stage).refunds.endLate)
      expect(await stored(stage, refund)).toMatchObject({ status: 'FAIL', reason: expect.stringMatching(/./) })
      expect(await exceptionsOf(stage, refund)).toEqual([])
    },
  },
  {
    name: 'leaves a successful refund unchanged and stores an exception when a later report contradicts it',
    not: { ...BY_HAND, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const { refund, row } = await newPending(stage)
      await withFaults(stage, { contradicted: 1, repeated: 1 }, bankOf(stage).refunds.endLate)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS', reference: row.reference })
      expect(await exceptionsOf(stage, refund)).toEqual([
        expect.stringMatching(/^refund (differs|failed after success)$/),
      ])
    },
  },
  {
    name: 'stores a refund with an unknown status as PENDING and logs an error for the operator',
    not: BY_HAND,
    async run(stage) {
      const { refund, row } = await newPending(stage)
      Object.assign(row, { status: 'parked' })
      stage.service.clock.advance(60)
      const { look, errors } = startInstance(stage)
      await look()
      const { ourRefundId } = refund
      expect(errors).toEqual([expect.objectContaining({ ourRefundId, status: expect.stringMatching(/^parked$/i) })])
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING' })
      Object.assign(row, { status: 'failed' })
      stage.service.clock.advance(9 * 60)
      await look()
      expect(await stored(stage, refund)).toMatchObject({ status: 'FAIL' })
    },
  },
  {
    name: 'changes a failed refund to SUCCESS by a notification, but never a success to FAIL',
    not: { ...BY_HAND, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const { refund, row } = await newPending(stage)
      expect(await report(stage, row, {})).toBe(200)
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING' })
      expect(await report(stage, row, { status: 'failed' })).toBe(200)
      expect(await stored(stage, refund)).toMatchObject({ status: 'FAIL' })
      expect(await report(stage, row, { status: 'success', reference: '412345678901' })).toBe(200)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS', reference: '412345678901' })
      expect(await report(stage, row, { status: 'failed' })).toBe(200)
      expect(await stored(stage, refund)).toMatchObject({ status: 'SUCCESS' })
      expect(await exceptionsOf(stage, refund)).toEqual(['refund failed after success'])
    },
  },
  {
    name: 'rejects a refund notification with another amount with 409 and stores one exception',
    not: { ...BY_HAND, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const { refund, row } = await newPending(stage)
      for (let i = 0; i < 2; i++) expect(await report(stage, row, { status: 'success', amount: 1 })).toBe(409)
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING' })
      expect(await exceptionsOf(stage, refund)).toEqual(['refund differs'])
    },
  },
  {
    name: 'rejects a refund notification that names another order or another refund with 409 and stores one exception',
    not: { ...BY_HAND, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const { refund, row } = await newPending(stage)
      const others = [{ id: `${row.id}9` }, ...(stage.name === 'cashfree' ? [{ orderId: 'f'.repeat(32) }] : [])]
      for (const other of others) {
        expect(await report(stage, row, { status: 'success', reference: '412345678901', ...other })).toBe(409)
      }
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING', reference: '', acquirerRefundId: row.id })
      expect(await exceptionsOf(stage, refund)).toEqual(['refund differs'])
    },
  },
  {
    name: 'finds a refund by its ids in upper or lower case',
    not: { ...BY_HAND, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      // The acquirer's own id is unknown, because its response was lost.
      bankOf(stage).nextFaults[bankOf(stage).calls.refund] = ['no response']
      const { refund, row } = await newPending(stage)
      const upper = { id: row.id.toUpperCase(), ourRefundId: row.ourRefundId.toUpperCase() }
      expect(await report(stage, row, upper)).toBe(200)
      expect(await report(stage, row, { id: row.id.toLowerCase(), status: 'success' })).toBe(200)
      const { rows } = await stage.service.db.query('select status from refunds where mid = $1', [refund.mid])
      expect(rows).toEqual([{ status: 'SUCCESS' }])
    },
  },
  {
    name: 'rejects a notification of an unknown refund with 404 and an unreadable one with 400',
    not: { ...BY_HAND, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      const { refund, row } = await newPending(stage)
      expect(await report(stage, row, { status: 'success', ourRefundId: 'a'.repeat(32) })).toBe(404)
      expect(await report(stage, row, { status: 'success', amount: -1 })).toBe(400)
      expect(await stored(stage, refund)).toMatchObject({ status: 'PENDING' })
    },
  },
  {
    name: 'records the acquirer’s automatic refund of a late payment once and resolves the exception',
    not: { ...BY_HAND, setu: 'it sends no automatic refunds', phonepe: 'it documents no automatic refund' },
    async run(stage) {
      const order = await newOrder(stage)
      await bankOf(stage).pay(order.orderId, { faults: { lost: 1 } })
      stage.service.clock.advance(25 * 60)
      await startInstance(stage).checkStatus(order.orderId)
      await withFaults(stage, { repeated: 1 }, async () => bankOf(stage).sendBack?.(order.orderId))
      const rows = async () =>
        (
          await stage.service.db.query(
            `select r.status, r.amount_paise, e.kind, x.exception_id is null as open
               from refunds r
               join payment_exceptions e on e.mid = r.mid and e.exception_id = r.exception_id
               left join payment_resolutions x on x.mid = e.mid and x.exception_id = e.exception_id
              where r.mid = $1`,
            [order.of.mid],
          )
        ).rows
      await expect.poll(rows).toEqual([{ status: 'SUCCESS', amount_paise: 20_000, kind: 'late payment', open: false }])
    },
  },
]
