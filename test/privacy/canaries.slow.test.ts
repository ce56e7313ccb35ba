import { createHmac, randomBytes } from 'node:crypto'
import { createServer } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { NOTIFY, notification, sign } from '../support/acquirer.ts'
import { CANARIES, CANARY_CUSTOMER, CANARY_FIELDS } from '../support/canaries.ts'
import { createTestDatabase, type TestDatabase } from '../support/database.ts'
import { newRazorpayMerchant, RAZORPAY, RAZORPAY_SECRETS, razorpaySettings } from '../support/fake-razorpay.ts'
import { runOps } from '../support/ops.ts'
import { RAZORPAY_CUSTOMER } from '../support/razorpay-bank.ts'
import { type ServerProcess, startServerProcess } from '../support/server-process.ts'
import {
  basic,
  CREATE,
  form,
  intentFields,
  type Key,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  ORDER,
  REFUND,
  STATUS,
} from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'
import { dump } from '../support/stored-rows.ts'
import { until } from '../support/wait.ts'

const SECRETS = {
  acquirer: 'canaryacquirer-0123456789',
  databasePassword: 'canarypassword',
  guess: 'sk_canaryguess',
  bearer: 'canarybearer',
  cookie: 'session=canarycookie',
  agent: 'canaryagent/1.0',
  idempotencyKey: 'canaryretry',
  query: 'canaryinquery',
}

let database: TestDatabase
let db: Database
let url: string
let role: string
let merchant: { mid: string; key: Key }
let partner: { pid: string; key: Key }

beforeAll(async () => {
  database = await createTestDatabase()
  db = database.db
  role = `canary_${randomBytes(6).toString('hex')}`
  await db.query(`create role ${role} login superuser password '${SECRETS.databasePassword}'`)
  const own = new URL(database.url)
  own.username = role
  own.password = SECRETS.databasePassword
  url = own.href
  merchant = await newMerchant(db)
  partner = await newPartner(db, merchant.mid)
})
afterAll(async () => {
  const admin = new pg.Client({ connectionString: inject('adminUrl') })
  await admin.connect()
  await admin.query(`drop role ${role}`)
  await admin.end()
})

/** All texts that must not be found anywhere: input, also in its encoded forms, and the service's secrets. */
function forbidden(): string[] {
  const { databasePassword, acquirer, guess, bearer, cookie, agent, idempotencyKey, query } = SECRETS
  const secretKeys = [merchant.key, partner.key].map(({ secretKey }) => secretKey)
  const credentials = [
    merchant.key,
    partner.key,
    { publicKey: merchant.key.publicKey, secretKey: guess },
    { publicKey: 'canarypublic', secretKey: guess },
  ].map((key) => basic(key).slice('Basic '.length))
  const texts = Object.values(CANARY_FIELDS)
  const words = ['canary', databasePassword, acquirer, guess, bearer, cookie, agent, idempotencyKey, query]
  return [...words, ...texts, ...texts.map(encodeURIComponent), ...secretKeys, ...credentials]
}

/** The forbidden texts that `written` contains, in upper or lower case. */
function leaks(written: string): string[] {
  // The role's name is part of the database URL and no secret; PostgreSQL names it when it rejects a log-in.
  const text = written.replaceAll(role, 'role').toLowerCase()
  return forbidden().filter((canary) => text.includes(canary.toLowerCase()))
}

type Call = { path: string; body?: string; headers?: Record<string, string>; method?: string }

/**
 * Sends `call` with a canary in every header that `call` does not set; returns the status and the whole response as
 * text.
 */
async function send(service: ServerProcess, { path, body, headers, method = 'POST' }: Call) {
  const response = await fetch(service.url + path, {
    method,
    redirect: 'manual',
    headers: {
      'content-type': 'application/x-www-form-urlencoded',
      cookie: SECRETS.cookie,
      'user-agent': SECRETS.agent,
      ...headers,
    },
    ...(body !== undefined && { body }),
  })
  const text = `${JSON.stringify([...response.headers])}\n${await response.text()}`
  if (response.status >= 400) errors.push(text)
  return { status: response.status, text }
}

/** All responses except the successes. */
const errors: string[] = []

