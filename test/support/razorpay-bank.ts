import { createHmac, randomBytes, randomInt } from 'node:crypto'
import type { BankResponse, NotificationFaults } from './bank-faults.ts'
import { type BookedRefund, createRefundBook } from './bank-refunds.ts'
import { inSomeForm } from './cashfree-forms.ts'
import { type BankOptions, type BankRequest, CUSTOMER_VPA, responded, startFakeBank } from './fake-bank.ts'

/** A fake bank with the part of Razorpay's API that the service uses, as Razorpay's published documents describe it. */

export type RazorpayCall =
  | 'createOrder'
  | 'findOrder'
  | 'createPayment'
  | 'payments'
  | 'refund'
  | 'findRefund'
  | 'dispute'

export type RazorpayRequest = BankRequest<RazorpayCall>

/** An attempt to pay an order: `begun` until the customer opens the link, and `returned` if it was not captured. */
export type RazorpayPayment = {
  id: string
  status: 'begun' | 'pending' | 'success' | 'failed' | 'authorized' | 'returned'
  /** In paise. */
  amount: number
  /** The bank's reference; empty until the attempt is final. */
  rrn: string
  /** By default, a bank account. */
  instrument?: unknown
  begunAt: Date
  endedAt?: Date
  /** Why the attempt failed. */
  reason?: string
}

export type RazorpayOrder = {
  id: string
  /** The service's orderId. */
  orderId: string
  amount: number
  createdAt: Date
  captureMinutes: number
  links: string[]
  payments: RazorpayPayment[]
}

export type RazorpayDispute = {
  id: string
  payment_id: string
  status: string
  amount: unknown
  respond_by: unknown
  [field: string]: unknown
}

export type RazorpayRefund = BookedRefund & { orderId: string }

export type FakeRazorpayOptions = BankOptions<RazorpayCall> & {
  clientId: string
  clientSecret: string
  webhookSecret: string
}

export type FakeRazorpay = Awaited<ReturnType<typeof startFakeRazorpay>>

const ROUTES: [RazorpayCall, string, RegExp][] = [
  ['createOrder', 'POST', /^\/v1\/orders$/],
  ['findOrder', 'GET', /^\/v1\/orders\?(.+)$/],
  ['createPayment', 'POST', /^\/v1\/payments\/create\/upi$/],
  ['payments', 'GET', /^\/v1\/orders\/([^/]+)\/payments$/],
  ['refund', 'POST', /^\/v1\/payments\/([^/]+)\/refund$/],
  ['dispute', 'GET', /^\/v1\/disputes\/([^/]+)$/],
  ['findRefund', 'GET', /^\/v1\/payments\/([^/]+)\/refunds\?count=100$/],
]

const STATUSES: Record<RazorpayPayment['status'], string> = {
  begun: 'created',
  pending: 'created',
  success: 'captured',
  failed: 'failed',
  authorized: 'authorized',
  returned: 'refunded',
}

const REFUND_STATUSES: Record<string, string> = { success: 'processed' }
const REFUND_EVENTS: Record<string, string> = { success: 'refund.processed', failed: 'refund.failed' }

const newId = (kind: string) => `${kind}_${randomBytes(7).toString('hex')}`
const seconds = (moment: Date) => Math.floor(moment.getTime() / 1000)
const listed = (items: object[]) => responded(200, { entity: 'collection', count: items.length, items })

