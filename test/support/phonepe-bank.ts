import { createHash, createHmac, randomBytes, randomInt } from 'node:crypto'
import type { BankResponse, NotificationFaults } from './bank-faults.ts'
import { type BookedRefund, createRefundBook } from './bank-refunds.ts'
import { inSomeForm } from './cashfree-forms.ts'
import { type BankOptions, type BankRequest, CUSTOMER_VPA, responded, startFakeBank } from './fake-bank.ts'

/**
 * A fake bank with the part of PhonePe's API v2 that the service uses, as PhonePe's published documents describe it.
 */

export type PhonepeCall = 'logIn' | 'createOrder' | 'order' | 'refund' | 'findRefund' | 'disputes'

export type PhonepeRequest = BankRequest<PhonepeCall>

/** An attempt to pay an order. */
export type PhonepePayment = {
  id: string
  status: 'pending' | 'success' | 'failed'
  /** In paise. */
  amount: number
  /** The bank's reference; empty until the attempt is final. */
  rrn: string
  /** By default, a bank account. */
  instrument?: unknown
  at: Date
}

export type PhonepeOrder = {
  id: string
  /** The service's orderId. */
  orderId: string
  amount: number
  expiresAt: Date
  link: string
  payments: PhonepePayment[]
}

/** PhonePe's pages name no other fields of a dispute. */
export type PhonepeDispute = {
  merchantId: string
  disputeId: string
  merchantOrderId: string
  orderId: string
  transactionId: string
}
export type PhonepeDisputeStatus = 'ACTION_REQUIRED' | 'UNDER_REVIEW' | 'WON' | 'LOST'

export type PhonepeRefund = BookedRefund & { orderId: string }

export type FakePhonepeOptions = BankOptions<PhonepeCall> & {
  clientId: string
  clientVersion: string
  clientSecret: string
  /** `user:password` for SHA webhooks, or the key for HMAC webhooks. */
  webhookSecret: string
  /** Lifetime of a token. */
  tokenSeconds?: number
}

export type FakePhonepe = Awaited<ReturnType<typeof startFakePhonepe>>

const PAYEE = 'DEMOMERCHANTONLINE@ybl'

const ROUTES: [PhonepeCall, string, RegExp][] = [
  ['logIn', 'POST', /^\/v1\/oauth\/token$/],
  ['createOrder', 'POST', /^\/pg\/payments\/v2\/pay$/],
  ['order', 'GET', /^\/pg\/payments\/v2\/order\/([^/]+)\/status\?details=true(?:&details=true)?$/],
  ['refund', 'POST', /^\/pg\/payments\/v2\/refund$/],
  ['findRefund', 'GET', /^\/pg\/payments\/v2\/refund\/([^/]+)\/status$/],
  ['disputes', 'GET', /^\/pg\/v1\/disputes\?(.*)$/],
]

const STATES = { pending: 'PENDING', success: 'COMPLETED', failed: 'FAILED' }
const REFUND_STATES = { ...STATES, initiated: 'CONFIRMED', 'on hold': 'PENDING' }

