import { beforeAll, describe, expect, it } from 'vitest'
import { NOTIFY, newUtr, notification, notify, sign } from '../support/acquirer.ts'
import {
  basic,
  CREATE,
  form,
  intentFields,
  type Key,
  newMerchant,
  post,
  startService,
  type TestService,
} from '../support/service.ts'

const CALLER = '203.0.113.7'
const PROXY = '10.0.0.1'

let service: TestService
let mid: string
let key: Key
let orderId: string
beforeAll(async () => {
  service = await startService({ trustProxy: PROXY, sandbox: true })
  ;({ mid, key } = await newMerchant(service.db))
  orderId = (await post(service.app, CREATE, intentFields(mid), key)).body.data.orderId
})

const lastLine = () => JSON.parse(service.log.at(-1) ?? '{}')

const create = (remoteAddress: string, headers: Record<string, string> = {}, changes = {}) =>
  service.app.inject({
    method: 'POST',
    url: CREATE,
    remoteAddress,
    headers: { 'content-type': 'application/x-www-form-urlencoded', authorization: basic(key), ...headers },
    payload: form(intentFields(mid, changes)),
  })

describe('address of the caller in the request log', () => {
  it.each([
    ['the address of the connection', CALLER, {}, CALLER],
    ['the address that a trusted proxy forwards', PROXY, { 'x-forwarded-for': CALLER }, CALLER],
    [
      'the address of the connection, not the address that an untrusted client claims',
      CALLER,
      { 'x-forwarded-for': '198.51.100.9' },
      CALLER,
    ],
    ['no address if a proxy forwards text that is not an address', PROXY, { 'x-forwarded-for': 'Asha Rao' }, undefined],
  ])('logs the caller’s address for a merchant’s request: %s', async (_name, connection, headers, expected) => {
    expect((await create(connection, headers)).statusCode).toBe(200)
    expect(lastLine()).toMatchObject({ route: CREATE, status: 200 })
    expect(lastLine().address).toBe(expected)
  })

  it('logs the caller’s address for a rejected request, an unknown path and a notification', async () => {
    await create(CALLER, { authorization: 'Basic nobody' })
    expect(lastLine()).toMatchObject({ status: 401, address: CALLER })
    await service.app.inject({ method: 'POST', url: '/v1/payments/createPayment', remoteAddress: CALLER })
    expect(lastLine()).toMatchObject({ route: 'none', status: 404, address: CALLER })
    await service.app.inject({ method: 'POST', url: NOTIFY, remoteAddress: CALLER })
    expect(lastLine()).toMatchObject({ route: NOTIFY, status: 401, address: CALLER })
  })

  it.each([
    ['GET', (id: string) => `/pay/${id}`],
    ['GET', (id: string) => `/pay/${id}/qr.png`],
    ['POST', (id: string) => `/pay/${id}/simulate`],
    ['GET', () => '/pay/unknown'],
    ['GET', () => '/docs'],
    ['GET', () => '/nowhere'],
    ['GET', () => '/%ff'],
  ] as const)('never logs the caller’s address for a customer’s request: %s %s', async (method, addressOf) => {
    const before = service.log.length
    await service.app.inject({ method, url: addressOf(orderId), remoteAddress: CALLER, headers: { host: 'shop' } })
    expect(service.log.length).toBeGreaterThan(before)
    expect(service.log.slice(before).join()).not.toContain(CALLER)
  })
})

describe('reason for a rejection in the request log', () => {
  it('logs the reason for a rejection in the words of the response', async () => {
    await create(CALLER, {}, { amount: '2.50', customer_mobile: '12' })
    expect(lastLine()).toMatchObject({
      status: 400,
      publicKey: key.publicKey,
      mid,
      refusal: 'amount must be a whole number from 1 to 100000; customer_mobile must be 10 digits',
    })
    await create(CALLER, {}, { order_id: '1001' })
    expect(lastLine().refusal).toBeUndefined()
    await create(CALLER, {}, { order_id: '1001' })
    expect(lastLine()).toMatchObject({ status: 409, refusal: 'Order ID already exists' })
  })

  it('logs the reason for a rejected notification together with the orderId', async () => {
    const utr = newUtr()
    expect((await notify(service, notification(orderId, { amount: 1, UTR: utr }))).status).toBe(409)
    expect(lastLine()).toMatchObject({
      route: NOTIFY,
      orderId,
      refusal: 'The amount differs from that of the order',
    })
    await notify(service, notification(orderId, { UTR: '!' }))
    expect(lastLine()).toMatchObject({ status: 400, orderId, refusal: 'UTR must be 1 to 35 letters and digits' })
    const unknown = '0'.repeat(32)
    await notify(service, notification(unknown))
    expect(lastLine()).toMatchObject({ status: 404, orderId: unknown, refusal: 'Order not found' })
    await notify(service, notification(orderId, { UTR: utr }))
    expect(lastLine()).toMatchObject({ status: 200, orderId })
    expect(lastLine().refusal).toBeUndefined()
  })

  it('logs no orderId that is malformed or from an unsigned notification', async () => {
    await notify(service, notification('Asha Rao'))
    expect(service.log.at(-1)).not.toContain('Asha')
    const body = notification(orderId)
    const forged = {
      'content-type': 'application/json',
      'x-signature': sign(body, service.clock.now(), 'a-guessed-secret'),
    }
    await post(service.app, NOTIFY, body, undefined, forged)
    expect(lastLine()).toMatchObject({ status: 401 })
    expect(lastLine().orderId).toBeUndefined()
  })
})

describe('health checks in the request log', () => {
  const linesOf = async (path: string) => {
    const before = service.log.length
    const { statusCode } = await service.app.inject(path)
    return { statusCode, lines: service.log.slice(before).map((line) => JSON.parse(line)) }
  }

  it.each(['/livez', '/readyz'])(
    'counts successful health checks in the metrics but not in the log: %s',
    async (path) => {
      expect(await linesOf(path)).toEqual({ statusCode: 200, lines: [] })
      expect(await service.metrics()).toContain(`http_request_duration_seconds_count{route="${path}",status="200"}`)
    },
  )

  it('logs a health check that fails or has the wrong method', async () => {
    const { db } = service
    await db.query('alter table schema_migrations rename to elsewhere')
    const failed = await linesOf('/readyz')
    await db.query('alter table elsewhere rename to schema_migrations')
    expect(failed).toMatchObject({ statusCode: 503, lines: [{ level: 30, route: '/readyz', status: 503 }] })
    await service.app.inject({ method: 'POST', url: '/livez' })
    expect(lastLine()).toMatchObject({ status: 405 })
  })
})
