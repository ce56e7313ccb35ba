import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { CallFault } from '../support/bank-faults.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { CASHFREE } from '../support/fake-cashfree.ts'
import { PHONEPE } from '../support/fake-phonepe.ts'
import { RAZORPAY } from '../support/fake-razorpay.ts'
import { SETU } from '../support/fake-setu.ts'
import { runOps } from '../support/ops.ts'
import type { FakePhonepe } from '../support/phonepe-bank.ts'
import type { FakeRazorpay } from '../support/razorpay-bank.ts'
import {
  CREATE,
  intentFields,
  newKey,
  newMerchant,
  post,
  STATUS,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import { FAULTS } from './conformance/links.ts'

let service: TestService
/** Has long time limits, so that a busy machine does not turn a response of an acquirer into a failure. */
let patient: TestService
let setu: FakeSetu
let cashfree: FakeCashfree
let phonepe: FakePhonepe
let razorpay: FakeRazorpay
beforeAll(async () => {
  const clock = { now: () => new Date() }
  ;[setu, cashfree] = [await startBank(SETU, () => clock.now()), await startBank(CASHFREE, () => clock.now())]
  ;[phonepe, razorpay] = [await startBank(PHONEPE, () => clock.now()), await startBank(RAZORPAY, () => clock.now())]
  const settings = { ...SETU.settings(setu), ...CASHFREE.settings(cashfree), ...PHONEPE.settings(phonepe) }
  const start = (firstLinkMs: number) =>
    startService({
      acquirers: { ...settings, ...RAZORPAY.settings(razorpay) },
      limits: { acquirers: { firstLinkMs, requestMs: 30_000 }, outbound: { acquirerMs: 30_000 } },
    })
  ;[service, patient] = [await start(250), await start(30_000)]
  clock.now = service.clock.now
  cashfree.notifyUrl = `${await service.app.listen({ host: '127.0.0.1', port: 0 })}${CASHFREE.path}`
})
// Ends the 10 s in which an acquirer that did not respond is not tried first.
beforeEach(() => service.clock.advance(10))

/** Longer than the time limit of the first of two acquirers. */
const HANGS = { afterMs: 350 }

async function newMerchantOf(acquirer: string, fallbackAcquirer: string, { db } = service) {
  const { mid } = await newMerchant(db, {
    payees: ['chaipoint@examplebank', 'cf.demo*@icici', 'demomerchantonline@ybl', 'rzr.demo*@icici'],
    ...{ acquirer, acquirerMerchantId: unique('ID'), fallbackAcquirer, fallbackAcquirerMerchantId: unique('NEXT') },
  })
  return { mid, key: await newKey(db, { mid }) }
}

type Merchant = Awaited<ReturnType<typeof newMerchantOf>>

const create = ({ mid, key }: Merchant) => post(service.app, CREATE, intentFields(mid), key)

/** Returns the acquirer that created the link of an order, and whether it was the fallback. */
async function makerOf(orderId: string, { db } = service) {
  const { rows } = await db.query(
    'select acquirer, by_fallback as "byFallback" from acquirer_intents where order_id = $1',
    [orderId],
  )
  return rows[0]
}

const NAMES = ['setu', 'cashfree', 'phonepe', 'razorpay'] as const
type Name = (typeof NAMES)[number]
const PAIRS = NAMES.flatMap((first) => NAMES.filter((name) => name !== first).map((name) => [first, name] as const))

type FaultyBank = { nextFaults: Record<string, CallFault[]>; calls: string[]; openOrders: () => string[] }

/** Returns a bank with the calls that create a link, and the orders that a customer can pay. */
function bankOf(name: Name): FaultyBank {
  const idsOf = (orders: { orderId: string }[]) => orders.map(({ orderId }) => orderId)
  const hasLink = ({ links }: { links: unknown[] }) => links.length > 0
  const open = {
    setu: () =>
      [...setu.qrs.values()].filter(({ status }) => status === 'active').map(({ referenceId }) => referenceId),
    cashfree: () =>
      idsOf([...cashfree.orders.values()].filter((order) => hasLink(order) && cashfree.statusOf(order) === 'ACTIVE')),
    phonepe: () => idsOf([...phonepe.orders.values()].filter((order) => phonepe.stateOf(order) === 'PENDING')),
    razorpay: () => idsOf([...razorpay.orders.values()].filter(hasLink)),
  }
  const calls = {
    setu: ['createDqr'],
    cashfree: ['createOrder', 'openSession'],
    phonepe: ['createOrder'],
    razorpay: ['createOrder', 'createPayment'],
  }
  const { nextFaults } = { setu, cashfree, phonepe, razorpay }[name]
  return { nextFaults: nextFaults as FaultyBank['nextFaults'], calls: calls[name], openOrders: open[name] }
}

describe('failover to the fallback acquirer', () => {
  it.each([
    ['rejects the order', { status: 400 }],
    ['returns 429', { status: 429 }],
    ['rejects the credentials', { status: 403 }],
  ])('uses the fallback acquirer when Setu %s', async (_, fault) => {
    setu.nextFaults.createDqr = [fault]
    const { status, body } = await create(await newMerchantOf('setu', 'cashfree'))
    expect(status).toBe(200)
    expect(await makerOf(body.data.orderId)).toEqual({ acquirer: 'cashfree', byFallback: true })
  })

  it.each([
    ['returns 500', { status: 500 }],
    ['hangs', HANGS],
    ['closes the connection', 'no response'],
  ] as const)(
    'does not use the fallback acquirer when Setu %s, because Setu may have created a link',
    async (_, fault) => {
      setu.nextFaults.createDqr = [fault]
      const before = cashfree.countOf('createOrder')
      expect((await create(await newMerchantOf('setu', 'cashfree'))).status).toBe(503)
      expect(cashfree.countOf('createOrder')).toBe(before)
    },
  )

  it.each([
    ['hangs while creating the order', 'createOrder', HANGS],
    ['returns 500 for the order', 'createOrder', { status: 500 }],
    ['hangs while creating the link', 'openSession', HANGS],
    ['returns 500 for the link', 'openSession', { status: 500 }],
    ['creates a link for another payee', 'openSession', 'wrong payee'],
  ] as const)(
    'uses the fallback acquirer and leaves no Cashfree link open when Cashfree %s',
    async (_, call, fault) => {
      cashfree.nextFaults[call] = [fault]
      const merchant = await newMerchantOf('cashfree', 'setu')
      const { status, body } = await create(merchant)
      expect(status).toBe(200)
      expect(await makerOf(body.data.orderId)).toEqual({ acquirer: 'setu', byFallback: true })
      const order = cashfree.find(body.data.orderId)
      expect(order === undefined || order.links.length === 0 || order.status === 'TERMINATED').toBe(true)
    },
  )

  it.each([
    ['rejects the order', { status: 400 }],
    ['returns 429', { status: 429 }],
    ['rejects the credentials', { status: 403 }],
  ])('uses the fallback acquirer when PhonePe %s', async (_, fault) => {
    phonepe.nextFaults.createOrder = [fault]
    const { status, body } = await create(await newMerchantOf('phonepe', 'setu'))
    expect(status).toBe(200)
    expect(await makerOf(body.data.orderId)).toEqual({ acquirer: 'setu', byFallback: true })
  })

  it.each([
    ['returns 500', { status: 500 }],
    ['hangs', HANGS],
    ['closes the connection', 'no response'],
    ['creates a link for another payee', 'wrong payee'],
    ['already has the order', 'sent twice'],
  ] as const)(
    'does not use the fallback acquirer when PhonePe %s, because PhonePe may have created a link that PhonePe cannot close',
    async (_, fault) => {
      phonepe.nextFaults.createOrder = [fault]
      const before = setu.countOf('createDqr')
      expect((await create(await newMerchantOf('phonepe', 'setu'))).status).toBe(503)
      expect(setu.countOf('createDqr')).toBe(before)
    },
  )

  it.each([
    ['rejects the order', 'createOrder', { status: 400 }],
    ['hangs while creating the order', 'createOrder', HANGS],
    ['closes the connection instead of returning the order', 'createOrder', 'no response'],
    ['rejects the link', 'createPayment', { status: 400 }],
    ['returns 429 for the link', 'createPayment', { status: 429 }],
  ] as const)('uses the fallback acquirer when Razorpay %s', async (_, call, fault) => {
    razorpay.nextFaults[call] = [fault]
    const { status, body } = await create(await newMerchantOf('razorpay', 'setu'))
    expect(status).toBe(200)
    expect(await makerOf(body.data.orderId)).toEqual({ acquirer: 'setu', byFallback: true })
    expect(razorpay.find(body.data.orderId)?.links ?? []).toEqual([])
  })

  it.each([
    ['returns 500 for the link', { status: 500 }],
    ['hangs while creating the link', HANGS],
    ['closes the connection instead of returning the link', 'no response'],
    ['creates a link for another payee', 'wrong payee'],
  ] as const)(
    'does not use the fallback acquirer when Razorpay %s, because Razorpay may have created a link that Razorpay cannot close',
    async (_, fault) => {
      razorpay.nextFaults.createPayment = [fault]
      const before = setu.countOf('createDqr')
      expect((await create(await newMerchantOf('razorpay', 'setu'))).status).toBe(503)
      expect(setu.countOf('createDqr')).toBe(before)
    },
  )

  it.each(['phonepe', 'razorpay'])('uses %s as the fallback acquirer when Setu rejects the order', async (fallback) => {
    setu.nextFaults.createDqr = [{ status: 400 }]
    const { status, body } = await create(await newMerchantOf('setu', fallback))
    expect(status).toBe(200)
    expect(await makerOf(body.data.orderId)).toEqual({ acquirer: fallback, byFallback: true })
  })

  it('does not use the fallback acquirer if Cashfree may have created a link that Cashfree cannot close', async () => {
    cashfree.nextFaults.openSession = ['no response']
    cashfree.nextFaults.terminate = [{ status: 500 }]
    const before = setu.countOf('createDqr')
    expect((await create(await newMerchantOf('cashfree', 'setu'))).status).toBe(503)
    expect(setu.countOf('createDqr')).toBe(before)
  })

  it.each([
    ['creates a link for another payee', 'wrong payee'],
    ['closes the connection instead of returning a link', 'no response'],
  ] as const)('returns 503 and closes the link when the fallback acquirer %s', async (_, fault) => {
    setu.nextFaults.createDqr = [{ status: 400 }]
    cashfree.nextFaults.openSession = [fault]
    const merchant = await newMerchantOf('setu', 'cashfree')
    expect((await create(merchant)).status).toBe(503)
    const order = [...cashfree.orders.values()].at(-1)
    expect(order?.links).toHaveLength(1)
    await expect.poll(() => order?.status).toBe('TERMINATED')
  })

  it.each(PAIRS)(
    'never leaves an order with two links that can be paid when %s fails, or rejects the order and %s fails',
    async (first, fallback) => {
      const { mid, key } = await newMerchantOf(first, fallback, patient)
      const { app, clock } = patient
      clock.set(service.clock.now().toISOString())
      const [bank, next] = [bankOf(first), bankOf(fallback)]
      const createAll = async (times: number) => {
        const responses = await Promise.all(
          Array.from({ length: times }, () => post(app, CREATE, intentFields(mid), key)),
        )
        const created = responses.flatMap(({ status, body }) => (status === 200 ? [body.data.orderId] : []))
        const open = [...bank.openOrders(), ...next.openOrders()]
        expect(open.filter((orderId, index) => open.indexOf(orderId) !== index)).toEqual([])
        expect(open).toEqual(expect.arrayContaining(created))
        clock.advance(10)
        return created
      }
      for (const call of bank.calls) {
        bank.nextFaults[call] = [...FAULTS]
        const created = await createAll(FAULTS.length)
        expect(
          (await Promise.all(created.map((orderId) => makerOf(orderId, patient)))).map(({ acquirer }) => acquirer),
        ).toContain(fallback)
      }
      for (const call of next.calls) {
        bank.nextFaults[bank.calls[0] as string] = FAULTS.map(() => ({ status: 400 }))
        next.nextFaults[call] = [...FAULTS]
        await createAll(FAULTS.length)
      }
    },
  )

  it('ops merchants shows the fallback acquirer and rejects invalid combinations of acquirers', async () => {
    const settings = {
      ...{ SETU_CLIENT_ID: 'a', SETU_CLIENT_SECRET: 'b', SETU_NOTIFICATION_SECRETS: 'of0nobody0of0nobody0' },
      ...{ CASHFREE_CLIENT_ID: 'a', CASHFREE_CLIENT_SECRET: 'b' },
    }
    const { mid } = await newMerchant(service.db)
    const update = (acquirer: string) =>
      runOps(service.databaseUrl, ['merchants', 'update', '--mid', mid, '--acquirer', acquirer, '--json'], '', settings)
    const both = JSON.parse((await update('setu/SETU1,cashfree/CF1')).stdout)
    expect(both).toMatchObject({ acquirer: 'setu', acquirerMerchantId: 'SETU1' })
    expect(both).toMatchObject({ nextAcquirer: 'cashfree', nextAcquirerMerchantId: 'CF1' })
    expect(JSON.parse((await update('cashfree')).stdout)).toMatchObject({ nextAcquirer: null })
    expect((await update('cashfree,setu')).stderr).toContain('setu requires --acquirer-merchant-id')
    expect((await update('setu/SETU1,direct')).stderr).toContain('direct cannot be combined with a fallback acquirer')
    for (const wrong of ['setu,setu', 'setu,', 'setu/A,cashfree,direct', 'setu:a:b']) {
      expect((await update(wrong)).stderr, wrong).toMatch(/--acquirer must (?:be|name)/)
    }
    expect((await update('cashfree,nobody')).stderr).toContain('acquirer must be one of')
  })

  it('tries the fallback acquirer first for 10 s after the first acquirer was unreachable, and accepts the fallback acquirer’s notification', async () => {
    const merchant = await newMerchantOf('setu', 'cashfree')
    await setu.goAway()
    const { status, body } = await create(merchant)
    expect(status).toBe(200)
    expect(await makerOf(body.data.orderId)).toEqual({ acquirer: 'cashfree', byFallback: true })
    expect((await cashfree.pay(body.data.orderId)).responses).toEqual([200])
    const paid = await post(service.app, STATUS, { mid: merchant.mid, order_id: body.data.orderId }, merchant.key)
    expect(paid.body.txnStatus).toBe('SUCCESS')
    const failed = () => service.log.filter((line) => JSON.parse(line).call === 'createLink').length
    const before = failed()
    expect((await create(merchant)).status).toBe(200)
    expect(failed()).toBe(before)
    service.clock.advance(10)
    expect((await create(merchant)).status).toBe(200)
    expect(failed()).toBe(before + 1)
    const metrics = await service.metrics()
    expect(metrics).toMatch(/payment_intents_by_next_acquirer_total\{account="default"\} \d/)
    const today = await runOps(service.databaseUrl, ['today', '--json'])
    expect(JSON.parse(today.stdout)).toHaveProperty('byNextAcquirer')
  })
})
