import { Readable } from 'node:stream'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { type Contradiction, EXPIRY_GRACE_MINUTES, isOver, type Status } from '../../src/gateway/payments/outcome.ts'
import { createReports, type Recorded, type Reports } from '../../src/gateway/payments/reports.ts'
import { expiryJobs } from '../../src/gateway/webhooks/expiries.ts'
import { LIMITS } from '../../src/limits.ts'
import { notification, notify } from '../support/acquirer.ts'
import { runs } from '../support/generated.ts'
import { createOrder } from '../support/orders.ts'
import { runPendingJobs } from '../support/pending-jobs.ts'
import { CANCEL, newMerchant, post, STATUS, startService, type TestService, unique } from '../support/service.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { newWebhook } from '../support/webhooks.ts'

const EXPIRY_MINUTES = 15
/** From then on, the merchant receives a final failure. */
const OVER_SECONDS = (EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES) * 60
/**
 * The time by which each poll for expired orders advances the clock. Signatures of notifications stay valid over all of
 * them.
 */
const LOOK_SECONDS = 20
const PAID_AT = '2026-03-31T18:29:59.000Z'

/** The sources that may report a payment. */
const REPORTERS = ['notification', 'enquiry', 'day file', 'imported file', 'operator', 'operator of both'] as const

type Reporting = {
  by: (typeof REPORTERS)[number]
  order: 0 | 1
  status: 'SUCCESS' | 'FAIL' | 'REJECT'
  utr: string
  amount: 200 | 201
}
type Action = Reporting | { by: 'merchant who cancels' | 'merchant that checks'; order: 0 | 1 } | { by: 'clock' }
/** `afterMs` is when it starts, counted from the first step. */
type Step = { action: Action; afterMs: number }

let service: TestService
let reports: Reports
let expiries: ReturnType<typeof expiryJobs>
beforeAll(async () => {
  // No job of the service polls for expired orders, since the steps do.
  service = await startService({
    expiryMinutes: EXPIRY_MINUTES,
    limits: { webhooks: { lookIntervalMs: 3_600_000 } },
  })
  reports = createReports(service.db)
  expiries = expiryJobs({ db: service.db, now: service.clock.now, limits: LIMITS.webhooks })
})

/** The result that a source receives: the response to a notification only says whether it was accepted. */
type Reported = Contradiction | 'taken' | 'changed' | 'unchanged'

const toReported = (recorded: Recorded): Reported =>
  'exception' in recorded ? recorded.exception : recorded.changed ? 'changed' : 'unchanged'

const NOTIFIED: Record<string, Reported> = {
  '200 Notification recorded': 'taken',
  '409 The amount differs from that of the order': 'amount differs',
  '409 This UTR was already used by another order': 'UTR of another order',
}

async function sendReport(orderIds: string[], { by, order, status, utr, amount }: Reporting): Promise<Reported> {
  const orderId = orderIds[order] as string
  const report = { orderId, status, utr, amount: amount * 100, paidAt: new Date(PAID_AT) }
  const { now } = service.clock
  switch (by) {
    case 'notification': {
      const response = await notify(service, notification(orderId, { status, UTR: utr, amount, paidAt: PAID_AT }))
      const reported = NOTIFIED[`${response.status} ${response.body.msg}`]
      if (reported === undefined) throw new Error(`the response to a notification was ${response.text}`)
      return reported
    }
    case 'enquiry':
      return toReported(await reports.record({ ...report, acquirer: { name: 'direct' } }, { source: 'enquiry', now }))
    case 'day file':
      return toReported(await reports.record(report, { source: 'day file', now }))
    case 'imported file': {
      const line = [orderId, status, utr, amount, PAID_AT].join()
      const csv = Readable.from([Buffer.from(`order_id,status,utr,amount,paid_at\n${line}\n`)])
      const { recorded, unchanged, exceptions } = await importDailyReport(service.db, csv, { now })
      if (recorded + unchanged > 0) return recorded > 0 ? 'changed' : 'unchanged'
      return Object.entries(exceptions).find(([, lines]) => lines > 0)?.[0] as Contradiction
    }
    case 'operator':
    case 'operator of both': {
      // Like `payments confirm`, without and with --double.
      const saves = (kind: Contradiction) =>
        kind === 'UTR of another order' || (kind === 'double payment' && by === 'operator of both')
      return toReported(await reports.record(report, { source: 'operator', now, person: 'Asha', saves }))
    }
  }
}

