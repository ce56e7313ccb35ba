import fc from 'fast-check'
import { beforeAll, expect, it } from 'vitest'
import { type NotificationDependencies, recordNotification } from '../../src/gateway/acquirers/notification.ts'
import { createPlaces } from '../../src/gateway/acquirers/places.ts'
import { EXPIRY_GRACE_MINUTES, type PaymentReport } from '../../src/gateway/payments/outcome.ts'
import { createReports, type Reports } from '../../src/gateway/payments/reports.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { stopAtEnd } from '../support/at-end.ts'
import { createTestDatabase } from '../support/database.ts'
import { asRole, testPool } from '../support/database-url.ts'
import { runs } from '../support/generated.ts'
import { newMerchant, unique } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

// Each history runs twice, in two databases with the same merchants and orders: with batches, and without.

const EXPIRY_MINUTES = 15
const FINAL_MINUTES = EXPIRY_MINUTES + EXPIRY_GRACE_MINUTES
const CREATED = new Date('2026-03-31T18:00:00.000Z')
const afterCreation = (minutes: number) => new Date(CREATED.getTime() + minutes * 60_000)
const AMOUNT = 200_00

/** Three orders of one merchant, and one order of another merchant. */
const MERCHANT_OF = [0, 0, 0, 1] as const
type Order = 0 | 1 | 2 | 3

type Report = Omit<PaymentReport, 'orderId'> & { order: Order | 'unknown' }
type Step =
  | { concurrent: Report[] }
  | { notification: Report }
  | { enquiry: Report }
  | { cancelled: Order }
  | { unreadable: Order }
  | { minutes: number }

type Side = { db: Database; isShared: boolean; metrics: unknown[][]; reports: Reports }
let sides: [Side, Side]
/** Number of notifications that a batch has stored. */
let stored = 0

beforeAll(async () => {
  sides = [await createSide(true), await createSide(false)]
})

async function createSide(isShared: boolean): Promise<Side> {
  const { db, url } = await createTestDatabase()
  // As many connections as the service has for reports, with the triggers of its role.
  const pool = testPool(asRole(url, 'upi_service'), 3)
  stopAtEnd(() => pool.end())
  const metrics: unknown[][] = []
  const count =
    (name: string) =>
    (...facts: unknown[]) =>
      void metrics.push([name, ...facts])
  const reports = createReports(pool, {
    onException: count('exception'),
    onPayment: count('payment'),
    onFailure: count('failure'),
    onSurplusAttempt: count('surplus attempt'),
    onImpossibleTime: count('impossible time'),
    onUnknownInstrument: count('unknown instrument'),
  })
  const recordFirst: typeof reports.recordFirst = async (...report) => {
    const isStored = isShared && (await reports.recordFirst(...report))
    if (isStored) stored++
    return isStored
  }
  return { db, isShared, metrics, reports: { ...reports, recordFirst } }
}

type Orders = { mids: string[]; orderIds: string[] }

/** Returns the responses to the reports of each step. */
async function play(side: Side, { mids, orderIds }: Orders, steps: Step[]): Promise<unknown[]> {
  for (const mid of mids) {
    await newMerchant(side.db, { mid })
    await newWebhook(side.db, { mid, url: 'https://shop.example/hook', endpointId: 'hook' }, CREATED)
  }
  await side.db.query(
    `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
       customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
     select *, order_id, $3, 'https://shop.example/', 'Order', 'Asha Rao', 'asha@shop.example', '9876543210',
            'chaipoint@examplebank', 'Chai Point', '5814', $4, $5
       from unnest($1::text[], $2::text[]) as o (mid, order_id)`,
    [MERCHANT_OF.map((merchant) => mids[merchant]), orderIds, AMOUNT, CREATED, afterCreation(EXPIRY_MINUTES)],
  )
  const clock = { now: CREATED }
  const responses: unknown[] = []
  for (const step of steps) responses.push(await playStep(side, { orderIds, clock }, step))
  return responses
}

type Moment = { orderIds: string[]; clock: { now: Date } }

async function playStep({ db, isShared, reports }: Side, { orderIds, clock }: Moment, step: Step): Promise<unknown> {
  const now = () => clock.now
  const reportOf = ({ order, ...report }: Report): PaymentReport => ({
    ...report,
    orderId: order === 'unknown' ? 'unknown' : (orderIds[order] as string),
  })
  const placeOf = createPlaces(1)
  const notify = (report: Report) => {
    const dependencies = { reports, now } as NotificationDependencies
    const place = placeOf('direct', () => undefined)
    const recorded = recordNotification(dependencies, reportOf(report), { place, isDisabled: false })
    return responseOf(recorded.finally(place.free))
  }
  if ('minutes' in step) {
    clock.now = new Date(clock.now.getTime() + step.minutes * 60_000)
  } else if ('cancelled' in step) {
    await db.query(
      `update payment_intents set status = 'CANCELLED', cancelled_at = $2 where order_id = $1 and status in ('PENDING', 'FAIL', 'REJECT')`,
      [orderIds[step.cancelled], now()],
    )
  } else if ('unreadable' in step) {
    const orderId = orderIds[step.unreadable] as string
    await reports.saveUnreadableStatus({ orderId, isBesidePayment: false }, 'direct', now())
  } else if ('enquiry' in step) {
    return responseOf(reports.record(reportOf(step.enquiry), { source: 'enquiry', now }))
  } else if ('notification' in step) {
    return notify(step.notification)
  } else if (isShared) {
    return Promise.all(step.concurrent.map(notify))
  } else {
    const responses: unknown[] = []
    for (const report of step.concurrent) responses.push(await notify(report))
    return responses
  }
  return undefined
}

