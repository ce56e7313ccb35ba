import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { withLimits } from '../../src/acquirer/client.ts'
import { dueEnquiries } from '../../src/acquirer/enquire.ts'
import { LIMITS } from '../../src/limits.ts'
import { createEnquiries } from '../../src/payments/enquiries.ts'
import { buildIntent } from '../../src/payments/intent.ts'
import { createIntents, type Intents } from '../../src/payments/intents.ts'
import { createReports } from '../../src/payments/reports.ts'
import { startScheduler } from '../../src/scheduler/scheduler.ts'
import { intentFields, newMerchant, startService, type TestService } from '../support/service.ts'
import { until } from '../support/wait.ts'

const SETU = 'setu'
const EXPIRES_AT = new Date('2026-04-01T00:15:00Z')
const MANY = 1_000
const LINK = { acquirer: 'setu', merchantId: 'M', id: 'QR', reference: 'SU', link: 'upi://pay?' }

let service: TestService
let mid: string
let enquiries: ReturnType<typeof createEnquiries>
let intents: Intents
beforeAll(async () => {
  service = await startService()
  ;({ mid } = await newMerchant(service.db))
  enquiries = createEnquiries(service.db)
  // A thousand at once, on a busy machine.
  intents = createIntents(service.pools, () => undefined, { inserts: { ...LIMITS.inserts, waitingMs: 30_000 } })
})
beforeEach(async () => {
  await service.db.query('update acquirer_intents set enquire_at = null')
})

