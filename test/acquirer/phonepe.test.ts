import { createHmac } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { statusCheckRulesOf } from '../../src/gateway/acquirers/acquirers.ts'
import { statusCheckJobs } from '../../src/gateway/acquirers/check-status.ts'
import type { AcquirerClient } from '../../src/gateway/acquirers/client.ts'
import { phonepe, phonepeClient, readPayments } from '../../src/gateway/acquirers/phonepe/client.ts'
import { createPhonepeRequest } from '../../src/gateway/acquirers/phonepe/http.ts'
import { readRefund } from '../../src/gateway/acquirers/phonepe/refunds.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import { mayCheckStatus, type StatusCheckRules } from '../../src/gateway/payments/status-check-times.ts'
import { createStatusChecks } from '../../src/gateway/payments/status-checks.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { retryRefund } from '../../src/gateway/refunds/pending-refunds.ts'
import { findRefund } from '../../src/gateway/refunds/store.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import { decodePng } from '../support/decode-png.ts'
import { CUSTOMER_VPA } from '../support/fake-bank.ts'
import { newPhonepeMerchant, PHONEPE, PHONEPE_SECRETS, phonepeSettings } from '../support/fake-phonepe.ts'
import { runAllPendingJobs } from '../support/pending-jobs.ts'
import type { FakePhonepe } from '../support/phonepe-bank.ts'
import { CREATE, intentFields, ORDER, post, STATUS, type TestService, unique } from '../support/service.ts'
import { PATIENT_LIMITS, startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { allow } from '../support/webhooks.ts'
import { startInstance } from './conformance/instance.ts'
import { gate } from './conformance/orders.ts'

const SEQUENCE = `select i.event_sequence as sequence
  from payment_intents i join refunds r on r.mid = i.mid and r.order_id = i.order_id where r.our_refund_id = $1`

let service: TestService
let bank: FakePhonepe
let merchant: NewMerchant
let client: AcquirerClient
let look: () => Promise<void>
let runStatusChecks: () => Promise<void>
beforeAll(async () => {
  ;({ service, bank } = await startServiceBeside(PHONEPE, { limits: PATIENT_LIMITS }))
  merchant = await newPhonepeMerchant(service)
  const { clock, db } = service
  const instance = startInstance({ service, settings: PHONEPE.settings(bank), name: 'phonepe' })
  const { clientOf } = instance
  client = (await clientOf('phonepe')) as AcquirerClient
  look = instance.look
  const recording = { reports: createReports(db), now: clock.now, limits: LIMITS.acquirers }
  const statusChecks = statusCheckJobs({
    statusChecks: createStatusChecks(db),
    clientOf,
    rulesOf: statusCheckRulesOf,
    ...recording,
  })
  runStatusChecks = () => runAllPendingJobs(statusChecks)
})

const create = (changes: Record<string, string> = {}, of = merchant) =>
  post(service.app, CREATE, intentFields(of.mid, changes), of.key)

async function newOrder(): Promise<string> {
  const { status, text, body } = await create()
  if (status !== 200) throw new Error(text)
  return body.data.orderId
}

const statusOf = async (orderId: string) =>
  (await post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key)).body

const orderOf = (orderId: string) => bank.orders.get(orderId) as NonNullable<ReturnType<typeof bank.orders.get>>

const statusChecksOf = (orderId: string) =>
  bank.requests.filter(({ path }) => path.includes(`/order/${orderId}/`)).length

const eventAbout = (orderId: string, event = 'pg.order.completed') =>
  JSON.stringify({
    event,
    payload: { merchantOrderId: orderId, state: 'COMPLETED', amount: 20_000, paymentDetails: [] },
  })

/** Sends an SHA webhook. */
const send = async (body: string) =>
  (await post(service.app, PHONEPE.path, body, undefined, bank.encrypt(body, PHONEPE_SECRETS[1]).headers)).status

const quietly = { faults: { lost: 1 } }