const authorized = (key: Key, more: Record<string, string> = {}) => ({ authorization: basic(key), ...more })
const create = (changes: Record<string, string | undefined> = {}, more: Record<string, string> = {}): Call => ({
  path: CREATE,
  body: form(intentFields(merchant.mid, { ...CANARY_FIELDS, ...changes })),
  headers: authorized(merchant.key, more),
})
const list = (changes: Record<string, string> = {}): Call => ({
  path: LIST,
  body: form({ pid: partner.pid, mid: merchant.mid, s_date: '01-01-2026', e_date: '31-01-2026', ...changes }),
  headers: authorized(partner.key),
})
const notice = (body: string, secret = SECRETS.acquirer): Call => ({
  path: NOTIFY,
  body,
  headers: { 'content-type': 'application/json', 'x-signature': sign(body, new Date(), secret) },
})

/** A signed notification of a dispute, with the customer data that Cashfree sends. */
const disputeNotice = (dispute_id: string, secret = SECRETS.acquirer): Call => {
  const dispute = {
    ...{ dispute_id, dispute_type: 'CHARGEBACK', dispute_status: 'CHARGEBACK_CREATED', dispute_amount: 3 },
    ...{ reason_description: CANARY_FIELDS.note, cf_dispute_remarks: CANARY_FIELDS.customer_name },
  }
  const order_details = { order_id: '0'.repeat(32), cf_payment_id: '7' }
  const body = JSON.stringify({
    type: 'DISPUTE_CREATED',
    data: { dispute, order_details, customer_details: CANARY_CUSTOMER },
  })
  const signature = createHmac('sha256', secret).update('1').update(body).digest('base64')
  const headers = { 'x-webhook-timestamp': '1', 'x-webhook-signature': signature, 'content-type': 'application/json' }
  return { path: '/acquirer/cashfree/notification', body, headers }
}

/** A signed notification of a payment, with the customer data that Razorpay sends. */
const paymentNotice = (amount: unknown, secret = SECRETS.acquirer): Call => {
  const { customer_email: email, customer_mobile: contact, customer_name: vpa } = CANARY_CUSTOMER
  const notes = { receipt: '0'.repeat(32), remark: CANARY_FIELDS.note }
  const entity = { id: 'pay_1', amount, email, contact, vpa, notes, upi: { vpa }, error_description: vpa }
  const body = JSON.stringify({ event: 'payment.captured', payload: { payment: { entity } } })
  const signature = createHmac('sha256', secret).update(body).digest('hex')
  const headers = { 'x-razorpay-signature': signature, 'content-type': 'application/json' }
  return { path: '/acquirer/razorpay/notification', body, headers }
}

/** Each field with a value that it rejects, which contains the canary. */
const WRONG_FIELDS = Object.entries(CANARIES).flatMap(([name, { rejected }]) =>
  rejected.map((value): Record<string, string> => ({ [name]: value })),
)

/** Starts the service as a process that logs everything it can. */
const startTalkative = (databaseUrl: string, more: Record<string, string> = {}) =>
  startServerProcess(databaseUrl, {
    ...{ LOG_LEVEL: 'trace', ACQUIRER_SECRETS: SECRETS.acquirer, CASHFREE_API_URL: 'https://api.example/pg' },
    ...{ CASHFREE_CLIENT_ID: 'client', CASHFREE_CLIENT_SECRET: SECRETS.acquirer },
    ...{ RAZORPAY_API_URL: 'https://api.example/v1', RAZORPAY_KEY_ID: 'rzp_live_made_up' },
    ...{ RAZORPAY_KEY_SECRET: SECRETS.acquirer, RAZORPAY_WEBHOOK_SECRETS: SECRETS.acquirer },
    ...more,
  })

/** Stops the service, and returns everything that it has written to stdout and stderr. */
async function outputOf(service: ServerProcess): Promise<string> {
  await service.stop()
  return [...service.log, ...service.errors].join('\n')
}

const status = (id: string): Call => ({
  path: STATUS,
  body: form({ mid: merchant.mid, order_id: id }),
  headers: authorized(merchant.key),
})
const RETRY = { 'idempotency-key': SECRETS.idempotencyKey }

type ExpectStatus = (status: number, call: Call) => Promise<string>

/** Returns a function that sends a call to `service`, expects its status, and returns the whole response as text. */
const expecting =
  (service: ServerProcess): ExpectStatus =>
  async (status, call) => {
    const response = await send(service, call)
    expect([call.path, response.status, response.text]).toEqual([call.path, status, expect.anything()])
    return response.text
  }

