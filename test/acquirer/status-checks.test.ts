import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { refundJobs } from '../../src/gateway/acquirers/carry-out-refunds.ts'
import { statusCheckJobs } from '../../src/gateway/acquirers/check-status.ts'
import { withLimits } from '../../src/gateway/acquirers/client.ts'
import { buildIntent } from '../../src/gateway/payments/intent.ts'
import { createIntents, type Intents } from '../../src/gateway/payments/intents.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { mayCheckStatus } from '../../src/gateway/payments/status-check-times.ts'
import { createStatusChecks, createWaiting } from '../../src/gateway/payments/status-checks.ts'
import { createPendingRefunds } from '../../src/gateway/refunds/pending-refunds.ts'
import { createRefundUpdates } from '../../src/gateway/refunds/record-update.ts'
import { LIMITS } from '../../src/limits.ts'
import { startScheduler } from '../../src/platform/scheduler.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { intentFields, newMerchant, startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const SETU = 'setu'
const EXPIRES_AT = new Date('2026-04-01T00:15:00Z')
const MANY = 200
const LINK = { acquirer: 'setu', merchantId: 'M', id: 'QR', reference: 'SU', link: 'upi://pay?' }

let service: TestService
let mid: string
let statusChecks: ReturnType<typeof createStatusChecks>
let intents: Intents
beforeAll(async () => {
  service = await startService()
  ;({ mid } = await newMerchant(service.db))
  statusChecks = createStatusChecks(service.db)
  // Allows for a thousand concurrent inserts on a busy machine.
  intents = createIntents(service.pools, () => undefined, { inserts: { ...LIMITS.inserts, waitingMs: 30_000 } })
})
beforeEach(async () => {
  await service.db.query('update acquirer_intents set status_check_at = null, status_checked_at = null')
})