describe('an order at PhonePe', () => {
  it('creates an order at PhonePe with the service’s orderId, amount in paise and expiry, and stores PhonePe’s order id', async () => {
    const orderId = await newOrder()
    const sent = bank.requests.findLast(({ call }) => call === 'createOrder')
    expect(sent?.body).toEqual({
      merchantOrderId: orderId,
      amount: 20_000,
      expireAfter: 900,
      paymentFlow: { type: 'PG', paymentMode: { type: 'UPI_QR' } },
    })
    const { rows } = await service.db.query(
      'select acquirer_order_id, reference from acquirer_intents where order_id = $1',
      [orderId],
    )
    const { id, link } = orderOf(orderId)
    expect(rows).toEqual([{ acquirer_order_id: id, reference: new URL(link).searchParams.get('tr') }])
  })

  it('returns 503 if a proxy repeated the request that creates a PhonePe order, and creates the next order under another name', async () => {
    const known = bank.orders.size
    const calls = bank.countOf('createOrder')
    bank.nextFaults.createOrder = ['sent twice']
    const order_id = unique('order')
    expect((await create({ order_id })).status).toBe(503)
    expect(bank.countOf('createOrder')).toBe(calls + 1)
    const { body } = await create({ order_id })
    expect([...bank.orders.keys()].slice(known)).toEqual([expect.any(String), body.data.orderId])
  })

  it('neither closes a cancelled order at PhonePe, which cannot close orders, nor checks the order’s status immediately', async () => {
    const orderId = await newOrder()
    const calls = bank.requests.length
    expect(await client.closeLink(linkOf(orderId))).toBe('unknown')
    await post(service.app, '/v1/payments/cancelPayment', { mid: merchant.mid, order_id: orderId }, merchant.key)
    expect(bank.requests.length).toBe(calls)
  })

  it('returns 503 for a PhonePe order with an expiry below 5 minutes, and logs the command that fixes the expiry', async () => {
    const of = await newPhonepeMerchant(service)
    await service.db.query('update merchants set expiry_minutes = 4 where mid = $1', [of.mid])
    const calls = bank.countOf('createOrder')
    service.log.length = 0
    expect((await create({}, of)).status).toBe(503)
    expect(bank.countOf('createOrder')).toBe(calls)
    expect(service.log.map((line) => JSON.parse(line)).find(({ acquirer }) => acquirer === 'phonepe')).toMatchObject({
      outcome: 'refused',
      msg: expect.stringContaining('--expiry-minutes to 5'),
    })
  })

  it.each([
    [4, 'phonepe accepts orders of at least 5 minutes: set --expiry-minutes to 5 or more'],
    [5, undefined],
    [null, undefined],
    [undefined, undefined],
  ])('checks a PhonePe merchant’s expiry of %j minutes and returns the error %j', (expiryMinutes, fault) => {
    expect(phonepe.errorOf?.({ vpa: 'chai@bank', expiryMinutes })).toBe(fault)
  })

  it('shows PhonePe’s https link on the pay page and in the QR in the sandbox', async () => {
    const { service: other, bank: its } = await startServiceBeside({
      ...PHONEPE,
      settings: (started) => ({ phonepe: { ...phonepeSettings(started), isSandbox: true } }),
    })
    its.nextFaults.createOrder = ['other scheme']
    const { mid, key } = await newPhonepeMerchant(other)
    const { body } = await post(other.app, ORDER, intentFields(mid), key)
    const png = await other.app.inject(`/pay/${body.data.orderId}/qr.png`)
    expect(decodePng(png.rawPayload)).toBe(its.orders.get(body.data.orderId)?.link.replace('upi:', 'https:'))
  })
})

const linkOf = (orderId: string) => {
  const { id, link } = orderOf(orderId)
  return { acquirer: 'phonepe', merchantId: 'PP', id, reference: 'T', link }
}

describe('a failed call to PhonePe', () => {
  const intent = { orderId: 'a1', amount: 20_000, createdAt: new Date(0), expiresAt: new Date(900_000) } as never
  const settings = { apiUrl: 'https://api.example', loginUrl: 'https://api.example/token' } as never
  const token = { access_token: 't', issued_at: 1, expires_at: 1_000 }
  const json = (status: number, body: object | string) => {
    return {
      status,
      retryAfterSeconds: undefined,
      text: '',
      headers: {},
      body: Buffer.from(typeof body === 'string' ? body : JSON.stringify(body)),
    }
  }
  const serving = (response: (url: string) => object) => {
    const http = { request: async ({ url }: { url: string }) => response(url) } as never
    return phonepeClient(
      settings,
      createPhonepeRequest(settings, http, () => 0),
    )
  }
  const errorOf = (created: object, loggedIn: object = json(200, token)) =>
    serving((url) => (url.endsWith('/token') ? loggedIn : created))
      .createLink(intent, { id: 'PP', payees: [] })
      .catch(({ outcome, isUndone }) => [outcome, isUndone])

  it.each([
    ['a rejected login', json(200, {}), json(401, { errorCode: 'OIM000' }), ['refused', true]],
    ['a failed login', json(200, {}), json(500, {}), ['unavailable', true]],
    ['401 twice', json(401, { code: 'AUTHORIZATION_FAILED' }), undefined, ['refused', true]],
    ['403', json(403, '<html>'), undefined, ['refused', true]],
    ['a rejection in PhonePe’s own format', json(400, { code: 'BAD_REQUEST' }), undefined, ['refused', true]],
    ['a rejection whose code has another field name', json(400, { errorCode: 'PR004' }), undefined, ['refused', true]],
    [
      'a rejection whose errorCode is null',
      json(400, { errorCode: null, code: 'BAD_REQUEST' }),
      undefined,
      ['refused', true],
    ],
    ['a rejection by a proxy', json(400, '<html>'), undefined, ['refused', false]],
    ['a known order name', json(417, { code: 'INVALID_TRANSACTION_ID' }), undefined, ['refused', false]],
    ['a known order name, as 400', json(400, { code: 'ORDER_ALREADY_EXISTS' }), undefined, ['refused', false]],
    [
      'an internal error of PhonePe, as 400',
      json(400, { code: 'INTERNAL_SERVER_ERROR' }),
      undefined,
      ['refused', false],
    ],
    ['429', json(429, { code: 'TOO_MANY' }), undefined, ['unavailable', true]],
    ['500', json(500, { code: 'INTERNAL_SERVER_ERROR' }), undefined, ['unavailable', false]],
    ['a response without a link', json(200, { orderId: 'OMO1', state: 'PENDING' }), undefined, ['bad answer', false]],
  ])('createLink reports after %s whether PhonePe certainly has no order', async (_what, created, loggedIn, fault) => {
    expect(await errorOf(created, loggedIn)).toEqual(fault)
  })

  it.each([
    ['is rejected with 403', [], json(403, '<html>')],
    ['cannot log in', [json(401, {})], json(500, {})],
  ])(
    'treats a refund that a proxy rejected as possibly created at PhonePe, even if the next status check %s',
    async (_what, queried, then) => {
      const queries = [...queried, then]
      const its = serving((url) => {
        if (url.endsWith('/token')) return queries.length > 1 || queried.length === 0 ? json(200, token) : then
        return url.endsWith('/refund') ? json(400, '<html>') : (queries.shift() ?? then)
      })
      const order = { orderId: 'a1', ourRefundId: 'R1', amount: 100, isSecond: false } as never
      await expect(its.refund?.(order)).rejects.toMatchObject({ isUndone: false })
    },
  )

  it('fails the check of an account whose address returns 200 to everything but does not belong to PhonePe', async () => {
    const its = serving((url) => json(200, url.endsWith('/token') ? token : '<html>'))
    await expect(its.check()).rejects.toMatchObject({ outcome: 'bad answer' })
  })

  it('does not log in for every call while PhonePe rejects every token', async () => {
    const checked: string[] = []
    const its = serving((url) => {
      checked.push(url)
      return url.endsWith('/token') ? json(200, token) : json(401, {})
    })
    for (let i = 0; i < 5; i++)
      await its.getPayments({ orderId: 'a1', paymentLink: {} } as never).catch(() => undefined)
    expect(checked.filter((url) => url.endsWith('/token'))).toHaveLength(2)
  })
})

