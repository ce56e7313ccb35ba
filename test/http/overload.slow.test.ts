import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { LIMITS } from '../../src/limits.ts'
import {
  CREATE,
  CREATE_UNAVAILABLE,
  type HttpResponse,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  type TestService,
} from '../support/service.ts'

const RECOVERED_LIMIT_MS = 10_000

let service: TestService
let mid: string
let key: Key
beforeAll(async () => {
  service = await startService({ limits: LIMITS })
  ;({ mid, key } = await newMerchant(service.db))
})

const create = () => post(service.app, CREATE, intentFields(mid), key)

/** The response that an overloaded service must send. */
function expectUnavailable({ status, body, headers }: HttpResponse) {
  expect([status, body]).toEqual([503, CREATE_UNAVAILABLE])
  expect(headers['retry-after']).toBe('1')
}

describe('overloaded service', () => {
  it('returns 503 with Retry-After for writes while nothing can be stored, serves reads, and recovers', async () => {
    const { orderId } = (await create()).body.data
    const locker = new pg.Client({ connectionString: service.databaseUrl })
    await locker.connect()
    await locker.query('begin; lock table payment_intents in share mode')

    const rejected = Promise.all(Array.from({ length: 300 }, create))
    const status = await post(service.app, '/v1/payments/checkPaymentStatus', { mid, order_id: orderId }, key)
    expect(status.body).toMatchObject({ txnStatus: 'PENDING' })
    expect((await service.app.inject(`/pay/${orderId}`)).statusCode).toBe(200)
    for (const response of await rejected) expectUnavailable(response)

    await locker.query('rollback')
    await locker.end()
    await expect.poll(async () => (await create()).status, { timeout: RECOVERED_LIMIT_MS }).toBe(200)
  })
})
