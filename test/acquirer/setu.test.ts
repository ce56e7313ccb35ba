import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { createAsk } from '../../src/acquirer/ask.ts'
import { setuCalls } from '../../src/acquirer/setu.ts'
import { html } from '../../src/html.ts'
import { LIMITS } from '../../src/limits.ts'
import { createCaller } from '../../src/outside/call.ts'
import { decodePng } from '../support/decode-png.ts'
import { newSetuMerchant, SETU_SECRETS, setuSettings, startServiceWithBank } from '../support/fake-setu.ts'
import { CANCEL, STATUS } from '../support/requests.ts'
import {
  type Answer,
  CREATE,
  intentFields,
  newMerchant,
  post,
  refusal,
  type TestService,
  unique,
} from '../support/service.ts'
import { CUSTOMER_VPA, type FakeSetu } from '../support/setu-bank.ts'
import type { CallFault } from '../support/setu-bank-faults.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'
import { allow } from '../support/webhooks.ts'

/** Long, so that a busy machine does not turn a right answer into a 503. */
const PATIENT = { outside: { acquirerMs: 30_000 }, acquirers: { requestMs: 30_000 } }
/** Short, because the tests of faults wait for it. */
const IMPATIENT = { outside: { acquirerMs: 1_000 }, acquirers: { requestMs: 1_500 } }

let service: TestService
let bank: FakeSetu
let merchant: NewMerchant
beforeAll(async () => {
  ;({ service, bank } = await startServiceWithBank({ limits: PATIENT }))
  merchant = await newSetuMerchant(service)
})

const create = (
  changes: Record<string, string | undefined> = {},
  { of = merchant, at = service, headers = {} as Record<string, string> } = {},
): Promise<Answer> => post(at.app, CREATE, intentFields(of.mid, changes), of.key, headers)

async function newOrder(options: Parameters<typeof create>[1] = {}): Promise<string> {
  const { status, text, body } = await create({}, options)
  if (status !== 200) throw new Error(text)
  return body.data.orderId
}

const statusOf = async (orderId: string) =>
  (await post(service.app, STATUS, { mid: merchant.mid, order_id: orderId }, merchant.key)).body

/** What waits for `opens` goes on after `open`. */
function gate() {
  const events = new EventEmitter()
  return { opens: once(events, 'open'), open: () => events.emit('open') }
}

async function count(table: string, at = service): Promise<number> {
  return (await at.db.query(`select count(*)::int as count from ${table}`)).rows[0].count
}

/** Everything that was recorded of an order, in an order that does not depend on when it came. */
async function recorded(orderId: string, { db } = service) {
  const rows = async (sql: string) => (await db.query(sql, [orderId])).rows.map((row) => Object.values(row))
  return {
    intent: (await rows('select status, utr from payment_intents where order_id = $1'))[0],
    successes: await rows("select utr, reason from payment_changes where order_id = $1 and status = 'SUCCESS'"),
    attempts: await rows('select utr from payment_attempts where order_id = $1 order by utr'),
    exceptions: await rows(
      `select kind, utr, amount from payment_exceptions
        where order_id = $1 and kind <> 'unknown order' order by kind, utr, amount`,
    ),
  }
}