/** An order with a link of an acquirer, which expires at EXPIRES_AT. */
async function newOrderWithLink(number = 0): Promise<string> {
  const created = new Date(EXPIRES_AT.getTime() - 15 * 60_000)
  const merchant = { mid, name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', acquirer: 'setu' } as never
  const intent = buildIntent({ ...intentFields(mid), amount: 20_000 } as never, merchant, created, 15)
  const paymentLink = { ...LINK, id: `QR${number}`, reference: `SU${intent.orderId}` }
  expect(await intents.insert({ ...intent, paymentLink })).toMatchObject({ intent: { paymentLink } })
  return intent.orderId
}

const afterExpiry = (seconds: number) => new Date(EXPIRES_AT.getTime() + seconds * 1000)
const findDue = (now: Date) => enquiries.findDue(SETU, 10, now)
const take = async (now: Date, limit = 10) =>
  (await enquiries.claimDue(SETU, mid, limit, now)).map(({ orderId, enquiries }) => [orderId, enquiries])

describe('enquiries to an acquirer about an unpaid order', () => {
  it('enquiries about an unpaid order are made 90 seconds, 8 minutes and 2 hours after its expiry, then never again', async () => {
    const orderId = await newOrderWithLink()
    for (const [number, seconds] of [90, 480, 7_200].entries()) {
      expect(await findDue(afterExpiry(seconds - 1))).toEqual([])
      expect(await take(afterExpiry(seconds - 1))).toEqual([])
      expect(await findDue(afterExpiry(seconds))).toEqual([mid])
      expect(await take(afterExpiry(seconds))).toEqual([[orderId, number + 1]])
    }
    expect(await findDue(afterExpiry(1_000_000))).toEqual([])
    expect(await take(afterExpiry(1_000_000))).toEqual([])
    expect(await enquiries.take(orderId)).toBeUndefined()
  })

  it('overdue enquiries about an unpaid order are made a minute apart', async () => {
    const orderId = await newOrderWithLink()
    expect(await take(afterExpiry(10_000))).toEqual([[orderId, 1]])
    expect(await take(afterExpiry(10_059))).toEqual([])
    expect(await take(afterExpiry(10_060))).toEqual([[orderId, 2]])
    expect(await take(afterExpiry(10_120))).toEqual([[orderId, 3]])
  })

  it('enquiries end when their order is paid, and go on after a failed attempt', async () => {
    const [paid, failed] = [await newOrderWithLink(), await newOrderWithLink()]
    service.clock.set('2026-04-01T00:10:00Z')
    await service.db.query("update payment_intents set status = 'SUCCESS', utr = $2 where order_id = $1", [paid, paid])
    await service.db.query("update payment_intents set status = 'FAIL' where order_id = $1", [failed])
    expect(await take(afterExpiry(90))).toEqual([[failed, 1]])
    expect(await take(afterExpiry(1_000_000))).toEqual([[failed, 2]])
  })

  it('no enquiry is made through an acquirer that is not set up', async () => {
    await newOrderWithLink()
    expect(await enquiries.findDue('other', 10, afterExpiry(90))).toEqual([])
    expect(await enquiries.claimDue('other', mid, 10, afterExpiry(90))).toEqual([])
  })

  it('an unpaid order has three enquiries in all, including the operator’s, who may enquire at any time', async () => {
    const orderId = await newOrderWithLink()
    expect(await enquiries.take(orderId)).toMatchObject({ orderId, enquiries: 1 })
    expect(await take(afterExpiry(90))).toEqual([[orderId, 2]])
    expect(await enquiries.take(orderId)).toMatchObject({ enquiries: 3 })
    expect(await enquiries.take(orderId)).toBeUndefined()
    expect(await take(afterExpiry(480))).toEqual([])
  })
})

it(`8 instances together make each of ${MANY} enquiries exactly once`, async () => {
  const orderIds = await Promise.all(Array.from({ length: MANY }, (_, number) => newOrderWithLink(number)))
  const asked: unknown[] = []
  const instance = async () => {
    for (;;) {
      const taken = await take(afterExpiry(90), 4)
      if (taken.length === 0) return
      asked.push(...taken.map(([orderId]) => orderId))
    }
  }
  await Promise.all(Array.from({ length: 8 }, instance))
  // An instance may find nothing while another one holds the last rows.
  await instance()
  expect(asked.sort()).toEqual(orderIds.sort())
})

it('an enquiry whose result cannot be stored does not stop the others, and is logged', async () => {
  const [first, second] = [await newOrderWithLink(1), await newOrderWithLink(2)]
  service.clock.set('2026-04-01T00:16:30Z')
  const asked: string[] = []
  const client = {
    async getPayment({ paymentLink }: { paymentLink: { reference: string } }) {
      asked.push(paymentLink.reference)
      if (asked.length === 1) throw new Error('the database is away')
    },
  }
  const warnings: unknown[] = []
  const clock = startScheduler(
    [
      ...dueEnquiries({
        enquiries,
        clients: new Map([['setu', client as never]]),
        reports: createReports(service.db),
        now: service.clock.now,
        limits: LIMITS.acquirers,
      }),
    ],
    {
      log: { warn: (facts: object) => void warnings.push(facts) } as never,
      limits: { ...LIMITS.webhooks, lookIntervalMs: 10 },
    },
  )
  await until('both are asked', () => asked.length === 2)
  await clock.stop()
  expect(asked.toSorted()).toEqual([`SU${first}`, `SU${second}`].toSorted())
  expect(warnings).toMatchObject([{ work: 'questions to setu', error: 'the database is away' }])
})

it('an enquiry is made even when the acquirer’s limit of simultaneous calls is reached', async () => {
  const hangs = () => new Promise<never>(() => undefined)
  const calls = { createLink: hangs, closeLink: hangs, simulate: hangs, getPayment: async () => undefined }
  const log = { warn: () => undefined, error: () => undefined }
  const outcomes: string[] = []
  const onCall = (_acquirer: string, call: string, outcome: string) => void outcomes.push(`${call} ${outcome}`)
  const client = withLimits('setu', calls, { log, onCall, limits: LIMITS.acquirers })
  for (let i = 0; i <= LIMITS.acquirers.callsUnderWay; i++) client.closeLink(LINK).catch(() => undefined)
  expect(await client.getPayment({ orderId: 'O', paymentLink: LINK })).toBeUndefined()
  expect(outcomes).toEqual(['closeLink crowded', 'getPayment done'])
})