/** Requests each operation with success; returns the orderId of the first order, which is paid. */
async function requestEachOperation(expectStatus: ExpectStatus): Promise<string> {
  const created = await expectStatus(200, create({}, RETRY))
  expect(await expectStatus(200, create({}, RETRY))).toContain('Payment intent created')
  const orderId = /"orderId":"([^"]+)"/.exec(created)?.[1] as string
  await expectStatus(200, { ...create({ order_id: 'canaryorder-2' }), path: ORDER })
  await expectStatus(200, status('canaryorder-1'))
  await expectStatus(200, list())
  const page = await expectStatus(200, { path: `/pay/${orderId}?${SECRETS.query}=1`, method: 'GET' })
  for (const value of Object.values(CANARY_CUSTOMER)) expect(page).not.toContain(value)
  await expectStatus(200, { path: `/pay/${orderId}/qr.png`, method: 'GET' })
  await expectStatus(200, notice(notification(orderId, { UTR: 'NOTACANARY1' })))
  return orderId
}

/** Sends each field with invalid values, in both kinds of body, bodies that cannot be parsed, and invalid notifications. */
async function sendInvalidInput(expectStatus: ExpectStatus, orderId: string) {
  for (const wrong of WRONG_FIELDS) {
    const isForbidden = wrong.mid === 'canarymid'
    await expectStatus(isForbidden ? 403 : 400, create(wrong))
    const asJson = JSON.stringify(intentFields(merchant.mid, { ...CANARY_FIELDS, ...wrong }))
    const json = {
      path: CREATE,
      body: asJson,
      headers: authorized(merchant.key, { 'content-type': 'application/json' }),
    }
    await expectStatus(isForbidden ? 403 : 400, json)
  }
  for (const body of [
    '{"canary":',
    '"canary"',
    `${form(CANARY_CUSTOMER)}&customer_name=canary2`,
    'customer_name=%canary',
    'canaryfield=1&canaryfield=2',
  ]) {
    await expectStatus(400, { path: CREATE, body, headers: authorized(merchant.key) })
  }
  await expectStatus(400, create({}, { 'idempotency-key': `canary${'x'.repeat(64)}` }))
  await expectStatus(400, list({ s_date: 'canarydate' }))
  await expectStatus(400, notice('{"orderId":"canaryorder"}'))
  await expectStatus(401, notice(notification(orderId), SECRETS.guess))
  await expectStatus(404, notice(notification('canaryorder')))
  await expectStatus(400, disputeNotice('not an id'))
  await expectStatus(401, disputeNotice('433475258', SECRETS.guess))
  await expectStatus(404, disputeNotice('433475258'))
  const { rows: disputed } = await db.query(`select * from payment_exceptions where acquirer_account = 'cashfree'`)
  expect(disputed).toHaveLength(2)
  expect(leaks(JSON.stringify(disputed))).toEqual([])
  await expectStatus(400, paymentNotice('much'))
  await expectStatus(401, paymentNotice(200, SECRETS.guess))
  await expectStatus(404, paymentNotice(200))
  const { rows: paid } = await db.query(`select * from payment_exceptions where acquirer_account = 'razorpay'`)
  expect(paid).toHaveLength(2)
  expect(leaks(JSON.stringify(paid))).toEqual([])
}

/** Sends requests with wrong credentials, above limits, and for what does not exist or is not allowed. */
async function sendRejectedRequests(service: ServerProcess, expectStatus: ExpectStatus) {
  for (const authorization of [
    `Bearer ${SECRETS.bearer}`,
    'Basic canary!',
    basic({ publicKey: merchant.key.publicKey, secretKey: SECRETS.guess }),
    basic({ publicKey: 'canarypublic', secretKey: SECRETS.guess }),
  ]) {
    await expectStatus(401, create({}, { authorization }))
  }
  for (let i = 0; i < 21; i++) {
    await send(service, create({}, { authorization: basic({ ...merchant.key, secretKey: SECRETS.guess }) }))
  }
  await expectStatus(429, create({}, { authorization: basic({ ...merchant.key, secretKey: SECRETS.guess }) }))
  await expectStatus(409, create())
  await expectStatus(422, create({ customer_name: 'Canaryother' }, RETRY))
  await expectStatus(403, { ...list({ mid: 'canarymid' }) })
  await expectStatus(404, status('canaryunknown'))
  await expectStatus(404, { path: '/v1/canarypath?canaryquery=1' })
  await expectStatus(404, { path: '/pay/canaryorder', method: 'GET' })
  await expectStatus(405, { path: `${CREATE}?canaryquery=1`, method: 'GET' })
  await expectStatus(413, create({ note: 'canary'.repeat(4_000) }))
  await expectStatus(415, create({}, { 'content-type': 'text/canary' }))
  await expectStatus(400, { path: '/pay/%canary', method: 'GET' })
}