describe('a link of Setu', () => {
  it('is what customers get: its parameters under the four prefixes, on the pay page and, unchanged, in the QR', async () => {
    const made = await create({ note: 'Order 1001' })
    expect(made.status).toBe(200)
    const { intent, phonepe, paytm, gpay, orderId } = made.body.data
    const { intentLink, refId, amount, referenceId, expiryDate } = bank.find(orderId) as NonNullable<
      ReturnType<FakeSetu['find']>
    >
    const query = intentLink.slice('upi://pay?'.length)
    expect({ intent, phonepe, paytm, gpay }).toEqual({
      intent: intentLink,
      phonepe: `phonepe://upi/pay?${query}`,
      paytm: `paytmmp://upi/pay?${query}`,
      gpay: `tez://upi/pay?${query}`,
    })
    const { rows } = await service.db.query('select expires_at from payment_intents where order_id = $1', [orderId])
    const [{ expires_at }] = rows
    expect({ amount, referenceId, expiryDate }).toEqual({
      amount: 20_000,
      referenceId: orderId,
      expiryDate: expires_at.toISOString(),
    })
    expect(intentLink).toContain(`&tr=${refId}&`)
    const qr = await service.app.inject({ url: `/pay/${orderId}/qr.png` })
    expect(decodePng(qr.rawPayload)).toBe(intentLink)
    const page = await service.app.inject({ url: `/pay/${orderId}` })
    expect(page.payload).toContain(`upi://pay?${String(html`${query}`)}`)
  })

  it('costs no second call when the order_id or the Idempotency-Key is repeated', async () => {
    const order_id = unique('order')
    const headers = { 'idempotency-key': unique('key') }
    const first = await create({ order_id }, { headers })
    const calls = bank.requests.length
    expect((await create({ order_id }, { headers })).body).toEqual(first.body)
    expect((await create({ order_id })).status).toBe(409)
    expect((await create({ order_id, amount: '201' }, { headers })).status).toBe(422)
    expect(bank.requests.length).toBe(calls)
  })

  it.each([
    ['order_id', {}, [200, 409, 409, 409, 409]],
    ['order_id and Idempotency-Key', { 'idempotency-key': unique('key') }, [200, 200, 200, 200, 200]],
  ])(
    'is stored once for simultaneous creates with one %s, and the unused links are closed',
    async (_name, headers, statuses) => {
      const order_id = unique('order')
      const known = bank.qrs.size
      const held = gate()
      bank.nextFaults.createDqr = Array.from({ length: 5 }, () => ({ until: held.opens }))
      const creating = Promise.all(Array.from({ length: 5 }, () => create({ order_id }, { headers })))
      await until('Setu has made all five', () => bank.qrs.size === known + 5)
      held.open()
      const answers = await creating
      expect(answers.map(({ status }) => status).sort()).toEqual(statuses)
      const [stored, ...others] = new Set(answers.flatMap(({ body }) => body.data?.orderId ?? []))
      expect(others).toEqual([])
      const losers = [...bank.qrs.values()].slice(known).filter((qr) => qr.referenceId !== stored)
      expect(losers).toHaveLength(4)
      await until('the losers are closed', () => losers.every(({ status }) => status === 'closed'))
      expect(bank.find(stored)?.status).toBe('active')
    },
  )

  it('is closed when PostgreSQL refuses the intent: nobody will see it', async () => {
    await service.db.query(
      "alter table payment_intents add constraint refused_by_a_test check (note <> 'refused by PostgreSQL') not valid",
    )
    const known = bank.qrs.size
    const answers = await Promise.all([1, 2, 3].map(() => create({ note: 'refused by PostgreSQL' })))
    const other = await create()
    await service.db.query('alter table payment_intents drop constraint refused_by_a_test')
    expect(answers.map(({ status }) => status)).toEqual([500, 500, 500])
    const refused = [...bank.qrs.values()].slice(known).filter((qr) => qr.referenceId !== other.body.data.orderId)
    expect(refused.length).toBe(3)
    await until('the refused ones are closed', () => refused.every(({ status }) => status === 'closed'))
    expect(bank.find(other.body.data.orderId)?.status).toBe('active')
  })

  it('is closed at Setu, once, when the merchant cancels the order', async () => {
    const orderId = await newOrder()
    const before = bank.countOf('expireDqr')
    for (let i = 0; i < 3; i++) {
      const { body } = await post(service.app, CANCEL, { mid: merchant.mid, order_id: orderId }, merchant.key)
      expect(body.msg).toBe('Payment cancelled')
    }
    await until('the QR is closed', () => bank.find(orderId)?.status === 'closed')
    expect(bank.countOf('expireDqr') - before).toBe(1)
  })
})