describe('the login to PhonePe', () => {
  it('shares one PhonePe token among all calls, and uses the token until a renewal after half of its lifetime succeeds', async () => {
    const { service: fresh, bank: its } = await startServiceBeside(PHONEPE, { limits: PATIENT_LIMITS })
    const of = await newPhonepeMerchant(fresh)
    const createAt = async () => (await post(fresh.app, CREATE, intentFields(of.mid), of.key)).status
    await Promise.all(Array.from({ length: 20 }, createAt))
    fresh.clock.advance(312_000)
    expect([await createAt(), its.countOf('logIn')]).toEqual([200, 1])
    fresh.clock.advance(400)
    its.faults = [{ call: 'logIn', fault: { status: 500 }, chance: 1 }]
    for (let i = 0; i < 3; i++) expect(await createAt()).toBe(200)
    await until('one renewal was tried', () => its.countOf('logIn') === 2)
    fresh.clock.advance(11)
    its.faults = []
    expect(await createAt()).toBe(200)
    await until('the token is renewed', () => its.countOf('logIn') === 3)
    fresh.clock.advance(312_000)
    expect([await createAt(), its.countOf('logIn')]).toEqual([200, 3])
    its.forgetTokens()
    expect([await createAt(), its.countOf('logIn')]).toEqual([200, 4])
  })

  it.each([{ expires_at: null }, { issued_at: 2_000 }, { expires_at: '1000' }, { access_token: 'two words' }])(
    'rejects PhonePe’s login response with %j',
    async (changes) => {
      const http = createOutboundClient({ allowedNetworks: allow(), limits: LIMITS.outbound, now: () => new Date() })
      const body = Buffer.from(JSON.stringify({ access_token: 't', issued_at: 1, expires_at: 1_000, ...changes }))
      const serving = {
        ...http,
        request: async () => ({ status: 200, retryAfterSeconds: undefined, text: '', headers: {}, body }),
      }
      const request = createPhonepeRequest(
        phonepeSettings({ apiUrl: 'https://a.example', loginUrl: 'https://a.example' }),
        serving as never,
        () => 0,
      )
      await expect(request({ method: 'GET', path: 'x' }, undefined, [200])).rejects.toMatchObject({
        outcome: 'bad answer',
      })
    },
  )
})

