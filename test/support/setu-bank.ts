import { createHmac, randomBytes, randomInt, randomUUID } from 'node:crypto'
import type { BankResponse, NotificationFaults } from './bank-faults.ts'
import { type BookedRefund, createRefundBook } from './bank-refunds.ts'
import { type BankOptions, type BankRequest, CUSTOMER_VPA, responded, startFakeBank } from './fake-bank.ts'

/** A fake bank with the part of Setu UMAP that the service uses, as Setu's published documents describe it. */

export type SetuCall = 'logIn' | 'createDqr' | 'expireDqr' | 'last' | 'pay' | 'refund' | 'refundsOfPayment'

export type SetuRequest = BankRequest<SetuCall>

export type SetuPayment = {
  id: string
  status: 'initiated' | 'pending' | 'success' | 'failed'
  amount: number
  rrn: string
  /** By default, a savings account. */
  instrument?: unknown
  txnId: string
  txnTs: string
}

export type SetuQr = {
  id: string
  merchantId: string
  merchantVpa: string
  amount: number
  referenceId: string
  refId: string
  intentLink: string
  transactionNote: string
  status: 'active' | 'paid' | 'closed'
  createdAt: string
  expiryDate: string
  closedAt?: string
  payments: SetuPayment[]
}

export type FakeSetuOptions = BankOptions<SetuCall> & {
  clientId: string
  clientSecret: string
  notificationSecret: string
}

export type FakeSetu = Awaited<ReturnType<typeof startFakeSetu>>

export type SetuRefund = BookedRefund & { merchantId: string; txnId: string }

const TOKEN_SECONDS = 300
const PAYEE_NAME = 'Demo Merchant'

const ROUTES: [SetuCall, string, RegExp][] = [
  ['logIn', 'POST', /^\/v1\/users\/login$/],
  ['createDqr', 'POST', /^\/api\/v1\/merchants\/dqr$/],
  ['expireDqr', 'PUT', /^\/api\/v1\/merchants\/dqr\/([^/]+)\/expire$/],
  ['last', 'GET', /^\/api\/v1\/merchants\/payments\/product-instances\/([^/]+)\/last$/],
  ['refund', 'POST', /^\/api\/v1\/merchants\/refunds$/],
  ['refundsOfPayment', 'GET', /^\/api\/v1\/merchants\/refunds\/([^/]+)\/payment$/],
  ['pay', 'POST', /^\/api\/v1\/merchants\/pay$/],
]