async function look(): Promise<void> {
  service.clock.advance(LOOK_SECONDS)
  await runPendingJobs(expiries)
}

type Learned = { action: Action; reported?: Reported; response?: { status: number; said: string; utr: string } }

async function run(merchant: NewMerchant, orderIds: string[], { action, afterMs }: Step): Promise<Learned> {
  if (afterMs > 0) await sleep(afterMs)
  switch (action.by) {
    case 'clock':
      await look()
      return { action }
    case 'merchant who cancels':
    case 'merchant that checks':
      return { action, response: await checkStatus(merchant, orderIds[action.order] as string, action.by) }
    default:
      return { action, reported: await sendReport(orderIds, action) }
  }
}

async function checkStatus(
  { mid, key }: NewMerchant,
  order_id: string,
  by: 'merchant who cancels' | 'merchant that checks',
) {
  const { status, body } = await post(
    service.app,
    by === 'merchant that checks' ? STATUS : CANCEL,
    { mid, order_id },
    key,
  )
  return { status, said: `${body.txnStatus ?? ''} ${body.msg}`.trim(), utr: body.data?.UTR ?? '' }
}

type Row = Record<string, string>

/** All stored facts of the merchant's orders as text, with orders by their positions in `orderIds`. */
async function stored({ mid }: NewMerchant, orderIds: string[]) {
  const select = async (columns: string, table: string): Promise<Row[]> => {
    const { rows } = await service.db.query(
      `select array_position($2::text[], order_id) - 1 as "order", ${columns} from ${table} where mid = $1 order by 1, 2, 3, 4`,
      [mid, orderIds],
    )
    return rows.map((row) =>
      Object.fromEntries(Object.entries(row).map(([name, value]) => [name, String(value ?? '')])),
    )
  }
  const [intents, payments, exceptions, attempts, deliveries] = await Promise.all([
    select('status, utr, event_sequence as sequence, cancelled_at is not null as cancelled', 'payment_intents'),
    select('utr, kind, amount_paise as amount', 'payments'),
    select('kind, utr, status, amount_paise as amount', 'payment_exceptions'),
    select('status, attempt, utr', 'payment_attempts'),
    select('sequence, type, txn_status, utr', 'webhook_deliveries'),
  ])
  return { intents, payments, exceptions, attempts, deliveries }
}

type Stored = Awaited<ReturnType<typeof stored>>

const names = (rows: Row[], ...columns: string[]) =>
  rows.map((row) => columns.map((name) => row[name]).join(' ')).sort()
const where = (rows: Row[], requested: Row) =>
  rows.filter((row) => Object.entries(requested).every(([name, value]) => row[name] === value))

/** Checks that no stored fact contradicts another one. */
function expectConsistent({ intents, payments, exceptions, attempts, deliveries }: Stored): void {
  const paid = where(intents, { status: 'SUCCESS' })
  const second = where(payments, { kind: 'second' })
  const paying = payments.filter((payment) => !second.includes(payment))
  expect(names(paying, 'order', 'utr'), 'payments that pay').toEqual(names(paid, 'order', 'utr'))
  expect(
    names(
      intents.filter(({ utr }) => utr !== ''),
      'order',
    ),
    'intents with a UTR',
  ).toEqual(names(paid, 'order'))
  expect(names(second, 'order', 'utr'), 'second payments').toEqual(
    names(where(exceptions, { kind: 'double payment' }), 'order', 'utr'),
  )
  expect(names(where(payments, { kind: 'late' }), 'order', 'utr'), 'late payments').toEqual(
    names(where(exceptions, { kind: 'late payment' }), 'order', 'utr'),
  )
  expect(new Set(names(payments, 'utr')).size, 'UTRs with one row').toBe(payments.length)

  expect(
    names(where(deliveries, { type: 'payment.succeeded' }), 'order', 'utr', 'sequence'),
    'SUCCESS is reported once, and last',
  ).toEqual(names(paid, 'order', 'utr', 'sequence'))
  const cancelled = where(intents, { cancelled: 'true' })
  expect(names(where(deliveries, { type: 'payment.cancelled' }), 'order')).toEqual(names(cancelled, 'order'))
  for (const { order = '', status, sequence } of intents) {
    const own = where(deliveries, { order })
    expect(names(own, 'sequence'), 'events are numbered').toEqual(own.map((_, index) => String(index + 1)).sort())
    expect(sequence, 'and so is the last one').toBe(String(own.length))
    const ends = own.filter(({ type }) => type === 'payment.cancelled' || type === 'payment.expired')
    expect(ends.length, 'an order ends unpaid once').toBeLessThanOrEqual(1)
    if (status === 'CANCELLED') expect(where(cancelled, { order })).toHaveLength(1)
    if (status === 'SUCCESS' && ends.length > 0) {
      expect(names(where(paying, { order }), 'kind'), 'a payment after the end is late').toEqual(['late'])
    }
    const failed = where(own, { type: 'payment.attempt_failed' })
    for (const { utr = '' } of failed) {
      expect(where(failed, { utr }).length, 'an attempt is reported once').toBeLessThanOrEqual(
        where(attempts, { order, utr }).length,
      )
    }
  }
}

