import { Readable } from 'node:stream'
import { beforeAll, describe, expect, it } from 'vitest'
import { importDayFile } from '../../src/payments/import-day-file.ts'
import { keepUtrsOfOtherMerchants } from '../../src/payments/utrs-of-other-merchants.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import { createOrder } from '../support/orders.ts'
import { newMerchant, post, STATUS, startService, type TestService } from '../support/service.ts'

const KIND = 'UTR of another merchant'
const RECORDED = { status: true, statusCode: 200, msg: 'Notification recorded', data: {} }
const GIVEN_UP_SECONDS = 25 * 60

let service: TestService
beforeAll(async () => {
  // With the rights of an installation: what the service may not do here fails silently.
  service = await startService({ asServiceRole: true })
})

/** Two merchants with an order each, in the order of their mids. */
async function neighbours() {
  const merchants = await Promise.all([newMerchant(service.db), newMerchant(service.db)])
  const withOrders = merchants.map(async (merchant) => ({ ...merchant, orderId: await createOrder(service, merchant) }))
  const [one, other] = (await Promise.all(withOrders)).sort((a, b) => (a.mid < b.mid ? -1 : 1))
  if (one === undefined || other === undefined) throw new Error('there are no merchants')
  return { one, other }
}

async function kept(utr: string) {
  const { rows } = await service.db.query(
    `select mid, order_id as "orderId", kind, amount, status, paid_at as "paidAt", received_at as "receivedAt"
       from payment_exceptions
      where utr = $1
      order by mid`,
    [utr],
  )
  return rows
}

const pay = async (orderId: string, UTR: string) => (await notify(service, notification(orderId, { UTR }))).body

async function counted(): Promise<number> {
  return Number(new RegExp(`payment_exceptions_total\\{kind="${KIND}"\\} (\\d+)`).exec(await service.metrics())?.[1])
}

describe('a UTR that pays orders of two merchants', () => {
  it.each([
    ['the first mid first', false],
    ['the first mid last', true],
  ])('pays both, and is kept once, under the later one: %s', async (_name, isReversed) => {
    const { one, other } = await neighbours()
    const [earlier, later] = isReversed ? [other, one] : [one, other]
    const utr = newUtr()
    const before = await counted()
    expect(await pay(earlier.orderId, utr)).toEqual(RECORDED)
    expect(await kept(utr)).toEqual([])
    service.clock.advance(1)
    expect(await pay(later.orderId, utr)).toEqual(RECORDED)
    const exception = {
      ...{ mid: later.mid, orderId: later.orderId, kind: KIND, amount: '200.00', status: 'SUCCESS' },
      ...{ paidAt: new Date('2026-03-31T18:25:00Z'), receivedAt: service.clock.now() },
    }
    expect(await kept(utr)).toEqual([exception])
    service.clock.advance(1)
    for (const { orderId, mid, key } of [earlier, later]) {
      expect(await pay(orderId, utr)).toEqual(RECORDED)
      const { body } = await post(service.app, STATUS, { mid, order_id: orderId }, key)
      expect([body.txnStatus, body.data.UTR]).toEqual(['SUCCESS', utr])
    }
    expect(await kept(utr)).toEqual([exception])
    expect((await counted()) - before).toBe(1)
  })

  it('is kept once of each pair that comes at once', async () => {
    const before = await counted()
    const pairs = await Promise.all(
      Array.from({ length: 20 }, async () => ({ ...(await neighbours()), utr: newUtr() })),
    )
    const answers = await Promise.all(
      pairs.flatMap(({ one, other, utr }) => [other, one].map(({ orderId }) => pay(orderId, utr))),
    )
    expect(answers).toEqual(answers.map(() => RECORDED))
    for (const { other, utr } of pairs) expect(await kept(utr)).toMatchObject([{ mid: other.mid, kind: KIND }])
    expect((await counted()) - before).toBe(20)
  })

  // A lock that is awaited on a worker of Citus is not seen.
  it.skipIf(ON_CITUS)('is kept under the one heard of later, even if that one was stored first', async () => {
    const { one: later, other: earlier } = await neighbours()
    const utr = newUtr()
    const blocker = await service.db.connect()
    try {
      await blocker.query('begin')
      await blocker.query(
        `insert into payments (mid, utr, order_id, amount_paise, heard_at, kind, acquirer)
         values ($1, $2, 'x', 1, now(), 'first', 'direct')`,
        [earlier.mid, utr],
      )
      const told = pay(earlier.orderId, utr)
      const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
      await expect.poll(async () => (await service.db.query(waiting)).rowCount).toBe(1)
      service.clock.advance(1)
      expect(await pay(later.orderId, utr)).toEqual(RECORDED)
      expect(await kept(utr)).toEqual([])
      await blocker.query('rollback')
      expect(await told).toEqual(RECORDED)
    } finally {
      blocker.release(true)
    }
    expect(await kept(utr)).toMatchObject([{ mid: later.mid, kind: KIND }])
  })

  it('is kept of a second and of a late payment too, but not of a failed attempt', async () => {
    const { one, other } = await neighbours()
    const [utr, second] = [newUtr(), newUtr()]
    await pay(one.orderId, utr)
    await pay(one.orderId, second)
    await notify(service, notification(other.orderId, { UTR: utr, status: 'FAIL' }))
    expect(await kept(utr)).toEqual([])
    service.clock.advance(GIVEN_UP_SECONDS)
    await pay(other.orderId, utr)
    await pay(other.orderId, second)
    const kinds = async (of: string) => (await kept(of)).map(({ mid, kind }) => `${mid} ${kind}`).sort()
    expect(await kinds(utr)).toEqual([KIND, 'late payment'].map((kind) => `${other.mid} ${kind}`))
    expect(await kinds(second)).toEqual(
      [`${one.mid} double payment`, ...[KIND, 'double payment'].map((kind) => `${other.mid} ${kind}`)].sort(),
    )
  })

  it('is counted by the day file that tells of it, once', async () => {
    const { one, other } = await neighbours()
    const utr = newUtr()
    const lines = [one, other].map(({ orderId }) => `${orderId},SUCCESS,${utr},200,2026-03-31 23:55:00\n`)
    const load = () =>
      importDayFile(service.db, Readable.from([`order_id,status,utr,amount,paid_at\n${lines.join('')}`]), service.clock)
    expect(await load()).toMatchObject({ recorded: 2, exceptions: { [KIND]: 1, 'double payment': 0 } })
    expect(await load()).toMatchObject({ recorded: 0, unchanged: 2, exceptions: { [KIND]: 0 } })
    expect(await kept(utr)).toMatchObject([{ mid: other.mid, kind: KIND }])
  })
})