/** Stores an order with an acquirer's link that expires at EXPIRES_AT. */
async function newOrderWithLink(number = 0): Promise<string> {
  const created = new Date(EXPIRES_AT.getTime() - 15 * 60_000)
  const merchant = { mid, name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', acquirer: 'setu' } as never
  const intent = buildIntent({ ...intentFields(mid), amount: 20_000 } as never, merchant, {
    now: created,
    expiryMinutes: 15,
  })
  const paymentLink = { ...LINK, id: `QR${number}`, reference: `SU${intent.orderId}` }
  expect(await intents.insert({ ...intent, paymentLink })).toMatchObject({ intent: { paymentLink } })
  return intent.orderId
}

const afterExpiry = (seconds: number) => new Date(EXPIRES_AT.getTime() + seconds * 1000)
const findPending = (now: Date) => statusChecks.findPending(now)
/** The job source of one instance as the service starts it, with `changes`. */
const sourceOf = (
  changes: Pick<Parameters<typeof statusCheckJobs>[0], 'clientOf'> & Partial<Parameters<typeof statusCheckJobs>[0]>,
) =>
  statusCheckJobs({
    statusChecks,
    rulesOf: () => ({ most: 3 }),
    reports: createReports(service.db),
    now: service.clock.now,
    limits: LIMITS.acquirers,
    ...changes,
  })

const take = async (now: Date, limit = 10) =>
  (await statusChecks.claimPending({ acquirer: SETU, mid }, limit, now, 3)).map(({ orderId, statusChecks }) => [
    orderId,
    statusChecks,
  ])

describe('status checks of an unpaid order', () => {
  it('checks an unpaid order’s status 90 seconds, 8 minutes and 2 hours after the order’s expiry, then never again', async () => {
    const orderId = await newOrderWithLink()
    for (const [number, seconds] of [90, 480, 7_200].entries()) {
      expect(await findPending(afterExpiry(seconds - 1))).toEqual([])
      expect(await take(afterExpiry(seconds - 1))).toEqual([])
      expect(await findPending(afterExpiry(seconds))).toEqual([{ acquirer: SETU, mid }])
      expect(await take(afterExpiry(seconds))).toEqual([[orderId, number + 1]])
    }
    expect(await findPending(afterExpiry(1_000_000))).toEqual([])
    expect(await take(afterExpiry(1_000_000))).toEqual([])
    expect(await statusChecks.claim(orderId, 3, afterExpiry(1_000_000))).toBeUndefined()
  })

  it('replaces missed status checks by one check, and schedules the next check a minute later', async () => {
    const [minutes, hours] = [await newOrderWithLink(), await newOrderWithLink()]
    expect(await take(afterExpiry(470), 1)).toEqual([[minutes, 1]])
    expect((await take(afterExpiry(10_000))).toSorted()).toEqual(
      [
        [minutes, 2],
        [hours, 1],
      ].toSorted(),
    )
    expect(await take(afterExpiry(1_000_000))).toEqual([])
  })

  it('stops status checks when the order is paid, and continues the checks after a failed attempt', async () => {
    const [paid, failed] = [await newOrderWithLink(), await newOrderWithLink()]
    service.clock.set('2026-04-01T00:10:00Z')
    await service.db.query("update payment_intents set status = 'SUCCESS', utr = $2 where order_id = $1", [paid, paid])
    await service.db.query("update payment_intents set status = 'FAIL' where order_id = $1", [failed])
    expect(await take(afterExpiry(90))).toEqual([[failed, 1]])
    expect(await take(afterExpiry(1_000_000))).toEqual([[failed, 2]])
  })

  it('claims the status check of an unpaid order immediately, however many status checks of paid orders are scheduled earlier', async () => {
    const paid = await Promise.all(Array.from({ length: 8 }, (_, number) => newOrderWithLink(number)))
    await service.db.query("update payment_intents set status = 'SUCCESS', utr = order_id where order_id = any ($1)", [
      paid,
    ])
    const unpaid = await newOrderWithLink(8)
    await service.db.query('update acquirer_intents set status_check_at = $2 where order_id = $1', [
      unpaid,
      afterExpiry(91),
    ])
    expect(await take(afterExpiry(91), 4)).toEqual([[unpaid, 1]])
    expect(await findPending(afterExpiry(91))).toEqual([])
  })

  it('runs no status check at an acquirer that is not configured', async () => {
    await newOrderWithLink()
    service.clock.set(afterExpiry(90).toISOString())
    expect(await sourceOf({ clientOf: async () => undefined }).findQueues()).toEqual([])
    expect(await statusChecks.claimPending({ acquirer: 'other', mid }, 10, afterExpiry(90), 3)).toEqual([])
  })

  it('counts the operator’s status checks, which are allowed at any time, in the order’s limit of three checks', async () => {
    const orderId = await newOrderWithLink()
    const byOperator = () => statusChecks.claim(orderId, 3, afterExpiry(90))
    expect(await byOperator()).toMatchObject({ orderId, statusChecks: 1 })
    expect(await take(afterExpiry(90))).toEqual([[orderId, 2]])
    expect(await byOperator()).toMatchObject({ statusChecks: 3 })
    expect(await byOperator()).toBeUndefined()
    expect(await take(afterExpiry(480))).toEqual([])
  })
})

it(`the service runs each of ${MANY} status checks exactly once across 8 instances`, async () => {
  const orderIds = await Promise.all(Array.from({ length: MANY }, (_, number) => newOrderWithLink(number)))
  const checked: unknown[] = []
  const instance = async () => {
    for (;;) {
      const taken = await take(afterExpiry(90), 4)
      if (taken.length === 0) return
      checked.push(...taken.map(([orderId]) => orderId))
    }
  }
  await Promise.all(Array.from({ length: 8 }, instance))
  // An instance may find nothing while another one has the last rows locked.
  await instance()
  expect(checked.sort()).toEqual(orderIds.sort())
})

describe('status checks on demand, while a merchant or customer waits', () => {
  const rules = { most: 3, firstAfterMs: 90_000, pauseMs: 60_000, pollingPauseMs: () => 360_000 }
  const created = new Date(EXPIRES_AT.getTime() - 15 * 60_000)
  const atAge = (seconds: number) => new Date(created.getTime() + seconds * 1000)
  const state = (changes: object) => ({
    acquirer: SETU,
    statusChecks: 0,
    createdAt: created.getTime(),
    statusCheckedAt: null,
    dueAt: afterExpiry(90).getTime(),
    expiresAt: EXPIRES_AT,
    ...changes,
  })
  const may = (seconds: number, changes: object = {}, cameBackAt?: Date) =>
    mayCheckStatus(state(changes), rules, atAge(seconds), cameBackAt)
  const checked = { statusChecks: 1, statusCheckedAt: atAge(90).getTime() }

  it('allows the first check from the acquirer’s earliest time on, whether the merchant or the customer waits', () => {
    expect([may(89), may(90), may(89, {}, atAge(60)), may(90, {}, atAge(60))]).toEqual([false, true, false, true])
  })

  it('allows a further check after the acquirer’s pause for polling merchants, and earlier when the customer returns to the page', () => {
    expect([may(449, checked), may(450, checked)]).toEqual([false, true])
    expect([may(149, checked, atAge(120)), may(150, checked, atAge(120))]).toEqual([false, true])
    // The customer returned before the last check, which was run for this reason.
    expect(may(150, checked, atAge(80))).toBe(false)
  })

  it('allows no check while a check is scheduled, when only the last check is left, or after the order’s final status', () => {
    expect(may(450, { ...checked, dueAt: atAge(450).getTime() })).toBe(false)
    expect(may(450, { ...checked, statusChecks: 2 })).toBe(false)
    expect(may(900 + 600, checked)).toBe(false)
  })

  it('checks an order once on demand, and later checks the order on the regular schedule', async () => {
    const [waitedFor, other] = [await newOrderWithLink(1), await newOrderWithLink(2)]
    const waiting = createWaiting(service.db, () => rules)
    const orders = new Map([[waitedFor, undefined]])
    await Promise.all([waiting.schedule(orders, atAge(90)), waiting.schedule(orders, atAge(90))])
    expect(await take(atAge(91))).toEqual([[waitedFor, 1]])
    await waiting.schedule(orders, atAge(92))
    expect(await take(atAge(92))).toEqual([])
    expect(await take(afterExpiry(90))).toHaveLength(2)
    // The last check of an order is reserved for the time just before its final status is reported.
    expect(await take(afterExpiry(480))).toEqual(expect.arrayContaining([[waitedFor, 3]]))
    expect(await take(afterExpiry(7_200))).toEqual([[other, 3]])
  })

  it('runs status checks of expired orders first', async () => {
    const [open, expired] = [await newOrderWithLink(1), await newOrderWithLink(2)]
    await service.db.query('update payment_intents set expires_at = $2 where order_id = $1', [open, afterExpiry(3_600)])
    await service.db.query('update acquirer_intents set status_check_at = $2 where order_id = $1', [open, atAge(100)])
    expect(await take(afterExpiry(90), 1)).toEqual([[expired, 1]])
    expect(await take(afterExpiry(90), 1)).toEqual([[open, 1]])
  })
})

describe('reading the pending jobs of acquirers', () => {
  it('reads the pending jobs of 40 acquirer accounts with as many statements as the pending jobs of one account', async () => {
    const statements: string[] = []
    const counting = {
      query(text: string | { text: string }, values?: unknown[]) {
        statements.push(typeof text === 'string' ? text : text.text)
        return service.db.query(text as string, values)
      },
    } as never
    const clientOf = async () => ({ refund: () => undefined }) as never
    const rulesOf = () => ({ most: 3, perMinute: 5 })
    const checks = sourceOf({ statusChecks: createStatusChecks(counting), clientOf, rulesOf })
    const { now } = service.clock
    const updates = createRefundUpdates(service.db)
    const refunds = refundJobs({
      pending: createPendingRefunds(counting),
      updates,
      clientOf,
      now,
      limits: LIMITS.acquirers,
    })
    service.clock.set(afterExpiry(90).toISOString())
    for (const accounts of [1, 40]) {
      const orderIds = await Promise.all(Array.from({ length: accounts }, (_, number) => newOrderWithLink(number)))
      for (const [place, orderId] of orderIds.entries()) {
        const account = `setu:${accounts}x${place}`
        await service.db.query('update acquirer_intents set acquirer = $2 where order_id = $1', [orderId, account])
      }
      statements.length = 0
      const groups = (await checks.findQueues()).map(({ group }) => group)
      expect(new Set(groups.filter((group) => group.includes(` setu:${accounts}x`))).size).toBe(accounts)
      await refunds.findQueues()
      expect(statements).toHaveLength(3)
    }
  })

  it('claims jobs from the merchants’ queues round robin, so that long queues do not starve a merchant', async () => {
    const { concurrentJobs } = LIMITS.acquirers
    const due = Array.from({ length: 2 * concurrentJobs }, (_, number) => ({ acquirer: SETU, mid: `LONG${number}` }))
    const claimed: string[] = []
    const source = sourceOf({
      clientOf: async () => ({}) as never,
      statusChecks: {
        ...statusChecks,
        findPending: async () => due,
        async claimPending({ mid }) {
          claimed.push(mid)
          return []
        },
      },
    })
    const look = async () => {
      for (const { claim } of (await source.findQueues()).slice(0, 4)) await claim(4)
    }
    await look()
    expect(claimed).toEqual(['LONG0', 'LONG1', 'LONG2', 'LONG3'])
    due.push({ acquirer: SETU, mid: 'SHORT' })
    while (claimed.length < due.length) await look()
    expect(claimed.slice(0, due.length).toSorted()).toEqual(due.map(({ mid }) => mid).toSorted())

    // Two groups of merchants with short queues return in turn and use every slot.
    const returning = [0, 1].map((group) => Array.from({ length: 4 }, (_, place) => `SHORT${group}${place}`))
    for (let round = 0; round < 6; round++) {
      const mids = ['LONG', ...(returning[round % 2] ?? [])]
      due.splice(0, due.length, ...mids.map((mid) => ({ acquirer: SETU, mid })))
      await look()
    }
    expect(claimed.slice(-24).filter((mid) => mid === 'LONG')).toHaveLength(3)
  })
})

it('the service limits the status checks per minute across all instances that share an account', async () => {
  const orderIds = await Promise.all(Array.from({ length: 12 }, (_, number) => newOrderWithLink(number)))
  const checked: string[] = []
  const client = {
    async getPayments({ orderId }: { orderId: string }) {
      checked.push(orderId)
      return []
    },
  }
  service.clock.set(afterExpiry(90).toISOString())
  const instance = () => sourceOf({ clientOf: async () => client as never, rulesOf: () => ({ most: 3, perMinute: 5 }) })
  for (let i = 0; i < 3; i++) await runPendingJobs(instance(), instance())
  expect(checked).toHaveLength(5)
  service.clock.advance(60)
  for (let i = 0; i < 3; i++) await runPendingJobs(instance(), instance())
  expect(new Set(checked).size).toBe(10)
  expect(orderIds).toEqual(expect.arrayContaining(checked))
})

it('the service repeats a status check that the acquirer rejected with 429, and does not count the rejected check', async () => {
  const orderId = await newOrderWithLink()
  let isCrowded = true
  const client = {
    async getPayments() {
      if (isCrowded) throw new AcquirerError('unavailable', 'too many calls', { status: 429 })
      return []
    },
  }
  const look = () => runPendingJobs(sourceOf({ clientOf: async () => client as never }))
  const stored = async () =>
    (
      await service.db.query('select status_checks, status_check_at from acquirer_intents where order_id = $1', [
        orderId,
      ])
    ).rows
  service.clock.set(afterExpiry(90).toISOString())
  await look()
  expect(await stored()).toEqual([{ status_checks: 0, status_check_at: afterExpiry(150) }])
  isCrowded = false
  service.clock.set(afterExpiry(150).toISOString())
  await look()
  expect(await stored()).toEqual([{ status_checks: 1, status_check_at: afterExpiry(480) }])
})

describe('a failed status check', () => {
  const LATE = 3 * 7_200

  /** Returns when an order is checked, in seconds after its expiry, if every check fails with `fault` until `LATE`. */
  async function statusCheckedAt(fault: AcquirerError, most: number) {
    const orderId = await newOrderWithLink()
    const checked: number[] = []
    const secondsNow = () => Math.round((service.clock.now().getTime() - EXPIRES_AT.getTime()) / 1000)
    const client = {
      async getPayments() {
        checked.push(secondsNow())
        if (secondsNow() < LATE) throw fault
        return []
      },
    }
    const source = sourceOf({ clientOf: async () => client as never, rulesOf: () => ({ most }) })
    for (let i = 0; i < 50; i++) {
      const { rows } = await service.db.query(
        'select status_check_at as at from acquirer_intents where order_id = $1',
        [orderId],
      )
      if (rows[0].at === null) return checked
      // PostgreSQL's time has microseconds, so the clock moves past it by a millisecond.
      service.clock.set(new Date(rows[0].at.getTime() + 1).toISOString())
      await runPendingJobs(source)
    }
    throw new Error('the status checks do not end')
  }

  const rejected = Object.assign(new AcquirerError('refused', 'no log-in'), { isUndone: true })

  it('repeats a status check that did not reach the acquirer, with growing pauses and without counting the failed check', async () => {
    const checked = await statusCheckedAt(rejected, 3)
    expect(checked.slice(0, 4)).toEqual([90, 150, 225, 338])
    expect(checked.filter((seconds) => seconds >= LATE)).toHaveLength(1)
  })

  it.each([
    ['without a response', new AcquirerError('unavailable', 'no response')],
    ['with an invalid response', new AcquirerError('bad answer', 'no UTR')],
  ])(
    'continues status checks beyond the regular schedule after a check %s, up to the order’s limit',
    async (_what, fault) => {
      expect(await statusCheckedAt(fault, 12)).toEqual([90, 480, 7_200, 10_800, 16_200, 24_300])
      expect(await statusCheckedAt(fault, 4)).toEqual([90, 480, 7_200, 10_800])
      expect(await statusCheckedAt(fault, 3)).toEqual([90, 480, 7_200])
    },
  )

  it('does not repeat a status check that the acquirer rejected because the order is unknown', async () => {
    expect(await statusCheckedAt(new AcquirerError('refused', 'no such order'), 12)).toEqual([90, 480, 7_200])
  })
})

it('the service logs a status check whose result cannot be stored, and continues with the other checks', async () => {
  const [first, second] = [await newOrderWithLink(1), await newOrderWithLink(2)]
  service.clock.set('2026-04-01T00:16:30Z')
  const checked: string[] = []
  const client = {
    async getPayments({ paymentLink }: { paymentLink: { reference: string } }) {
      checked.push(paymentLink.reference)
      if (checked.length === 1) throw new Error('the database is away')
      return []
    },
  }
  const warnings: unknown[] = []
  const clock = startScheduler([sourceOf({ clientOf: async () => client as never })], {
    findPending: async () => ({}),
    log: { warn: (facts: object) => void warnings.push(facts) } as never,
    limits: { ...LIMITS.webhooks, lookIntervalMs: 10 },
  })
  await until('both orders are checked', () => checked.length === 2)
  await clock.stop()
  expect(checked.toSorted()).toEqual([`SU${first}`, `SU${second}`].toSorted())
  expect(warnings).toMatchObject([{ work: 'status checks at acquirers', error: 'the database is away' }])
})

it('the service runs a status check even at the acquirer’s limit of concurrent calls', async () => {
  const hangs = () => new Promise<never>(() => undefined)
  const calls = {
    createLink: hangs,
    closeLink: hangs,
    simulate: hangs,
    getPayments: async () => [],
    check: hangs,
  }
  const log = { warn: () => undefined, error: () => undefined }
  const outcomes: string[] = []
  const onCall = (_account: object, call: string, outcome: string) => void outcomes.push(`${call} ${outcome}`)
  const client = withLimits({ name: 'setu', disabledAt: null }, calls, {
    ...{ log, onCall, limits: LIMITS.acquirers, elapsedMs: service.clock.elapsedMs },
  })
  for (let i = 0; i <= LIMITS.acquirers.callsUnderWay; i++) client.closeLink(LINK).catch(() => undefined)
  expect(await client.getPayments({ orderId: 'O', paymentLink: LINK })).toEqual([])
  expect(outcomes).toEqual(['closeLink crowded', 'getPayment done'])
})