const responseOf = (recorded: Promise<unknown>) =>
  recorded.catch(({ statusCode, code, message }) => ({ statusCode, code, message }))

const TABLES = ['payment_intents', 'payments', 'payment_attempts', 'payment_exceptions', 'webhook_deliveries']

/** All rows about these orders, without the columns whose values are random. */
async function rowsOf({ db }: Side, orderIds: string[]) {
  const found: Record<string, unknown[]> = {}
  for (const table of TABLES) {
    const { rows } = await db.query(
      `select to_jsonb(t) as line from ${table} t where order_id = any ($1) or order_id = 'unknown' order by to_jsonb(t)::text`,
      [orderIds],
    )
    found[table] = rows.map(({ line }) => line)
  }
  return found
}

const order = fc.constantFrom<Order>(0, 0, 1, 1, 2, 3)
const report = fc.record({
  order,
  status: fc.constant('SUCCESS' as const),
  utr: fc.constantFrom('A1', 'A1', 'B2', 'C3', 'D4'),
  amount: fc.constantFrom(AMOUNT, AMOUNT, AMOUNT, AMOUNT, AMOUNT, AMOUNT - 1, AMOUNT + 0.5),
  paidAt: fc.constantFrom(undefined, afterCreation(-60), afterCreation(0), afterCreation(1), afterCreation(90)),
  acquirer: fc.constant({ name: 'direct' }),
  names: fc.constantFrom(undefined, undefined, { id: 'pay-1' }, { id: 'pay-2', txnId: 'txn-2' }),
  instrument: fc.constantFrom(undefined, 'bank account', 'wallet', 'unknown'),
})
/** Reports that are compared only one at a time, because their result depends on the other concurrent reports. */
const singleReport: fc.Arbitrary<Report> = fc
  .tuple(
    report,
    fc.record({
      order: fc.oneof({ weight: 4, arbitrary: order }, { weight: 1, arbitrary: fc.constant('unknown' as const) }),
      status: fc.constantFrom<PaymentReport['status']>('SUCCESS', 'SUCCESS', 'FAIL', 'REJECT'),
      utr: fc.constantFrom('A1', 'B2', undefined),
      acquirer: fc.constantFrom<PaymentReport['acquirer'][]>(
        { name: 'direct' },
        { name: 'direct' },
        { name: 'cashfree' },
        { name: 'direct', id: 'another' },
        undefined,
      ),
    }),
  )
  .map(([whole, changes]) => {
    const isNamed = changes.utr !== undefined || changes.status !== 'SUCCESS' || whole.names !== undefined
    return { ...whole, ...changes, ...(!isNamed && { names: { id: 'pay-3' } }) }
  })
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 6, arbitrary: fc.record({ concurrent: fc.array(report, { minLength: 1, maxLength: 6 }) }) },
  { weight: 3, arbitrary: fc.record({ notification: singleReport }) },
  { weight: 1, arbitrary: fc.record({ enquiry: singleReport }) },
  { weight: 1, arbitrary: fc.record({ cancelled: order }) },
  { weight: 1, arbitrary: fc.record({ unreadable: order }) },
  {
    weight: 2,
    arbitrary: fc.record({
      minutes: fc.constantFrom(1, EXPIRY_MINUTES, FINAL_MINUTES - 2, FINAL_MINUTES - 1, FINAL_MINUTES),
    }),
  },
)

it('the service stores, returns and counts the same for notifications in shared batches as for notifications one after the other', {
  timeout: 1_800_000,
}, async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 6 }), async (steps) => {
      const mids = [unique('M'), unique('M')]
      const orderIds = MERCHANT_OF.map(() => unique('o'))
      const [shared, single] = await Promise.all(
        sides.map(async (side) => {
          side.metrics.length = 0
          const responses = await play(side, { mids, orderIds }, steps)
          const metrics = side.metrics.map((call) => JSON.stringify(call)).sort()
          return { responses, rows: await rowsOf(side, orderIds), metrics }
        }),
      )
      expect(shared).toEqual(single)
    }),
    { numRuns: runs(1_000, 40) },
  )
  expect(stored).toBeGreaterThan(0)
})