/** Lets statements fail, and makes the database unavailable while the service runs. */
async function breakDatabase(expectStatus: ExpectStatus) {
  // A failure of the service: PostgreSQL's error contains the whole row in its detail.
  await db.query(
    `alter table payment_intents add constraint canary_check check (customer_name not like 'Canaryfault%')`,
  )
  await expectStatus(500, create({ customer_name: 'Canaryfault', order_id: 'canaryorder-3' }))
  await db.query('alter table payment_intents drop constraint canary_check')
  await db.query('alter table payment_intents alter column note type integer using 0')
  await expectStatus(500, create({ order_id: 'canaryorder-4' }))
  await db.query('alter table payment_intents alter column note type text')

  // The database becomes unavailable while the service runs.
  await db.query('alter table payment_intents rename to canary_intents')
  await expectStatus(503, create({ order_id: 'canaryorder-5' }))
  await db.query('alter table canary_intents rename to payment_intents')
  // A failed query has closed its connection: only an idle connection can be lost.
  await expectStatus(200, create({ order_id: 'canaryorder-5' }))
  await db.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1', [role])
  await sleep(100)
  await expectStatus(200, create({ order_id: 'canaryorder-6' }))
}

describe('confidential input', () => {
  it('the service never exposes confidential input in a log, a metric or an error response, whatever is requested and whatever fails', async () => {
    const service = await startTalkative(url)
    const expectStatus = expecting(service)
    const orderId = await requestEachOperation(expectStatus)
    await sendInvalidInput(expectStatus, orderId)
    await sendRejectedRequests(service, expectStatus)
    await breakDatabase(expectStatus)

    const metrics = await (await fetch(`${service.opsUrl}/metrics`)).text()
    const output = await outputOf(service)
    // Checks that the searched output contains what it must contain.
    expect(metrics).toContain(`route="${CREATE}",status="409"`)
    expect(output.match(/"msg":"Request completed"/g)?.length).toBeGreaterThan(60)
    expect(output).toContain('violates check constraint')
    expect(output).toContain('Database connection lost')
    expect(output).toContain(merchant.key.publicKey)

    expect(leaks(metrics)).toEqual([])
    // The names of table and constraint belong to the schema, not to the customer.
    expect(leaks(output.replace(/canary_(check|intents)/g, ''))).toEqual([])
    expect(errors.flatMap(leaks)).toEqual([])
  })

  it('the service never stores or logs the customer data of Razorpay’s responses, without any notification', async () => {
    const bank = await startBank(RAZORPAY, () => new Date())
    const { apiUrl, clientId, clientSecret } = razorpaySettings(bank)
    const account = { RAZORPAY_API_URL: apiUrl, RAZORPAY_KEY_ID: clientId, RAZORPAY_KEY_SECRET: clientSecret }
    const settings = { ...account, RAZORPAY_WEBHOOK_SECRETS: RAZORPAY_SECRETS.join(), RAZORPAY_LINK_MINUTES: '15' }
    const service = await startTalkative(url, settings)
    const { mid } = await newRazorpayMerchant({ db })
    const key = await newKey(db, { mid }, RIGHTS)
    const request = async (path: string, fields: object) => {
      const { status, text } = await send(service, { path, body: form({ mid, ...fields }), headers: authorized(key) })
      expect([path, status]).toEqual([path, 200])
      return text
    }
    const paid: string[] = []
    for (const changes of [{ status: 'odd' }, { status: 'failed' }, { status: 'authorized' }, { amount: 100 }, {}]) {
      await request(CREATE, intentFields(mid))
      const { orderId } = [...bank.orders.values()].at(-1) as { orderId: string }
      Object.assign((await bank.pay(orderId)).payment, changes)
      paid.push(orderId)
    }
    const [orderId = ''] = paid.slice(-1)
    await db.query('update acquirer_intents set status_check_at = now() where mid = $1', [mid])
    const isPaid = async () => (await request(STATUS, { order_id: orderId })).includes('"SUCCESS"')
    await until('the service has checked the status of every order', async () => {
      return bank.countOf('payments') >= paid.length && (await isPaid())
    })
    const enquired = await Promise.all(
      paid.map((id) => runOps(url, ['payments', 'enquire', '--order-id', id], '', settings)),
    )
    // Razorpay returns the notes of the merchant, who may have added customer data at Razorpay.
    const change = (body: object) => ({ ...body, notes: RAZORPAY_CUSTOMER })
    bank.nextFaults.refund = [{ change }, { status: 400 }]
    bank.nextFaults.findRefund = [{ change: ({ items }) => ({ items: items.map(change) }) }]
    for (const refund_id of ['R1', 'R2']) {
      const calls = bank.countOf('refund')
      await request(REFUND, { order_id: orderId, refund_id, amount: '10.00', note: 'returned' })
      await until('the service has sent the refund', () => bank.countOf('refund') > calls)
    }
    await until('both refunds have a final status', async () => {
      const { rows } = await db.query(`select from refunds where mid = $1 and status = 'PENDING'`, [mid])
      return rows.length === 0
    })

    const stored = await dump(db)
    const output = await outputOf(service)
    for (const kind of ['unreadable', 'amount differs']) expect(stored).toContain(kind)
    expect(output).toContain('"acquirer":"razorpay"')
    expect(bank.countOf('findRefund')).toBe(1)
    const written = [stored, output, JSON.stringify(enquired)].join('\n')
    const { vpa, email, contact } = RAZORPAY_CUSTOMER
    const canaries = [vpa, email, contact.slice('+91'.length)]
    expect(canaries.filter((value) => written.toLowerCase().includes(value))).toEqual([])
  })

  it.each([
    ['rejects connections', () => Promise.resolve('127.0.0.1:1')],
    ['is not at its address', () => Promise.resolve('database.invalid:5432')],
    ['uses another protocol', () => addressOfOtherProtocol()],
  ])(
    'the service never exposes confidential input in a log or an error response while the database %s',
    async (_name, addressOf) => {
      const address = await addressOf()
      const service = await startTalkative(`postgres://${role}:${SECRETS.databasePassword}@${address}/upi`)
      const unready = await send(service, { path: '/readyz', method: 'GET' })
      const responses = [
        unready,
        await send(service, create()),
        await send(service, notice(notification('0'.repeat(32)))),
      ]
      const output = await outputOf(service)
      expect(responses.every(({ status }) => status === 500 || status === 503)).toBe(true)
      expect(output).toContain('"msg":"Request completed"')
      expect([output, ...responses.map(({ text }) => text)].flatMap(leaks)).toEqual([])
    },
  )

  it('a service whose database rejects the log-in never prints confidential input', async () => {
    const wrong = new URL(url)
    wrong.password = `${SECRETS.databasePassword}-old`
    const service = await startTalkative(wrong.href)
    const { status, text } = await send(service, create())
    const output = await outputOf(service)
    expect(status).toBe(503)
    expect([text, output].flatMap(leaks)).toEqual([])
  })

  it.each([
    'canarypassword',
    'mysql://user:canarypassword@host/db',
    'postgres://user:canarypassword@host:port/db',
    'postgres://user:canary%password@host/db',
  ])('a command that cannot use the database URL %s never prints the password', async (databaseUrl) => {
    const { code, stdout, stderr } = await runOps(databaseUrl, ['merchants', 'list'])
    expect(code).toBe(1)
    expect(leaks(stdout + stderr)).toEqual([])
  })

  it('a rejected import never prints confidential input', async () => {
    const header = 'mid,amount,utr,bank_reference_number,status,initiation_date'
    const lines = ['canarymid,1,canaryutr,canarybrn,SUCCESS,2026-01-01T00:00:00Z', 'canary,canary,!,,canary,canary']
    const { code, stdout, stderr } = await runOps(
      url,
      ['settlements', 'import', '-'],
      [header, ...lines, ''].join('\n'),
    )
    expect(code).toBe(1)
    expect(stderr).toContain('line 2')
    expect(leaks(stdout + stderr)).toEqual([])
  })
})

/** The address of a server that uses another protocol than PostgreSQL's. */
async function addressOfOtherProtocol(): Promise<string> {
  const server = createServer((socket) => socket.on('error', () => undefined).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  server.unref()
  return `127.0.0.1:${(server.address() as { port: number }).port}`
}
