import { expect } from 'vitest'
import { utrOfId } from '../../../src/platform/fields.ts'
import type { CallFault } from '../../support/bank-faults.ts'
import { until } from '../../support/wait.ts'
import { type BankPayment, type Case, ENDS_BY_ITSELF, ONLY_STATUS_CHECKS, OURS, type Stage } from './driver.ts'
import { startInstance } from './instance.ts'
import { bankOf, cancel, NOTHING, newOrder, type Order, recorded, statusOf } from './orders.ts'

const SHORT_WAIT_MS = 300
const quietly = { faults: { lost: 1 } }

const checkStatus = (stage: Stage, { orderId }: Order, acquirerMs?: number) =>
  startInstance(stage, acquirerMs).checkStatus(orderId)

const pay = async (stage: Stage, { orderId }: Order, how: object = {}): Promise<BankPayment> =>
  (await bankOf(stage).pay(orderId, { ...quietly, ...how })).payment

/** A status check of a paid order that fails changes nothing; the next one finds the payment. */
const fails = (outcome: string, fault: CallFault): Case => ({
  name: `reports a status check that meets ${JSON.stringify(fault)} as ${outcome}, and the next check finds the payment`,
  not: OURS,
  async run(stage) {
    const [bank, order] = [bankOf(stage), await newOrder(stage)]
    const { rrn } = await pay(stage, order)
    bank.nextFaults[bank.calls.checkStatus] = [fault]
    const isSlow = typeof fault === 'object' && 'afterMs' in fault
    await expect(checkStatus(stage, order, isSlow ? SHORT_WAIT_MS : undefined)).rejects.toMatchObject({ outcome })
    expect(await recorded(stage, order)).toEqual(NOTHING)
    await checkStatus(stage, order)
    expect((await recorded(stage, order)).intent).toEqual(['SUCCESS', rrn])
  },
})

const UNREADABLE = ['unreadable', '', '', '0.00']

/**
 * The bank reports a success in a way that no bank should; the order stays open until a later response is readable.
 */
const keepsOpen = (changes: object, not: Case['not'] = OURS): Case => ({
  name: `leaves an order open whose payment is reported with the invalid value ${JSON.stringify(changes)}`,
  not,
  async run(stage) {
    const order = await newOrder(stage)
    const payment = await pay(stage, order)
    const { ...right } = payment
    Object.assign(payment, changes)
    for (let i = 0; i < 2; i++) await expect(checkStatus(stage, order)).rejects.toMatchObject({ isUnreadable: true })
    expect(await recorded(stage, order)).toEqual({ ...NOTHING, exceptions: [UNREADABLE] })
    stage.service.clock.advance(26 * 60)
    expect(await statusOf(stage, order)).toBe('PENDING')
    Object.assign(payment, right)
    await checkStatus(stage, order)
    expect(await statusOf(stage, order)).toBe('SUCCESS')
    expect((await recorded(stage, order)).exceptions).toEqual([UNREADABLE])
    const { rows } = await stage.service.db.query(
      `select resolved_by from payment_resolutions r join payment_exceptions e using (mid, exception_id)
        where e.mid = $1 and e.order_id = $2`,
      [order.of.mid, order.orderId],
    )
    expect(rows).toEqual([{ resolved_by: 'enquiry' }])
  },
})

/** A success without a bank reference is identified by the acquirer's payment id. */
const paysById = (rrn: unknown): Case => ({
  name: `records a payment with bank reference ${JSON.stringify(rrn)} by the acquirer’s id, and adds the reference later`,
  not: OURS,
  async run(stage) {
    const order = await newOrder(stage)
    const payment = await pay(stage, order)
    const reference = payment.rrn
    Object.assign(payment, { rrn })
    for (let i = 0; i < 2; i++) await checkStatus(stage, order)
    const before = await recorded(stage, order)
    const id = utrOfId(payment.id)
    expect(before).toEqual({ ...NOTHING, intent: ['SUCCESS', id], successes: [[id, 'enquiry']] })
    Object.assign(payment, { rrn: reference })
    for (let i = 0; i < 2; i++) await checkStatus(stage, order)
    expect(await recorded(stage, order)).toEqual(before)
    const { rows } = await stage.service.db.query('select utr, bank_reference from payments where order_id = $1', [
      order.orderId,
    ])
    expect(rows).toEqual([{ utr: id, bank_reference: reference }])
  },
})