/** Checks that the stored facts match the results that the sources and the merchant received. */
function expectStored({ intents, payments, exceptions, attempts }: Stored, learned: Learned[]): void {
  for (const { action, reported, response } of learned) {
    const reason = JSON.stringify({ action, reported, response })
    if (response !== undefined && 'order' in action) {
      const [intent] = where(intents, { order: String(action.order) })
      const cancelled = where(intents, { order: String(action.order), cancelled: 'true' }).length
      if (response.status === 409) expect([intent?.status, response.said], reason).toEqual(['SUCCESS', PAID_ALREADY])
      else expect(response.status, reason).toBe(200)
      if (response.said.startsWith('SUCCESS')) {
        expect([intent?.status, intent?.utr], reason).toEqual(['SUCCESS', response.utr])
      }
      if (response.said === 'FAIL Payment cancelled') expect(cancelled, reason).toBe(1)
      if (action.by === 'merchant who cancels') expect(response.said, reason).not.toMatch(/^PENDING/)
    }
    if (reported !== undefined && 'status' in action) {
      const { by, status, utr } = action
      const order = String(action.order)
      const isPaidBy = where(intents, { order, status: 'SUCCESS' })[0]?.utr
      const isStored = where(exceptions, { order, kind: reported, status, utr }).length === 1
      expect(reported === 'amount differs', reason).toBe(action.amount === 201)
      switch (reported) {
        case 'amount differs':
          // A mistyped confirmation by the operator is not stored.
          if (!by.startsWith('operator')) expect(isStored, reason).toBe(true)
          break
        case 'UTR of another order':
          expect([isStored, where(payments, { utr }).map((row) => row.order === order)], reason).toEqual([
            true,
            [false],
          ])
          break
        case 'double payment':
          expect([undefined, utr], reason).not.toContain(isPaidBy)
          if (by !== 'operator') expect(where(payments, { order, utr, kind: 'second' }), reason).toHaveLength(1)
          break
        case 'failure after success':
          expect([isPaidBy === undefined, isStored], reason).toEqual([false, true])
          break
        case 'taken':
          if (status === 'SUCCESS') expect(where(payments, { order, utr }), reason).toHaveLength(1)
          else {
            const reversals = where(exceptions, { order, kind: 'failure after success', status, utr })
            expect([...where(attempts, { order, status, utr }), ...reversals].length, reason).toBeGreaterThan(0)
          }
          break
        default:
          if (status === 'SUCCESS') expect(isPaidBy, reason).toBe(utr)
          else expect(where(attempts, { order, status, utr }), reason).toHaveLength(1)
      }
    }
  }
}

const PAID_ALREADY = 'Payment already successful'

/** Checks that at most one source receives the result `changed` for one change. */
function expectOneChange(learned: Learned[]): void {
  const changed = learned.filter(({ reported }) => reported === 'changed').map(({ action }) => action as Reporting)
  const created = changed.map(({ order, status, utr }) =>
    status === 'SUCCESS' ? `${order}` : `${order} ${status} ${utr}`,
  )
  expect(new Set(created).size).toBe(created.length)
}