it('a look at days finds what a killed instance has not kept, once, and nothing of other days', async () => {
  const { one, other } = await neighbours()
  const [dated, undated, unshared] = [newUtr(), newUtr(), newUtr()]
  const store = (mid: string, utr: string, paidAt: string | null, heardAt: string) =>
    service.db.query(
      `insert into payments (mid, utr, order_id, amount_paise, paid_at, heard_at, kind, acquirer)
       values ($1, $2, $2, 12345, $3, $4, 'first', 'direct')`,
      [mid, utr, paidAt, heardAt],
    )
  await store(one.mid, dated, '2025-05-01T00:00:00Z', '2025-07-02T00:00:00Z')
  await store(other.mid, dated, '2025-07-01T00:00:00Z', '2025-07-01T00:00:01Z')
  await store(one.mid, undated, null, '2025-07-01T12:00:00Z')
  await store(other.mid, undated, null, '2025-07-03T00:00:00Z')
  await store(one.mid, unshared, '2025-07-01T12:00:00Z', '2025-07-01T12:00:00Z')
  const look = (from: string, until: string) =>
    keepUtrsOfOtherMerchants(service.db, { from: new Date(from), until: new Date(until) }, service.clock.now())
  expect(await look('2025-06-30T00:00:00Z', '2025-07-01T00:00:00Z')).toBe(0)
  expect(await look('2025-07-01T00:00:00Z', '2025-07-02T00:00:00Z')).toBe(2)
  expect(await look('2025-05-01T00:00:00Z', '2025-08-01T00:00:00Z')).toBe(0)
  expect(await kept(dated)).toMatchObject([{ mid: one.mid, orderId: dated, amount: '123.45' }])
  expect(await kept(undated)).toMatchObject([{ mid: other.mid, paidAt: null, receivedAt: service.clock.now() }])
  expect(await kept(unshared)).toEqual([])
})
