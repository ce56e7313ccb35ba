import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { comparisonJobs } from '../../src/gateway/payments/utrs-of-other-merchants.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, post, STATUS, startService, type TestService } from '../support/service.ts'

const KIND = 'UTR of another merchant'
const RECORDED = { status: true, statusCode: 200, msg: 'Notification recorded', data: {} }
const ABANDONED_SECONDS = 25 * 60

let service: TestService
beforeAll(async () => {
  // With the rights of an installation. All tests but one run the searches themselves.
  service = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
})

/** An instance that searches each minute; returns the number of exceptions that a search has stored. */
function startLooking(of: Pick<TestService, 'pools' | 'clock'> = service) {
  let saved = 0
  const { findQueues } = comparisonJobs(of.pools.due, of.clock.now, () => saved++)
  return async () => {
    const before = saved
    await findQueues()
    return saved - before
  }
}

/** Returns the number of exceptions that one search finds a minute later. */
function look(): Promise<number> {
  service.clock.advance(60)
  return startLooking()()
}

/** Two merchants with an order each, sorted by mid. */
async function neighbours() {
  const merchants = await Promise.all([newMerchant(service.db), newMerchant(service.db)])
  const withOrders = merchants.map(async (merchant) => ({ ...merchant, orderId: await createOrder(service, merchant) }))
  const [one, other] = (await Promise.all(withOrders)).sort((a, b) => (a.mid < b.mid ? -1 : 1))
  if (one === undefined || other === undefined) throw new Error('there are no merchants')
  return { one, other }
}

async function saved(utr: string) {
  const { rows } = await service.db.query(
    `select mid, order_id as "orderId", kind, (amount_paise * 0.01)::text as amount, status, paid_at as "paidAt", received_at as "receivedAt"
       from payment_exceptions
      where utr = $1
      order by mid`,
    [utr],
  )
  return rows
}

const pay = async (orderId: string, UTR: string) => (await notify(service, notification(orderId, { UTR }))).body

describe('a UTR that pays orders of two merchants', () => {
  it.each([
    ['the merchant with the lower mid is paid first', false],
    ['the merchant with the lower mid is paid last', true],
  ])(
    'the service stores one exception, for the merchant paid later, if a UTR pays orders of two merchants: %s',
    async (_name, isReversed) => {
      const { one, other } = await neighbours()
      const [earlier, later] = isReversed ? [other, one] : [one, other]
      const utr = newUtr()
      expect(await pay(earlier.orderId, utr)).toEqual(RECORDED)
      expect(await look()).toBe(0)
      expect(await pay(later.orderId, utr)).toEqual(RECORDED)
      expect(await look()).toBe(1)
      const exception = {
        ...{ mid: later.mid, orderId: later.orderId, kind: KIND, amount: '200.00', status: 'SUCCESS' },
        ...{ paidAt: new Date('2026-03-31T18:29:59Z'), receivedAt: service.clock.now() },
      }
      expect(await saved(utr)).toEqual([exception])
      service.clock.advance(1)
      for (const { orderId, mid, key } of [earlier, later]) {
        expect(await pay(orderId, utr)).toEqual(RECORDED)
        const { body } = await post(service.app, STATUS, { mid, order_id: orderId }, key)
        expect([body.txnStatus, body.data.UTR]).toEqual(['SUCCESS', utr])
      }
      expect(await look()).toBe(0)
      expect(await saved(utr)).toEqual([exception])
    },
  )

  it('the service stores one exception if a UTR pays orders of two merchants concurrently, on any number of instances', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 20 }, async () => ({ ...(await neighbours()), utr: newUtr() })),
    )
    const responses = await Promise.all(
      pairs.flatMap(({ one, other, utr }) => [other, one].map(({ orderId }) => pay(orderId, utr))),
    )
    expect(responses).toEqual(responses.map(() => RECORDED))
    const storedSets = await Promise.all(Array.from({ length: 3 }, look))
    for (const { other, utr } of pairs) expect(await saved(utr)).toMatchObject([{ mid: other.mid, kind: KIND }])
    expect(storedSets.reduce((sum, saved) => sum + saved)).toBe(20)
  })

  // On Citus, a lock that is awaited on a worker is not visible.
  it.skipIf(ON_CITUS)(
    'the service stores the exception for a UTR of two merchants with the payment reported later, even if the payment reported later was stored first',
    async () => {
      const { one: later, other: earlier } = await neighbours()
      const utr = newUtr()
      const blocker = await service.db.connect()
      try {
        await blocker.query('begin')
        await blocker.query(
          `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
         values ($1, $2, 'x', 1, now(), 'first', 'direct', 'notification')`,
          [earlier.mid, utr],
        )
        const reported = pay(earlier.orderId, utr)
        // The batch stops waiting after its lock_timeout. The report then waits alone, after it has read the clock.
        const waiting = `select from pg_stat_activity
                          where datname = current_database() and wait_event_type = 'Lock' and query not like '%lock_timeout%'`
        await expect.poll(async () => (await service.db.query(waiting)).rowCount, { timeout: 5_000 }).toBe(1)
        service.clock.advance(1)
        expect(await pay(later.orderId, utr)).toEqual(RECORDED)
        expect(await look()).toBe(0)
        await blocker.query('rollback')
        expect(await reported).toEqual(RECORDED)
      } finally {
        blocker.release(true)
      }
      expect(await look()).toBe(1)
      expect(await saved(utr)).toMatchObject([{ mid: later.mid, kind: KIND }])
    },
  )

  it('the service stores an exception for a UTR of two merchants in second and late payments, but not in failed attempts', async () => {
    const { one, other } = await neighbours()
    const [utr, second] = [newUtr(), newUtr()]
    await pay(one.orderId, utr)
    await pay(one.orderId, second)
    await notify(service, notification(other.orderId, { UTR: utr, status: 'FAIL' }))
    expect(await look()).toBe(0)
    service.clock.advance(ABANDONED_SECONDS)
    await pay(other.orderId, utr)
    await pay(other.orderId, second)
    expect(await look()).toBe(2)
    const kinds = async (of: string) => (await saved(of)).map(({ mid, kind }) => `${mid} ${kind}`).sort()
    expect(await kinds(utr)).toEqual([KIND, 'late payment'].map((kind) => `${other.mid} ${kind}`))
    expect(await kinds(second)).toEqual(
      [`${one.mid} double payment`, ...[KIND, 'double payment'].map((kind) => `${other.mid} ${kind}`)].sort(),
    )
  })

  it('the service stores an exception for a UTR of two merchants in a daily transaction report, however old the payment is', async () => {
    const { one, other } = await neighbours()
    const utr = newUtr()
    const lines = [one, other].map(({ orderId }) => `${orderId},SUCCESS,${utr},200,2026-03-31 23:59:59\n`)
    const csv = Readable.from([`order_id,status,utr,amount,paid_at\n${lines.join('')}`])
    expect(await importDailyReport(service.db, csv, service.clock)).toMatchObject({ recorded: 2 })
    expect(await look()).toBe(1)
    expect(await saved(utr)).toMatchObject([{ mid: other.mid, kind: KIND }])
  })

  it('a running service stores and counts the exception for a UTR of two merchants within about a minute', async () => {
    const running = await startService({ asServiceRole: true, limits: { webhooks: { lookIntervalMs: 100 } } })
    const utr = newUtr()
    for (let i = 0; i < 2; i++) {
      const orderId = await createOrder(running, await newMerchant(running.db))
      expect((await notify(running, notification(orderId, { UTR: utr }))).status).toBe(200)
    }
    running.clock.advance(61)
    await expect.poll(() => running.metrics(), { timeout: 20_000 }).toContain(`{kind="${KIND}",acquirer="direct"} 1\n`)
  })
})

