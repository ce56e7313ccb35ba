import { beforeAll, describe, expect, it } from 'vitest'
import { AcquirerError } from '../../src/errors.ts'
import { readAccount } from '../../src/gateway/acquirers/accounts.ts'
import type { AcquirerClient, RefundOrder } from '../../src/gateway/acquirers/client.ts'
import { parseExact } from '../../src/gateway/acquirers/exact-json.ts'
import { undone } from '../../src/gateway/acquirers/json-request.ts'
import type { Notifications } from '../../src/gateway/acquirers/notification.ts'
import { razorpay, razorpayClient } from '../../src/gateway/acquirers/razorpay/client.ts'
import type { RazorpayRequest } from '../../src/gateway/acquirers/razorpay/http.ts'
import type { Intent } from '../../src/gateway/payments/intent.ts'
import { toDecimalText } from '../../src/platform/money.ts'
import { seeded } from '../support/bank-faults.ts'
import { RAZORPAY_SECRETS, razorpaySettings } from '../support/fake-razorpay.ts'
import type { FakeRazorpay } from '../support/razorpay-bank.ts'
import type { Stage } from './conformance/driver.ts'
import { startInstance } from './conformance/instance.ts'
import { bankOf, create, type Order, recorded, statusOf } from './conformance/orders.ts'
import { razorpay as start } from './conformance/razorpay.ts'

const settings = razorpaySettings({ apiUrl: 'https://api.example/v1' })
const ORDER_ID = '0123456789abcdef0123456789abcdef'
const LINK = { acquirer: 'razorpay', merchantId: 'RZ', id: 'order_1', reference: 'T1', link: 'upi://pay?' }
const MERCHANT = { id: 'RZ', payees: ['rzr.demo*@icici'] }

const intentOf = (amount = 20_000) => ({
  ...{ orderId: ORDER_ID, amount, customer: { name: 'Asha', email: 'a@example.in', mobile: '9876543210' } },
  ...{ createdAt: new Date('2026-11-28T10:00:00Z'), expiresAt: new Date('2026-11-28T10:10:00Z') },
})
const asIntent = (intent: object) => intent as Intent

let stage: Stage
beforeAll(async () => {
  stage = await start({ limits: { outbound: { acquirerMs: 30_000 }, acquirers: { requestMs: 30_000 } } })
})
const fake = () => stage.bank as unknown as FakeRazorpay

async function newOrder(expiry_minutes: string): Promise<Order> {
  const of = await stage.newMerchant()
  const { status, text, body } = await create(stage, of, { expiry_minutes })
  expect([status, text]).toEqual([200, expect.anything()])
  return { orderId: body.data.orderId, of }
}

describe('a link of Razorpay', () => {
  it.each([
    ['5', 15],
    ['10', 20],
    ['30', 40],
  ])('of an order of %s minutes is captured automatically for %i minutes', async (expiry, minutes) => {
    const { orderId } = await newOrder(expiry)
    const sent = fake().requests.filter(({ call }) => call === 'createOrder')
    expect(sent.at(-1)?.body).toEqual({
      ...{ amount: 20_000, currency: 'INR', receipt: orderId },
      payment: {
        capture: 'automatic',
        capture_options: {
          ...{ automatic_expiry_period: minutes, manual_expiry_period: minutes, refund_speed: 'normal' },
        },
      },
    })
  })

  it.each([
    ['of another amount', { amount: 20_100 }],
    ['in another currency', { currency: 'USD' }],
    ['with another receipt', { receipt: 'f'.repeat(32) }],
  ])('is not created for an existing order %s', async (_what, changes) => {
    fake().nextFaults.createOrder = ['sent twice']
    const change = (body: { items: object[] }) => ({
      ...body,
      items: body.items.map((one) => ({ ...one, ...changes })),
    })
    fake().nextFaults.findOrder = [{ change }]
    const before = fake().countOf('createPayment')
    expect((await create(stage, await stage.newMerchant())).status).toBe(503)
    expect(fake().countOf('createPayment')).toBe(before)
  })

  it.each([
    ['6000000000', '6000000000'],
    ['5999999999', '9999999999'],
  ])('with the mobile number %s is requested for the contact %s', async (mobile, contact) => {
    await create(stage, await stage.newMerchant(), { customer_mobile: mobile, customer_email: 'asha@example.in' })
    expect(fake().requests.findLast(({ call }) => call === 'createPayment')?.body).toMatchObject({
      ...{ email: 'asha@example.in', contact },
    })
  })

  it.each([
    ['createOrder', 'no response', true],
    ['createOrder', 'no JSON', true],
    ['createPayment', { status: 400 }, true],
    ['createPayment', { status: 502 }, false],
    ['createPayment', 'no response', false],
    ['createPayment', 'no JSON', false],
    ['createPayment', 'wrong payee', false],
  ] as const)('certainly does not exist after %s meets %j: %j', async (call, fault, isUndone) => {
    const client = (await startInstance(stage).clientOf('razorpay')) as AcquirerClient
    fake().nextFaults[call] = [fault]
    const intent = asIntent({ ...intentOf(), orderId: ORDER_ID.slice(8) + String(Date.now()).slice(-8) })
    const error = await client.createLink(intent, MERCHANT).catch((thrown) => thrown)
    expect([error.isUndone, error.unsureLink]).toEqual([isUndone, undefined])
  })
})

