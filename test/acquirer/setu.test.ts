import { createHmac } from 'node:crypto'
import { EventEmitter, once } from 'node:events'
import { afterEach, beforeAll, describe, expect, it } from 'vitest'
import { setuCalls } from '../../src/acquirer/setu.ts'
import { CUSTOMER_VPA, type FakeSetu } from '../../src/dev/fake-setu.ts'
import type { CallFault } from '../../src/dev/fake-setu-faults.ts'
import { html } from '../../src/html.ts'
import { LIMITS } from '../../src/limits.ts'
import { decodePng } from '../support/decode-png.ts'
import { newSetuMerchant, SETU_SECRETS, setuSettings, startServiceWithBank } from '../support/fake-setu.ts'
import { isSlow } from '../support/generated.ts'
import { CANCEL, forEach, STATUS } from '../support/requests.ts'
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
import type { NewMerchant } from '../support/tenants.ts'
import { until } from '../support/wait.ts'

/** Long, so that a busy machine does not turn a right answer into a 503. */
const PATIENT = { callMs: 30_000, requestMs: 30_000 }
/** Short, because the tests of faults wait for it. */
const IMPATIENT = { callMs: 1_000, requestMs: 1_500 }

let service: TestService
let bank: FakeSetu
let merchant: NewMerchant
beforeAll(async () => {
  ;({ service, bank } = await startServiceWithBank({ limits: { acquirers: PATIENT } }))
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
async function recorded(orderId: string) {
  const rows = async (sql: string) => (await service.db.query(sql, [orderId])).rows.map((row) => Object.values(row))
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
    const { intentLink, refId, amount, referenceId } = bank.find(orderId) as NonNullable<ReturnType<FakeSetu['find']>>
    const query = intentLink.slice('upi://pay?'.length)
    expect({ intent, phonepe, paytm, gpay }).toEqual({
      intent: intentLink,
      phonepe: `phonepe://upi/pay?${query}`,
      paytm: `paytmmp://upi/pay?${query}`,
      gpay: `tez://upi/pay?${query}`,
    })
    expect({ amount, referenceId }).toEqual({ amount: 20_000, referenceId: orderId })
    expect(intentLink).toContain(`&tr=${refId}&`)
    const qr = await service.app.inject({ url: `/pay/${orderId}/qr.png` })
    expect(decodePng(qr.rawPayload)).toBe(intentLink)
    const page = await service.app.inject({ url: `/pay/${orderId}` })
    expect(page.payload).toContain(`upi://pay?${String(html`${query}`)}`)
  })

  it('is closed by Setu when the intent expires', async () => {
    const orderId = await newOrder()
    const { rows } = await service.db.query('select expires_at from payment_intents where order_id = $1', [orderId])
    expect(bank.find(orderId)?.expiryDate).toBe(rows[0].expires_at.toISOString())
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

  it('is stored once for creates at once with one order_id, and those that nobody will see are closed', async () => {
    const order_id = unique('order')
    const known = bank.qrs.size
    const answers = await Promise.all(Array.from({ length: 5 }, () => create({ order_id })))
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 409, 409, 409, 409])
    const stored = answers.find(({ status }) => status === 200)?.body.data.orderId
    const { rows } = await service.db.query('select order_id from payment_intents where merchant_order_id = $1', [
      order_id,
    ])
    expect(rows).toEqual([{ order_id: stored }])
    const losers = [...bank.qrs.values()].slice(known).filter((qr) => qr.referenceId !== stored)
    await until('the losers are closed', () => losers.every(({ status }) => status === 'closed'))
    expect(bank.find(stored)?.status).toBe('active')
  })

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

  it('is the same for repeats at once with one Idempotency-Key', async () => {
    const headers = { 'idempotency-key': unique('key') }
    const answers = await Promise.all(Array.from({ length: 5 }, () => create({}, { headers })))
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
    expect(bank.find(answers[0]?.body.data.orderId)?.status).toBe('active')
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
  it.each([400, 404])('is none when a QR that is to be closed is over already, and Setu says %d', async (status) => {
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
    const started = await startServiceWithBank({ limits: { acquirers: IMPATIENT } })
    ;({ service: impatient, bank: faulty } = started)
    of = await newSetuMerchant(impatient)
  })
  afterEach(() => faulty.comeBack())

  const UNAVAILABLE: CallFault[] = [
    { status: 500 },
    { status: 503 },
    { status: 429 },
    { status: 408 },
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

  const cases = (outcome: string, faults: CallFault[]) => faults.map((fault) => ({ outcome, fault }))

  it.each([...cases('unavailable', UNAVAILABLE), ...cases('bad answer', NOT_BELIEVED), ...cases('refused', REFUSED)])(
    'is 503, stores nothing, and leaves the order_id free: $fault is $outcome',
    async ({ fault, outcome }) => {
      const order_id = unique('order')
      const stored = await count('payment_intents', impatient)
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
      expect((await create({ order_id }, { of, at: impatient })).status).toBe(200)
    },
  )

  it('is counted, with those that the operator has to mend apart', async () => {
    const counted = async () =>
      Number(
        /acquirer_calls_total\{acquirer="setu",call="prepare",outcome="refused"\} (\d+)/.exec(
          await impatient.metrics(),
        )?.[1] ?? 0,
      )
    const before = await counted()
    faulty.nextFaults.createDqr = [{ status: 403 }]
    await create({}, { of, at: impatient })
    expect(await counted()).toBe(before + 1)
  })

  it('is 503 while Setu is away, and over when it is back', async () => {
    await faulty.goAway()
    expect((await create({}, { of, at: impatient })).status).toBe(503)
    await faulty.comeBack()
    await until('orders are made again', async () => (await create({}, { of, at: impatient })).status === 200)
  })

  it.each<CallFault>([
    { status: 401 },
    { status: 500 },
    { status: 429 },
    'no JSON',
    'no fields',
    'half a body',
    'no answer',
  ])('is 503 when the log-in meets %j, and over with the next log-in', async (fault) => {
    faulty.forgetTokens()
    faulty.nextFaults.logIn = [fault]
    const order_id = unique('order')
    expect((await create({ order_id }, { of, at: impatient })).status).toBe(503)
    expect((await create({ order_id }, { of, at: impatient })).status).toBe(200)
  })

  it('is no fault when log-in and call are slow, but end within the time of a request', async () => {
    const { service: slow, bank: slowBank } = await startServiceWithBank({
      limits: { acquirers: { callMs: 20_000, requestMs: 20_000 } },
    })
    slowBank.nextFaults.logIn = [{ afterMs: 50 }]
    expect((await create({}, { of: await newSetuMerchant(slow), at: slow })).status).toBe(200)
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
    const { service: fresh, bank: freshBank } = await startServiceWithBank({ limits: { acquirers: PATIENT } })
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

  it('is done anew in the 4th minute, and nobody waits for it', async () => {
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

  it('of a failed attempt leaves the order open for the next one', async () => {
    const orderId = await newOrder()
    await bank.pay(orderId, { outcome: 'failed' })
    expect((await statusOf(orderId)).msg).toBe('Last attempt failed; still open')
    const { payment } = await bank.pay(orderId)
    expect(await statusOf(orderId)).toMatchObject({ txnStatus: 'SUCCESS', data: { UTR: payment.rrn } })
  })

  it.each([[undefined], [null], ['']])('of a failed attempt may lack rrn and txnTs, also as %j', async (absent) => {
    const orderId = await newOrder()
    expect(await bank.sendEvent(event(orderId, 'payment.failed', { rrn: absent, txnTs: absent }))).toBe(200)
    expect(await recorded(orderId)).toMatchObject({ intent: ['FAIL', null], attempts: [[null]], exceptions: [] })
  })

  it('may have a time zone without its colon, as the examples in Setu’s guides', async () => {
    const orderId = await newOrder()
    expect(await bank.sendEvent(event(orderId, 'payment.success', { txnTs: '2026-03-31T23:59:58+0530' }))).toBe(200)
    const { rows } = await service.db.query('select paid_at from payment_changes where order_id = $1', [orderId])
    expect(rows).toEqual([{ paid_at: new Date('2026-03-31T18:29:58Z') }])
  })

  it('is taken with each of the secrets, and with no other', async () => {
    for (const [secret, status] of [
      ...SETU_SECRETS.map((secret) => [secret, 200] as const),
      ['x'.repeat(22), 401] as const,
    ]) {
      const orderId = await newOrder()
      expect(await bank.sendEvent(event(orderId, 'payment.success'), { secret })).toBe(status)
      expect((await statusOf(orderId)).txnStatus).toBe(status === 200 ? 'SUCCESS' : 'PENDING')
    }
  })

  it('is refused with 401 without a signature, or with one of another body or form', async () => {
    const body = JSON.stringify(event(await newOrder(), 'payment.success'))
    const sent = (signature?: string) =>
      post(service.app, '/acquirer/setu/notification', body, undefined, {
        'content-type': 'application/json',
        ...(signature !== undefined && { 'x-setu-signature': signature }),
      })
    const before = await count('payment_changes')
    for (const signature of [undefined, '', 'AAAA', 'x'.repeat(44), 'x'.repeat(10_000)]) {
      expect((await sent(signature)).status).toBe(401)
    }
    expect(await count('payment_changes')).toBe(before)
  })

  it('about an order of another QR, of another acquirer or of nobody is 404 and changes nothing', async () => {
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
    ['amount', -1, 'amount must be whole paise'],
    ['amount', 100_000_000_000_000, 'amount must be whole paise'],
    ['amount', Number.MAX_SAFE_INTEGER, 'amount must be whole paise'],
    ['rrn', undefined, 'rrn is required with success'],
    ['txnTs', 'yesterday', 'txnTs must be a time in ISO 8601 with its zone'],
    ['productInstanceId', undefined, 'productInstanceId is required'],
    ['productInstanceId', '../x', 'productInstanceId must be an identifier of Setu'],
  ])('of a success with %s %j is 400, and kept without its customer', async (field, value, msg) => {
    const orderId = await newOrder()
    const body = JSON.stringify(event(orderId, 'payment.success', { [field]: value }))
    const signature = createHmac('sha256', SETU_SECRETS[0] ?? '')
      .update(body)
      .digest('base64')
    const headers = { 'content-type': 'application/json', 'x-setu-signature': signature }
    const answer = await post(service.app, '/acquirer/setu/notification', body, undefined, headers)
    expect(answer.body).toEqual(refusal(400, msg))
    const { rows } = await service.db.query("select body from payment_exceptions where kind = 'unreadable'")
    const kept = rows.map((row) => row.body).filter((text) => text.includes(orderId))
    expect(kept).toHaveLength(1)
    expect(kept[0]).not.toContain('customer')
  })

  it('may hold paise that are not whole rupees: an order of whole rupees does not have that amount, so it is an exception', async () => {
    const orderId = await newOrder()
    expect(await bank.sendEvent(event(orderId, 'payment.success', { amount: 20_001, rrn: '623504800001' }))).toBe(409)
    expect((await recorded(orderId)).exceptions).toEqual([['amount differs', '623504800001', '200.01']])
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

  describe('comes in any order', () => {
    const EVENTS = [
      'initiated',
      'pending',
      'failed',
      'success',
      'success again',
      'another success',
      'wrong amount',
    ] as const
    type Event = (typeof EVENTS)[number]

    /** Every order of up to `most` of these. */
    function arrangements(most: number, begin: Event[] = []): Event[][] {
      if (begin.length === most) return []
      return EVENTS.filter((next) => !begin.includes(next)).flatMap((next) => {
        const longer = [...begin, next]
        return [longer, ...arrangements(most, longer)]
      })
    }

    /** The notifications of one order, each with an rrn of its own; a repeat is the same to the byte. */
    function notificationsOf(orderId: string, rrns: Record<string, string>) {
      const success = event(orderId, 'payment.success', { rrn: rrns.success })
      return {
        initiated: event(orderId, 'payment.initiated', { rrn: rrns.success }),
        pending: event(orderId, 'payment.pending', { rrn: rrns.success }),
        failed: event(orderId, 'payment.failed', { rrn: rrns.failed }),
        success,
        'success again': success,
        'another success': event(orderId, 'payment.success', { rrn: rrns.another }),
        'wrong amount': event(orderId, 'payment.success', { rrn: rrns.wrong, amount: 20_100 }),
      } satisfies Record<Event, object>
    }

    const newRrns = () => ({ success: newRrn(), failed: newRrn(), another: newRrn(), wrong: newRrn() })

    /** What has to be the end, whatever the order was: each payment is there once, and the order is paid by one of them. */
    async function checkEnd(orderId: string, events: readonly Event[], rrns: ReturnType<typeof newRrns>) {
      const { intent, successes, attempts, exceptions } = await recorded(orderId)
      const has = (...names: Event[]) => names.some((name) => events.includes(name))
      const paid = [
        ...(has('success', 'success again') ? [rrns.success] : []),
        ...(has('another success') ? [rrns.another] : []),
      ]
      const status = paid.length > 0 ? 'SUCCESS' : has('failed') ? 'FAIL' : 'PENDING'
      const ofKind = (name: string) => exceptions.filter(([kind]) => kind === name).map(([, utr]) => utr)
      const end = {
        status: intent?.[0],
        paid: [...successes.map(([utr]) => utr), ...ofKind('double payment')].sort(),
        successes: successes.length,
        failed: [...attempts.flat(), ...ofKind('failure after success')],
        wrong: ofKind('amount differs'),
        exceptions: exceptions.length,
      }
      const before = events.findIndex((name) => name.includes('success'))
      const failedLate = before >= 0 && events.indexOf('failed') > before
      expect(end, events.join(', ')).toEqual({
        status,
        paid,
        successes: Math.min(1, paid.length),
        failed: has('failed') ? [rrns.failed] : [],
        wrong: has('wrong amount') ? [rrns.wrong] : [],
        exceptions: Math.max(0, paid.length - 1) + (failedLate ? 1 : 0) + (has('wrong amount') ? 1 : 0),
      })
    }

    it('every order of up to four notifications, or of two in a hurry, has the same end', {
      timeout: 300_000,
    }, async () => {
      await forEach(arrangements(isSlow() ? 4 : 2), 8, async (events) => {
        const orderId = await newOrder()
        const rrns = newRrns()
        const notifications = notificationsOf(orderId, rrns)
        for (const name of events) {
          const expected = name === 'wrong amount' ? 409 : 200
          expect([name, await bank.sendEvent(notifications[name])]).toEqual([name, expected])
        }
        await checkEnd(orderId, events, rrns)
      })
    })

    it('also when they come before the order is stored, and Setu sends again what was refused', {
      timeout: 300_000,
    }, async () => {
      await forEach(arrangements(isSlow() ? 3 : 1), 1, async (events) => {
        const stored = gate()
        bank.nextFaults.createDqr = [{ until: stored.opens }]
        const known = bank.qrs.size
        const creating = newOrder()
        await until('Setu has made the QR', () => bank.qrs.size > known, { pollMs: 1 })
        const orderId = [...bank.qrs.values()].at(-1)?.referenceId ?? ''
        const rrns = newRrns()
        const notifications = notificationsOf(orderId, rrns)
        const again: Event[] = []
        for (const name of events) if ((await bank.sendEvent(notifications[name])) !== 200) again.push(name)
        expect(again).toEqual(events.filter((name) => name !== 'initiated' && name !== 'pending'))
        stored.open()
        await creating
        for (const name of again) await bank.sendEvent(notifications[name])
        await checkEnd(orderId, events, rrns)
      })
    })
  })
})

describe('a question about a payment', () => {
  const ask = async (orderId: string) => {
    const { id, merchantId, refId, intentLink } = bank.find(orderId) as NonNullable<ReturnType<FakeSetu['find']>>
    const link = { acquirer: 'setu', id, merchantId, reference: refId, link: intentLink }
    return setuCalls(setuSettings(bank), LIMITS.acquirers, () => performance.now()).enquire(
      link,
      performance.now() + PATIENT.requestMs,
    )
  }
  const quietly = { faults: { lost: 1 } }

  it('is answered by nothing while nobody has tried to pay, or the payment has not ended', async () => {
    const orderId = await newOrder()
    expect(await ask(orderId)).toBeUndefined()
    for (const outcome of ['initiated', 'pending'] as const) {
      await bank.pay(orderId, { ...quietly, outcome })
      expect(await ask(orderId)).toBeUndefined()
    }
  })

  it('is answered by a payment whose time zone has no colon', async () => {
    const orderId = await newOrder()
    const { payment } = await bank.pay(orderId, quietly)
    payment.txnTs = '2026-03-31T23:59:58+0530'
    expect(await ask(orderId)).toMatchObject({ status: 'SUCCESS', paidAt: new Date('2026-03-31T18:29:58Z') })
  })

  it('is answered by the last payment', async () => {
    const orderId = await newOrder()
    const failed = await bank.pay(orderId, { ...quietly, outcome: 'failed' })
    const paidAt = new Date(failed.payment.txnTs)
    expect(await ask(orderId)).toEqual({ status: 'FAIL', utr: failed.payment.rrn, amount: '200.00', paidAt })
    const { payment } = await bank.pay(orderId, quietly)
    expect(await ask(orderId)).toEqual({ status: 'SUCCESS', utr: payment.rrn, amount: '200.00', paidAt })
  })

  it.each([[undefined], [null], ['']])('is answered by a failed payment that has %j instead of an rrn', async (rrn) => {
    const orderId = await newOrder()
    const { payment } = await bank.pay(orderId, { ...quietly, outcome: 'failed' })
    Object.assign(payment, { rrn, txnTs: rrn })
    expect(await ask(orderId)).toEqual({ status: 'FAIL', utr: undefined, amount: '200.00', paidAt: undefined })
  })

  it.each([{ rrn: '' }, { rrn: 'x y' }, { amount: '20000' }, { amount: 0.5 }, { status: 'refunded' }])(
    'is not answered by a success that says %j',
    async (changes) => {
      const orderId = await newOrder()
      const { payment } = await bank.pay(orderId, quietly)
      Object.assign(payment, changes)
      await expect(ask(orderId)).rejects.toMatchObject({ outcome: 'bad answer' })
    },
  )

  it.each<[CallFault, string]>([
    [{ status: 500 }, 'unavailable'],
    [{ status: 403 }, 'refused'],
    ['half a body', 'unavailable'],
    ['huge body', 'bad answer'],
    ['no JSON', 'bad answer'],
    ['no fields', 'bad answer'],
  ])('that meets %j is %s', async (fault, outcome) => {
    const orderId = await newOrder()
    await bank.pay(orderId, quietly)
    bank.nextFaults.last = [fault]
    await expect(ask(orderId)).rejects.toMatchObject({ outcome })
  })
})

describe("the control of a sandbox's pay page", () => {
  let sandbox: TestService
  let played: FakeSetu
  let of: NewMerchant
  beforeAll(async () => {
    const started = await startServiceWithBank({ sandbox: true, limits: { acquirers: PATIENT } })
    ;({ service: sandbox, bank: played } = started)
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
  ])('%s plays the customer at Setu, whose notification makes the order %s', async (pressed, end, exceptions) => {
    const orderId = await newOrder({ of, at: sandbox })
    expect((await press(orderId, pressed)).status).toBe(303)
    const rowsOf = async (sql: string) =>
      (await sandbox.db.query(sql, [orderId])).rows.map((row) => Object.values(row)[0])
    const kinds = () => rowsOf('select kind from payment_exceptions where order_id = $1')
    const status = () => rowsOf('select status from payment_intents where order_id = $1')
    const isEnd = async () => (await status())[0] === end && (await kinds()).length === exceptions.length
    await until(`the order is ${end}`, isEnd)
    expect([await status(), await kinds()]).toEqual([[end], exceptions])
    const reasons = await rowsOf(`select reason from payment_changes where order_id = $1
                               union all select reason from payment_attempts where order_id = $1`)
    expect(reasons).toEqual(end === 'PENDING' ? [] : ['notification'])
  })

  it('is 503 while Setu is away, and works when it is back', async () => {
    const orderId = await newOrder({ of, at: sandbox })
    await played.goAway()
    expect((await press(orderId, 'SUCCESS')).status).toBe(503)
    await played.comeBack()
    expect((await press(orderId, 'SUCCESS')).status).toBe(303)
  })
})