export async function startFakePhonepe(options: FakePhonepeOptions) {
  const { now } = options
  const orders = new Map<string, PhonepeOrder>()
  const disputes: (PhonepeDispute & { status: PhonepeDisputeStatus; createdMs: number })[] = []
  const tokens = new Map<string, number>()
  const bank = await startFakeBank<PhonepeCall>(options, {
    routes: ROUTES,
    response: responseTo,
    reject,
    responseFields: {
      withLink: (body, change) => ({ ...body, intentUrl: change(body.intentUrl) }),
      withOrder: (body, orderId) => ({ ...body, orderId }),
    },
    encrypt(event, secret = options.webhookSecret) {
      const body = typeof event === 'string' ? event : JSON.stringify(event)
      const proof = secret.includes(':')
        ? { authorization: createHash('sha256').update(secret).digest('hex') }
        : { 'x-phonepe-checksum-signature': createHmac('sha256', secret).update(body).digest('hex') }
      return { body, headers: { 'content-type': 'application/json', ...proof } }
    },
  })
  const refunds = createRefundBook<PhonepeRefund>({
    now,
    happens: bank.happens,
    eventOf: (refund) => notificationOf(`pg.refund.${REFUND_EVENTS[refund.status]}`, refundOf(refund)),
    send: bank.sendSoon,
  })

  const fake = Object.assign(bank, {
    apiUrl: `${bank.url}/pg`,
    loginUrl: `${bank.url}/v1/oauth/token`,
    /** Created orders by the service's orderId. */
    orders,
    refunds,
    /** Disputes in the order of their creation, with what PhonePe does not list. */
    disputes,
    dispute,
    disputeEventOf,
    tokenSeconds: options.tokenSeconds ?? 624_600,
    pay,
    eventOf,
    stateOf,

    /** Returns the payments in the bank's records. */
    paid: () =>
      [...orders.values()].flatMap((order) =>
        order.payments
          .filter(({ status }) => status === 'success')
          .map((payment) => ({ ...payment, order, orderId: order.orderId, utr: payment.rrn })),
      ),

    /** Invalidates all issued tokens. */
    forgetTokens: () => tokens.clear(),
  })
  return fake

  function responseTo({ call, headers, body }: PhonepeRequest, name = ''): BankResponse {
    if (call === 'logIn') return logIn(body as Record<string, unknown>)
    const token = headers.authorization?.replace(/^O-Bearer /, '') ?? ''
    if ((tokens.get(token) ?? 0) <= now().getTime())
      return reject(401, 'AUTHORIZATION_FAILED', 'the token is not valid')
    switch (call) {
      case 'createOrder':
        return createOrder(body as OrderSent)
      case 'order': {
        const order = orders.get(name)
        return order
          ? responded(200, orderOf(order))
          : reject(400, 'INVALID_MERCHANT_ORDER_ID', 'No entry found for the merchantOrderId')
      }
      case 'disputes':
        return listDisputes(new URLSearchParams(name))
      case 'refund':
        return refund(body as RefundSent)
      case 'findRefund': {
        const found = refunds.all.find(({ ourRefundId }) => ourRefundId === name)
        return found ? responded(200, refundOf(found)) : reject(404, 'INVALID_MERCHANT_REFUND_ID', 'No refund found')
      }
    }
  }

  function logIn({ client_id, client_version, client_secret }: Record<string, unknown>): BankResponse {
    const given = [client_id, client_version, client_secret]
    if (given.join(' ') !== `${options.clientId} ${options.clientVersion} ${options.clientSecret}`) {
      return responded(401, { errorCode: 'OIM000', code: 'INVALID_CLIENT', message: 'Bad request' })
    }
    const token = randomBytes(48).toString('base64url')
    tokens.set(token, now().getTime() + fake.tokenSeconds * 1000)
    const issued_at = Math.floor(now().getTime() / 1000)
    return responded(200, {
      access_token: token,
      encrypted_access_token: token,
      refresh_token: token,
      expires_in: null,
      issued_at,
      expires_at: issued_at + fake.tokenSeconds,
      session_expires_at: issued_at + fake.tokenSeconds,
      token_type: 'O-Bearer',
    })
  }

  /** Like PhonePe, rejects a name that it already has, and does not return the link again. */
  function createOrder({ merchantOrderId: orderId, amount, expireAfter }: OrderSent): BankResponse {
    if (orders.has(orderId)) return reject(417, 'INVALID_TRANSACTION_ID', 'merchantOrderId exists')
    const id = `OMO${randomInt(10 ** 11, 10 ** 12)}${randomInt(10 ** 8, 10 ** 9)}`
    // `tr` is the service's orderId in links of the older version, and PhonePe's in newer ones.
    const tr = Number(id.at(-1)) % 2 ? orderId : id
    const am = inSomeForm(amount, id)
    const values = {
      pn: 'Demo Merchant ',
      am,
      mam: am,
      tr,
      tn: `Payment for ${orderId}`,
      mc: '5814',
      mode: '04',
      purpose: '00',
      // Most PhonePe links have no currency.
      ...(Number(id.at(-2)) % 4 === 0 && { cu: 'INR' }),
      utm_campaign: 'B2B_PG',
      utm_medium: 'DEMOMERCHANTONLINE',
      utm_source: tr,
    }
    const query = Object.entries(values).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
    const link = `upi://pay?pa=${PAYEE}${query.join('')}&mcbs=`
    const expiresAt = new Date(now().getTime() + expireAfter * 1000)
    orders.set(orderId, { id, orderId, amount, expiresAt, link, payments: [] })
    const expireAt = expiresAt.getTime()
    return responded(200, {
      orderId: id,
      state: 'PENDING',
      expireAt,
      intentUrl: link,
      qrData: 'data:image/png;base64,',
    })
  }

  /** An expired order has failed, unless an attempt is in progress. */
  function stateOf({ payments, expiresAt }: PhonepeOrder) {
    if (payments.some(({ status }) => status === 'success')) return 'COMPLETED'
    return expiresAt <= now() && payments.at(-1)?.status !== 'pending' ? 'FAILED' : 'PENDING'
  }

  /**
   * Simulates a customer's attempt to pay an order, or completes the attempt in progress. Resolves once the
   * notifications are sent or waiting, with the statuses of their responses; undefined without a response. A final
   * order cannot be paid.
   */
  async function pay(
    orderId: string,
    {
      outcome = 'success',
      amount,
      rrn = String(randomInt(10 ** 11, 10 ** 12)),
      faults = fake.notificationFaults,
    }: { outcome?: PhonepePayment['status']; amount?: number; rrn?: string; faults?: NotificationFaults } = {},
  ) {
    const order = orders.get(orderId)
    const underWay = order?.payments.find(({ status }) => status === 'pending')
    if (!order || (!underWay && stateOf(order) !== 'PENDING')) throw new Error(`the order ${orderId} cannot be paid`)
    const payment = underWay ?? {
      id: `OM${randomInt(10 ** 13, 10 ** 14)}`,
      status: outcome,
      amount: 0,
      rrn: '',
      at: now(),
    }
    if (!underWay) order.payments.push(payment)
    Object.assign(payment, { status: outcome, amount: amount ?? order.amount, at: now() })
    if (outcome === 'pending') return { order, payment, responses: [] }
    payment.rrn = rrn
    const success = { ...payment, status: 'success' } as const
    const responses = await bank.report([eventOf(order, payment)], faults, {
      contradiction: () => eventOf(order, { ...success, amount: payment.amount + 100 }),
      forgery: () => eventOf(order, success),
    })
    return { order, payment, responses }
  }

  /** Formats the notification of a final payment. A failed attempt is not the end of its order. */
  function eventOf(order: PhonepeOrder, payment: PhonepePayment) {
    const reported = orderOf({ ...order, payments: [payment] })
    const event = payment.status === 'failed' ? 'pg.transaction.failed' : 'pg.order.completed'
    return notificationOf(event, reported)
  }

  /** Opens a dispute of a paid order. Sends nothing. */
  function dispute(orderId: string, status: PhonepeDisputeStatus = 'ACTION_REQUIRED') {
    const order = orders.get(orderId)
    const payment = order?.payments.find((one) => one.status === 'success')
    if (!order || !payment) throw new Error(`the order ${orderId} is not paid`)
    const opened = {
      ...{ merchantId: 'DEMOMERCHANTONLINE', disputeId: `D${randomInt(10 ** 9, 10 ** 10)}`, merchantOrderId: orderId },
      ...{ orderId: order.id, transactionId: payment.id, status, createdMs: now().getTime() },
    }
    disputes.push(opened)
    return opened
  }

  function disputeEventOf(dispute: PhonepeDispute, type = 'created') {
    const { merchantId, disputeId, merchantOrderId, orderId, transactionId } = dispute
    const payload = { merchantId, disputeId, merchantOrderId, orderId, transactionId }
    return { event: `payment.dispute.${type}`, payload }
  }

  /** Lists the disputes of one status, 100 at a time. All parameters are required. */
  function listDisputes(parameters: URLSearchParams): BankResponse {
    const text = (name: string) => parameters.get(name) ?? ''
    const numbers = ['from', 'to', 'offset', 'limit'].map(text)
    const [from = 0, to = 0, offset = 0, limit = 0] = numbers.map(Number)
    const isValid =
      numbers.every((value) => /^\d+$/.test(value)) && from <= to && limit >= 1 && limit <= 100 && to > 1e12
    if (!isValid || !['ACTION_REQUIRED', 'UNDER_REVIEW', 'WON', 'LOST'].includes(text('status')))
      return reject(400, 'BAD_REQUEST', 'a parameter is missing or invalid')
    const found = disputes.filter(
      ({ status, createdMs }) => status === text('status') && createdMs >= from && createdMs <= to,
    )
    const page = found.slice(offset, offset + limit).map(({ status: _, createdMs: __, ...listed }) => listed)
    return responded(200, { disputes: page })
  }

  function orderOf(order: PhonepeOrder) {
    const { id: orderId, amount, expiresAt, payments } = order
    const state = stateOf(order)
    const reported = payments.find(({ status }) => status === 'success')?.amount ?? amount
    return {
      merchantId: 'DEMOMERCHANTONLINE',
      merchantOrderId: order.orderId,
      orderId,
      state,
      amount: reported,
      payableAmount: reported,
      feeAmount: 0,
      expireAt: expiresAt.getTime(),
      metaInfo: {},
      ...(state === 'FAILED' && { errorCode: 'TXN_NOT_COMPLETED', detailedErrorCode: 'TXN_AUTO_FAILED' }),
      paymentDetails: payments.map(paymentOf),
    }
  }

  /** Like PhonePe, accepts each name once, and only for a paid order. */
  function refund({ merchantRefundId, originalMerchantOrderId, amount }: RefundSent): BankResponse {
    if (refunds.all.some(({ ourRefundId }) => ourRefundId === merchantRefundId)) {
      return reject(400, 'DUPLICATE_TRANSACTION', 'merchantRefundId exists')
    }
    const payment = orders.get(originalMerchantOrderId)?.payments.find(({ status }) => status === 'success')
    if (!payment) return reject(400, 'BAD_REQUEST', 'the order is not paid')
    const others = refunds.all.filter(
      ({ orderId, status }) => orderId === originalMerchantOrderId && status !== 'failed',
    )
    if (others.reduce((sum, one) => sum + one.amount, amount) > payment.amount) {
      return reject(400, 'REFUND_AMOUNT_EXCEEDS_ORIGINAL', 'more than what was paid')
    }
    const created = refunds.add({
      id: `OMR${randomInt(10 ** 13, 10 ** 14)}`,
      ourRefundId: merchantRefundId,
      orderId: originalMerchantOrderId,
      paymentId: payment.id,
      amount,
      status: 'pending',
      reference: '',
      createdAt: now().toISOString(),
    })
    // The final status of a refund is reported by its notification and by the status call.
    return responded(200, { refundId: created.id, amount, state: 'PENDING' })
  }
}