describe('a PhonePe webhook', () => {
  const settings = { ...phonepeSettings({ apiUrl: 'https://a.example', loginUrl: 'https://a.example' }) }
  const published = '08c4fb56b30a6cec4d065ec43977f7892a0f556983e85c503f1b8add47f650ca'
  const body = '{"event":"pg.order.completed"}'
  const check = (headers: object, changes: object = {}) => {
    const of = phonepe.notifications({ phonepe: { ...settings, ...changes } })
    return () => of?.requireSignature({ headers } as never, Buffer.from(body), new Date())
  }
  const hmac = (secret: string, text = body) => createHmac('sha256', secret).update(text).digest('hex')

  it.each([
    ['of the kind SHA', { authorization: published }],
    ['of the kind HMAC', { 'x-phonepe-checksum-signature': hmac(PHONEPE_SECRETS[0]) }],
    ['of the kind HMAC under its other header name', { 'phonepe-checksum-signature': hmac(PHONEPE_SECRETS[0]) }],
  ])('authenticates a PhonePe webhook %s with any of the configured secrets', (_kind, headers) => {
    expect(check(headers)).not.toThrow()
  })

  it.each([
    ['no header', {}, {}],
    ['the hash in upper case', { authorization: published.toUpperCase() }, {}],
    ['the hash after an authentication scheme', { authorization: `Basic ${published}` }, {}],
    ['the secret itself', { authorization: PHONEPE_SECRETS[1] }, {}],
    ['the hash of another user', { authorization: published }, { notificationSecrets: ['user_2:Passw0rd9'] }],
    ['a hash although no user is configured', { authorization: published }, { notificationSecrets: ['Passw0rd9'] }],
    ['the hash of another password', { authorization: published }, { notificationSecrets: ['user_1:Passw0rd8'] }],
    ['an HMAC of other bytes', { 'x-phonepe-checksum-signature': hmac(PHONEPE_SECRETS[0], `${body} `) }, {}],
    [
      'an HMAC with extra characters at its end',
      { 'x-phonepe-checksum-signature': `${hmac(PHONEPE_SECRETS[0])}00` },
      {},
    ],
    ['an HMAC in the other header', { authorization: hmac(PHONEPE_SECRETS[0]) }, {}],
    ['a list of two signatures', { 'x-phonepe-checksum-signature': ['a', 'b'] }, {}],
  ])('rejects a PhonePe webhook with %s', (_what, headers, changes) => {
    expect(check(headers, changes)).toThrow('Send Authorization')
  })

  it('only schedules a status check after a PhonePe webhook, and records the payment only from the result of the status check', async () => {
    const orderId = await newOrder()
    expect(await send(eventAbout(orderId))).toBe(200)
    await runStatusChecks()
    expect([(await statusOf(orderId)).txnStatus, statusChecksOf(orderId)]).toEqual(['PENDING', 1])
    const { payment } = await bank.pay(orderId, quietly)
    // The event's own status is ignored, even a failure.
    service.clock.advance(3)
    expect(await send(eventAbout(orderId, 'pg.order.failed'))).toBe(200)
    await runStatusChecks()
    expect(await statusOf(orderId)).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: payment.rrn } })
    const { rows } = await service.db.query('select kind from payment_exceptions where order_id = $1', [orderId])
    expect(rows).toEqual([])
  })

  it('schedules a webhook’s status check 3 s after the previous check, or 60 s after the previous check once the order has had 20 checks', async () => {
    const orderId = await newOrder()
    let checked = 0
    const checksAfter = async (seconds: number) => {
      for (let i = 0; i < 3; i++) expect(await send(eventAbout(orderId))).toBe(200)
      await runStatusChecks()
      expect(statusChecksOf(orderId)).toBe(checked)
      service.clock.advance(seconds)
      await runStatusChecks()
      expect(statusChecksOf(orderId)).toBe(++checked)
    }
    await send(eventAbout(orderId))
    await runStatusChecks()
    expect(statusChecksOf(orderId)).toBe(++checked)
    while (checked < 20) await checksAfter(3)
    await bank.pay(orderId, quietly)
    await send(eventAbout(orderId))
    service.clock.advance(59)
    await runStatusChecks()
    expect(statusChecksOf(orderId)).toBe(20)
    service.clock.advance(1)
    await runStatusChecks()
    expect((await statusOf(orderId)).txnStatus).toBe('SUCCESS')
    // No webhook causes a status check of a paid order.
    service.clock.advance(60)
    expect(await send(eventAbout(orderId))).toBe(200)
    await runStatusChecks()
    expect(statusChecksOf(orderId)).toBe(21)
  })

  it('retains the three status checks after the expiry and allows the operator’s check, however often PhonePe sends a webhook', async () => {
    const orderId = await newOrder()
    for (let i = 0; i < 30; i++) {
      await send(eventAbout(orderId))
      service.clock.advance(10)
      await runStatusChecks()
    }
    const checked = statusChecksOf(orderId)
    service.clock.advance(10 * 60 + 90)
    for (const seconds of [0, 7 * 60, 2 * 3_600]) {
      service.clock.advance(seconds)
      await runStatusChecks()
    }
    expect(statusChecksOf(orderId)).toBe(checked + 3)
    const { most } = phonepe.statusCheckRules as StatusCheckRules
    expect(await createStatusChecks(service.db).claim(orderId, most, service.clock.now())).toBeDefined()
  })

  it('returns 404 for a PhonePe webhook about an unknown refund or about an order that is not stored yet', async () => {
    const refund = { event: 'pg.refund.completed', payload: { merchantRefundId: 'a'.repeat(32) } }
    expect(await send(JSON.stringify(refund))).toBe(404)
    const stored = gate()
    bank.nextFaults.createOrder = [{ until: stored.opens }]
    const known = bank.orders.size
    const creating = create()
    await until('the bank has created the order', () => bank.orders.size > known, { pollMs: 1 })
    const orderId = [...bank.orders.keys()].at(-1) as string
    expect(await send(eventAbout(orderId))).toBe(404)
    stored.open()
    await creating
    expect(await send(eventAbout(orderId))).toBe(200)
  })

  it.each([
    { event: 'pg.order.completed' },
    { event: 'pg.order.completed', payload: { merchantOrderId: 7, note: CUSTOMER_VPA } },
    { event: 'pg.refund.failed', payload: 'text' },
    { event: 'pg.refund.failed', payload: null },
  ])(
    'returns 400 for a PhonePe webhook without an order or refund, and stores the webhook without customer data: %j',
    async (event) => {
      expect(await send(JSON.stringify(event))).toBe(400)
      const { rows } = await service.db.query("select body from payment_exceptions where kind = 'unreadable'")
      expect(rows.map((row) => row.body).join()).toContain(event.event)
      expect(rows.map((row) => row.body).join()).not.toContain(CUSTOMER_VPA)
    },
  )
})

