import { describe, expect, it, vi } from 'vitest'
import type { PaymentReport } from '../../src/gateway/payments/outcome.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { comparisonJobs } from '../../src/gateway/payments/utrs-of-other-merchants.ts'
import { LIMITS } from '../../src/limits.ts'
import { utrOfId } from '../../src/platform/fields.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { CASHFREE, CASHFREE_SECRETS, cashfreeSettings, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { runOps } from '../support/ops.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, unique } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'

// With the rights of an installation. The tests run the job themselves.
const { service, bank } = await startServiceBeside(CASHFREE, {
  asServiceRole: true,
  limits: { webhooks: { lookIntervalMs: 3_600_000 } },
})
const { db, pools, clock } = service
const reports = createReports(pools.reports)

const BY = 'asha'
const { apiUrl, clientId } = cashfreeSettings(bank)
const SETTINGS = {
  CASHFREE_API_URL: apiUrl,
  CASHFREE_CLIENT_ID: clientId,
  CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join(),
}

/** Runs a command at the time of the service's clock. */
async function ops(args: string[], input = '') {
  vi.useFakeTimers({ toFake: ['Date'], now: clock.now() })
  try {
    const { code, stdout, stderr } = await runOps(
      service.databaseUrl,
      ['payments', ...args, '--by', BY],
      input,
      SETTINGS,
    )
    expect([code, stderr]).toEqual([0, ''])
    return stdout
  } finally {
    vi.useRealTimers()
  }
}

const startInstance = () => comparisonJobs(pools.due, clock.now, () => undefined)
const instance = startInstance()

/** Runs the job a minute later. */
async function look() {
  clock.advance(60)
  await instance.findQueues()
}

const ACQUIRERS = ['direct', 'setu', 'cashfree', 'phonepe', 'razorpay'] as const
type Acquirer = (typeof ACQUIRERS)[number]

/** Creates an order of ₹200 whose link the acquirer has created. Returns its orderId. */
async function newOrder(acquirer: string): Promise<string> {
  const merchant = await newMerchant(db)
  const orderId = await createOrder(service, merchant)
  if (acquirer === 'direct') return orderId
  await db.query(
    `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
     values ($1, $2, $3, 'M', $2, $2, 'upi://pay?', 0)`,
    [merchant.mid, orderId, acquirer],
  )
  return orderId
}

const success = (orderId: string, acquirer: string, payment: Pick<PaymentReport, 'utr' | 'names'>): PaymentReport => ({
  ...{ orderId, status: 'SUCCESS', amount: 200_00, paidAt: clock.now(), acquirer: { name: acquirer } },
  ...payment,
})

/** PhonePe's notifications only schedule status checks. */
const sourceOf = (acquirer: Acquirer) => (acquirer === 'phonepe' ? 'enquiry' : 'notification')

/** Reports a payment of an unknown order. Returns the orderId that the report names. */
async function reportUnknown(acquirer: Acquirer, utr: string): Promise<string> {
  const orderId = unique('UPI')
  const report = success(orderId, acquirer, { utr })
  const recorded = await reports.record(report, { source: sourceOf(acquirer), now: clock.now })
  expect(recorded).toEqual({ exception: 'unknown order' })
  return orderId
}

/** Returns the exceptions `unknown order` of reports that name this orderId, each with its resolution. */
async function exceptionsOf(orderId: string) {
  const { rows } = await db.query<{ by: string | null; reason: string | null }>(
    `select resolved_by as by, reason
       from payment_exceptions e
       left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
      where e.mid = '' and e.kind = 'unknown order' and e.order_id = $1
      order by e.status, e.utr`,
    [orderId],
  )
  return rows
}

const OPEN = { by: null, reason: null }
const resolvedFor = (orderId: string, by: string) => ({ by, reason: `the payment is recorded for order ${orderId}` })

const REPORTERS = ['notification', 'enquiry', 'payments import', 'payments confirm'] as const
type Reporter = (typeof REPORTERS)[number]
const isOperator = (reporter: Reporter) => reporter.startsWith('payments')

