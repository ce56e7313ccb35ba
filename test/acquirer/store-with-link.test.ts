import { setTimeout as sleep } from 'node:timers/promises'
import { beforeAll, expect, it } from 'vitest'
import { type AcquirerClient, withLimits } from '../../src/acquirer/client.ts'
import { AcquirerError } from '../../src/errors.ts'
import { LIMITS } from '../../src/limits.ts'
import { storeNewPayment } from '../../src/payments/create.ts'
import { createIntents, type Intents } from '../../src/payments/intents.ts'
import type { Merchant } from '../../src/tenants/merchants.ts'
import { intentFields, newMerchant, startService, type TestService, unique } from '../support/service.ts'

let service: TestService
let intents: Intents
beforeAll(async () => {
  service = await startService()
  intents = createIntents(service.pools, () => undefined)
})

/** A request of a merchant whose acquirer makes links; `store` sends it, `closed` is what the acquirer saw. */
async function newRequest(limits = LIMITS.acquirers) {
  const { mid } = await newMerchant(service.db)
  const payee = { name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', dynamicQr: 'link' as const }
  const made = { createdAt: new Date(), disabledAt: null, acquirer: 'setu', acquirerMerchantId: 'M' }
  const merchant: Merchant = {
    mid,
    ...payee,
    payees: [],
    ...made,
    input: 'strict',
    expiryMinutes: null,
    maxAmount: 100_000,
    nextAcquirer: null,
    nextAcquirerMerchantId: null,
  }
  const closed: string[] = []
  const acquirer: AcquirerClient = {
    check: async () => undefined,
    async createLink({ orderId }, { id: merchantId }, signal) {
      await sleep(10)
      if (signal?.aborted) throw new AcquirerError('unavailable', 'the time of the request is over')
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
  const client = withLimits('setu', acquirer, {
    log,
    onCall: () => undefined,
    limits,
    elapsedMs: () => performance.now(),
  })
  const body = { ...intentFields(mid), amount: 20_000 } as never
  const headers = { 'idempotency-key': unique('key') }
  const store = (using: Pick<Intents, 'insert' | 'findEarlier'>) =>
    storeNewPayment(
      'createPaymentIntent',
      { body, headers, caller: { kind: 'merchant', merchant } } as never,
      {} as never,
      {
        intents: using,
        now: () => new Date(),
        expiryMinutes: 15,
        linkersOf: async () => [{ client, merchantId: made.acquirerMerchantId, isNext: false }],
        linkTimes: limits,
        onNextAcquirer: () => undefined,
        deadlineOf: () => ({ extend: () => undefined }) as never,
      },
    )
  return { store, closed }
}

it.each([
  { message: 'Query read timeout', code: undefined },
  { message: 'terminating connection due to administrator command', code: '57P01' },
])(
  'a payment link stays open when the database fails after storing it ($message), and a repeat finds the link',
  async (failure) => {
    const { store, closed } = await newRequest()
    const answerIsLost: Intents['insert'] = async (intent) => {
      await intents.insert(intent)
      throw Object.assign(new Error(failure.message), { code: failure.code })
    }
    await expect(store({ ...intents, insert: answerIsLost })).rejects.toThrow(failure.message)
    const { intent } = await store(intents)
    expect(closed).toEqual([])
    expect(intent.paymentLink?.id).toMatch(/^QR/)
  },
)

it('the time limit of createPaymentIntent includes the database’s time before the acquirer is called', async () => {
  const { store } = await newRequest({ ...LIMITS.acquirers, requestMs: 100 })
  const slowly: Intents['findEarlier'] = async (intent) => {
    await sleep(100)
    return intents.findEarlier(intent)
  }
  await expect(store({ ...intents, findEarlier: slowly })).rejects.toMatchObject({ outcome: 'unavailable' })
})
