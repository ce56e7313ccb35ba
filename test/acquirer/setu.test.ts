import { createHmac } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { setuClient } from '../../src/gateway/acquirers/setu/client.ts'
import { createSetuRequest } from '../../src/gateway/acquirers/setu/http.ts'
import { LIMITS } from '../../src/limits.ts'
import { createOutboundClient } from '../../src/platform/outbound/http-client.ts'
import type { CallFault } from '../support/bank-faults.ts'
import { newSetuMerchant, SETU_SECRETS, setuSettings, startServiceWithBank } from '../support/fake-setu.ts'
import { CANCEL, STATUS } from '../support/requests.ts'
import {
  CREATE,
  errorResponse,
  type HttpResponse,
  intentFields,
  post,
  type TestService,
  unique,
} from '../support/service.ts'
import type { FakeSetu } from '../support/setu-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { allow } from '../support/webhooks.ts'
import { gate } from './conformance/orders.ts'

/** Long time limits, so that a busy machine does not turn a correct response into a 503. */
const PATIENT_LIMITS = { outbound: { acquirerMs: 30_000 }, acquirers: { requestMs: 30_000 } }

let service: TestService
let bank: FakeSetu
let merchant: NewMerchant
beforeAll(async () => {
  ;({ service, bank } = await startServiceWithBank({ limits: PATIENT_LIMITS }))
  merchant = await newSetuMerchant(service)
})

const create = (
  changes: Record<string, string | undefined> = {},
  { of = merchant, at = service, headers = {} as Record<string, string> } = {},
): Promise<HttpResponse> => post(at.app, CREATE, intentFields(of.mid, changes), of.key, headers)

async function newOrder(options: Parameters<typeof create>[1] = {}): Promise<string> {
  const { status, text, body } = await create({}, options)
  if (status !== 200) throw new Error(text)
  return body.data.orderId
}

const qrOf = (orderId: string) => {
  const qr = bank.find(orderId)
  if (!qr) throw new Error(`the bank has no order ${orderId}`)
  return qr
}

const statusOf = async (orderId: string) =>
  (await post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key)).body

/** Returns everything stored for an order, sorted independently of arrival. */
async function recorded(orderId: string, { db } = service) {
  const rows = async (sql: string) => (await db.query(sql, [orderId])).rows.map((row) => Object.values(row))
  return {
    intent: (await rows('select status, utr from payment_intents where order_id = $1'))[0],
    successes: await rows("select utr, source from payments where order_id = $1 and kind <> 'second'"),
    attempts: await rows('select utr from payment_attempts where order_id = $1 order by utr'),
    exceptions: await rows(
      `select kind, utr, (amount_paise * 0.01)::text as amount from payment_exceptions
        where order_id = $1 and kind <> 'unknown order' order by kind, utr, amount_paise`,
    ),
  }
}

describe('a payment link from Setu', () => {
  it('creates a Setu payment link with the order’s amount and expiry, and with Setu’s own reference as tr', async () => {
    const orderId = await newOrder()
    const { rows } = await service.db.query('select expires_at from payment_intents where order_id = $1', [orderId])
    const [{ expires_at }] = rows
    const { refId, intentLink, ...qr } = qrOf(orderId)
    expect(qr).toMatchObject({ amount: 20_000, referenceId: orderId, expiryDate: expires_at.toISOString() })
    expect(intentLink).toContain(`&tr=${refId}&`)
  })
})