describe('a fault of Setu', () => {
  it.each([400, 404])('is not logged when Setu answers %d to the close of a QR that is over', async (status) => {
    const orderId = await newOrder()
    bank.nextFaults.expireDqr = [{ status }]
    const before = bank.countOf('expireDqr')
    service.log.length = 0
    await post(service.app, CANCEL, { mid: merchant.mid, order_id: orderId }, merchant.key)
    await until('Setu was asked', () => bank.countOf('expireDqr') > before)
    await until('it is counted', async () => (await service.metrics()).includes('call="close",outcome="done"'))
    expect(service.log.filter((line) => JSON.parse(line).call === 'close')).toEqual([])
  })

  let impatient: TestService
  let faulty: FakeSetu
  let of: NewMerchant
  beforeAll(async () => {
    const started = await startServiceWithBank({ limits: IMPATIENT })
    ;({ service: impatient, bank: faulty } = started)
    of = await newSetuMerchant(impatient)
  })
  afterEach(() => faulty.comeBack())

  const UNAVAILABLE: CallFault[] = [
    ...[500, 503, 429, 408].map((status) => ({ status })),
    { afterMs: 1_400 },
    'no answer',
    'half a body',
  ]
  const NOT_BELIEVED: CallFault[] = [
    'huge body',
    'no JSON',
    'no fields',
    'wrong payee',
    'two payees',
    'two payees, one in capitals',
    'two payees, one encoded',
    'two amounts, one in capitals',
    'another order',
    'wrong amount',
    'no amount',
    'lower minimum',
    'wrong currency',
    'no tr',
    'other scheme',
  ]
  const REFUSED: CallFault[] = [{ status: 400 }, { status: 403 }, { status: 404 }]

  const callsOf = async (outcome: string) => {
    const sample = `acquirer_calls_total{acquirer="setu",call="prepare",outcome="${outcome}"} `
    return Number((await impatient.metrics()).split(sample)[1]?.split('\n')[0] ?? 0)
  }
  const cases = (outcome: string, faults: CallFault[]) => faults.map((fault) => ({ outcome, fault }))

  it.each([...cases('unavailable', UNAVAILABLE), ...cases('bad answer', NOT_BELIEVED), ...cases('refused', REFUSED)])(
    'makes a create 503, stores nothing and leaves the order_id free: $fault counts as $outcome',
    async ({ fault, outcome }) => {
      const order_id = unique('order')
      const stored = await count('payment_intents', impatient)
      const counted = await callsOf(outcome)
      impatient.log.length = 0
      faulty.nextFaults.createDqr = [fault]
      const answer = await create({ order_id }, { of, at: impatient })
      expect([answer.status, answer.body.data]).toEqual([503, undefined])
      expect(answer.headers['retry-after']).toBeDefined()
      expect(await count('payment_intents', impatient)).toBe(stored)
      expect(await count('acquirer_intents', impatient)).toBe(stored)

      const level = outcome === 'unavailable' ? 40 : 50
      const lines = impatient.log.map((line) => JSON.parse(line)).filter(({ acquirer }) => acquirer === 'setu')
      expect(lines).toMatchObject([{ level, acquirer: 'setu', call: 'prepare', outcome }])
      expect(await callsOf(outcome)).toBe(counted + 1)
      expect((await create({ order_id }, { of, at: impatient })).status).toBe(200)
    },
  )

  it.each<CallFault>([
    ...[401, 500, 429].map((status) => ({ status })),
    'no JSON',
    'no fields',
    'half a body',
    'no answer',
  ])('makes a create 503 when the log-in meets %j, and the next create succeeds', async (fault) => {
    faulty.forgetTokens()
    faulty.nextFaults.logIn = [fault]
    const order_id = unique('order')
    expect((await create({ order_id }, { of, at: impatient })).status).toBe(503)
    expect((await create({ order_id }, { of, at: impatient })).status).toBe(200)
  })

  it('is not felt by merchants of `direct`: 64 calls may hang, and the 65th is refused at once', async () => {
    const direct = await newMerchant(service.db)
    const held = gate()
    bank.faults = [{ call: 'createDqr', fault: { until: held.opens }, chance: 1 }]
    const before = bank.countOf('createDqr')
    const hanging = Array.from({ length: 64 }, () => create())
    await until('64 calls hang', () => bank.countOf('createDqr') - before === 64)
    expect((await create()).status).toBe(503)
    expect(bank.countOf('createDqr') - before).toBe(64)
    for (let i = 0; i < 20; i++) expect((await create({}, { of: direct })).status).toBe(200)
    bank.faults = []
    held.open()
    expect(new Set((await Promise.all(hanging)).map(({ status }) => status))).toEqual(new Set([200]))
    expect((await create()).status).toBe(200)
  })
})