export async function startFakeRazorpay(options: FakeRazorpayOptions) {
  const { now } = options
  const orders = new Map<string, RazorpayOrder>()
  const disputes = new Map<string, RazorpayDispute>()
  const bank = await startFakeBank<RazorpayCall>(options, {
    routes: ROUTES,
    response: responseTo,
    reject,
    responseFields: {
      withLink: (body, change) => ({ ...body, link: change(body.link) }),
      withOrder: (body, name) =>
        Array.isArray(body.items)
          ? { ...body, items: body.items.map((item: object) => ({ ...item, order_id: name })) }
          : { ...body, receipt: name },
    },
    encrypt(event, secret = options.webhookSecret) {
      const body = typeof event === 'string' ? event : JSON.stringify(event)
      const signature = createHmac('sha256', secret).update(body).digest('hex')
      const headers = { 'content-type': 'application/json', 'x-razorpay-signature': signature }
      return { body, headers: { ...headers, 'x-razorpay-event-id': newId('evt') } }
    },
  })
  const refunds = createRefundBook<RazorpayRefund>({
    now,
    happens: bank.happens,
    eventOf: refundEventOf,
    send: bank.sendSoon,
  })

  const fake = Object.assign(bank, {
    apiUrl: `${bank.url}/v1`,
    /** Created orders by the service's orderId. */
    orders,
    refunds,
    /** Disputes as Razorpay returns them, by their id. */
    disputes,
    dispute,
    disputeEventOf,
    /** Whether the account has Direct Settlement, which captures every payment. */
    isDirectSettlement: false,
    pay,
    sendBack,
    eventOf,
    find,

    /** Returns the payments in the bank's records. */
    paid: () =>
      [...orders.values()].flatMap((order) =>
        order.payments
          .filter(({ status }) => status === 'success')
          .map((payment) => ({ ...payment, order, orderId: order.orderId, utr: payment.rrn })),
      ),
  })
  return fake

  /** Finds an order by the service's orderId, Razorpay's order id or one of its payments. */
  function find(name: string): RazorpayOrder | undefined {
    return [...orders.values()].find(({ id, orderId, payments }) =>
      [id, orderId, ...payments.map((payment) => payment.id)].includes(name),
    )
  }

  function responseTo({ call, headers, body }: RazorpayRequest, name = ''): BankResponse {
    const credentials = Buffer.from(`${options.clientId}:${options.clientSecret}`).toString('base64')
    if (headers.authorization !== `Basic ${credentials}`) {
      return reject(401, 'BAD_REQUEST_ERROR', 'Authentication failed')
    }
    if (call === 'dispute') {
      const dispute = disputes.get(name)
      return dispute ? responded(200, dispute) : reject(400, 'BAD_REQUEST_ERROR', 'The id provided does not exist')
    }
    if (call === 'createOrder') return createOrder(body as OrderSent)
    if (call === 'createPayment') return createPayment(body as PaymentSent)
    if (call === 'findOrder') {
      const receipt = new URLSearchParams(name).get('receipt')
      const found = [...orders.values()].filter(({ orderId }) => receipt === null || orderId === receipt)
      return listed(found.map(orderOf))
    }
    const order = find(name)
    if (!order) return reject(400, 'BAD_REQUEST_ERROR', 'The id provided does not exist')
    if (call === 'payments') return listed(order.payments.map((payment) => paymentOf(order, payment)).reverse())
    if (call === 'refund') return refund(order, name, body as RefundSent)
    return listed(refunds.all.filter(({ paymentId }) => paymentId === name).map(refundOf))
  }

  /** Like Razorpay, accepts each receipt once. */
  function createOrder({ amount, receipt, payment }: OrderSent): BankResponse {
    if (orders.has(receipt)) {
      return reject(400, 'BAD_REQUEST_ERROR', 'Order receipt should be unique.', 'input_validation_failed')
    }
    const captureMinutes = payment.capture_options.automatic_expiry_period
    const created = { id: newId('order'), orderId: receipt, amount, createdAt: now(), captureMinutes }
    const order: RazorpayOrder = { ...created, links: [], payments: [] }
    orders.set(receipt, order)
    return responded(200, orderOf(order))
  }

  /** Starts an attempt and creates the link with which a customer may complete it. */
  function createPayment({ order_id, amount }: PaymentSent): BankResponse {
    const order = find(order_id)
    if (!order) return reject(400, 'BAD_REQUEST_ERROR', 'The id provided does not exist')
    if (amount !== order.amount) return reject(400, 'BAD_REQUEST_ERROR', 'Payment amount is not the order amount')
    const payment = begin(order)
    const values = {
      pn: 'Demo Merchant',
      tr: payment.id.replace('pay_', ''),
      tn: 'razorpay',
      am: inSomeForm(amount, payment.id),
      cu: 'INR',
      mc: '5411',
    }
    const query = Object.entries(values).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
    const link = `upi://pay?pa=rzr.demomerchant@icici${query.join('')}`
    order.links.push(link)
    return responded(200, { razorpay_payment_id: payment.id, link })
  }

  function begin(order: RazorpayOrder): RazorpayPayment {
    const opened = { id: newId('pay'), amount: order.amount, rrn: '', begunAt: now() }
    const payment: RazorpayPayment = { ...opened, status: 'begun' }
    order.payments.push(payment)
    return payment
  }

  /**
   * Simulates a customer's attempt to pay an order: completes the attempt in progress or starts another one. Resolves
   * once the notifications are sent or waiting, with the statuses of their responses; undefined without a response. A
   * payment that is authorized after the order's time to capture is returned, except with Direct Settlement.
   */
  async function pay(
    orderId: string,
    {
      outcome = 'success',
      amount,
      rrn = String(randomInt(10 ** 11, 10 ** 12)),
      reason = 'incorrect_pin',
      faults = fake.notificationFaults,
    }: {
      outcome?: 'success' | 'failed' | 'pending' | 'authorized'
      amount?: number
      rrn?: string
      reason?: string
      faults?: NotificationFaults
    } = {},
  ) {
    const order = orders.get(orderId)
    if (!order) throw new Error(`Razorpay does not know ${orderId}`)
    const payment =
      order.payments.findLast(({ status }) => ['begun', 'pending', 'authorized'].includes(status)) ?? begin(order)
    Object.assign(payment, { status: outcome, amount: amount ?? order.amount })
    if (outcome === 'pending') return { order, payment, responses: [] }
    Object.assign(payment, { rrn, endedAt: now(), ...(outcome === 'failed' && { reason }) })
    const isTooLate = now().getTime() - order.createdAt.getTime() > order.captureMinutes * 60_000
    if (outcome === 'success' && isTooLate && !fake.isDirectSettlement) {
      const responses = [await fake.sendEvent(eventOf(order, { ...payment, status: 'authorized' }))]
      payment.status = 'returned'
      sendBack(order, payment)
      return { order, payment, responses }
    }
    const success = { ...payment, status: 'success' } as const
    const before = outcome === 'success' ? [eventOf(order, { ...payment, status: 'authorized' })] : []
    const after = outcome === 'success' ? [eventOf(order, payment, 'order.paid')] : []
    const responses = await bank.report([...before, eventOf(order, payment), ...after], faults, {
      contradiction: () => eventOf(order, { ...success, amount: payment.amount + 100 }),
      forgery: () => eventOf(order, success),
    })
    return { order, payment, responses }
  }

  /** Returns a payment without a request. */
  function sendBack({ orderId }: RazorpayOrder, { id: paymentId, amount }: RazorpayPayment): RazorpayRefund {
    return refunds.add({ ...newRefund(orderId, paymentId), ourRefundId: '', amount })
  }

  function newRefund(orderId: string, paymentId: string) {
    const opened = { id: newId('rfnd'), orderId, paymentId, status: 'pending', reference: '' } as const
    return { ...opened, createdAt: now().toISOString() }
  }

  /** Like Razorpay, returns the same refund for a repeated idempotency key, which is the receipt here. */
  function refund(order: RazorpayOrder, paymentId: string, { amount, receipt }: RefundSent): BankResponse {
    const earlier = refunds.all.find(({ ourRefundId }) => ourRefundId === receipt)
    if (earlier) {
      return earlier.paymentId === paymentId && earlier.amount === amount
        ? responded(200, refundOf(earlier))
        : reject(400, 'BAD_REQUEST_ERROR', 'Different request with the same idempotency key has already been processed')
    }
    const payment = order.payments.find(({ id }) => id === paymentId)
    if (payment?.status !== 'success') return reject(400, 'BAD_REQUEST_ERROR', 'The payment is not captured')
    const others = refunds.all.filter((one) => one.paymentId === paymentId && one.status !== 'failed')
    if (others.reduce((sum, one) => sum + one.amount, amount) > payment.amount) {
      return reject(400, 'BAD_REQUEST_ERROR', 'The total refund amount is greater than the refund payment amount')
    }
    const requested = { ...newRefund(order.orderId, paymentId), ourRefundId: receipt, amount }
    return responded(200, refundOf(refunds.add(requested)))
  }

  /** Formats the notification of a payment. */
  function eventOf(order: RazorpayOrder, payment: RazorpayPayment, name = `payment.${STATUSES[payment.status]}`) {
    const isOrder = name === 'order.paid'
    const payload = {
      payment: { entity: paymentOf(order, payment) },
      ...(isOrder && { order: { entity: { ...orderOf(order), status: 'paid' } } }),
    }
    return event(name, isOrder ? ['payment', 'order'] : ['payment'], payload, payment.endedAt)
  }

  /** Opens a dispute of a payment. */
  function dispute(payment: RazorpayPayment, changes: Partial<RazorpayDispute> = {}): RazorpayDispute {
    const opened = {
      ...{ id: newId('disp'), entity: 'dispute', payment_id: payment.id, amount: payment.amount, currency: 'INR' },
      ...{ amount_deducted: 0, reason_code: 'chargeback', respond_by: seconds(now()) + 3 * 86_400, status: 'open' },
      ...{ phase: 'chargeback', created_at: seconds(now()), evidence: EVIDENCE },
      ...changes,
    }
    disputes.set(opened.id, opened)
    return opened
  }

  /** Formats the notification of a dispute's state. */
  function disputeEventOf(dispute: RazorpayDispute, name: string) {
    const order = find(dispute.payment_id)
    const payment = order?.payments.find(({ id }) => id === dispute.payment_id)
    const payload = {
      ...(order && payment && { payment: { entity: paymentOf(order, payment) } }),
      dispute: { entity: dispute },
    }
    return event(`payment.dispute.${name}`, ['payment', 'dispute'], payload)
  }

  function refundEventOf(refund: RazorpayRefund): object {
    const order = find(refund.orderId)
    const payment = order?.payments.find(({ id }) => id === refund.paymentId)
    const payload = {
      refund: { entity: refundOf(refund) },
      ...(order && payment && { payment: { entity: paymentOf(order, payment) } }),
    }
    return event(REFUND_EVENTS[refund.status] ?? 'refund.created', ['refund', 'payment'], payload)
  }

  function event<Payload extends object>(name: string, contains: string[], payload: Payload, at = now()) {
    return { entity: 'event', account_id: 'acc_made0up', event: name, contains, payload, created_at: seconds(at) }
  }
}

