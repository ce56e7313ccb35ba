import { createHmac, randomBytes, randomInt, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Answer, type CallFault, type NotificationFaults, seeded, spoil } from './setu-bank-faults.ts'
import { createRefundBook, refundOf, type SetuRefund } from './setu-bank-refunds.ts'

/*
 * A bank for tests: the part of Setu UMAP that the service uses, as its published documents describe it.
 * It keeps everything in memory, no money moves, and its customer does not exist. It can also fail in every way in which a
 * bank fails, see setu-bank-faults.ts.
 */

export type SetuCall = 'logIn' | 'createDqr' | 'expireDqr' | 'last' | 'pay' | 'refund' | 'refundsOfPayment'

/** A request as it came; `body` is undefined where it is not JSON. */
export type SetuRequest = { call: SetuCall; method: string; path: string; headers: IncomingHttpHeaders; body: unknown }

export type SetuPayment = {
  id: string
  status: 'initiated' | 'pending' | 'success' | 'failed'
  amount: number
  rrn: string
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

export type FakeSetuOptions = {
  clientId: string
  clientSecret: string
  notificationSecret: string
  now: () => Date
  port?: number
  /** What is wrong with a request; it is refused then, and remembered as a violation. */
  check?: (request: SetuRequest) => string | undefined
  /** The same seed makes the same faults. */
  seed?: number
}

export type FakeSetu = Awaited<ReturnType<typeof startFakeSetu>>

const TOKEN_SECONDS = 300
/** After the first try. */
const NOTIFICATION_RETRIES = 3
const PAYEE_NAME = 'Demo Merchant'
/** Of nobody. */
export const CUSTOMER_VPA = 'asha.made.up@thisisnobank'

const ROUTES: [SetuCall, string, RegExp][] = [
  ['logIn', 'POST', /^\/v1\/users\/login$/],
  ['createDqr', 'POST', /^\/api\/v1\/merchants\/dqr$/],
  ['expireDqr', 'PUT', /^\/api\/v1\/merchants\/dqr\/([^/]+)\/expire$/],
  ['last', 'GET', /^\/api\/v1\/merchants\/payments\/product-instances\/([^/]+)\/last$/],
  ['refund', 'POST', /^\/api\/v1\/merchants\/refunds$/],
  ['refundsOfPayment', 'GET', /^\/api\/v1\/merchants\/refunds\/([^/]+)\/payment$/],
  ['pay', 'POST', /^\/api\/v1\/merchants\/pay$/],
]

/** Starts a bank on 127.0.0.1, on a free port unless one is given. */
export async function startFakeSetu(options: FakeSetuOptions) {
  const { now, check = () => undefined } = options
  const random = seeded(options.seed ?? 1)
  const qrs = new Map<string, SetuQr>()
  const tokens = new Map<string, number>()
  const waiting: { event: object; triesLeft: number }[] = []
  const refunds = createRefundBook({
    now,
    random,
    newId: () => ulid(now()),
    findPayment: (id) =>
      fake.paid().flatMap((payment) => (payment.id === id ? { ...payment, merchantId: payment.qr.merchantId } : []))[0],
    // Sent when the answer is on its way.
    send: async (event) => deliver(await sleep(5, event), 1 + NOTIFICATION_RETRIES),
  })
  const server = createServer((request, response) => {
    text(request)
      .then((body) => serve({ method: request.method ?? '', path: request.url ?? '', headers: request.headers }, body))
      .then((answer) => answer && send(response, answer))
      // The caller has gone.
      .catch(() => response.destroy())
  })
  await listen(server, options.port ?? 0)
  const { port } = server.address() as AddressInfo

  const fake = {
    url: `http://127.0.0.1:${port}`,
    loginUrl: `http://127.0.0.1:${port}/v1/users/login`,
    /** Where notifications go. Without it none is sent. */
    notifyUrl: undefined as string | undefined,
    /** What each call meets, in turn. */
    nextFaults: {} as Partial<Record<SetuCall, CallFault[]>>,
    /** What each call meets that has no fault of its own; with how likely it is. */
    faults: [] as { call: SetuCall; fault: CallFault; chance: number }[],
    notificationFaults: {} as NotificationFaults,
    /** Whether a notification that is not answered by 200 waits to be sent again, up to three times. */
    retriesNotifications: false,
    /** Every request that came, in order. */
    requests: [] as SetuRequest[],
    /** What was wrong with them. */
    violations: [] as string[],
    /** By their id. */
    qrs,
    refunds,
    pay,
    sendEvent,
    eventOf,

    /** The QR of an id, a `tr` or a referenceId: the last one made. */
    find: (name: string) => [...qrs.values()].findLast((qr) => [qr.id, qr.refId, qr.referenceId].includes(name)),

    countOf: (call: SetuCall) => fake.requests.filter((request) => request.call === call).length,

    /** The truth: what was paid. */
    paid: () =>
      [...qrs.values()].flatMap((qr) =>
        qr.payments.filter(({ status }) => status === 'success').map((payment) => ({ ...payment, qr })),
      ),

    /** From now on no token is good that was given. */
    forgetTokens: () => tokens.clear(),

    /** Sends the notifications that are late or were not taken. */
    async sendWaiting(): Promise<void> {
      for (const { event, triesLeft } of waiting.splice(0)) await deliver(event, triesLeft)
    },
    waiting,

    /** Closes its port and all connections, until `comeBack`. */
    async goAway(): Promise<void> {
      if (!server.listening) return
      const closed = once(server, 'close')
      server.close()
      server.closeAllConnections()
      await closed
    },
    comeBack: () => listen(server, port),
  }
  return fake

  async function serve(request: Omit<SetuRequest, 'call' | 'body'>, bodyText: string): Promise<Answer | undefined> {
    const route = ROUTES.find(([, method, pattern]) => method === request.method && pattern.test(request.path))
    if (!route) return refuse(404, 'not-found', 'there is no such call')
    const [call, , pattern] = route
    const seen = { ...request, call, body: parse(bodyText) }
    fake.requests.push(seen)
    const violation = check(seen)
    if (violation !== undefined) {
      fake.violations.push(`${call}: ${violation}`)
      return refuse(400, 'invalid-request', violation)
    }
    const fault =
      fake.nextFaults[call]?.shift() ??
      fake.faults.find(({ call: of, chance }) => of === call && random() < chance)?.fault
    if (typeof fault === 'object' && 'status' in fault) return refuse(fault.status, 'fault', 'as the test wants it')
    if (typeof fault === 'object' && 'arrivesAfterMs' in fault) await sleep(fault.arrivesAfterMs)
    const answer = answerTo(seen, pattern.exec(request.path)?.[1] ?? '')
    if (fault === undefined) return answer
    if (fault === 'no answer' || (typeof fault === 'object' && 'arrivesAfterMs' in fault)) return undefined
    if (typeof fault === 'object') await ('until' in fault ? fault.until : sleep(fault.afterMs))
    return spoil(answer, fault)
  }

  function answerTo({ call, headers, body }: SetuRequest, id: string): Answer {
    if (call === 'logIn') return logIn(body as Record<string, unknown>)
    const token = headers.authorization?.replace(/^Bearer /, '') ?? ''
    if ((tokens.get(token) ?? 0) <= now().getTime()) return refuse(401, 'unauthorized', 'the token is not valid')
    const merchantId = String(headers.merchantid)
    if (call === 'createDqr') return createDqr(merchantId, body as Partial<SetuQr>)
    if (call === 'pay') return mockPayment(body as Record<string, unknown>)
    if (call === 'refund') {
      const made = refunds.make(merchantId, body as Partial<SetuRefund>)
      return made ? done(201, refundOf(made)) : refuse(404, 'not-found', 'no such payment')
    }
    if (call === 'refundsOfPayment') {
      return done(200, { paymentTxnId: id, refunds: refunds.list(merchantId, id).map(refundOf) })
    }
    const qr = qrs.get(id)
    if (qr?.merchantId !== merchantId) return refuse(404, 'not-found', 'no such resource')
    switch (call) {
      case 'expireDqr':
        if (qr.status === 'active') Object.assign(qr, { status: 'closed', closedAt: now().toISOString() })
        return done(200, withoutPayments(qr))
      case 'last': {
        const last = qr.payments.at(-1)
        return last ? done(200, paymentOf(qr, last)) : refuse(404, 'not-found', 'nobody has tried to pay')
      }
    }
  }

  function logIn({ clientID, secret }: Record<string, unknown>): Answer {
    if (clientID !== options.clientId || secret !== options.clientSecret) {
      return refuse(401, 'unauthorized', 'unknown client or wrong secret')
    }
    const token = randomBytes(24).toString('base64url')
    tokens.set(token, now().getTime() + TOKEN_SECONDS * 1000)
    return done(200, { access_token: token })
  }

  function createDqr(merchantId: string, body: Partial<SetuQr>): Answer {
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
    const made: SetuQr = { ...qr, status: 'active', createdAt: now().toISOString(), payments: [] }
    qrs.set(id, made)
    return done(201, withoutPayments(made))
  }

  /** Plays the customer; the answer comes before the notifications. */
  function mockPayment({ refId, amount, payerRespCode = '00' }: Record<string, unknown>): Answer {
    const qr = fake.find(String(refId))
    if (qr?.status !== 'active') return refuse(400, 'invalid-request', 'there is no QR with this refId to be paid')
    const outcome = payerRespCode === '00' ? 'success' : 'failed'
    pay(qr.id, { outcome, ...(amount !== undefined && { amount: Number(amount) }) }).catch(() => undefined)
    return done(200, {})
  }

  /**
   * A customer tries to pay a QR, named as for `find`. Resolves when the notifications were sent, or are waiting: `answers`
   * are their statuses; undefined where no answer came. Nobody can pay a closed QR, or a paid one again, at a bank.
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
    return { qr, payment, answers: await tell(qr, payment, faults) }
  }

  async function tell(qr: SetuQr, payment: SetuPayment, faults: NotificationFaults) {
    const happens = (chance = 0) => random() < chance
    const statuses = payment.status === 'initiated' ? ['initiated' as const] : ['initiated' as const, payment.status]
    let events = statuses.map((status) => eventOf(qr, { ...payment, status }))
    const success = { ...payment, status: 'success' } as const
    if (happens(faults.contradicted)) events.push(eventOf(qr, { ...success, amount: payment.amount + 100 }))
    if (happens(faults.repeated)) events = [...events, ...events]
    if (happens(faults.reordered)) events.reverse()
    const answers: (number | undefined)[] = []
    for (const event of events) {
      if (happens(faults.lost)) continue
      if (happens(faults.late)) waiting.push({ event, triesLeft: 1 + NOTIFICATION_RETRIES })
      else answers.push(await deliver(event, 1 + NOTIFICATION_RETRIES))
    }
    if (happens(faults.forged)) answers.push(await sendEvent(eventOf(qr, success), { secret: 'of-somebody-else' }))
    return answers
  }

  async function deliver(event: object, triesLeft: number) {
    const status = await sendEvent(event)
    if (status !== 200 && fake.retriesNotifications && triesLeft > 1) waiting.push({ event, triesLeft: triesLeft - 1 })
    return status
  }

  /** Sends one notification once. Returns its status; undefined when no answer came. */
  async function sendEvent(event: object, { secret = options.notificationSecret } = {}): Promise<number | undefined> {
    if (fake.notifyUrl === undefined) return undefined
    const body = JSON.stringify(event)
    const signature = createHmac('sha256', secret).update(body).digest('base64')
    const headers = { 'content-type': 'application/json', 'x-setu-signature': signature }
    try {
      const response = await fetch(fake.notifyUrl, { method: 'POST', headers, body })
      await response.arrayBuffer()
      return response.status
    } catch {
      return undefined
    }
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
}

/** A payment as Setu tells of it. */
function paymentOf({ id, merchantId, merchantVpa, refId, referenceId }: SetuQr, payment: SetuPayment) {
  return {
    ...payment,
    merchantId,
    merchantVpa,
    refId,
    referenceId,
    productInstanceId: id,
    currency: 'INR',
    customerVpa: CUSTOMER_VPA,
    customerAccountType: 'SAVINGS',
    reason: payment.status === 'failed' ? { code: 'declined', desc: 'no funds', npciRespCode: 'Z9' } : {},
  }
}

function withoutPayments({ payments: _, ...qr }: SetuQr) {
  return { ...qr, shortLink: `upipay.example/${qr.refId}` }
}

const done = (status: number, body: object): Answer => ({ status, body: JSON.stringify(body) })
const refuse = (status: number, code: string, detail: string) =>
  done(status, { code, detail, docUrl: 'https://docs.example/errors' })

function send(response: ServerResponse, { status, body, isCut }: Answer) {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
    requestId: randomBytes(10).toString('hex'),
  })
  if (isCut) response.write(body.slice(0, body.length / 2), () => response.destroy())
  else response.end(body)
}

async function listen(server: Server, port: number): Promise<void> {
  if (server.listening) return
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
}

function parse(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    return undefined
  }
}

const CROCKFORD = '0123456789ABCDEFGHJKMNPQRSTVWXYZ'

/** 26 characters, as Setu's identifiers have: 48 bits of time and 80 random ones. */
function ulid(moment: Date): string {
  let bits = (BigInt(moment.getTime()) << 80n) | BigInt(`0x${randomBytes(10).toString('hex')}`)
  let id = ''
  for (let i = 0; i < 26; i++) {
    id = CROCKFORD[Number(bits & 31n)] + id
    bits >>= 5n
  }
  return id
}
