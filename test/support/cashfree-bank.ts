import { createHash, createHmac, randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { BankResponse, NotificationFaults } from './bank-faults.ts'
import { createRefundBook } from './bank-refunds.ts'
import {
  asNumber,
  type CashfreeDispute,
  type CashfreeOrder,
  type CashfreePayment,
  type CashfreeRefund,
  disputeOf,
  inSomeForm,
  istTime,
  number,
  paymentOf,
  refundOf,
  reject,
  responded,
  rupees,
  type Sent,
  toJson,
} from './cashfree-forms.ts'
import { type BankOptions, type BankRequest, startFakeBank } from './fake-bank.ts'

/** A fake bank with the part of Cashfree PG that the service uses, as Cashfree's published documents describe it. */

export type CashfreeCall =
  | 'createOrder'
  | 'findOrder'
  | 'openSession'
  | 'payments'
  | 'terminate'
  | 'refund'
  | 'findRefund'
  | 'simulate'
  | 'recon'
  | 'dispute'

export type CashfreeRequest = BankRequest<CashfreeCall>

export type FakeCashfreeOptions = BankOptions<CashfreeCall> & {
  clientId: string
  /** Signs notifications too. */
  clientSecret: string
  /** The payee of the created links. */
  payee?: string
  /** How long an attempt may continue after its order expired. */
  attemptSeconds?: number
}

export type FakeCashfree = Awaited<ReturnType<typeof startFakeCashfree>>

const PAYMENT_EVENTS = {
  success: 'PAYMENT_SUCCESS_WEBHOOK',
  failed: 'PAYMENT_FAILED_WEBHOOK',
  dropped: 'PAYMENT_USER_DROPPED_WEBHOOK',
}

const ROUTES: [CashfreeCall, string, RegExp][] = [
  ['createOrder', 'POST', /^\/pg\/orders$/],
  ['openSession', 'POST', /^\/pg\/orders\/sessions$/],
  ['payments', 'GET', /^\/pg\/orders\/([^/]+)\/payments$/],
  ['refund', 'POST', /^\/pg\/orders\/([^/]+)\/refunds$/],
  ['findRefund', 'GET', /^\/pg\/orders\/([^/]+)\/refunds\/([^/]+)$/],
  ['findOrder', 'GET', /^\/pg\/orders\/([^/]+)$/],
  ['terminate', 'PATCH', /^\/pg\/orders\/([^/]+)$/],
  ['simulate', 'POST', /^\/pg\/simulate$/],
  ['recon', 'POST', /^\/pg\/settlement\/recon$/],
  ['dispute', 'GET', /^\/pg\/disputes\/([^/]+)$/],
]

export async function startFakeCashfree(options: FakeCashfreeOptions) {
  const { now, payee = 'cf.demomerchant@icici', attemptSeconds = 600 } = options
  const orders = new Map<string, CashfreeOrder>()
  const disputes = new Map<string, CashfreeDispute>()
  const bank = await startFakeBank<CashfreeCall>(options, {
    routes: ROUTES,
    response: responseTo,
    reject,
    responseFields: {
      withLink(body, change) {
        const { payload } = body.data
        return { ...body, data: { ...body.data, payload: { ...payload, default: change(payload.default) } } }
      },
      withOrder: (body, order_id) =>
        Array.isArray(body) ? body.map((one) => ({ ...one, order_id })) : { ...body, order_id },
    },
    encrypt(event, secret = options.clientSecret) {
      const body = typeof event === 'string' ? event : toJson(event)
      const timestamp = String(now().getTime())
      const headers = {
        'content-type': 'application/json',
        'x-webhook-signature': createHmac('sha256', secret).update(timestamp).update(body).digest('base64'),
        'x-webhook-timestamp': timestamp,
        'x-webhook-version': '2025-01-01',
        // A repeated notification has the same key.
        'x-idempotency-key': createHash('sha256').update(body).digest('base64'),
      }
      return { body, headers }
    },
  })
  const refunds = createRefundBook<CashfreeRefund>({
    now,
    happens: bank.happens,
    eventOf: refundEventOf,
    send: bank.sendSoon,
  })

  const fake = Object.assign(bank, {
    apiUrl: `${bank.url}/pg`,
    /** Created orders by the service's orderId. */
    orders,
    refunds,
    /** Disputes by their id. */
    disputes,
    pay,
    sendBack,
    eventOf,
    dispute,
    changeDispute,
    disputeEventOf,
    statusOf,
    /** Returns the response of the call of the same name for a body. */
    recon: undefined as ((body: unknown) => object) | undefined,

    /** Finds an order by the service's orderId, Cashfree's order id, its session or one of its payments. */
    find: (name: string) =>
      [...orders.values()].find(({ id, orderId, sessionId, payments }) =>
        [id, orderId, sessionId, ...payments.map((payment) => payment.id)].includes(name),
      ),

    /** Returns the payments in the bank's records. */
    paid: () =>
      [...orders.values()].flatMap((order) =>
        order.payments
          .filter(({ status }) => status === 'success')
          .map((payment) => ({ ...payment, order, orderId: order.orderId, utr: payment.rrn })),
      ),
  })
  return fake

  function responseTo({ call, headers, body }: CashfreeRequest, orderId = '', refundId = ''): BankResponse {
    // A session needs no credentials: its id authorises the request.
    const isKnown = headers['x-client-id'] === options.clientId && headers['x-client-secret'] === options.clientSecret
    if (!isKnown && call !== 'openSession') return reject(401, 'request_failed', 'authentication Failed')
    if (call === 'createOrder') return createOrder(body as Sent)
    if (call === 'openSession') return openSession(body as { payment_session_id: string })
    if (call === 'simulate') return simulate(body as Simulation)
    if (call === 'recon') {
      return fake.recon ? responded(200, fake.recon(body)) : reject(404, 'recon_not_found', 'there is no such call')
    }
    if (call === 'dispute') {
      const found = disputes.get(orderId)
      if (!found) return reject(404, 'dispute_not_found', 'Dispute does not exist')
      const { dispute, ...parts } = disputeOf(found)
      return responded(200, {
        ...dispute,
        dispute_id: number(found.id),
        ...parts,
        preferred_evidence: [],
        dispute_evidence: [],
      })
    }
    const order = orders.get(orderId)
    if (!order) return reject(404, 'order_not_found', 'Order Reference Id does not exist')
    switch (call) {
      case 'findOrder':
        return responded(200, orderOf(order))
      case 'payments':
        return responded(
          200,
          order.payments.map((payment) => paymentOf(order, payment)),
        )
      case 'terminate':
        return terminate(order)
      case 'refund':
        return refund(order, body as RefundSent)
      case 'findRefund': {
        const found = refunds.all.find((one) => one.orderId === orderId && one.ourRefundId === refundId)
        return found ? responded(200, refundOf(found)) : reject(404, 'refund_not_found', 'refund not found')
      }
    }
  }

  function createOrder(sent: Sent): BankResponse {
    if (orders.has(sent.order_id)) {
      return reject(409, 'order_already_exists', 'order with same id is already present')
    }
    const expiresAt = new Date(sent.order_expiry_time)
    if (expiresAt <= now()) return reject(400, 'order_expiry_time_invalid', 'order_expiry_time is in the past')
    const order: CashfreeOrder = {
      id: String(randomInt(10 ** 9, 10 ** 10)),
      orderId: sent.order_id,
      amount: Math.round(sent.order_amount * 100),
      status: 'ACTIVE',
      sessionId: `session_${randomBytes(48).toString('base64url')}`,
      createdAt: now(),
      expiresAt,
      sent,
      links: [],
      payments: [],
    }
    orders.set(order.orderId, order)
    return responded(200, orderOf(order))
  }

  /** Starts an attempt and creates the link with which a customer may complete it. */
  function openSession({ payment_session_id }: { payment_session_id: string }): BankResponse {
    const order = fake.find(payment_session_id)
    if (order === undefined || order.sessionId !== payment_session_id) {
      return reject(400, 'payment_session_id_invalid', 'payment_session_id is not present or is invalid')
    }
    if (statusOf(order) !== 'ACTIVE') return reject(400, 'order_inactive', 'order is no longer active')
    const payment = begin(order)
    const values = {
      pn: 'Demo Merchant',
      tr: payment.id,
      am: inSomeForm(order.amount, payment.id),
      cu: 'INR',
      mode: '04',
      purpose: '00',
      mc: '5814',
      tn: order.sent.order_note ?? order.orderId,
    }
    const query = Object.entries(values).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
    // Cashfree formats the signature like this: decoding and encoding it again would change it.
    const link = `upi://pay?pa=${payee}${query.join('')}&sign=${randomBytes(32).toString('base64')}`
    order.links.push(link)
    const ofApp = (prefix: string) => link.replace('upi://', prefix)
    const apps = { gpay: ofApp('tez://upi/'), phonepe: ofApp('phonepe://'), paytm: ofApp('paytmmp://') }
    return responded(200, {
      payment_amount: asNumber(order.amount),
      cf_payment_id: payment.id,
      payment_method: 'upi',
      channel: 'link',
      action: 'custom',
      data: {
        url: null,
        payload: { default: link, ...apps, bhim: link, web: `https://pay.example.in/${payment.id}` },
        content_type: null,
        method: null,
      },
    })
  }

  function begin(order: CashfreeOrder): CashfreePayment {
    const id = `${randomInt(10 ** 8, 9 * 10 ** 8)}${randomInt(10 ** 9, 10 ** 10)}`
    const payment: CashfreePayment = { id, status: 'begun', amount: order.amount, rrn: '', begunAt: now() }
    order.payments.push(payment)
    return payment
  }

  function statusOf({ status, expiresAt }: CashfreeOrder) {
    return status === 'ACTIVE' && expiresAt <= now() ? 'EXPIRED' : status
  }

  function terminate(order: CashfreeOrder): BankResponse {
    const status = statusOf(order)
    if (status === 'PAID' || status === 'EXPIRED') {
      return reject(400, 'order_not_active', `the order is ${status} and cannot be terminated`)
    }
    const isBeingPaid = order.payments.some((payment) => payment.status === 'pending')
    order.status = isBeingPaid ? 'TERMINATION_REQUESTED' : 'TERMINATED'
    return responded(200, orderOf(order))
  }

  /** Simulates the customer; the response is sent before the notifications. */
  function simulate({ entity, entity_id, entity_simulation }: Simulation): BankResponse {
    const order = fake.find(entity_id)
    if (order === undefined || statusOf(order) !== 'ACTIVE') {
      return reject(400, 'entity_id_invalid', 'there is no payment with this entity_id that can be simulated')
    }
    const outcomes = { SUCCESS: 'success', FAILED: 'failed', PENDING: 'pending', USER_DROPPED: 'dropped' } as const
    pay(order.orderId, { outcome: outcomes[entity_simulation.payment_status] }).catch(() => undefined)
    return responded(200, { simulation_id: `sim_${randomUUID()}`, entity, entity_id, entity_simulation })
  }

  /**
   * Simulates a customer's attempt to pay an order, found as by `find`: completes the attempt in progress or starts
   * another one. Resolves once the notifications are sent or waiting, with the statuses of their responses; undefined
   * without a response. After the order's end only a pending attempt can still be paid; after `attemptSeconds` it is
   * refunded automatically.
   */
  async function pay(
    name: string,
    {
      outcome = 'success',
      amount,
      rrn = String(randomInt(10 ** 11, 10 ** 12)),
      faults = fake.notificationFaults,
    }: {
      outcome?: Exclude<CashfreePayment['status'], 'begun' | 'cancelled'>
      amount?: number
      rrn?: string
      faults?: NotificationFaults
    } = {},
  ) {
    const order = fake.find(name)
    const isActive = order !== undefined && statusOf(order) === 'ACTIVE'
    const underWay = order?.payments.findLast(({ status }) => status === 'pending' || (isActive && status === 'begun'))
    const payment = underWay ?? (isActive ? begin(order) : undefined)
    if (!order || !payment) throw new Error(`the order ${name} is ${order ? statusOf(order) : 'unknown'}`)
    if (payment.status === 'begun') payment.begunAt = now()
    Object.assign(payment, { status: outcome, amount: amount ?? order.amount })
    if (outcome === 'pending') return { order, payment, responses: [] }
    Object.assign(payment, { rrn, endedAt: now() })
    if (outcome === 'success') {
      const isTooLate = !isActive && now().getTime() - payment.begunAt.getTime() > attemptSeconds * 1000
      if (isTooLate) {
        payment.status = 'cancelled'
        sendBack(order, payment)
        return { order, payment, responses: [] }
      }
      order.status = 'PAID'
    }
    const success = { ...payment, status: 'success' } as const
    const responses = await bank.report([eventOf(order, payment)], faults, {
      contradiction: () => eventOf(order, { ...success, amount: payment.amount + 100 }),
      forgery: () => eventOf(order, success),
    })
    return { order, payment, responses }
  }

  /** Sends an automatic refund, as Cashfree does for payments after the end of an order. */
  function sendBack({ orderId }: CashfreeOrder, { id: paymentId, amount }: CashfreePayment): CashfreeRefund {
    return refunds.add({
      ...newRefund(orderId, paymentId),
      ourRefundId: '',
      amount,
      note: 'Transaction was auto refunded',
    })
  }

  /** Opens a dispute of the successful payment `name`, or of the last one of the order `name`. Sends nothing. */
  function dispute(name: string, changes: Partial<CashfreeDispute> = {}): CashfreeDispute {
    const order = fake.find(name)
    const paid = order?.payments.filter(({ status }) => status === 'success') ?? []
    const payment = paid.find((one) => one.id === name) ?? paid.at(-1)
    if (!order || !payment) throw new Error(`the order ${name} is not paid`)
    const id = String(randomInt(10 ** 8, 10 ** 9))
    const times = { createdAt: now(), updatedAt: now(), respondBy: new Date(now().getTime() + 3 * 86_400_000) }
    const opened = {
      id,
      type: 'CHARGEBACK',
      state: 'CREATED',
      amount: payment.amount,
      order,
      payment,
      ...times,
    } as const
    disputes.set(changes.id ?? id, { ...opened, ...changes })
    return disputes.get(changes.id ?? id) as CashfreeDispute
  }

  /** Changes a dispute at the current time, and returns its notification, which the caller may send. */
  function changeDispute(id: string, changes: Partial<CashfreeDispute>) {
    const changed = { ...(disputes.get(id) as CashfreeDispute), updatedAt: now(), ...changes }
    disputes.set(id, changed)
    return disputeEventOf(changed)
  }

  /** Formats the notification of a dispute. */
  function disputeEventOf(dispute: CashfreeDispute) {
    const types: Record<string, string> = { CREATED: 'DISPUTE_CREATED' }
    const closed = dispute.state.startsWith('MERCHANT_') ? 'DISPUTE_CLOSED' : 'DISPUTE_UPDATED'
    const { dispute: reported, ...parts } = disputeOf(dispute)
    const data = { dispute: { ...reported, dispute_action_on: 'MERCHANT' }, ...parts }
    return { data, event_time: istTime(now()), type: types[dispute.state] ?? closed }
  }

  function newRefund(orderId: string, paymentId: string) {
    const id = String(randomInt(10 ** 9, 10 ** 10))
    return { id, orderId, paymentId, status: 'pending', reference: '', createdAt: now().toISOString() } as const
  }

  /** Returns the same refund for a repeated refund_id. */
  function refund(order: CashfreeOrder, { refund_id, refund_amount, refund_note = '' }: RefundSent): BankResponse {
    const amount = Math.round(refund_amount * 100)
    const earlier = refunds.all.find((one) => one.ourRefundId === refund_id)
    if (earlier) {
      const isSame = earlier.orderId === order.orderId && earlier.amount === amount
      return isSame
        ? responded(200, refundOf(earlier))
        : reject(409, 'refund_already_exists', 'refund with same id is already present')
    }
    const payment = order.payments.find(({ status }) => status === 'success')
    if (!payment) return reject(400, 'order_not_paid', 'order has no successful payment')
    const others = refunds.all.filter(({ orderId, status }) => orderId === order.orderId && status !== 'failed')
    if (others.reduce((sum, one) => sum + one.amount, amount) > payment.amount) {
      return reject(400, 'refund_amount_invalid', 'refund_amount is more than what can be refunded')
    }
    const requested = { ourRefundId: refund_id, amount, note: refund_note }
    return responded(200, refundOf(refunds.add({ ...newRefund(order.orderId, payment.id), ...requested })))
  }

  function orderOf(order: CashfreeOrder) {
    const { customer_details, order_meta = {}, order_note = null } = order.sent
    return {
      cf_order_id: order.id,
      order_id: order.orderId,
      entity: 'order',
      order_currency: 'INR',
      order_amount: asNumber(order.amount),
      order_status: statusOf(order),
      payment_session_id: order.sessionId,
      order_expiry_time: istTime(order.expiresAt),
      order_note,
      created_at: istTime(order.createdAt),
      order_splits: [],
      customer_details: { customer_name: null, customer_email: null, ...customer_details, customer_uid: randomUUID() },
      order_meta: { return_url: null, notify_url: null, payment_methods: null, ...order_meta },
      order_tags: null,
      terminal_data: null,
      cart_details: null,
      products: {},
    }
  }

  /** Formats the notification of a final payment. */
  function eventOf(order: CashfreeOrder, payment: CashfreePayment) {
    const { cf_payment_id, error_details, payment_gateway_details, ...reported } = paymentOf(order, payment)
    const { order_id, entity: _, order_amount: __, order_currency, payment_completion_time: ___, ...rest } = reported
    // Older samples contain a number that a double cannot represent, newer ones text.
    const id = Number(payment.id.at(-1)) % 2 ? cf_payment_id : number(cf_payment_id)
    const { error_subcode_raw: ____, ...reason } = error_details ?? {}
    return {
      data: {
        order: { order_id, order_amount: number(rupees(order.amount)), order_currency, order_tags: null },
        payment: { cf_payment_id: id, ...rest, payment_amount: number(rupees(payment.amount)) },
        customer_details: {
          customer_name: null,
          customer_id: order.sent.customer_details.customer_id,
          customer_email: null,
          customer_phone: order.sent.customer_details.customer_phone,
        },
        error_details: error_details && reason,
        payment_gateway_details,
        payment_offers: null,
      },
      event_time: istTime(now()),
      type: PAYMENT_EVENTS[payment.status as keyof typeof PAYMENT_EVENTS],
    }
  }

  function refundEventOf(refund: CashfreeRefund): object {
    const { refund_speed: _, ...reported } = refundOf(refund)
    const amounts = { refund_amount: number(rupees(refund.amount)), refund_charge: 0 }
    const event_time = istTime(now())
    if (refund.ourRefundId !== '') {
      return { data: { refund: { ...reported, ...amounts } }, event_time, type: 'REFUND_STATUS_WEBHOOK' }
    }
    const auto_refund = {
      event: 'AUTO-REFUND',
      cf_refund_id: number(refund.id),
      cf_payment_id: refund.paymentId,
      bank_reference: orders.get(refund.orderId)?.payments.find(({ id }) => id === refund.paymentId)?.rrn,
      order_id: refund.orderId,
      ...amounts,
      refund_currency: 'INR',
      refund_type: reported.refund_type,
      refund_arn: reported.refund_arn,
      refund_status: reported.refund_status,
      status_description: reported.status_description,
      refund_reason: refund.note,
      created_at: reported.created_at,
      processed_at: reported.processed_at,
    }
    return { data: { auto_refund }, event_time, type: 'AUTO_REFUND_STATUS_WEBHOOK' }
  }
}

type RefundSent = { refund_id: string; refund_amount: number; refund_note?: string }

type Simulation = {
  entity: string
  entity_id: string
  entity_simulation: { payment_status: 'SUCCESS' | 'FAILED' | 'PENDING' | 'USER_DROPPED' }
}