describe('search for UTRs of two merchants', () => {
  /** Payments with one UTR, each of another merchant. */
  async function share(...heardAt: string[]): Promise<string> {
    const utr = newUtr()
    await store(utr, heardAt)
    return utr
  }

  async function store(utr: string, heardAt: readonly string[]) {
    for (const received of heardAt) {
      const { mid } = await newMerchant(service.db)
      await service.db.query(
        `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
         values ($1, $2, $3, 12345, $4, 'first', 'direct', 'notification')`,
        [mid, utr, received, received],
      )
    }
  }

  it('the search for UTRs of two merchants stores each exception that is missing because an instance was killed within the last hour', async () => {
    service.clock.set('2027-07-01T12:00:00Z')
    const found = await share('2027-06-01T00:00:00Z', '2027-07-01T11:00:00Z', '2027-07-01T11:59:59Z')
    const old = await share('2027-06-01T00:00:00Z', '2027-07-01T10:59:59Z')
    expect(await startLooking()()).toBe(2)
    expect(await saved(old)).toEqual([])
    const receivedAt = service.clock.now()
    const exceptions = (await saved(found)).sort((a, b) => (a.orderId < b.orderId ? -1 : 1))
    expect(exceptions).toEqual(
      ['2027-07-01T11:00:00Z', '2027-07-01T11:59:59Z'].map((orderId) => ({
        ...{
          mid: expect.any(String),
          orderId,
          kind: KIND,
          amount: '123.45',
          status: 'SUCCESS',
          paidAt: null,
          receivedAt,
        },
      })),
    )
  })

  it('the search for UTRs of two merchants stops after the statement in progress when the instance stops', async () => {
    const stored = newUtr()
    const payments = ['M1', 'M2', 'M3'].map((mid) => ({ mid, orderId: mid, utr: stored, amount: 100, paidAt: null }))
    const sent: string[] = []
    const db = {
      query: async (text: string) => ({ rows: sent.push(text) < 3 ? [] : payments, rowCount: 1, fields: [] }),
    }
    const { findQueues } = comparisonJobs(db as never, service.clock.now, () => undefined)
    await findQueues({ isStopped: () => sent.length >= 2 })
    expect(sent).toHaveLength(2)
    await findQueues({ isStopped: () => sent.length >= 4 })
    expect(sent).toHaveLength(4)
  })

  it('the search for UTRs of two merchants runs every minute, even after the clock was set back', async () => {
    service.clock.set('2027-08-01T12:00:00Z')
    const lookAgain = startLooking()
    expect(await lookAgain()).toBe(0)
    await share('2027-08-01T11:50:00Z', '2027-08-01T11:56:00Z')
    service.clock.advance(59)
    expect(await lookAgain()).toBe(0)
    service.clock.advance(1)
    expect(await lookAgain()).toBe(1)
    service.clock.set('2027-08-01T11:00:00Z')
    await share('2027-08-01T10:50:00Z', '2027-08-01T10:59:00Z')
    expect(await lookAgain()).toBe(1)
  })
})