type OrderSent = { merchantOrderId: string; amount: number; expireAfter: number }
type RefundSent = { merchantRefundId: string; originalMerchantOrderId: string; amount: number }

const REFUND_EVENTS: Record<BookedRefund['status'], string> = {
  pending: 'accepted',
  initiated: 'accepted',
  'on hold': 'accepted',
  success: 'completed',
  failed: 'failed',
}

/**
 * PhonePe documents the rail of a payment in the attempt itself or in its splits: here depending on the id. A list of types
 * is a payment with several instruments.
 */
function withRail(id: string, amount: number, utr: string, type: unknown = 'ACCOUNT') {
  const rail = { type: 'UPI', ...(utr !== '' && { utr }), upiTransactionId: 'YBLAXL1234', vpa: CUSTOMER_VPA }
  const by = (one: unknown) => ({
    ...{ rail, instrument: { type: one, maskedAccountNumber: 'XXXXXXX6024', accountType: 'SAVINGS' } },
  })
  if (Array.isArray(type))
    return { splitInstruments: type.map((one) => ({ amount: amount / type.length, ...by(one) })) }
  const parts = by(type)
  return Number(id.at(-1)) % 2 ? parts : { splitInstruments: [{ amount, ...parts }] }
}

function paymentOf({ id, status, amount, rrn, at, instrument }: PhonepePayment) {
  return {
    transactionId: id,
    paymentMode: 'UPI_QR',
    timestamp: at.getTime(),
    amount,
    payableAmount: amount,
    feeAmount: 0,
    state: STATES[status] ?? String(status).toUpperCase(),
    ...(status === 'failed' && { errorCode: 'INVALID_MPIN', detailedErrorCode: 'ZM' }),
    ...withRail(id, amount, rrn, instrument),
  }
}