const SAID_WHILE_OPEN: { [S in Status]?: string } = {
  PENDING: 'PENDING Payment pending',
  FAIL: 'PENDING Last attempt failed; still open',
  REJECT: 'PENDING Last attempt failed; still open',
}
const SAID_AT_END: Record<Status, string> = {
  PENDING: 'FAIL Payment intent expired',
  FAIL: 'FAIL Payment failed',
  REJECT: 'REJECT Payment rejected',
  SUCCESS: 'SUCCESS Payment successful',
  CANCELLED: 'FAIL Payment cancelled',
}

async function expectStatuses(merchant: NewMerchant, orderIds: string[]): Promise<void> {
  const { rows } = await service.db.query(
    'select order_id, status, utr, expires_at as "expiresAt" from payment_intents where mid = $1',
    [merchant.mid],
  )
  for (const orderId of orderIds) {
    const intent = rows.find(({ order_id }) => order_id === orderId)
    const said = (isOver(intent, service.clock.now()) ? SAID_AT_END : SAID_WHILE_OPEN)[intent.status as Status]
    expect(await checkStatus(merchant, orderId, 'merchant that checks')).toEqual({
      status: 200,
      said,
      utr: intent.utr ?? '',
    })
  }
}

/** The result of a repeated notification. */
const REPEATED = (reported: Reported): Reported =>
  reported === 'amount differs' || reported === 'UTR of another order' ? reported : 'taken'

const MERCHANTS = ['merchant who cancels', 'merchant that checks'] as const
const order = fc.constantFrom(0, 0, 0, 1) as fc.Arbitrary<0 | 1>
const reporting: fc.Arbitrary<Reporting> = fc
  .record({
    by: fc.constantFrom(...REPORTERS),
    order,
    status: fc.constantFrom('SUCCESS', 'SUCCESS', 'SUCCESS', 'FAIL', 'REJECT'),
    utr: fc.constantFrom('A1', 'A1', 'A1', 'B2', 'B2', 'C3'),
    amount: fc.constantFrom(200, 200, 200, 200, 200, 200, 201),
  })
  // An operator only confirms payments.
  .map((one) => ({ ...one, ...(one.by.startsWith('operator') && { status: 'SUCCESS' }) }) as Reporting)
const action: fc.Arbitrary<Action> = fc.oneof(
  { weight: 8, arbitrary: reporting },
  { weight: 2, arbitrary: fc.record({ by: fc.constantFrom(...MERCHANTS), order }) },
  { weight: 1, arbitrary: fc.constant({ by: 'clock' as const }) },
)
const step: fc.Arbitrary<Step> = fc.record({ action, afterMs: fc.constantFrom(0, 0, 0, 0, 1, 2, 4, 8) })
// Not more: each import occupies one of the test's ten connections while it needs another.
const steps = fc.array(step, { minLength: 2, maxLength: 8 })
const ageSeconds = fc.constantFrom(0, 0, 0, OVER_SECONDS - 26, OVER_SECONDS - 16, OVER_SECONDS - 5, OVER_SECONDS)

it('the service accepts each UTR once and treats a success as final, whatever concurrent reports about two orders contain', {
  timeout: 1_800_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(ageSeconds, steps, async (seconds, taken) => {
      const merchant = await newMerchant(service.db)
      await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/hook' }, service.clock.now())
      const orderIds = await Promise.all([1, 2].map(() => createOrder(service, merchant, { order_id: unique('O') })))
      service.clock.advance(seconds)
      const learned = await Promise.all(taken.map((one) => run(merchant, orderIds, one)))

      const found = await stored(merchant, orderIds)
      expectConsistent(found)
      expectStored(found, learned)
      expectOneChange(learned)
      await expectStatuses(merchant, orderIds)
      for (const { action, reported } of learned) {
        if (reported === undefined || !('status' in action) || action.by.startsWith('operator')) continue
        expect(await sendReport(orderIds, { ...action, by: 'notification' }), JSON.stringify(action)).toBe(
          REPEATED(reported),
        )
      }
      expect(await stored(merchant, orderIds), 'a repeat changes nothing').toEqual(found)
    }),
    { numRuns: runs(1_000, 15) },
  )
  expect(service.log.filter((line) => JSON.parse(line).level >= 50)).toEqual([])
})
