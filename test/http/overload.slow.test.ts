import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import { batchInserts } from '../../src/payments/insert-batches.ts'
import { insertRows } from '../../src/payments/insert-rows.ts'
import { buildIntent, type Intent } from '../../src/payments/intent.ts'
import {
  type Answer,
  CREATE,
  intentFields,
  type Key,
  newMerchant,
  post,
  refusal,
  startService,
  type TestService,
} from '../support/service.ts'

const UNAVAILABLE = refusal(503, 'The service is briefly unavailable; try again in a moment')
const RECOVERED_LIMIT_MS = 10_000

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  service = await startService({
    limits: { ...LIMITS, lateness: { operationsMs: LIMITS.lateness.operationsMs } },
  })
  ;({ mid, key } = await newMerchant(service.db))
})

const create = () => post(service.app, CREATE, intentFields(mid), key)

/** How `answer` must look when there is too much to do. */
function expectUnavailable({ status, body, headers }: Answer) {
  expect([status, body]).toEqual([503, UNAVAILABLE])
  expect(headers['retry-after']).toBe('1')
}

describe('more than can be served', () => {
  it('is refused at once when too many intents wait, and costs none of those that do', async () => {
    const merchant = { mid, name: 'Chai Point', vpa: 'chaipoint@examplebank', mcc: '5814', dynamicQr: 'link' } as const
    const fields = { ...intentFields(mid), amount: 20_000 } as never
    const now = service.clock.now()
    const settings = { acquirer: 'direct', acquirerMerchantId: null, input: 'strict', expiryMinutes: null } as const
    const intent = () => buildIntent(fields, { ...merchant, ...settings, createdAt: now, disabledAt: null }, now, 15)
    let open = () => {}
    const gate = new Promise<void>((resolve) => {
      open = resolve
    })
    const behindGate = async (intents: Intent[]) => {
      await gate
      return insertRows(service.db, intents, { isSpread: false, retries: 0 })
    }
    const insert = batchInserts(behindGate, () => undefined, LIMITS.inserts)
    const store = (one: Intent) => insert(one, { lane: '', node: undefined })
    // Statements under way take theirs only after a turn of the event loop: within one turn, all of them wait.
    const waiting = Array.from({ length: LIMITS.inserts.waiting }, () => store(intent()))
    const tooMany = Array.from({ length: 10 }, () => store(intent()).catch((error: unknown) => error))
    for (const error of await Promise.all(tooMany)) expect(error).toMatchObject({ statusCode: 503 })
    open()
    const outcomes = await Promise.allSettled(waiting)
    // On a busy machine some waited longer than the service lets any wait.
    const stored = outcomes.filter(({ status }) => status === 'fulfilled').length
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected') expect(outcome.reason).toMatchObject({ statusCode: 503 })
    }
    expect(stored).toBeGreaterThan(0)
    const { rows } = await service.db.query('select count(*)::integer from payment_intents where mid = $1', [mid])
    expect(rows).toEqual([{ count: stored }])
    expect(await store(intent())).toBe(true)
  })

  it('gets 503 with Retry-After while the database stores nothing; what only reads is served, and it recovers', async () => {
    const { orderId } = (await create()).body.data
    const locker = new pg.Client({ connectionString: service.databaseUrl })
    await locker.connect()
    await locker.query('begin; lock table payment_intents in share mode')

    const refused = Promise.all(Array.from({ length: 300 }, create))
    const status = await post(service.app, '/v1/payments/checkPaymentStatus', { mid, order_id: orderId }, key)
    expect(status.body).toMatchObject({ txnStatus: 'PENDING' })
    expect((await service.app.inject(`/pay/${orderId}`)).statusCode).toBe(200)
    for (const answer of await refused) expectUnavailable(answer)

    await locker.query('rollback')
    await locker.end()
    await expect.poll(async () => (await create()).status, { timeout: RECOVERED_LIMIT_MS }).toBe(200)
  })

  it('gets 503 with Retry-After while the process is too late for everything, and it recovers', async () => {
    let busy = true
    const keepBusy = async () => {
      while (busy) {
        const until = performance.now() + 500
        while (performance.now() < until);
        await sleep(1)
      }
    }
    const working = keepBusy()
    // Without credentials, which is 401 without a wait for anything that could be late.
    const ask = () => post(service.app, CREATE, intentFields(mid))
    let answer = await ask()
    for (let tries = 0; answer.status === 401 && tries < 10; tries++) {
      await sleep(1)
      answer = await ask()
    }
    expectUnavailable(answer)
    // An orchestrator must not replace an instance because it is busy.
    expect((await service.app.inject('/livez')).statusCode).toBe(200)
    busy = false
    await working
    await expect.poll(async () => (await create()).status, { timeout: RECOVERED_LIMIT_MS }).toBe(200)
  })
})