describe('the log-in', () => {
  it('is shared by all calls that wait for it, and used again', async () => {
    const { service: fresh, bank: freshBank } = await startServiceWithBank({ limits: PATIENT })
    const of = await newSetuMerchant(fresh)
    await Promise.all(Array.from({ length: 20 }, () => create({}, { of, at: fresh })))
    await create({}, { of, at: fresh })
    expect([freshBank.countOf('logIn'), freshBank.countOf('createDqr')]).toEqual([1, 21])
  })

  it('is done once more when the token is refused, for all calls together', async () => {
    await newOrder()
    const before = bank.countOf('logIn')
    bank.forgetTokens()
    const answers = await Promise.all(Array.from({ length: 10 }, () => create()))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(bank.countOf('logIn') - before).toBe(1)
  })

  it('is renewed after 4 minutes, while calls go on with the old token', async () => {
    await newOrder()
    const before = bank.countOf('logIn')
    service.clock.advance(241)
    const held = gate()
    bank.nextFaults.logIn = [{ until: held.opens }]
    await Promise.all([newOrder(), newOrder()])
    await newOrder()
    held.open()
    await until('there is a new token', () => bank.countOf('logIn') - before === 1)
    await newOrder()
    expect(bank.countOf('logIn') - before).toBe(1)
  })
})