describe('a payment that Razorpay authorizes', () => {
  const attemptsOf = async ({ orderId }: Order) =>
    (
      await stage.service.db.query('select failure_reason as reason from payment_attempts where order_id = $1', [
        orderId,
      ])
    ).rows

  it.each([1, 9, 15])('in minute %i of an order of 10 minutes is paid, without an exception', async (minute) => {
    const order = await newOrder('10')
    stage.service.clock.advance(minute * 60)
    const { payment } = await fake().pay(order.orderId)
    expect(await statusOf(stage, order)).toBe('SUCCESS')
    expect(await recorded(stage, order)).toMatchObject({ intent: ['SUCCESS', payment.rrn], exceptions: [] })
  })

  it('is pending until it is captured', async () => {
    const order = await newOrder('10')
    await fake().pay(order.orderId, { outcome: 'authorized' })
    expect(await startInstance(stage).checkStatus(order.orderId)).toBeUndefined()
    expect(await statusOf(stage, order)).toBe('PENDING')
    await fake().pay(order.orderId)
    expect(await statusOf(stage, order)).toBe('SUCCESS')
  })

  it.each(['notification', 'status check'])(
    'in minute 21, and therefore returns, is one failed attempt by the %s',
    async (source) => {
      const order = await newOrder('10')
      stage.service.clock.advance(21 * 60)
      const { notifyUrl } = fake()
      if (source === 'status check') fake().notifyUrl = undefined
      fake().refunds.faults = { repeated: 1 }
      await fake().pay(order.orderId)
      if (source === 'status check') await startInstance(stage).checkStatus(order.orderId)
      await expect.poll(() => attemptsOf(order)).toEqual([{ reason: 'not_authorised_in_time' }])
      fake().notifyUrl = notifyUrl
      fake().refunds.faults = {}
      await startInstance(stage).checkStatus(order.orderId)
      expect(await attemptsOf(order)).toHaveLength(1)
      expect(await statusOf(stage, order)).toBe('FAIL')
      expect(await recorded(stage, order)).toMatchObject({ successes: [], exceptions: [] })
    },
  )

  it('in minute 21 is a late payment with Direct Settlement, which captures every payment', async () => {
    const order = await newOrder('10')
    stage.service.clock.advance(21 * 60)
    fake().isDirectSettlement = true
    const { payment } = await fake().pay(order.orderId)
    fake().isDirectSettlement = false
    expect(await statusOf(stage, order)).toBe('SUCCESS')
    const exceptions = [['late payment', 'SUCCESS', payment.rrn, '200.00']]
    expect(await recorded(stage, order)).toMatchObject({ intent: ['SUCCESS', payment.rrn], exceptions })
  })

  it('and captures, then refunds in full, is still a payment', async () => {
    const items = [
      { ...{ id: 'pay_1', order_id: 'order_1', status: 'refunded', captured: true, amount: 20_000, currency: 'INR' } },
    ]
    const client = razorpayClient(settings, async () => ({ status: 200, body: { items }, requestId: undefined }))
    const [payment] = await client.getPayments({ orderId: ORDER_ID, paymentLink: LINK })
    expect(payment).toMatchObject({ status: 'SUCCESS', names: { id: 'pay_1' } })
  })
})

it.each([
  ['incorrect_pin', 'wrong_pin'],
  ['insufficient_funds', 'insufficient_funds'],
  ['transaction_limit_exceeded', 'limit_exceeded'],
  ['bank_technical_error', 'bank_unavailable'],
  ['gateway_technical_error', 'bank_unavailable'],
  ['payment_cancelled', 'declined_by_customer'],
  ['payment_timed_out', 'not_authorised_in_time'],
  ['payment_declined', 'other'],
  ['a_new_reason', 'other'],
  ['', undefined],
  [{ toString: 7 }, undefined],
])('the service reads Razorpay’s error_reason %j as %j', async (error_reason, reason) => {
  const items = [{ id: 'pay_1', status: 'failed', amount: 20_000, error_reason }]
  const client = razorpayClient(settings, async () => ({ status: 200, body: { items }, requestId: undefined }))
  const [attempt] = await client.getPayments({ orderId: ORDER_ID, paymentLink: LINK })
  expect(attempt?.failure).toEqual(reason && { reason, code: error_reason })
})