it('records the payment of an order that PhonePe created without returning its own orderId', async () => {
  bank.nextFaults.createOrder = [{ change: ({ orderId: _, ...created }: { orderId?: string }) => created }]
  const orderId = await newOrder()
  await bank.pay(orderId, quietly)
  await send(eventAbout(orderId))
  await runStatusChecks()
  expect(await statusOf(orderId)).toMatchObject({ txnStatus: 'SUCCESS' })
})

describe('a refund at PhonePe', () => {
  async function newRefund() {
    const orderId = await newOrder()
    await bank.pay(orderId, quietly)
    await send(eventAbout(orderId))
    await runStatusChecks()
    const checked = {
      mid: merchant.mid,
      orderId,
      refundId: unique('R'),
      amount: 20_000,
      note: '',
      createdBy: 'merchant',
    }
    const created = await createRefund(service.pools.due, checked, service.clock.now())
    if ('refund' in created) return created.refund
    throw new Error(created.rejected)
  }
  const stored = (ourRefundId: string) => findRefund(service.db, merchant.mid, { ourRefundId })
  const report = (ourRefundId: string) =>
    send(
      JSON.stringify({ event: 'pg.refund.completed', payload: { merchantRefundId: ourRefundId, state: 'COMPLETED' } }),
    )
  const booked = (ourRefundId: string) => bank.refunds.all.find((one) => one.ourRefundId === ourRefundId)
  const queries = (ourRefundId: string) =>
    bank.requests.filter(({ call, path }) => call === 'findRefund' && path.includes(ourRefundId)).length

  it('checks a PhonePe refund 3 s after a webhook, and does not change the refund’s status because of the webhook alone', async () => {
    const { ourRefundId } = await newRefund()
    bank.refunds.faults = { late: 1 }
    await look()
    expect(await report(ourRefundId)).toBe(200)
    await look()
    expect(queries(ourRefundId)).toBe(0)
    service.clock.advance(3)
    await look()
    expect([queries(ourRefundId), (await stored(ourRefundId))?.status]).toEqual([1, 'PENDING'])
    bank.refunds.faults = { lost: 1 }
    await bank.refunds.endLate()
    bank.refunds.faults = {}
    for (let i = 0; i < 3; i++) expect(await report(ourRefundId)).toBe(200)
    service.clock.advance(3)
    await look()
    expect(await stored(ourRefundId)).toMatchObject({ status: 'SUCCESS', reference: booked(ourRefundId)?.reference })
    expect(queries(ourRefundId)).toBe(2)
  })

  it('checks a rejected PhonePe refund and records SUCCESS after a webhook reports the refund as completed', async () => {
    const { ourRefundId, orderId } = await newRefund()
    bank.nextFaults.refund = [{ status: 400 }]
    await look()
    expect(await stored(ourRefundId)).toMatchObject({ status: 'FAIL', reason: 'refused: fault' })
    const of = { id: 'OMR1', paymentId: 'OM1', createdAt: service.clock.now().toISOString() }
    bank.refunds.all.push({ ...of, orderId, ourRefundId, amount: 20_000, status: 'success', reference: '412345678901' })
    expect(await report(ourRefundId)).toBe(200)
    service.clock.advance(3)
    await look()
    expect(await stored(ourRefundId)).toMatchObject({ status: 'SUCCESS', reference: '412345678901' })
    // A webhook about a final refund causes one more status check, and none is scheduled after it.
    expect(await report(ourRefundId)).toBe(200)
    service.clock.advance(3)
    await look()
    expect(queries(ourRefundId)).toBe(3)
    service.clock.advance(86_400)
    await look()
    expect(queries(ourRefundId)).toBe(3)
  })

  it('records one refund, the one that PhonePe created first, if a proxy repeats a refund request', async () => {
    const { ourRefundId } = await newRefund()
    bank.refunds.faults = { late: 1 }
    bank.nextFaults.refund = ['sent twice']
    await look()
    bank.refunds.faults = {}
    expect(await stored(ourRefundId)).toMatchObject({ status: 'PENDING', acquirerRefundId: booked(ourRefundId)?.id })
  })

  const withoutId = { change: ({ refundId: _, ...refund }: { refundId?: string }) => refund }
  /** Removes the refundId from every response to a status check of this refund. */
  const setWithoutId = (ourRefundId: string) => {
    bank.faults = [{ call: 'findRefund', fault: withoutId, chance: 1, path: ourRefundId }]
  }
  const exceptionsOf = async (ourRefundId: string) =>
    (
      await service.db.query(
        `select e.kind, r.reason
           from payment_exceptions e
           left join payment_resolutions r on r.mid = e.mid and r.exception_id = e.exception_id
          where e.our_refund_id = $1`,
        [ourRefundId],
      )
    ).rows
  const lookAfter = async (seconds: number) => {
    service.clock.advance(seconds)
    await look()
  }

  it('stores that PhonePe has a refund whose responses contain no refundId, and adds the refundId when it comes', async () => {
    const { ourRefundId } = await newRefund()
    bank.refunds.faults = { late: 1 }
    bank.nextFaults.refund = [withoutId]
    setWithoutId(ourRefundId)
    await look()
    const sentAt = service.clock.now()
    const known = { status: 'PENDING', sentAt, acceptedAt: sentAt }
    expect(await stored(ourRefundId)).toMatchObject({ ...known, acquirerRefundId: null })
    for (const seconds of [60, 540]) await lookAfter(seconds)
    expect(await stored(ourRefundId)).toMatchObject({ ...known, acquirerRefundId: null })
    bank.faults = []
    await lookAfter(3_000)
    expect(await stored(ourRefundId)).toMatchObject({ ...known, acquirerRefundId: booked(ourRefundId)?.id })
    bank.refunds.faults = {}
    const [{ sequence } = { sequence: 0 }] = (await service.db.query(SEQUENCE, [ourRefundId])).rows
    setWithoutId(ourRefundId)
    Object.assign(booked(ourRefundId) ?? {}, { status: 'success', reference: '412345678901' })
    await lookAfter(6 * 3_600)
    bank.faults = []
    const id = booked(ourRefundId)?.id
    expect(await stored(ourRefundId)).toMatchObject({
      status: 'SUCCESS',
      reference: '412345678901',
      acquirerRefundId: id,
    })
    expect((await service.db.query(SEQUENCE, [ourRefundId])).rows).toEqual([{ sequence: sequence + 1 }])
    expect(await exceptionsOf(ourRefundId)).toEqual([])
  })

  it('resolves `refund unsure` when PhonePe returns the refund without a refundId, and the refund is not sent again', async () => {
    const { ourRefundId, orderId, mid } = await newRefund()
    bank.nextFaults.refund = [{ status: 500 }]
    await look()
    for (const seconds of [60, 540, 3_000, ...Array(4).fill(6 * 3_600)]) await lookAfter(seconds)
    expect(await exceptionsOf(ourRefundId)).toEqual([{ kind: 'refund unsure', reason: null }])
    const of = { id: 'OMR2', paymentId: 'OM1', createdAt: service.clock.now().toISOString() }
    bank.refunds.all.push({ ...of, orderId, ourRefundId, amount: 20_000, status: 'pending', reference: '' })
    setWithoutId(ourRefundId)
    expect(await report(ourRefundId)).toBe(200)
    await lookAfter(3)
    bank.faults = []
    const resolved = { kind: 'refund unsure', reason: 'the acquirer has it' }
    expect(await exceptionsOf(ourRefundId)).toEqual([resolved])
    expect(await stored(ourRefundId)).toMatchObject({ status: 'PENDING', reason: null, acquirerRefundId: null })
    const sent = bank.countOf('refund')
    // The service has stored that PhonePe has the refund, so a later error proves nothing.
    bank.refunds.all.splice(0)
    for (let i = 0; i < 4; i++) await lookAfter(6 * 3_600)
    expect(await exceptionsOf(ourRefundId)).toEqual([resolved])
    expect(await retryRefund(service.db, { mid, ourRefundId, person: 'asha', now: service.clock.now() })).toHaveLength(
      0,
    )
    expect(bank.countOf('refund')).toBe(sent)
  })

  it.each([
    [{ state: 'CONFIRMED' }, { status: 'PENDING' }],
    [
      { state: 'COMPLETED', splitInstruments: [{ rail: { type: 'UPI', utr: '412345678901' } }] },
      { status: 'SUCCESS', reference: '412345678901' },
    ],
    [
      { state: 'COMPLETED', paymentDetails: [{ rail: { type: 'UPI', utr: '412345678901' } }] },
      { status: 'SUCCESS', reference: '412345678901' },
    ],
    [
      { state: 'COMPLETED', paymentDetails: 'none', rail: { type: 'PG', utr: '1' } },
      { status: 'SUCCESS', reference: '' },
    ],
    [
      { state: 'FAILED', errorCode: 'A', detailedErrorCode: 'B' },
      { status: 'FAIL', reason: 'B' },
    ],
    [
      { state: 'FAILED', errorCode: 'two words' },
      { status: 'FAIL', reason: 'FAILED' },
    ],
    [{ state: 'HELD' }, { status: 'PENDING', unknownStatus: 'HELD' }],
  ])('reads PhonePe’s refund response %j as %j', (reported, update) => {
    const response = { status: 200, body: { refundId: 'OMR1', amount: 100, ...reported }, requestId: undefined }
    expect(readRefund('R1', response)).toMatchObject({ id: 'OMR1', amount: 100, ...update })
  })

  it('rejects a refund of a duplicate payment without a call, because PhonePe’s refund names only the order', async () => {
    const order = { orderId: 'O1', ourRefundId: 'R1', amount: 100, isSecond: true } as never
    const calls = bank.requests.length
    expect(await client.refund?.(order)).toMatchObject({ status: 'FAIL' })
    expect(bank.requests.length).toBe(calls)
  })
})