type OrderSent = {
  amount: number
  receipt: string
  payment: { capture_options: { automatic_expiry_period: number } }
}
type PaymentSent = { order_id: string; amount: number }
type RefundSent = { amount: number; receipt: string }

function orderOf({ id, orderId, amount, createdAt, payments }: RazorpayOrder) {
  const isPaid = payments.some(({ status }) => status === 'success')
  return {
    id,
    entity: 'order',
    amount,
    amount_paid: isPaid ? amount : 0,
    amount_due: isPaid ? 0 : amount,
    currency: 'INR',
    receipt: orderId,
    offer_id: null,
    status: isPaid ? 'paid' : 'created',
    attempts: payments.length,
    notes: [],
    created_at: seconds(createdAt),
  }
}

const CAPTURED: Record<string, boolean> = { success: true }

const EVIDENCE = {
  ...{ amount: null, summary: 'Asha Rao', shipping_proof: null, billing_proof: null, cancellation_proof: null },
  ...{ customer_communication: null, proof_of_service: null, explanation_letter: null, refund_confirmation: null },
  ...{ access_activity_log: null, refund_cancellation_policy: null, term_and_conditions: null, others: null },
  submitted_at: null,
}

/** Not what the service sent, so that a test recognises it in the database and the log. */
export const RAZORPAY_CUSTOMER = { vpa: CUSTOMER_VPA, email: 'asha.made.up@example.in', contact: '+919000012345' }