export const STATUS_CHECKS: Case[] = [
  {
    name: 'a status check returns nothing before the first attempt and while a payment is pending',
    not: OURS,
    async run(stage) {
      const order = await newOrder(stage)
      expect(await checkStatus(stage, order)).toBeUndefined()
      await pay(stage, order, { outcome: 'pending' })
      expect(await checkStatus(stage, order)).toBeUndefined()
      expect(await recorded(stage, order)).toEqual(NOTHING)
    },
  },
  {
    name: 'a status check finds a failed attempt, and later the payment that follows it',
    not: { ...OURS, phonepe: 'it reports the final status of an order, not of an attempt' },
    async run(stage) {
      const order = await newOrder(stage)
      const { rrn: failed } = await pay(stage, order, { outcome: 'failed' })
      await checkStatus(stage, order)
      expect(await recorded(stage, order)).toEqual({ ...NOTHING, intent: ['FAIL', null], attempts: [[failed]] })
      stage.service.clock.advance(1)
      const { rrn } = await pay(stage, order)
      for (let i = 0; i < 2; i++) await checkStatus(stage, order)
      expect(await recorded(stage, order)).toMatchObject({
        intent: ['SUCCESS', rrn],
        successes: [[rrn, 'enquiry']],
        exceptions: [],
      })
    },
  },
  {
    name: 'records a payment once, whether the notification or the status check comes first',
    not: { ...OURS, ...ONLY_STATUS_CHECKS },
    async run(stage) {
      for (const isReportedFirst of [true, false]) {
        const order = await newOrder(stage)
        const { rrn: utr } = await pay(stage, order)
        const report = () => stage.send(stage.notification(order.orderId, { utr }))
        const steps = [() => checkStatus(stage, order), report]
        for (const step of isReportedFirst ? steps.reverse() : steps) await step()
        expect(await recorded(stage, order)).toMatchObject({
          successes: [[utr, isReportedFirst ? 'notification' : 'enquiry']],
          exceptions: [],
        })
      }
    },
  },
  {
    name: 'stores an exception and leaves the order unpaid when a status check finds a different amount',
    not: OURS,
    async run(stage) {
      const order = await newOrder(stage)
      const { rrn } = await pay(stage, order, { amount: 100 })
      await checkStatus(stage, order)
      expect(await recorded(stage, order)).toEqual({
        ...NOTHING,
        exceptions: [['amount differs', 'SUCCESS', rrn, '1.00']],
      })
    },
  },
  {
    name: 'checks the status immediately when the acquirer rejects closing a paid order’s link, and stores a late payment',
    not: { ...OURS, ...ENDS_BY_ITSELF },
    async run(stage) {
      const order = await newOrder(stage)
      const { rrn } = await pay(stage, order)
      expect((await cancel(stage, order)).txnStatus).toBe('FAIL')
      await until('the order is paid', async () => (await statusOf(stage, order)) === 'SUCCESS')
      expect((await recorded(stage, order)).exceptions).toEqual([['late payment', 'SUCCESS', rrn, '200.00']])
    },
  },
  {
    name: 'stores the exception "unknown order" and pays nothing when a status check returns another order’s payment',
    not: OURS,
    async run(stage) {
      const [bank, order] = [bankOf(stage), await newOrder(stage)]
      const { rrn } = await pay(stage, order)
      bank.nextFaults[bank.calls.checkStatus] = ['another order']
      expect(await checkStatus(stage, order)).toEqual({ exception: 'unknown order' })
      expect((await recorded(stage, order)).intent).toEqual(NOTHING.intent)
      await checkStatus(stage, order)
      expect((await recorded(stage, order)).intent).toEqual(['SUCCESS', rrn])
    },
  },
  ...[500, 429, 408].map((status) => fails('unavailable', { status })),
  ...(['no response', 'half a body', 'redirect', 'interim response', { afterMs: 350 }] as const).map((fault) =>
    fails('unavailable', fault),
  ),
  ...(['no JSON', 'no fields', 'huge body'] as const).map((fault) => fails('bad answer', fault)),
  ...[400, 403].map((status) => fails('refused', { status })),
  keepsOpen({ amount: -20_000 }),
  ...[{ status: 'refunded' }, { rrn: '', id: null }].map((changes) =>
    keepsOpen(changes, { ...OURS, phonepe: 'its order has a status of its own, see phonepe.test.ts' }),
  ),
  ...['', 'x y', 'NA', 'N/A', '000000000000', null].map(paysById),
]