describe('a payment link to a payee other than the merchant’s own address', () => {
  it('stores and shows a link to another payee that the merchant accepts, and accepts the link’s payment in the sandbox', async () => {
    const { service: sandbox, bank: its } = await startServiceWithBank({ limits: PATIENT_LIMITS, sandbox: true })
    const of = await newSetuMerchant(sandbox, { payees: ['Not-Chai*@ExampleBank'] })
    its.nextFaults.createDqr = ['wrong payee']
    const { body } = await create({}, { of, at: sandbox })
    const { orderId, intent } = body.data
    expect(new URL(intent).searchParams.get('pa')).toBe('not-chaipoint@examplebank')
    const { rows } = await sandbox.db.query('select payee_vpa from payment_intents where order_id = $1', [orderId])
    expect(rows).toEqual([{ payee_vpa: 'not-chaipoint@examplebank' }])
    const page = await sandbox.app.inject({ url: `/pay/${orderId}` })
    expect(page.payload).toContain('<bdi>not-chaipoint@examplebank</bdi>')
    await post(sandbox.app, `/pay/${orderId}/simulate`, { status: 'SUCCESS' }, undefined)
    const [played] = its.requests.filter(({ call }) => call === 'pay')
    expect(played?.body).toMatchObject({ payeeVpa: 'not-chaipoint@examplebank' })
  })

  it('rejects a link to a payee that the merchant does not accept, and logs the payee and the accepted payees', async () => {
    const of = await newSetuMerchant(service, { payees: ['chai.*@icici', 'chai@icici'] })
    service.log.length = 0
    expect((await create({}, { of })).status).toBe(503)
    const lines = service.log.map((line) => JSON.parse(line)).filter(({ acquirer }) => acquirer === 'setu')
    expect(lines).toMatchObject([
      {
        level: 50,
        outcome: 'bad answer',
        payee: 'chaipoint@examplebank',
        accepted: ['chai.*@icici', 'chai@icici'],
        requestId: expect.any(String),
        orderId: expect.any(String),
        msg: expect.stringContaining('ops merchants update --payee'),
      },
    ])
  })
})

describe('an error response from Setu', () => {
  it.each([400, 404])(
    'does not log status %d when Setu rejects closing a QR that was paid or has expired',
    async (status) => {
      const orderId = await newOrder()
      bank.nextFaults.expireDqr = [{ status }]
      const before = bank.countOf('expireDqr')
      service.log.length = 0
      await post(service.app, CANCEL, { mid: merchant.mid, order_id: orderId }, merchant.key)
      await until('Setu received the call', () => bank.countOf('expireDqr') > before)
      await until('the metric counts the call', async () =>
        (await service.metrics()).includes('call="closeLink",outcome="done"'),
      )
      expect(service.log.filter((line) => JSON.parse(line).call === 'closeLink')).toEqual([])
    },
  )

  it.each<CallFault>([
    ...[401, 500, 429].map((status) => ({ status })),
    'no JSON',
    'no fields',
    'half a body',
    'no response',
  ])('returns 503 when the login to Setu fails with %j, and succeeds on the next request', async (fault) => {
    bank.forgetTokens()
    bank.nextFaults.logIn = [fault]
    const order_id = unique('order')
    expect((await create({ order_id })).status).toBe(503)
    expect((await create({ order_id })).status).toBe(200)
  })
})

describe('the login to Setu', () => {
  it('shares one login to Setu among all waiting calls, and reuses the login’s token', async () => {
    const { service: fresh, bank: freshBank } = await startServiceWithBank({ limits: PATIENT_LIMITS })
    const of = await newSetuMerchant(fresh)
    await Promise.all(Array.from({ length: 20 }, () => create({}, { of, at: fresh })))
    await create({}, { of, at: fresh })
    expect([freshBank.countOf('logIn'), freshBank.countOf('createDqr')]).toEqual([1, 21])
  })

  it('repeats the login once for all concurrent calls when Setu rejects the token', async () => {
    await newOrder()
    const before = bank.countOf('logIn')
    bank.forgetTokens()
    const responses = await Promise.all(Array.from({ length: 10 }, () => create()))
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([200]))
    expect(bank.countOf('logIn') - before).toBe(1)
  })

  it('renews the Setu token after 4 minutes while calls use the old token', async () => {
    await newOrder()
    const before = bank.countOf('logIn')
    service.clock.advance(241)
    const held = gate()
    bank.nextFaults.logIn = [{ until: held.opens }]
    await Promise.all([newOrder(), newOrder()])
    await newOrder()
    held.open()
    await until('a new token is available', () => bank.countOf('logIn') - before === 1)
    await newOrder()
    expect(bank.countOf('logIn') - before).toBe(1)
  })
})