describe('a status response from PhonePe', () => {
  const utr = '455069731511'
  const rail = { type: 'UPI', utr, vpa: CUSTOMER_VPA }
  const attempt = { state: 'COMPLETED', amount: 10_000, transactionId: 'OM1', timestamp: 1_774_982_400_000, rail }
  const order = {
    orderId: 'OMO1',
    state: 'COMPLETED',
    amount: 10_000,
    paymentDetails: [attempt],
    unknown: { of: 'us' },
  }
  const read = (changes: object) =>
    readPayments(
      'phonepe:acme',
      { orderId: 'O1', id: order.orderId },
      { status: 200, body: { ...order, ...changes }, requestId: 'R' },
    )
  const withAttempt = (changes: object) => ({ paymentDetails: [{ ...attempt, ...changes }] })

  it.each([
    ['the rail in the attempt', {}],
    [
      'the rail in the split instruments',
      withAttempt({ rail: undefined, splitInstruments: [{ rail, amount: 10_000 }] }),
    ],
    [
      'another rail beside the UPI rail',
      withAttempt({ rail: undefined, splitInstruments: [{ rail: { type: 'PPI_EGV' } }, { rail }] }),
    ],
    [
      'an earlier failed attempt',
      { paymentDetails: [{ ...attempt, state: 'FAILED', rail: undefined, timestamp: 1 }, attempt] },
    ],
    [
      'attempts of other formats beside the successful attempt',
      { paymentDetails: [{}, { state: 'FAILED', amount: null }, attempt, { state: 7, amount: 0 }, 'text', null] },
    ],
    [
      'a later failed attempt',
      { paymentDetails: [attempt, { ...attempt, state: 'FAILED', timestamp: 1_774_982_500_000 }] },
    ],
  ])('reports the payment from a PhonePe status response with %s, without customer data', (_what, changes) => {
    expect(read(changes).map(({ instrument: _, ...payment }) => payment)).toEqual([
      {
        orderId: 'O1',
        status: 'SUCCESS',
        utr,
        amount: 10_000,
        paidAt: new Date(1_774_982_400_000),
        acquirer: { name: 'phonepe:acme', id: 'OMO1' },
        names: { id: 'OM1' },
      },
    ])
  })

  const paidBy = (type: unknown, by: object = rail) => ({ rail: by, instrument: { type } })
  it.each([
    ['bank account', paidBy('ACCOUNT')],
    ['credit card', paidBy('CREDIT_CARD')],
    ['unknown', paidBy('CREDIT_CARD', { type: 'PG' })],
    ['wallet', { instrument: undefined, splitInstruments: [paidBy('WALLET')] }],
    ['unknown', { ...paidBy('CREDIT_CARD'), splitInstruments: [paidBy('CREDIT_CARD', { type: 'PG' })] }],
    ['unknown', { ...paidBy('ACCOUNT'), splitInstruments: [paidBy('WALLET'), paidBy('ACCOUNT')] }],
    ['unknown', { splitInstruments: [paidBy('ACCOUNT'), null] }],
    ['credit card', { ...paidBy('CREDIT_CARD'), splitInstruments: [{ amount: 200_00 }] }],
    ['bank account', { ...paidBy('ACCOUNT'), splitInstruments: 7 }],
    [undefined, { instrument: 7 }],
    [undefined, { instrument: undefined }],
  ])('reads the instrument %s from the PhonePe attempt %j', (instrument, changes) => {
    expect(read(withAttempt(changes))).toMatchObject([{ status: 'SUCCESS', instrument }])
  })

  it.each([
    ['no attempt', { paymentDetails: [] }],
    ['no list of attempts', { paymentDetails: undefined }],
    ['neither a UTR nor an id', withAttempt({ rail: { type: 'UPI' }, transactionId: undefined })],
    ['an attempt with another amount', withAttempt({ amount: 10_001 })],
    ['a pending attempt', withAttempt({ state: 'PENDING' })],
    ['an unknown state', { state: 'REFUNDED' }],
    ['an amount with decimals', { amount: 10_000.5 }],
  ])('treats a PhonePe response about a paid order with %s as unreadable', (_what, changes) => {
    expect(() => read(changes)).toThrow(expect.objectContaining({ outcome: 'bad answer', isUnreadable: true }))
  })

  it.each([
    ['an attempt without amount', withAttempt({ amount: undefined }), utr],
    ['no UTR', withAttempt({ rail: { type: 'UPI' } }), undefined],
    ['a UTR of another rail', withAttempt({ rail: { type: 'PG', utr } }), undefined],
    ['a placeholder as UTR', withAttempt({ rail: { type: 'UPI', utr: 'NA' } }), undefined],
  ])('reports the payment by PhonePe’s id if a paid order has %s', (_what, changes, reference) => {
    expect(read(changes)).toEqual([
      expect.objectContaining({ status: 'SUCCESS', utr: reference, names: { id: 'OM1' } }),
    ])
  })

  it('reports both payments of a PhonePe order that was paid twice, even beside an unreadable payment', () => {
    const nameless = { ...attempt, transactionId: undefined, rail: undefined }
    const wallet = { ...attempt, transactionId: 'OM2', rail: { type: 'PPI_WALLET' } }
    const both = [
      expect.objectContaining({ utr, names: { id: 'OM1' } }),
      expect.objectContaining({ utr: undefined, names: { id: 'OM2' } }),
    ]
    expect(read({ paymentDetails: [attempt, wallet] })).toEqual(both)
    const reading = () => read({ paymentDetails: [nameless, attempt, wallet] })
    expect(reading).toThrow(expect.objectContaining({ isUnreadable: true, readable: both }))
  })

  it('treats a PhonePe response about a failed order with a completed payment as unreadable', () => {
    expect(() => read({ state: 'FAILED' })).toThrow(expect.objectContaining({ isUnreadable: true, readable: [] }))
  })

  it('rejects a PhonePe response about another order', () => {
    const reading = () => read({ merchantOrderId: 'a'.repeat(32) })
    expect(reading).toThrow(expect.objectContaining({ outcome: 'bad answer', isUnreadable: false }))
  })

  it('rejects JSON that is not in PhonePe’s format', () => {
    const response = { status: 200, body: { error: 'busy' }, requestId: 'R' }
    const reading = () => readPayments('phonepe', { orderId: 'O1', id: 'OMO1' }, response)
    expect(reading).toThrow(expect.objectContaining({ outcome: 'bad answer', isUnreadable: false }))
  })

  it.each([
    ['about an open order with a failed attempt', { state: 'PENDING', ...withAttempt({ state: 'FAILED' }) }],
    ['about an order without an attempt', { state: 'CREATED', paymentDetails: [] }],
    ['about an open order without a list of attempts', { state: 'PENDING', paymentDetails: null }],
    [
      'about an expired order without an attempt',
      { state: 'FAILED', errorCode: 'TXN_NOT_COMPLETED', paymentDetails: [] },
    ],
  ])('reports no payment from a PhonePe response %s', (_what, changes) => {
    expect(read(changes)).toEqual([])
  })

  it('reports the last attempt of a failed PhonePe order', () => {
    const failed = { ...attempt, state: 'FAILED', errorCode: 'TXN_CANCELLED', detailedErrorCode: 'ZA', rail: undefined }
    const earlier = { ...failed, transactionId: 'OM0', timestamp: 1, detailedErrorCode: 'ZM' }
    expect(read({ state: 'FAILED', paymentDetails: [failed, earlier] })[0]).toMatchObject({
      status: 'FAIL',
      utr: undefined,
      names: { id: 'OM1' },
      failure: { reason: 'declined_by_customer', code: 'ZA' },
    })
  })

  it('reports no reason of a failed PhonePe order whose codes are not text', () => {
    const codes = { errorCode: { toString: 7 }, detailedErrorCode: { toString: 7 } }
    const failed = { ...attempt, ...codes, state: 'FAILED' }
    const [report] = read({ ...codes, state: 'FAILED', paymentDetails: [failed] })
    expect(report).toMatchObject({ status: 'FAIL', failure: undefined })
  })
})