function paymentOf({ id: order_id, orderId }: RazorpayOrder, payment: RazorpayPayment) {
  const { id, status, amount, rrn, instrument = 'bank_account', begunAt, reason = 'incorrect_pin' } = payment
  const isFailed = status === 'failed'
  return {
    id,
    entity: 'payment',
    amount,
    currency: 'INR',
    status: STATUSES[status] ?? status,
    order_id,
    invoice_id: null,
    international: false,
    method: 'upi',
    amount_refunded: 0,
    refund_status: null,
    // A status that Razorpay does not have says nothing about the capture.
    captured: status in STATUSES ? (CAPTURED[status] ?? false) : null,
    description: null,
    card_id: null,
    bank: null,
    wallet: null,
    ...RAZORPAY_CUSTOMER,
    notes: { receipt: orderId },
    fee: status === 'success' ? Math.round(amount * 0.0236) : null,
    tax: status === 'success' ? Math.round(amount * 0.0036) : null,
    error_code: isFailed ? 'BAD_REQUEST_ERROR' : null,
    error_description: isFailed ? 'Payment was unsuccessful.' : null,
    error_source: isFailed ? 'customer' : null,
    error_step: isFailed ? 'payment_authentication' : null,
    error_reason: isFailed ? reason : null,
    acquirer_data: { rrn: rrn === '' ? null : rrn, upi_transaction_id: 'AXL1234' },
    created_at: seconds(begunAt),
    upi: { payer_account_type: instrument, vpa: CUSTOMER_VPA, flow: 'intent' },
  }
}

function refundOf({ id, ourRefundId, paymentId, amount, status, reference, createdAt }: RazorpayRefund) {
  return {
    id,
    entity: 'refund',
    amount,
    currency: 'INR',
    payment_id: paymentId,
    notes: [],
    receipt: ourRefundId === '' ? null : ourRefundId,
    acquirer_data: { arn: reference === '' ? null : reference },
    created_at: seconds(new Date(createdAt)),
    batch_id: null,
    status: REFUND_STATUSES[status] ?? status,
    speed_processed: 'normal',
    speed_requested: 'normal',
  }
}

function reject(status: number, code: string, description: string, reason = 'NA'): BankResponse {
  return responded(status, {
    error: { code, description, source: 'business', step: 'payment_initiation', reason, metadata: {} },
  })
}