async function reportPayment(reporter: Reporter, report: PaymentReport): Promise<void> {
  const { orderId, utr = '', names } = report
  switch (reporter) {
    case 'payments import': {
      const paidAt = clock.now().toISOString()
      const columns = 'order_id,acquirer_payment_id,status,utr,amount,paid_at'
      await ops(['import', '-'], `${columns}\n${orderId},${names?.id ?? ''},SUCCESS,${utr},200,${paidAt}\n`)
      return
    }
    case 'payments confirm':
      await ops(['confirm', '--order-id', orderId, '--utr', utr, '--amount', '200'])
      return
    default:
      expect(await reports.record(report, { source: reporter, now: clock.now })).not.toHaveProperty('exception')
  }
}

/** What a later record of the payment has in common with the report of the unknown order. */
const IDENTIFIERS = ['UTR', 'bank reference', 'acquirer payment id'] as const
type Identifier = (typeof IDENTIFIERS)[number]

/** A payment, and the UTR of the report of the unknown order. */
function newPayment(identifier: Identifier, acquirer: Acquirer) {
  const names = acquirer === 'direct' ? undefined : { id: unique('pay_') }
  const utr = newUtr()
  return { utr, names, reportedUtr: identifier === 'acquirer payment id' ? utrOfId(names?.id ?? '') : utr }
}

/** Records the payment. Its bank reference is unknown at first, and learned from a repeat of the report. */
async function record(reporter: Reporter, identifier: Identifier, report: PaymentReport): Promise<void> {
  if (identifier === 'bank reference') {
    await reports.record({ ...report, utr: undefined }, { source: 'enquiry', now: clock.now })
    // The job no longer sees the first report.
    clock.advance(2 * 60 * 60)
  }
  await reportPayment(reporter, report)
}

/** `confirm` has no payment id, and identifies no payment whose bank reference is unknown. */
const applies = (acquirer: Acquirer, reporter: Reporter, identifier: Identifier) =>
  (acquirer !== 'direct' || (identifier === 'UTR' && reporter !== 'enquiry')) &&
  (acquirer !== 'phonepe' || reporter !== 'notification') &&
  (reporter !== 'payments confirm' || identifier === 'UTR')

const CASES = ACQUIRERS.flatMap((acquirer) =>
  REPORTERS.flatMap((reporter) =>
    IDENTIFIERS.filter((identifier) => applies(acquirer, reporter, identifier)).map(
      (identifier) => [acquirer, reporter, identifier] as const,
    ),
  ),
)