export async function startFakeSetu(options: FakeSetuOptions) {
  const { now } = options
  const qrs = new Map<string, SetuQr>()
  const tokens = new Map<string, number>()
  const bank = await startFakeBank<SetuCall>(options, {
    routes: ROUTES,
    response: responseTo,
    reject,
    responseFields: {
      withLink: (body, change) => ({ ...body, intentLink: change(body.intentLink) }),
      withOrder: (body, referenceId) => ({
        ...body,
        referenceId,
        ...('productInstanceId' in body && { productInstanceId: referenceId }),
      }),
    },
    encrypt(event, secret = options.notificationSecret) {
      const body = typeof event === 'string' ? event : JSON.stringify(event)
      const signature = createHmac('sha256', secret).update(body).digest('base64')
      return { body, headers: { 'content-type': 'application/json', 'x-setu-signature': signature } }
    },
  })
  const refunds = createRefundBook<SetuRefund>({
    now,
    happens: bank.happens,
    eventOf: refundEventOf,
    send: bank.sendSoon,
  })

  const fake = Object.assign(bank, {
    loginUrl: `${bank.url}/v1/users/login`,
    /** Created QRs by Setu's id. */
    qrs,
    refunds,
    pay,
    eventOf,

    /** Finds the latest QR by its id, `tr` or referenceId. */
    find: (name: string) => [...qrs.values()].findLast((qr) => [qr.id, qr.refId, qr.referenceId].includes(name)),

    /** Returns the payments in the bank's records. */
    paid: () =>
      [...qrs.values()].flatMap((qr) =>
        qr.payments
          .filter(({ status }) => status === 'success')
          .map((payment) => ({ ...payment, qr, orderId: qr.referenceId, utr: payment.rrn })),
      ),

    /** Invalidates all issued tokens. */
    forgetTokens: () => tokens.clear(),
  })
  return fake

  function responseTo({ call, headers, body }: SetuRequest, id = ''): BankResponse {
    if (call === 'logIn') return logIn(body as Record<string, unknown>)
    const token = headers.authorization?.replace(/^Bearer /, '') ?? ''
    if ((tokens.get(token) ?? 0) <= now().getTime()) return reject(401, 'unauthorized', 'the token is not valid')
    const merchantId = String(headers.merchantid)
    if (call === 'createDqr') return createDqr(merchantId, body as Partial<SetuQr>)
    if (call === 'pay') return mockPayment(body as Record<string, unknown>)
    if (call === 'refund') return refund(merchantId, body as Record<string, unknown>)
    if (call === 'refundsOfPayment') {
      const ofPayment = refunds.all.filter((refund) => refund.merchantId === merchantId && refund.txnId === id)
      return responded(200, { paymentTxnId: id, refunds: ofPayment.map(refundOf) })
    }
    const qr = qrs.get(id)
    if (qr?.merchantId !== merchantId) return reject(404, 'not-found', 'no such resource')
    switch (call) {
      case 'expireDqr':
        if (qr.payments.some(({ status }) => status === 'success')) return reject(400, 'bad-request', 'it is paid')
        if (qr.status === 'active') Object.assign(qr, { status: 'closed', closedAt: now().toISOString() })
        return responded(200, withoutPayments(qr))
      case 'last': {
        const last = qr.payments.at(-1)
        return last ? responded(200, paymentOf(qr, last)) : reject(404, 'not-found', 'nobody has tried to pay')
      }
    }
  }

  function logIn({ clientID, secret }: Record<string, unknown>): BankResponse {
    if (clientID !== options.clientId || secret !== options.clientSecret) {
      return reject(401, 'unauthorized', 'unknown client or wrong secret')
    }
    const token = randomBytes(24).toString('base64url')
    tokens.set(token, now().getTime() + TOKEN_SECONDS * 1000)
    return responded(200, { access_token: token })
  }

  function createDqr(merchantId: string, body: Partial<SetuQr>): BankResponse {
    const { merchantVpa = '', amount = 0, referenceId = '', expiryDate = '', transactionNote = '' } = body
    const refId = `SU${randomInt(10 ** 12, 10 ** 13)}`
    const values = {
      pn: PAYEE_NAME,
      am: (amount / 100).toFixed(2),
      tr: refId,
      tn: transactionNote,
      cu: 'INR',
      mc: '5814',
    }
    const query = Object.entries(values).map(([name, value]) => `&${name}=${encodeURIComponent(value)}`)
    const intentLink = `upi://pay?pa=${merchantVpa}${query.join('')}`
    const id = ulid(now())
    const qr = { id, merchantId, merchantVpa, amount, referenceId, refId, intentLink, transactionNote, expiryDate }
    const created: SetuQr = { ...qr, status: 'active', createdAt: now().toISOString(), payments: [] }
    qrs.set(id, created)
    return responded(201, withoutPayments(created))
  }

  /** Simulates the customer; the response is sent before the notifications. */
  function mockPayment({ refId, amount, payerRespCode = '00' }: Record<string, unknown>): BankResponse {
    const qr = fake.find(String(refId))
    if (qr?.status !== 'active') return reject(400, 'invalid-request', 'there is no QR with this refId to be paid')
    const outcome = payerRespCode === '00' ? 'success' : 'failed'
    pay(qr.id, { outcome, ...(amount !== undefined && { amount: Number(amount) }) }).catch(() => undefined)
    return responded(200, {})
  }

  /**
   * Simulates a customer's attempt to pay a QR, found as by `find`. Resolves once the notifications are sent or
   * waiting, with the statuses of their responses; undefined without a response. A closed or paid QR cannot be paid.
   */
  async function pay(
    name: string,
    {
      outcome = 'success',
      amount,
      rrn = String(randomInt(10 ** 11, 10 ** 12)),
      faults = fake.notificationFaults,
    }: { outcome?: SetuPayment['status']; amount?: number; rrn?: string; faults?: NotificationFaults } = {},
  ) {
    const qr = fake.find(name)
    if (qr?.status !== 'active') throw new Error(`the QR ${name} is ${qr?.status ?? 'unknown'}`)
    const ids = { id: ulid(now()), txnId: `SET${randomBytes(16).toString('hex')}` }
    const payment = { ...ids, status: outcome, amount: amount ?? qr.amount, rrn, txnTs: now().toISOString() }
    qr.payments.push(payment)
    if (outcome === 'success') qr.status = 'paid'
    const statuses = outcome === 'initiated' ? [outcome] : (['initiated', outcome] as const)
    const success = { ...payment, status: 'success' } as const
    const responses = await bank.report(
      statuses.map((status) => eventOf(qr, { ...payment, status })),
      faults,
      {
        contradiction: () => eventOf(qr, { ...success, amount: payment.amount + 100 }),
        forgery: () => eventOf(qr, success),
      },
    )
    return { qr, payment, responses }
  }

  /**
   * Like Setu, creates another refund for a repeated request, whatever its referenceId, and does not compare with the
   * amount paid.
   */
  function refund(merchantId: string, { paymentId, amount, referenceId = '' }: Record<string, unknown>): BankResponse {
    const payment = fake.paid().find(({ id, qr }) => id === paymentId && qr.merchantId === merchantId)
    if (!payment) return reject(404, 'not-found', 'no such payment')
    const names = { id: ulid(now()), merchantId, paymentId: payment.id, txnId: payment.txnId }
    const requested = { ourRefundId: String(referenceId), amount: Number(amount) }
    const created = {
      ...names,
      ...requested,
      status: 'pending',
      reference: '',
      createdAt: now().toISOString(),
    } as const
    return responded(201, refundOf(refunds.add(created)))
  }

  function eventOf(qr: SetuQr, payment: SetuPayment) {
    const { referenceId, ...rest } = paymentOf(qr, payment)
    return {
      ...rest,
      eventId: randomUUID(),
      eventTs: now().toISOString(),
      eventType: `payment.${payment.status}`,
      resource: 'payment',
      merchantReferenceId: referenceId,
      productInstanceType: 'pay_single',
    }
  }

  function refundEventOf(refund: SetuRefund) {
    const { type: _, createdAt: __, ...reported } = refundOf(refund)
    const states: Record<string, string> = { initiated: 'pending', success: 'successful' }
    return {
      ...reported,
      eventId: randomUUID(),
      eventTs: now().toISOString(),
      eventType: `refund.${states[refund.status] ?? refund.status}`,
      resource: 'refund',
      merchantId: refund.merchantId,
      orgTxnId: refund.txnId,
      currency: 'INR',
    }
  }
}