describe('a refund at Razorpay', () => {
  const rrn = '523504870405'
  const REFUND = {
    ...{ orderId: ORDER_ID, ourRefundId: 'f'.repeat(32), amount: 5_001, note: '', utr: rrn },
    ...{ isSecond: true, payment: { id: 'pay_1' }, paymentLink: LINK },
  } as RefundOrder

  /** Returns a client whose requests get these responses in turn, and the requests. */
  function clientOf(...responses: { status: number; body: unknown }[]) {
    const sent: Parameters<RazorpayRequest>[0][] = []
    const client = razorpayClient(settings, async (request) => {
      sent.push(request)
      return { requestId: undefined, ...(responses.shift() as { status: number; body: unknown }) }
    })
    return { client, sent }
  }
  const NONE = { status: 200, body: { items: [] } }

  it('names the payment, so that a duplicate payment is refunded too', async () => {
    const { client, sent } = clientOf({ status: 200, body: { id: 'rfnd_1', status: 'processed', amount: 5_001 } })
    expect(await client.refund?.(REFUND)).toMatchObject({ status: 'SUCCESS', id: 'rfnd_1', amount: 5_001 })
    expect(sent).toEqual([
      {
        ...{ method: 'POST', path: 'payments/pay_1/refund', headers: { 'x-refund-idempotency': 'f'.repeat(32) } },
        body: { amount: 5_001, speed: 'normal', receipt: 'f'.repeat(32) },
      },
    ])
  })

  it('finds the payment by its bank reference if its id is unknown', async () => {
    const items = [
      { id: 'pay_1', status: 'captured', acquirer_data: { rrn: '523504870404' } },
      { id: 'pay_2', status: 'captured', acquirer_data: { rrn } },
    ]
    const { client, sent } = clientOf({ status: 200, body: { items } }, { status: 200, body: { status: 'pending' } })
    const update = await client.refund?.({ ...REFUND, payment: null })
    expect(update).toMatchObject({ status: 'PENDING', payment: { id: 'pay_2' } })
    expect(sent.map(({ path }) => path)).toEqual(['orders/order_1/payments', 'payments/pay_2/refund'])
  })

  const NO_BALANCE = { status: 400, body: { code: 'BAD_REQUEST_ERROR', description: 'no balance' } }

  it('has failed if Razorpay rejects it with 400 and does not list it', async () => {
    const { client } = clientOf(NO_BALANCE, NONE)
    expect(await client.refund?.(REFUND)).toMatchObject({ status: 'FAIL', reason: 'refused: BAD_REQUEST_ERROR' })
  })

  it('is listed with the payment’s id, which the service looks up once', async () => {
    const payments = { status: 200, body: { items: [{ id: 'pay_2', status: 'captured', acquirer_data: { rrn } }] } }
    const listed = { status: 200, body: { items: [{ status: 'processed', receipt: 'f'.repeat(32) }] } }
    const { client, sent } = clientOf(payments, NO_BALANCE, listed, payments, NO_BALANCE, NONE, payments, listed)
    const order = { ...REFUND, payment: null }
    const payment = { id: 'pay_2' }
    expect(await client.refund?.(order)).toMatchObject({ status: 'SUCCESS', payment })
    expect(await client.refund?.(order)).toMatchObject({ status: 'FAIL', payment })
    expect(await client.getRefund?.(order)).toMatchObject({ status: 'SUCCESS', payment })
    expect(sent.filter(({ path }) => path === 'orders/order_1/payments')).toHaveLength(3)
  })

  it('may exist after a rejection if the status check of the refund fails', async () => {
    const client = razorpayClient(settings, async ({ method }) => {
      if (method === 'POST') return { ...NO_BALANCE, requestId: undefined }
      throw undone(new AcquirerError('refused', 'the key is rejected'))
    })
    await expect(client.refund?.(REFUND)).rejects.toMatchObject({ isUndone: false })
  })

  it('is not final while Razorpay has another request with its key, or still processes it', async () => {
    const description = 'Different request with the same idempotency key has already been processed'
    const { client } = clientOf({ status: 400, body: { code: 'BAD_REQUEST_ERROR', description } }, NONE, {
      ...{ status: 409, body: { code: 'BAD_REQUEST_ERROR', description: 'Request is in progress' } },
    })
    await expect(client.refund?.(REFUND)).rejects.toMatchObject({ outcome: 'bad answer' })
    await expect(client.refund?.(REFUND)).rejects.toMatchObject({ outcome: 'unavailable' })
  })
})