describe('an exception of an unknown order', () => {
  it.each(CASES)('is resolved by a payment through %s from %s that has its UTR as %s', async (...of) => {
    const [acquirer, reporter, identifier] = of
    const orderId = await newOrder(acquirer)
    const { reportedUtr, ...payment } = newPayment(identifier, acquirer)
    const unknown = await reportUnknown(acquirer, reportedUtr)
    await record(reporter, identifier, success(orderId, acquirer, payment))
    if (!isOperator(reporter)) {
      expect(await exceptionsOf(unknown)).toEqual([OPEN])
      await look()
    }
    const by = isOperator(reporter) ? BY : identifier === 'bank reference' ? 'enquiry' : reporter
    expect(await exceptionsOf(unknown)).toEqual([resolvedFor(orderId, by)])
  })

  it.each(CASES)(
    'is stored as resolved if a payment through %s from %s already has its UTR as %s',
    async (acquirer, reporter, identifier) => {
      const orderId = await newOrder(acquirer)
      const { reportedUtr, ...payment } = newPayment(identifier, acquirer)
      await record(reporter, identifier, success(orderId, acquirer, payment))
      for (let i = 0; i < 2; i++) {
        const unknown = await reportUnknown(acquirer, reportedUtr)
        expect(await exceptionsOf(unknown)).toEqual([resolvedFor(orderId, sourceOf(acquirer))])
      }
    },
  )

  it('of a customer who pays the UPI address is resolved when an operator records the payment, and is 404 for the bank', async () => {
    const [orderId, utr] = [await newOrder('direct'), newUtr()]
    const [first, second] = [unique('UPI'), unique('UPI')]
    expect(await notify(service, notification(first, { UTR: utr }))).toMatchObject({ status: 404 })
    await ops(['confirm', '--order-id', orderId, '--utr', utr, '--amount', '200'])
    expect(await notify(service, notification(second, { UTR: utr }))).toMatchObject({ status: 404 })
    expect(await exceptionsOf(first)).toEqual([resolvedFor(orderId, BY)])
    expect(await exceptionsOf(second)).toEqual([resolvedFor(orderId, 'notification')])
  })

  it('is resolved in the operator’s name by a status check at the acquirer', async () => {
    const orderId = await createOrder(service, await newCashfreeMerchant(service))
    const { payment } = await bank.pay(orderId, { faults: { lost: 1 } })
    const unknown = await reportUnknown('cashfree', payment.rrn)
    await ops(['enquire', '--order-id', orderId])
    expect(await exceptionsOf(unknown)).toEqual([resolvedFor(orderId, BY)])
  })

  it('is resolved in the operator’s name by a confirmed duplicate payment, and by a repeated confirmation', async () => {
    const [orderId, first, second] = [await newOrder('direct'), newUtr(), newUtr()]
    const confirm = (utr: string, ...more: string[]) =>
      ops(['confirm', '--order-id', orderId, '--utr', utr, '--amount', '200', ...more])
    await confirm(first)
    const ofSecond = await reportUnknown('direct', second)
    await confirm(second, '--double')
    expect(await exceptionsOf(ofSecond)).toEqual([resolvedFor(orderId, BY)])

    const orphan = unique('UPI')
    await storeOpen(orphan, first)
    await confirm(first)
    expect(await exceptionsOf(orphan)).toEqual([resolvedFor(orderId, BY)])
  })

  it.each(['payment first', 'report first'])(
    'is resolved in the operator’s name by an import with both rows, %s',
    async (sequence) => {
      const [orderId, utr, unknown] = [await newOrder('direct'), newUtr(), unique('UPI')]
      const rows = [orderId, unknown].map((id) => `${id},SUCCESS,${utr},200,${clock.now().toISOString()}\n`)
      if (sequence === 'report first') rows.reverse()
      const csv = `order_id,status,utr,amount,paid_at\n${rows.join('')}`
      for (let i = 0; i < 2; i++) expect(await ops(['import', '-'], csv)).toContain('exceptions: 1 unknown order.')
      expect(await exceptionsOf(unknown)).toEqual([resolvedFor(orderId, BY)])
    },
  )

  it.each(['report first', 'payment first'])(
    'stays open for a payment through another acquirer account, if it came by notification, %s',
    async (sequence) => {
      const [utr, orderId] = [newUtr(), await newOrder('cashfree:acme')]
      const pay = () =>
        reports.record(success(orderId, 'cashfree:acme', { utr }), { source: 'notification', now: clock.now })
      if (sequence === 'payment first') await pay()
      const notified = await reportUnknown('cashfree', utr)
      const checked = await reportUnknown('phonepe', utr)
      if (sequence === 'report first') await pay()
      await look()
      expect(await exceptionsOf(notified)).toEqual([OPEN])
      expect((await exceptionsOf(checked)).map(({ by }) => by)).toEqual([
        sequence === 'report first' ? 'notification' : 'enquiry',
      ])
    },
  )

  it('without a UTR is resolved by a payment of its orderId and amount', async () => {
    const [orderId, other] = [await newOrder('cashfree'), await newOrder('cashfree')]
    const names = { id: newUtr() }
    await whileUnknown([orderId, other], async () => {
      const first = success(orderId, 'cashfree', { utr: undefined, names })
      const { orderId: _, ...reported } = first
      for (const report of [
        first,
        { ...first, status: 'FAIL' as const },
        { ...reported, orderId: other, amount: 201_00 },
        // A UTR identifies the payment, so the order alone does not.
        { ...reported, orderId: other, utr: newUtr() },
      ]) {
        const recorded = await reports.record(report, { source: 'notification', now: clock.now })
        expect(recorded).toEqual({ exception: 'unknown order' })
      }
    })
    for (const [id, utr] of [
      [orderId, newUtr()],
      [other, newUtr()],
    ] as const) {
      await reports.record(success(id, 'cashfree', { utr, names: { id: newUtr() } }), {
        source: 'notification',
        now: clock.now,
      })
    }
    await look()
    const resolved = resolvedFor(orderId, 'notification')
    expect(await exceptionsOf(orderId)).toEqual([resolved, resolved])
    expect(await exceptionsOf(other)).toEqual([OPEN, OPEN])
  })

  it('without a UTR is stored as resolved if the order of another account is paid', async () => {
    const orderId = await newOrder('setu')
    await reports.record(success(orderId, 'setu', { utr: newUtr() }), { source: 'notification', now: clock.now })
    const attempt = { ...success(orderId, 'phonepe', { utr: undefined }), status: 'FAIL' as const }
    await reports.record(attempt, { source: 'enquiry', now: clock.now })
    await reports.record({ ...attempt, amount: 1 }, { source: 'enquiry', now: clock.now })
    expect((await exceptionsOf(orderId)).map(({ by }) => by).sort()).toEqual(['enquiry', null])
  })

  it.each(['notification', 'payments confirm'] as const)(
    'is resolved by the job if it was stored while %s stored the payment',
    async (reporter) => {
      const [orderId, utr, unknown] = [await newOrder('direct'), newUtr(), unique('UPI')]
      await reportPayment(reporter, success(orderId, 'direct', { utr }))
      await storeOpen(unknown, utr)
      await look()
      expect(await exceptionsOf(unknown)).toEqual([resolvedFor(orderId, 'notification')])
    },
  )

  it('is resolved although the report and the payment arrive concurrently', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 30 }, async () => ({ orderId: await newOrder('direct'), utr: newUtr() })),
    )
    const unknown = await Promise.all(
      pairs.map(async ({ orderId, utr }) => {
        const reported = reportUnknown('direct', utr)
        await Promise.all([reported, reportPayment('notification', success(orderId, 'direct', { utr }))])
        return reported
      }),
    )
    await look()
    for (const [index, { orderId }] of pairs.entries()) {
      expect(await exceptionsOf(unknown[index] as string)).toEqual([resolvedFor(orderId, 'notification')])
    }
  })

  it('is resolved once by two instances', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 20 }, async () => ({ orderId: await newOrder('direct'), utr: newUtr() })),
    )
    const unknown = await Promise.all(pairs.map(({ utr }) => reportUnknown('direct', utr)))
    for (const { orderId, utr } of pairs) await reportPayment('notification', success(orderId, 'direct', { utr }))
    clock.advance(60)
    await Promise.all([startInstance(), startInstance()].map(({ findQueues }) => findQueues()))
    for (const [index, { orderId }] of pairs.entries()) {
      expect(await exceptionsOf(unknown[index] as string)).toEqual([resolvedFor(orderId, 'notification')])
    }
  })

  it('is stored at most 20 times for the UTR of one payment, however many orders a signer names', async () => {
    const [orderId, utr] = [await newOrder('cashfree'), newUtr()]
    await reportPayment('notification', success(orderId, 'cashfree', { utr, names: { id: newUtr() } }))
    for (let i = 0; i < LIMITS.reports.unknownOrdersOfUtr + 5; i++) await reportUnknown('cashfree', utr)
    const { rows } = await db.query(`select from payment_exceptions where mid = '' and utr = $1`, [utr])
    expect(rows).toHaveLength(LIMITS.reports.unknownOrdersOfUtr)
  })
})

/** Stores an open exception as an instance does that does not see the payment yet. */
const storeOpen = (orderId: string, utr: string) =>
  db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at, acquirer_account)
     values ('', $1, 'unknown order', $2, 20000, 'SUCCESS', $3, 'direct')`,
    [orderId, utr, clock.now()],
  )

/** Hides orders during `work`, like orders that are not committed yet. */
async function whileUnknown(orderIds: string[], work: () => Promise<void>): Promise<void> {
  const rename = (from: string, to: string) =>
    db.query(
      `with links as (update acquirer_intents set order_id = $2 where order_id = $1)
       update payment_intents set order_id = $2 where order_id = $1`,
      [from, to],
    )
  for (const orderId of orderIds) await rename(orderId, `hidden ${orderId}`)
  await work()
  for (const orderId of orderIds) await rename(`hidden ${orderId}`, orderId)
}