/** A refund as in a response, which omits unknown fields. */
function refundOf({
  merchantId: _,
  txnId: __,
  endedAt: ___,
  ourRefundId: referenceId,
  reference: crn,
  ...refund
}: SetuRefund) {
  const failed = refund.status === 'failed' && { reason: { errCode: 'refund-disabled', npciErrCode: 'R21' } }
  return { ...refund, referenceId, ...(crn !== '' && { crn }), type: 'online', ...failed }
}

/** A payment in Setu's format. */
function paymentOf(
  { id, merchantId, merchantVpa, refId, referenceId }: SetuQr,
  { instrument = 'SAVINGS', ...payment }: SetuPayment,
) {
  return {
    ...payment,
    merchantId,
    merchantVpa,
    refId,
    referenceId,
    productInstanceId: id,
    currency: 'INR',
    customerVpa: CUSTOMER_VPA,
    customerAccountType: instrument,
    reason: payment.status === 'failed' ? { code: 'declined', desc: 'no funds', npciRespCode: 'Z9' } : {},
  }
}

function withoutPayments({ payments: _, ...qr }: SetuQr) {
  return { ...qr, shortLink: `upipay.example/${qr.refId}` }
}

function reject(status: number, code: string, detail: string): BankResponse {
  return responded(status, { code, detail, docUrl: 'https://docs.example/errors' })
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters like Setu's identifiers: 48 bits of time and 80 random bits. */
function ulid(moment: Date): string {
  let bits = (BigInt(moment.getTime()) << 80n) | BigInt(`0x${randomBytes(10).toString('hex')}`)
  let id = ''
  for (let i = 0; i < 26; i++) {
    id = CROCKFORD[Number(bits & 31n)] + id
    bits >>= 5n
  }
  return id
}