it.each([5, 15, 24 * 60, 3 * 24 * 60, 30 * 24 * 60])(
  'the service checks a PhonePe order with an expiry of %d minutes at most 12 times while the merchant polls, up to the last third of the time',
  (minutes) => {
    const [createdAt, expiresAt] = [0, new Date(minutes * 60_000)]
    const checked: number[] = []
    for (let at = 0; at < expiresAt.getTime(); at += 1_000) {
      const state = {
        acquirer: 'phonepe',
        statusChecks: checked.length,
        createdAt,
        statusCheckedAt: checked.at(-1) ?? null,
        dueAt: expiresAt.getTime() + 90_000,
        expiresAt,
      }
      if (mayCheckStatus(state, phonepe.statusCheckRules as StatusCheckRules, new Date(at))) checked.push(at)
    }
    expect(checked[0]).toBe(20_000)
    expect(checked.length).toBeLessThanOrEqual(12)
    expect(checked.length).toBeGreaterThanOrEqual(8)
    expect(checked.at(-1)).toBeGreaterThan((2 / 3) * expiresAt.getTime())
    for (const [index, at] of checked.entries())
      if (index > 0) expect(at - (checked[index - 1] as number)).toBeGreaterThanOrEqual(10_000)
  },
)

it('the service rejects simulated payments for PhonePe orders, because PhonePe has no simulation call', async () => {
  const attempt = { payeeVpa: 'a@b', amount: 100, succeeds: true }
  await expect(client.simulate({} as never, attempt)).rejects.toMatchObject({ outcome: 'unavailable' })
})