describe('a notification from Setu', () => {
  const event = (orderId: string, eventType: string, changes: object = {}) => {
    const qr = qrOf(orderId)
    const ids = { id: unique('01'), txnId: unique('SET'), txnTs: service.clock.now().toISOString() }
    const payment = {
      ...ids,
      status: eventType.slice('payment.'.length) as 'success',
      amount: qr.amount,
      rrn: newRrn(),
    }
    return { ...bank.eventOf(qr, payment), eventType, ...changes }
  }
  const send = (body: string, signature?: string) =>
    post(service.app, '/acquirer/setu/notification', body, undefined, {
      'content-type': 'application/json',
      ...(signature !== undefined && { 'x-setu-signature': signature }),
    })
  let lastRrn = 623_504_870_000
  const newRrn = () => String(++lastRrn)

  it.each([[undefined], [null], ['']])(
    'accepts Setu’s notification of a failed attempt without rrn or txnTs: %j',
    async (absent) => {
      const orderId = await newOrder()
      expect(await bank.sendEvent(event(orderId, 'payment.failed', { rrn: absent, txnTs: absent }))).toBe(200)
      expect(await recorded(orderId)).toMatchObject({ intent: ['FAIL', null], attempts: [[null]], exceptions: [] })
    },
  )

  it.each([
    ['txnTs', 'yesterday'],
    ['txnTs', 1_774_982_400_000],
    ['productInstanceId', null],
  ])('accepts Setu’s notification of a success whose %s is %j', async (field, value) => {
    const orderId = await newOrder()
    expect(await bank.sendEvent(event(orderId, 'payment.success', { [field]: value }))).toBe(200)
    expect(await recorded(orderId)).toMatchObject({ intent: ['SUCCESS', expect.any(String)], exceptions: [] })
  })

  it('returns 404 for Setu’s notification with one order’s id and another order’s QR, and changes nothing', async () => {
    const [one, other] = [await newOrder(), await newOrder()]
    const changes = { productInstanceId: qrOf(other).id }
    expect(await bank.sendEvent(event(one, 'payment.success', changes))).toBe(404)
    for (const orderId of [one, other]) expect((await statusOf(orderId)).txnStatus).toBe('PENDING')
  })

  it.each([
    ['amount', '20000', 'amount must be a whole number of paise'],
    ['amount', 20_000.5, 'amount must be a whole number of paise'],
    ['amount', 100_000_000_000_000, 'amount must be a whole number of paise'],
    ['rrn', undefined, 'rrn or id is required with payment.success', { id: undefined }],
    ['productInstanceId', '../x', 'productInstanceId must be a Setu identifier'],
  ])(
    'returns 400 for Setu’s notification of a success with %s %j, and stores the notification without customer data',
    async (field, value, msg, others?: object) => {
      const orderId = await newOrder()
      const body = JSON.stringify(event(orderId, 'payment.success', { [field]: value, ...others }))
      const signature = createHmac('sha256', SETU_SECRETS[0] ?? '').update(body)
      expect((await send(body, signature.digest('base64'))).body).toEqual(errorResponse(400, msg))
      const { rows } = await service.db.query("select body from payment_exceptions where kind = 'unreadable'")
      const stored = rows.map((row) => row.body).filter((text) => text.includes(orderId))
      expect(stored).toHaveLength(1)
      expect(stored[0]).not.toContain('customer')
    },
  )
})