describe('a notification of Razorpay', () => {
  const { read, toStored } = razorpay.notifications({ razorpay: settings }) as Required<Notifications>
  const eventOf = (event: string, refund: object, payment: object) => ({
    ...{ event, payload: { refund: { entity: refund }, payment: { entity: payment } } },
  })

  it.each(['refund.created', 'refund.processed', 'refund.failed'])(
    '%s of a payment that the service did not create changes nothing, whatever its fields',
    (event) => {
      const refund = { id: 'rfnd_1', amount: '5.5', receipt: 'INVOICE-1' }
      expect(read(eventOf(event, refund, { notes: { receipt: 'INVOICE-1' } }))).toBeUndefined()
      expect(() => read(eventOf(event, refund, { notes: { receipt: ORDER_ID } }))).toThrow('amount')
    },
  )

  it('is stored, if it is unreadable, with the fields that the service reads, and without customer data', () => {
    const payment = { id: 'pay_1', captured: false, notes: { receipt: ORDER_ID }, created_at: 1, amount: '5.5' }
    const refund = { id: 'rfnd_1', amount: '5.5', receipt: 'R', acquirer_data: { arn: '1', rrn: '2' } }
    const event = eventOf('refund.processed', refund, payment)
    const customer = { vpa: 'asha@examplebank', email: 'a@example.in', contact: '9876543210', upi: { vpa: 'asha@b' } }
    const sent = eventOf('refund.processed', refund, { ...payment, ...customer })
    expect(JSON.parse(String(toStored(Buffer.from(JSON.stringify(sent)))))).toEqual(event)
  })
})

it('the service sends and reads 1,000 amounts of Razorpay exactly', async () => {
  const random = seeded(20)
  const { read } = razorpay.notifications({ razorpay: settings }) as NonNullable<
    ReturnType<typeof razorpay.notifications>
  >
  const sent: unknown[] = []
  const client = razorpayClient(settings, async ({ path, body }) => {
    const { amount } = body as { amount: number }
    sent.push(JSON.parse(JSON.stringify(body)).amount)
    const link = `upi://pay?pa=rzr.demo@icici&am=${toDecimalText(amount)}&cu=INR&tr=T1`
    const bodies = { orders: { id: 'order_1', amount }, 'payments/create/upi': { link } }
    const refund = { id: 'rfnd_1', status: 'processed', amount }
    return { status: 200, body: bodies[path as keyof typeof bodies] ?? refund, requestId: undefined }
  })
  for (let i = 0; i < 1_000; i++) {
    const amount = 100 + Math.floor(random() * 50_000_000)
    await client.createLink(asIntent(intentOf(amount)), MERCHANT)
    const entity = { id: 'pay_1', amount, notes: { receipt: ORDER_ID } }
    const event = JSON.stringify({ event: 'payment.captured', payload: { payment: { entity } } })
    const reported = read?.(parseExact(event) as Record<string, unknown>)
    const refund = { ourRefundId: 'f'.repeat(32), amount, payment: { id: 'pay_1' }, paymentLink: LINK } as RefundOrder
    const refunded = await client.refund?.(refund)
    expect([...sent.splice(0), reported, refunded]).toMatchObject([
      amount,
      amount,
      amount,
      { payment: { amount } },
      { amount },
    ])
  }
})

describe('the settings of a Razorpay account', () => {
  const lines = (id: string, more = '') =>
    `RAZORPAY_KEY_ID=${id}\nRAZORPAY_KEY_SECRET=secret\nRAZORPAY_WEBHOOK_SECRETS=${RAZORPAY_SECRETS.join()}\n${more}`

  it('have a link of 10 minutes unless a line says otherwise', () => {
    const read = (more?: string) => readAccount('razorpay:acme', lines('rzp_live_1', more), { production: true })
    expect(read()).toMatchObject({ linkMinutes: 10, apiUrl: 'https://api.razorpay.com/v1', account: 'acme' })
    expect(read('RAZORPAY_LINK_MINUTES=1440')).toMatchObject({ linkMinutes: 1_440 })
    for (const minutes of ['4', '1441', '10.5', '']) {
      expect(() => read(`RAZORPAY_LINK_MINUTES=${minutes}`)).toThrow('RAZORPAY_LINK_MINUTES must be')
    }
  })

  it('must not be those of the test mode in production', () => {
    const read = (production: boolean) => readAccount('razorpay', lines('rzp_test_1'), { production })
    expect(() => read(true)).toThrow('RAZORPAY_KEY_ID must not be the sandbox in production')
    expect(read(false)).toMatchObject({ clientId: 'rzp_test_1' })
  })
})

it('the service has no call that simulates a payment at Razorpay', async () => {
  const { calls } = bankOf(stage)
  expect(calls.close).toBeUndefined()
  const client = (await startInstance(stage).clientOf('razorpay')) as AcquirerClient
  await expect(client.check()).resolves.toBeUndefined()
  await expect(client.simulate(LINK, { payeeVpa: '', amount: 1, succeeds: true })).rejects.toThrow('no simulation call')
})