describe('a notification of Setu', () => {
  const qrOf = (orderId: string) => {
    const qr = bank.find(orderId)
    if (!qr) throw new Error(`the bank does not know ${orderId}`)
    return qr
  }
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

  it('makes the order paid, with the customer’s reference as its UTR and the time when the money moved', async () => {
    const orderId = await newOrder()
    const { payment, answers } = await bank.pay(orderId)
    expect(answers).toEqual([200, 200])
    expect(await statusOf(orderId)).toMatchObject({
      msg: 'Payment successful',
      txnStatus: 'SUCCESS',
      data: { UTR: payment.rrn, amount: 200 },
    })
    const { rows } = await service.db.query('select reason, paid_at from payment_changes where order_id = $1', [
      orderId,
    ])
    expect(rows).toEqual([{ reason: 'notification', paid_at: new Date(payment.txnTs) }])
  })

  it.each([[undefined], [null], ['']])('of a failed attempt may have %j for rrn and txnTs', async (absent) => {
    const orderId = await newOrder()
    expect(await bank.sendEvent(event(orderId, 'payment.failed', { rrn: absent, txnTs: absent }))).toBe(200)
    expect(await recorded(orderId)).toMatchObject({ intent: ['FAIL', null], attempts: [[null]], exceptions: [] })
  })

  it('is accepted with each of the secrets, and 401 with any other signature or none', async () => {
    const orderId = await newOrder()
    const body = JSON.stringify(event(orderId, 'payment.success'))
    const signed = (secret: string, of = body) => createHmac('sha256', secret).update(of).digest('base64')
    const [first = '', second = ''] = SETU_SECRETS
    const none = [undefined, '', 'AAAA', 'x'.repeat(44), 'x'.repeat(10_000)]
    for (const signature of [...none, signed('x'.repeat(22)), signed(first, `${body} `)]) {
      expect((await send(body, signature)).status).toBe(401)
    }
    expect((await statusOf(orderId)).txnStatus).toBe('PENDING')
    for (const secret of [first, second]) expect((await send(body, signed(secret))).status).toBe(200)
    expect((await statusOf(orderId)).txnStatus).toBe('SUCCESS')
  })

  it('is 404 and changes nothing for an order of another QR, of another acquirer or of nobody', async () => {
    const [one, other] = [await newOrder(), await newOrder()]
    const direct = await newMerchant(service.db)
    const ofDirect = await newOrder({ of: direct })
    const elsewhere = [
      event(one, 'payment.success', { productInstanceId: qrOf(other).id }),
      event(one, 'payment.success', { merchantReferenceId: ofDirect }),
      event(one, 'payment.success', { merchantReferenceId: 'a'.repeat(32) }),
    ]
    for (const body of elsewhere) expect(await bank.sendEvent(body)).toBe(404)
    for (const orderId of [one, other]) expect((await statusOf(orderId)).txnStatus).toBe('PENDING')
  })

  it.each(['payment.initiated', 'payment.pending', 'refund.success', 'mandate.live.initiated', 'constructor'])(
    '%s is 200 and changes nothing, whatever its fields are',
    async (eventType) => {
      const orderId = await newOrder()
      const before = await recorded(orderId)
      for (const changes of [{}, { amount: 1 }, { amount: null, rrn: 7, merchantReferenceId: [], txnTs: 'never' }]) {
        expect(await bank.sendEvent(event(orderId, eventType, changes))).toBe(200)
      }
      expect(await recorded(orderId)).toEqual(before)
    },
  )

  it.each([
    ['amount', '20000', 'amount must be whole paise'],
    ['amount', 20_000.5, 'amount must be whole paise'],
    ['amount', 100_000_000_000_000, 'amount must be whole paise'],
    ['rrn', undefined, 'rrn is required with success'],
    ['txnTs', 'yesterday', 'txnTs must be a time in ISO 8601 with its zone'],
    ['productInstanceId', undefined, 'productInstanceId is required'],
    ['productInstanceId', '../x', 'productInstanceId must be an identifier of Setu'],
  ])('of a success with %s %j is 400, and kept without its customer', async (field, value, msg) => {
    const orderId = await newOrder()
    const body = JSON.stringify(event(orderId, 'payment.success', { [field]: value }))
    const signature = createHmac('sha256', SETU_SECRETS[0] ?? '').update(body)
    expect((await send(body, signature.digest('base64'))).body).toEqual(refusal(400, msg))
    const { rows } = await service.db.query("select body from payment_exceptions where kind = 'unreadable'")
    const kept = rows.map((row) => row.body).filter((text) => text.includes(orderId))
    expect(kept).toHaveLength(1)
    expect(kept[0]).not.toContain('customer')
  })

  it('leaves nothing of the customer in the database or the log', async () => {
    const orderId = await newOrder()
    await bank.pay(orderId, { outcome: 'failed' })
    await bank.pay(orderId, { faults: { contradicted: 1, repeated: 1, forged: 1, reordered: 1 } })
    await bank.sendEvent({ ...event(orderId, 'payment.success'), productInstanceId: 'elsewhere' })
    await bank.sendEvent({ ...event(orderId, 'payment.success'), amount: 'much' })
    const { rows: tables } = await service.db.query("select tablename from pg_tables where schemaname = 'public'")
    expect(tables.length).toBeGreaterThan(5)
    for (const { tablename } of tables) {
      const { rows } = await service.db.query(`select t::text as text from "${tablename}" t`)
      expect(rows.filter(({ text }) => text.includes('made.up') || text.includes('SAVINGS'))).toEqual([])
    }
    expect(CUSTOMER_VPA).toContain('made.up')
    expect(service.log.filter((line) => line.includes('made.up') || line.includes('SAVINGS'))).toEqual([])
  })

  it('is refused before its order is stored, and counts when Setu sends it again', async () => {
    const stored = gate()
    bank.nextFaults.createDqr = [{ until: stored.opens }]
    const known = bank.qrs.size
    const creating = newOrder()
    await until('Setu has made the QR', () => bank.qrs.size > known, { pollMs: 1 })
    const orderId = [...bank.qrs.values()].at(-1)?.referenceId ?? ''
    const told = ['initiated', 'failed', 'success'].map((end) => event(orderId, `payment.${end}`))
    const tell = async () => {
      const statuses: unknown[] = []
      for (const one of told) statuses.push(await bank.sendEvent(one))
      return statuses
    }
    expect(await tell()).toEqual([200, 404, 404])
    stored.open()
    await creating
    expect(await tell()).toEqual([200, 200, 200])
    const [, failed, success] = told.map(({ rrn }) => rrn)
    const end = { intent: ['SUCCESS', success], successes: [[success, 'notification']], attempts: [[failed]] }
    expect(await recorded(orderId)).toEqual({ ...end, exceptions: [] })
  })
})

