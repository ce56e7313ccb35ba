import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, it, onTestFinished, vi } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { type AcquirerClient, withLimits } from '../../src/gateway/acquirers/client.ts'
import { createIntent } from '../../src/gateway/payments/create.ts'
import { createIntents, type Intents } from '../../src/gateway/payments/intents.ts'
import type { Merchant } from '../../src/gateway/tenants/merchants.ts'
import { LIMITS } from '../../src/limits.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { testPool } from '../support/database-url.ts'
import { intercept } from '../support/late-changes.ts'
import { intentFields, newMerchant, startService, type TestService, unique } from '../support/service.ts'

let service: TestService
let intents: Intents
beforeAll(async () => {
  service = await startService()
  intents = createIntents(service.pools, () => undefined)
})

/**
 * Returns a merchant whose acquirer creates links: `store` sends a create request, `closed` lists the links closed at
 * the acquirer.
 */
async function newRequest(limits = { ...LIMITS.acquirers, lookUpPauseMs: 10 }) {
  const { mid } = await newMerchant(service.db)
  const payee = { name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', dynamicQr: 'link' as const }
  const created = { createdAt: new Date(), disabledAt: null, acquirer: 'setu', acquirerMerchantId: 'M' }
  const merchant: Merchant = {
    mid,
    ...payee,
    payees: [],
    ...{ colour: null, website: null, support: null, logo: null },
    ...created,
    input: 'strict',
    expiryMinutes: null,
    maxExpiryMinutes: 1_440,
    maxAmount: 100_000,
    fallbackAcquirer: null,
    fallbackAcquirerMerchantId: null,
  }
  const closed: string[] = []
  const acquirer: AcquirerClient = {
    check: async () => undefined,
    async createLink({ orderId }, { id: merchantId }, signal) {
      await sleep(10)
      if (signal?.aborted) throw new AcquirerError('unavailable', 'the time limit of the request is exceeded')
      const named = { acquirer: 'setu', merchantId, id: unique('QR'), reference: `SU${orderId.slice(0, 20)}` }
      return { paymentLink: { ...named, link: 'upi://pay?' }, payeeVpa: payee.vpa }
    },
    async closeLink({ id }) {
      closed.push(id)
      return 'closed'
    },
    getPayments: async () => [],
    simulate: async () => undefined,
  }
  const log = { warn: () => undefined, error: () => undefined }
  const client = withLimits({ name: 'setu', disabledAt: null }, acquirer, {
    log,
    onCall: () => undefined,
    limits,
    elapsedMs: () => performance.now(),
  })
  const body = { ...intentFields(mid), amount: 20_000 } as never
  const headers = { 'idempotency-key': unique('key') }
  const store = (using: Pick<Intents, 'insert' | 'findEarlier' | 'isStored'>) =>
    createIntent(
      'createPaymentIntent',
      {
        ...{ body, headers, caller: { kind: 'merchant', merchant, rights: RIGHTS } },
        routeOptions: { config: { access: 'create' } },
      } as never,
      {} as never,
      {
        intents: using,
        now: () => new Date(),
        expiryMinutes: 15,
        linkersOf: async () => [
          { client, merchantId: created.acquirerMerchantId, isFallback: false, kind: 'default', firstKind: 'default' },
        ],
        limits: { acquirers: limits },
        metrics: { createdByFallback: () => undefined },
        deadlineOf: () => ({ extend: () => undefined }) as never,
      },
    )
  return { mid, store, closed }
}

it.each([
  { message: 'Query read timeout', code: undefined },
  { message: 'terminating connection due to administrator command', code: '57P01' },
])(
  'createPaymentIntent returns the intent with its open link when the database fails after storing the intent ($message)',
  async (failure) => {
    const { store, closed } = await newRequest()
    const responseIsLost: Intents['insert'] = async (intent) => {
      await intents.insert(intent)
      throw Object.assign(new Error(failure.message), { code: failure.code })
    }
    const { intent } = await store({ ...intents, insert: responseIsLost })
    expect(closed).toEqual([])
    expect(intent.paymentLink?.id).toMatch(/^QR/)
    expect((await store(intents)).intent.paymentLink?.id).toBe(intent.paymentLink?.id)
  },
)

/** Runs `what` with the connection of the first `commit`. */
function atCommit(what: (...of: [Parameters<Instead>[1], Parameters<Instead>[2]]) => Error | null) {
  let isOver = false
  intercept((text, connection, submit) => {
    if (text !== 'commit' || isOver) return submit()
    isOver = true
    return what(connection, submit)
  })
}

type Instead = Parameters<typeof intercept>[0]

it('createPaymentIntent returns the intent when the commit loses its connection and the database is briefly unavailable', async () => {
  const { mid, store, closed } = await newRequest()
  const find = () => service.db.query('select from acquirer_intents where mid = $1', [mid])
  atCommit(({ stream }, submit) => {
    stream.pause()
    void vi.waitUntil(async () => (await find()).rowCount === 1).then(() => stream.destroy())
    return submit()
  })
  let lookUps = 0
  const isStored: Intents['isStored'] = (intent) =>
    ++lookUps === 1 ? Promise.reject(new Error('Connection terminated')) : intents.isStored(intent)
  const { intent } = await store({ ...intents, isStored })
  expect([lookUps, closed]).toEqual([2, []])
  expect((await store(intents)).intent.paymentLink?.id).toBe(intent.paymentLink?.id)
})

it('createPaymentIntent leaves the link open when a look-up does not find the intent, because the intent’s commit may be in progress', async () => {
  const { store, closed } = await newRequest()
  atCommit(({ stream }) => {
    stream.destroy()
    return null
  })
  await expect(store(intents)).rejects.toThrow()
  expect(closed).toEqual([])
})

it.each([
  ['the database rejects the connection', 'postgres://nobody@127.0.0.1:1/none', 'ECONNREFUSED'],
  ['PostgreSQL rolls the transaction back', undefined, 'canceling statement due to lock timeout'],
])('createPaymentIntent closes the link when %s', async (_when, url, fault) => {
  const { store, closed } = await newRequest()
  const creates = testPool(url ?? `${service.databaseUrl}?options=-c%20lock_timeout%3D10`, 1)
  onTestFinished(() => creates.end())
  if (url === undefined) {
    const holder = await service.db.connect()
    onTestFinished(() => holder.query('rollback').then(() => holder.release()))
    await holder.query('begin; lock table acquirer_intents in access exclusive mode')
    // Skips the lookup of an earlier request, which would wait for the locked table.
    const findEarlier = async () => undefined
    await expect(
      store({ ...createIntents({ ...service.pools, creates }, () => undefined), findEarlier }),
    ).rejects.toThrow(fault)
  } else {
    await expect(store(createIntents({ ...service.pools, creates }, () => undefined))).rejects.toThrow(fault)
  }
  expect(closed).toHaveLength(1)
})

it('createPaymentIntent has one time limit for the acquirer call and the database queries before the acquirer call', async () => {
  const { store } = await newRequest({ ...LIMITS.acquirers, requestMs: 100 })
  const slowly: Intents['findEarlier'] = async (intent) => {
    await sleep(100)
    return intents.findEarlier(intent)
  }
  await expect(store({ ...intents, findEarlier: slowly })).rejects.toMatchObject({ outcome: 'unavailable' })
})