describe('a status check at Setu', () => {
  const checkStatus = async (orderId: string) => {
    const { id, merchantId, refId, intentLink } = bank.find(orderId) as NonNullable<ReturnType<FakeSetu['find']>>
    const link = { acquirer: 'setu', id, merchantId, reference: refId, link: intentLink }
    const http = createOutboundClient({ allowedNetworks: allow(), limits: LIMITS.outbound, now: service.clock.now })
    const settings = setuSettings(bank)
    const client = setuClient(
      settings,
      createSetuRequest(settings, http, () => performance.now()),
    )
    return (await client.getPayments({ orderId, paymentLink: link }))[0]
  }
  const quietly = { faults: { lost: 1 } }

  const namesOf = ({ id, txnId }: { id: string; txnId: string }) => ({ id, txnId })

  it('finds the last payment, even if the time zone in Setu’s response lacks the colon', async () => {
    const orderId = await newOrder()
    const { payment: failed } = await bank.pay(orderId, { ...quietly, outcome: 'failed' })
    const paidAt = new Date(failed.txnTs)
    expect(await checkStatus(orderId)).toMatchObject({
      status: 'FAIL',
      utr: failed.rrn,
      amount: 200_00,
      paidAt,
      names: namesOf(failed),
    })
    const { payment } = await bank.pay(orderId, quietly)
    payment.txnTs = '2026-03-31T23:59:58+0530'
    const at = { paidAt: new Date('2026-03-31T18:29:58Z') }
    expect(await checkStatus(orderId)).toMatchObject({
      status: 'SUCCESS',
      utr: payment.rrn,
      amount: 200_00,
      ...at,
      names: namesOf(payment),
    })
  })

  it.each([[undefined], [null], ['']])('finds a failed attempt whose rrn is %j', async (rrn) => {
    const orderId = await newOrder()
    const { payment } = await bank.pay(orderId, { ...quietly, outcome: 'failed' })
    Object.assign(payment, { rrn, txnTs: rrn })
    expect(await checkStatus(orderId)).toMatchObject({
      ...{ status: 'FAIL', utr: undefined, amount: 200_00, paidAt: undefined, names: namesOf(payment) },
    })
  })

  it.each([{ rrn: '', id: '' }, { amount: '20000' }, { amount: 0.5 }])(
    'rejects Setu’s report of a success with the invalid value %j',
    async (changes) => {
      const orderId = await newOrder()
      const { payment } = await bank.pay(orderId, quietly)
      Object.assign(payment, changes)
      await expect(checkStatus(orderId)).rejects.toMatchObject({ outcome: 'bad answer' })
    },
  )
})

describe('the sandbox form on the pay page', () => {
  let sandbox: TestService
  let of: NewMerchant
  beforeAll(async () => {
    const started = await startServiceWithBank({ sandbox: true, limits: PATIENT_LIMITS })
    ;({ service: sandbox } = started)
    of = await newSetuMerchant(sandbox)
  })

  const press = (orderId: string, status: string) => post(sandbox.app, `/pay/${orderId}/simulate`, { status })

  it.each([
    ['SUCCESS', 'SUCCESS', []],
    ['TWICE', 'SUCCESS', []],
    ['FAIL', 'FAIL', []],
    ['REJECT', 'FAIL', []],
    ['LATE', 'SUCCESS', ['late payment']],
    ['OTHER_AMOUNT', 'PENDING', ['amount differs']],
    ['EXPIRE', 'PENDING', []],
  ])(
    'simulates a payment at Setu for the option %s and gives the order the status %s',
    async (pressed, end, exceptions) => {
      const orderId = await newOrder({ of, at: sandbox })
      expect((await press(orderId, pressed)).status).toBe(303)
      const kinds = async () => (await recorded(orderId, sandbox)).exceptions.map(([kind]) => kind)
      const status = async () => (await recorded(orderId, sandbox)).intent?.[0]
      await until(
        `the order is ${end}`,
        async () => (await status()) === end && (await kinds()).length === exceptions.length,
      )
      expect(await kinds()).toEqual(exceptions)
      const { rows } = await sandbox.db.query(
        `select source from payments where order_id = $1
       union all
       select source from payment_attempts where order_id = $1`,
        [orderId],
      )
      expect(rows).toEqual(end === 'PENDING' ? [] : [{ source: 'notification' }])
    },
  )
})