function refundOf({ id, ourRefundId, orderId, amount, status, reference, createdAt }: PhonepeRefund) {
  return {
    merchantId: 'DEMOMERCHANTONLINE',
    merchantRefundId: ourRefundId,
    originalMerchantOrderId: orderId,
    amount,
    state: REFUND_STATES[status] ?? String(status).toUpperCase(),
    timestamp: Date.parse(createdAt),
    refundId: id,
    ...(status === 'failed' && { errorCode: 'REFUND_BREACHED', detailedErrorCode: 'REFUND_BREACHED' }),
    paymentDetails: [
      {
        transactionId: id,
        paymentMode: 'UPI_QR',
        timestamp: Date.parse(createdAt),
        amount,
        state: REFUND_STATES[status] ?? String(status).toUpperCase(),
        ...withRail(id, amount, reference),
      },
    ],
  }
}

/** PhonePe's client reads the older `type`, such as PG_ORDER_COMPLETED; PhonePe's pages advise reading `event`. */
function notificationOf(event: string, payload: object) {
  const type = event.replace('transaction', 'transaction.attempt').replaceAll('.', '_').toUpperCase()
  return { type, event, payload }
}

function reject(status: number, code: string, message: string): BankResponse {
  return responded(status, { success: false, code, message, data: {} })
}