describe('an enquiry to Setu', () => {
  const ask = async (orderId: string) => {
    const { id, merchantId, refId, intentLink } = bank.find(orderId) as NonNullable<ReturnType<FakeSetu['find']>>
    const link = { acquirer: 'setu', id, merchantId, reference: refId, link: intentLink }
    const call = createCaller({ allowedNetworks: allow(), limits: LIMITS.outside, now: service.clock.now })
    const calls = setuCalls(setuSettings(bank), createAsk(call), () => performance.now())
    return calls.enquire(link, AbortSignal.timeout(PATIENT.acquirers.requestMs))
  }
  const quietly = { faults: { lost: 1 } }

  it('finds nothing while nobody has tried to pay, or the payment has not ended', async () => {
    const orderId = await newOrder()
    expect(await ask(orderId)).toBeUndefined()
    for (const outcome of ['initiated', 'pending'] as const) {
      await bank.pay(orderId, { ...quietly, outcome })
      expect(await ask(orderId)).toBeUndefined()
    }
  })

  const namesOf = ({ id, txnId }: { id: string; txnId: string }) => ({ id, txnId })

  it('finds the last payment, even if its time zone has no colon', async () => {
    const orderId = await newOrder()
    const { payment: failed } = await bank.pay(orderId, { ...quietly, outcome: 'failed' })
    const paidAt = new Date(failed.txnTs)
    expect(await ask(orderId)).toEqual({
      status: 'FAIL',
      utr: failed.rrn,
      amount: '200.00',
      paidAt,
      names: namesOf(failed),
    })
    const { payment } = await bank.pay(orderId, quietly)
    payment.txnTs = '2026-03-31T23:59:58+0530'
    const at = { paidAt: new Date('2026-03-31T18:29:58Z') }
    expect(await ask(orderId)).toEqual({
      status: 'SUCCESS',
      utr: payment.rrn,
      amount: '200.00',
      ...at,
      names: namesOf(payment),
    })
  })

  it.each([[undefined], [null], ['']])('finds a failed payment that has %j instead of an rrn', async (rrn) => {
    const orderId = await newOrder()
    const { payment } = await bank.pay(orderId, { ...quietly, outcome: 'failed' })
    Object.assign(payment, { rrn, txnTs: rrn })
    expect(await ask(orderId)).toEqual({
      ...{ status: 'FAIL', utr: undefined, amount: '200.00', paidAt: undefined, names: namesOf(payment) },
    })
  })

  it.each([{ rrn: '' }, { rrn: 'x y' }, { amount: '20000' }, { amount: 0.5 }, { status: 'refunded' }])(
    'fails as a bad answer for a success that says %j',
    async (changes) => {
      const orderId = await newOrder()
      const { payment } = await bank.pay(orderId, quietly)
      Object.assign(payment, changes)
      await expect(ask(orderId)).rejects.toMatchObject({ outcome: 'bad answer' })
    },
  )
})

describe('the sandbox control on the pay page', () => {
  let sandbox: TestService
  let of: NewMerchant
  beforeAll(async () => {
    const started = await startServiceWithBank({ sandbox: true, limits: PATIENT })
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
  ])('plays the customer at Setu: %s makes the order %s by Setu’s notification', async (pressed, end, exceptions) => {
    const orderId = await newOrder({ of, at: sandbox })
    expect((await press(orderId, pressed)).status).toBe(303)
    const kinds = async () => (await recorded(orderId, sandbox)).exceptions.map(([kind]) => kind)
    const status = async () => (await recorded(orderId, sandbox)).intent?.[0]
    await until(`it is ${end}`, async () => (await status()) === end && (await kinds()).length === exceptions.length)
    expect(await kinds()).toEqual(exceptions)
    const { rows } = await sandbox.db.query(
      `select reason from payment_changes where order_id = $1
       union all
       select reason from payment_attempts where order_id = $1`,
      [orderId],
    )
    expect(rows).toEqual(end === 'PENDING' ? [] : [{ reason: 'notification' }])
  })
})
