import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeAll, beforeEach, describe, expect, it, onTestFinished, vi } from 'vitest'
import { nextMonth, readCloses } from '../../src/books/closing/closed-months.ts'
import { saveRefundException } from '../../src/gateway/refunds/record-update.ts'
import { listRefunds } from '../../src/gateway/refunds/store.ts'
import { LIMITS } from '../../src/limits.ts'
import { pageName } from '../../src/operator/console/view.ts'
import { COMMANDS } from '../../src/operator/terminal/main.ts'
import { newUtr } from '../support/acquirer.ts'
import { bankOn, importArgs, newReference } from '../support/bank-statements.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { serveRecon } from '../support/cashfree-recon.ts'
import { createTestConsole, newOperatorKey, SAME_ORIGIN, type TestConsole } from '../support/console.ts'
import { asRole } from '../support/database-url.ts'
import { CASHFREE, CASHFREE_SECRETS, cashfreeSettings, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { opsOn, runOps } from '../support/ops.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { basic, type Key, LIST, newMerchant, post, type TestService } from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import { storedUploads } from '../support/stored-uploads.ts'
import { newWebhook } from '../support/webhooks.ts'

let service: TestService
let bank: FakeCashfree
let site: TestConsole
/** Another console process, which accepts any number of wrong secrets and unknown keys. */
let other: TestConsole
let now = new Date()
const key: Record<'act' | 'read' | 'expired' | 'revoked', Key> = {} as never

/** The state of which a rejected request must change nothing: a paid order of a new merchant. */
let merchant: Awaited<ReturnType<typeof newMerchant>>
let orderId: string
const folder = mkdtempSync(join(tmpdir(), 'console-test-'))

const { json } = opsOn(() => service.databaseUrl)
const statements = bankOn(() => service.databaseUrl)

beforeAll(async () => {
  ;({ service, bank } = await startServiceBeside(CASHFREE))
  service.clock.set(new Date().toISOString())
  serveRecon(bank, { data: [] })
  const { apiUrl, clientId } = cashfreeSettings(bank)
  const secret = { CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join() }
  const settings = { CASHFREE_API_URL: apiUrl, CASHFREE_CLIENT_ID: clientId, ...secret }
  vi.stubEnv('TMPDIR', folder)
  site = await createTestConsole(service, () => now, settings)
  const rates = { wrongSecrets: 1_000, unknownKeys: 1_000 }
  other = await createTestConsole(service, () => now, {}, { ...LIMITS, rates })
  await statements.layout('bank', 'day=Date', 'reference=Text', 'amount=Amount')
  key.act = await newOperatorKey(service.db)
  key.read = await newOperatorKey(service.db, ['read'])
  key.expired = await newOperatorKey(service.db, undefined, { expiresOn: '2026-01-01' })
  key.revoked = await newOperatorKey(service.db)
  await runOps(service.databaseUrl, ['keys', 'revoke', '--public-key', key.revoked.publicKey])
})
beforeEach(async () => {
  now = new Date()
  merchant = await newMerchant(service.db)
  orderId = await storePaidOrder(service.db, { mid: merchant.mid, utr: newUtr(), paidAt: new Date() })
})

type Fields = Record<string, string | File>

/**
 * Creates the state in which each change that the console offers succeeds, and returns its fields. A new command needs
 * an entry.
 */
const CHANGES: Record<string, () => Promise<Fields>> = {
  'payments confirm': async () => ({
    ...{ 'order-id': await createOrder(service, merchant), utr: newUtr(), amount: '200' },
  }),
  async 'payments import'() {
    const paid = [await createOrder(service, merchant), 'SUCCESS', newUtr(), '200.00', new Date().toISOString()]
    return { file: new File([`order_id,status,utr,amount,paid_at\n${paid.join()}\n`], 'day.csv') }
  },
  'payments enquire': async () => ({ 'order-id': await createOrder(service, await newCashfreeMerchant(service)) }),
  async 'payments resolve'() {
    await reportPayment(service, orderId, { UTR: newUtr() })
    const [{ id }] = await json('payments', 'exceptions', '--mid', merchant.mid)
    return { exception: id, reason: 'refunded in cash' }
  },
  'refunds create': async () => ({ 'order-id': orderId, amount: '80', note: 'One cup was cold' }),
  async 'refunds retry'() {
    const refund = await newRefund()
    await service.db.query(`update refunds set acquirer = 'setu' where our_refund_id = $1`, [refund])
    const [stored] = await listRefunds(service.db, { ourRefundId: refund })
    if (!stored) throw new Error('the refund is not stored')
    await saveRefundException(service.db, 'refund unsure', stored, { source: 'enquiry', now: new Date() })
    return { refund }
  },
  'refunds done': async () => ({ refund: await newRefund(), reference: 'ARN1' }),
  'refunds fail': async () => ({ refund: await newRefund(), reason: 'the account is closed' }),
  async 'refunds returned'() {
    const refund = await newRefund()
    await json('refunds', 'done', '--refund', refund, '--reference', 'ARN1')
    return { refund, reference: 'RET1', reason: 'the account is closed' }
  },
  'disputes add': async () => ({ 'order-id': orderId, dispute: 'D1', amount: '80' }),
  async 'disputes update'() {
    await json('disputes', 'add', '--order-id', orderId, '--dispute', 'D1')
    return { dispute: 'D1', mid: merchant.mid, status: 'won' }
  },
  async 'webhooks resend'() {
    await newWebhook(service.db, { mid: merchant.mid, url: 'https://shop.example/hook' }, new Date())
    await reportPayment(service, await createOrder(service, merchant))
    const [{ id }] = await json('webhooks', 'deliveries', '--mid', merchant.mid)
    return { delivery: id }
  },
  'settlements import': async () => ({ file: new File([settlementsOf(merchant.mid)], 'day.csv') }),
  'settlements undo': async () => ({ import: String(await storeImports()) }),
  'settlements pull': async () => ({ acquirer: 'cashfree', from: '2026-01-14', to: '2026-01-15' }),
  'statements import': async () => ({
    ...{ file: new File([STATEMENT], 'bank.csv'), layout: 'bank', mid: merchant.mid, ...STATEMENT_DAYS },
  }),
  'statements undo': async () => ({ statement: String(await storeImports()) }),
  async 'statements match'() {
    const payout = { day: '2026-08-04', reference: newReference(), rupees: 1004 }
    await statements.addPayout(merchant.mid, payout)
    const imported = await statements.ops(importArgs(merchant.mid, 'bank'), 'Date,Text,Amount\n05/08/2026,NEFT,1004\n')
    const [, statement = ''] = /^Bank statement (\d+)/.exec(imported.stdout) ?? []
    return { payout: payout.reference, statement, line: '2', reason: 'the bank printed no reference' }
  },
  // The months have no payments.
  async 'reconcile close'() {
    const newest = (await readCloses(service.db, { known: new Date() })).at(-1)
    return { month: newest === undefined ? '2010-01' : nextMonth(newest.month) }
  },
  async 'reconcile resolve'() {
    const paidAt = new Date(Date.now() - 10 * 24 * 60 * 60_000)
    await storePaidOrder(service.db, { mid: merchant.mid, utr: newUtr(), paidAt })
    const { differences } = await json('reconcile', 'differences', '--mid', merchant.mid)
    return { difference: differences[0].id, reason: 'paid by cheque' }
  },
}

async function newRefund(): Promise<string> {
  const { refundId } = await json('refunds', 'create', '--order-id', orderId, '--amount', '80', '--note', 'One cup')
  return refundId
}

const OFFERED = COMMANDS.filter(({ title }) => title !== '')
// Closes come first, because a close reads the books of all merchants of this file.
const ACTS = OFFERED.filter(({ changes }) => changes)
  .map((one) => [one.name, `/${pageName(one)}`] as const)
  .toReversed()

const ONLY_ON_THE_COMMAND_LINE =
  /^(keys|(merchants|partners) (?!list$)|accounts|webhooks (?!(deliveries|resend|list)$)|(settlements|statements|payments) layout (?!list$)|bank-holidays|ledgers|payments forget|migrate|database|console)/

const settlementsOf = (merchant: string) =>
  `mid,amount,utr,bank_reference_number,status,initiation_date\n${merchant},10,${newUtr()},B1,SUCCESS,2026-10-05 10:00:00\n`
const STATEMENT = 'Date,Text,Amount\n05/10/2026,NEFT-YESIG63220270133,10.00\n'
const STATEMENT_DAYS = { from: '2026-10-01', to: '2026-10-31' }

/** Stores an import of settlements and one of a bank statement. Returns the number of both. */
async function storeImports(): Promise<number> {
  const { rows } = await service.db.query<{ number: number }>(
    `select greatest((select max(import_id) from settlement_imports), (select max(import_id) from statement_imports), 0) + 1 as number`,
  )
  const { number } = rows[0] as { number: number }
  const values = [number, 'asha', 'day.csv', 'a1'] as const
  await service.db.query(
    `insert into settlement_imports (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated)
     values ($1, now(), $2, $3, $4, 0, 0, 0)`,
    [...values],
  )
  await service.db.query(
    `insert into statement_imports (import_id, imported_at, imported_by, file, sha256, mids, covers_from, stored)
     values ($1, now(), $2, $3, $4, '{M1}', '2026-10-01', 0)`,
    [...values],
  )
  return number
}

/** The headers of senders that are not a page of the console. */
const OTHER_SENDERS: Record<string, string>[] = [
  { origin: 'https://evil.example' },
  { origin: 'http://localhost:9999', 'sec-fetch-site': 'same-site' },
  { origin: 'null' },
  { 'sec-fetch-site': 'cross-site' },
  { 'sec-fetch-site': 'none' },
  {},
]

async function changesStored(): Promise<unknown> {
  const { rows } = await service.db.query(
    `select (select count(*) from audit_commands) as commands, (select count(*) from refunds) as refunds,
            (select count(*) from payment_resolutions) as resolutions,
            (select count(*) from dispute_states) as disputes,
            (select count(*) from settlements) as settlements, (select count(*) from settlement_imports) as imports,
            (select count(*) from statement_imports where undone_at is null) as statements`,
  )
  return rows[0]
}

/** Expects that `request` is rejected with `status`, changes nothing and stores no file. */
async function expectRejected(status: number, request: () => Promise<{ status: number }>) {
  const stored = async () => [await changesStored(), storedUploads(folder)]
  const before = await stored()
  expect((await request()).status).toBe(status)
  expect(await stored()).toEqual(before)
}

describe('the commands that the console offers', () => {
  it('every change that the console offers has a test', () => {
    expect(Object.keys(CHANGES).sort()).toEqual(ACTS.map(([name]) => name).sort())
  })

  it('the console offers no command for keys, tenants, secrets, layouts, holidays, erasure and the database', () => {
    expect(OFFERED.map(({ name }) => name).filter((name) => ONLY_ON_THE_COMMAND_LINE.test(name))).toEqual([])
  })

  it('the console has no page for a command without a title', async () => {
    for (const path of COMMANDS.filter(({ title }) => title === '').map(({ name }) => `/${pageName({ name })}`)) {
      await expectRejected(404, () => site.get(path, key.act))
      await expectRejected(404, () => site.post(path, {}, key.act))
    }
  })
})

describe.each(ACTS)('a change by %s', (name, path) => {
  let fields: Fields
  beforeEach(async () => {
    fields = (await CHANGES[name]?.()) ?? {}
    // The commands of the console run after those that created the state.
    now = new Date()
  })
  const confirm = async (sender = key.act) => (await site.post(path, fields, sender)).fields

  it('a change is made once the operator confirms it, and not by the form before', async () => {
    const before = await changesStored()
    const first = await site.post(path, fields, key.act)
    expect(first.status).toBe(200)
    expect(await changesStored()).toEqual(before)
    expect((await site.post(path, first.fields, key.act)).status).toBe(303)
    expect(await changesStored()).not.toEqual(before)
    const { rows } = await service.db.query(
      `select c.person, c.command, o.outcome from audit_commands c join audit_outcomes o using (audit_id) order by begun_at desc limit 1`,
    )
    expect(rows).toEqual([{ person: 'asha', command: name, outcome: 'done' }])
  })

  it('a POST from another origin, another site, a bookmark or a program changes nothing', async () => {
    const signed = await confirm()
    for (const headers of OTHER_SENDERS) {
      for (const sent of [fields, signed]) await expectRejected(403, () => site.post(path, sent, key.act, headers))
    }
  })

  it('a POST from the same origin is accepted by either header', async () => {
    for (const headers of [SAME_ORIGIN, { origin: 'https://localhost:3002' }, { 'sec-fetch-site': 'same-origin' }]) {
      expect((await site.post(path, fields, key.act, headers)).status).toBe(200)
    }
  })

  it('a POST without a key, or with a wrong, expired or revoked key, or a key of a merchant, changes nothing', async () => {
    const signed = (await other.post(path, fields, key.act)).fields
    const wrong = { ...key.act, secretKey: key.read.secretKey }
    for (const sender of [undefined, wrong, key.expired, key.revoked, merchant.key]) {
      await expectRejected(401, () => other.post(path, fields, sender))
      await expectRejected(401, () => other.post(path, signed, sender))
    }
  })

  it('a POST with a key that has the right read only changes nothing', async () => {
    const signed = await confirm()
    await expectRejected(403, () => site.get(path, key.read))
    await expectRejected(403, () => site.post(path, fields, key.read))
    await expectRejected(403, () => site.post(path, signed, key.read))
  })

  it('a confirmation of another operator changes nothing', async () => {
    const signed = await confirm(await newOperatorKey(service.db, undefined, { operator: 'meera' }))
    await expectRejected(403, () => site.post(path, signed, key.act))
  })

  it('a confirmation that is sent again changes nothing', async () => {
    const signed = await confirm()
    const both = await Promise.all([site.post(path, signed, key.act), site.post(path, signed, key.act)])
    // A second import or close is rejected while the first one runs.
    expect(both.map(({ status }) => status).sort()).toEqual([303, expect.toBeOneOf([400, 409])])
    await expectRejected(400, () => site.post(path, signed, key.act))
    // Another console process does not know the key of the confirmation.
    await expectRejected(403, () => other.post(path, signed, key.act))
  })

  it('a confirmation is valid for 15 minutes', async () => {
    const signed = await confirm()
    now = new Date(now.getTime() + 15 * 60_000 + 1)
    await expectRejected(403, () => site.post(path, signed, key.act))
    now = new Date(now.getTime() - 1)
    expect((await site.post(path, signed, key.act)).status).toBe(303)
  })

  it('a confirmation with changed arguments changes nothing', async () => {
    const signed = await confirm()
    const pending = JSON.parse(signed.change as string)
    for (const altered of [
      { ...pending, values: { ...pending.values, note: 'another' } },
      { ...pending, confirmed: '[{},[]]' },
      { ...pending, shownAt: pending.shownAt + 1 },
      { ...pending, nonce: 'another' },
      { ...pending, back: 'https://evil.example' },
    ]) {
      await expectRejected(403, () => site.post(path, { ...signed, change: JSON.stringify(altered) }, key.act))
    }
    const { change = '', mac = '' } = signed
    for (const wrong of ['', mac.slice(2), mac.replace(/^../, (byte) => (byte === '00' ? '01' : '00')), `${mac}00`]) {
      await expectRejected(403, () => site.post(path, { change, mac: wrong }, key.act))
    }
    const [, next] = ACTS[(ACTS.findIndex(([one]) => one === name) + 1) % ACTS.length] as (typeof ACTS)[number]
    await expectRejected(403, () => site.post(next, signed, key.act))
  })

  it('a GET changes nothing', async () => {
    const signed = await confirm()
    const before = await changesStored()
    for (const query of [fields, signed]) {
      const { status } = await site.get(`${path}?${new URLSearchParams(query as Record<string, string>)}`, key.act)
      expect(status).toBe(200)
    }
    expect(await changesStored()).toEqual(before)
  })
})

describe('sign-in', () => {
  it('every path requires an operator’s key, and 401 names the Basic scheme', async () => {
    for (const path of ['/', '/search?q=1', '/payments-find', '/refunds-list', '/console.css', '/nothing']) {
      const { status, headers, body } = await site.get(path)
      expect([path, status, headers['www-authenticate']]).toEqual([path, 401, expect.stringMatching(/^Basic realm=/)])
      expect(body).not.toMatch(/refunds|asha/i)
    }
  })

  it('an operator’s key is 401 at /v1', async () => {
    const response = await post(service.app, LIST, { pid: 'P1' }, key.act)
    expect(response.status).toBe(401)
  })

  it('the console limits wrong secrets per key, and a valid key still signs in', async () => {
    const other = await newOperatorKey(service.db)
    const wrong = { ...other, secretKey: 'sk_wrong' }
    const statuses: number[] = []
    for (let i = 0; i < 21; i++) statuses.push((await site.get('/', wrong)).status)
    expect(statuses).toEqual([...Array(20).fill(401), 429])
    expect((await site.get('/', other)).status).toBe(200)
  })

  it('a path that cannot be decoded, and two Host headers, are 400 before anything is known of the sender', async () => {
    const { status, body } = await site.get('/%zz', undefined, { host: 'evil.example' })
    expect([status, body]).toEqual([400, expect.stringContaining('invalid percent-encoding')])
    await site.app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = site.app.server.address() as AddressInfo
    const socket = connect(port, '127.0.0.1')
    socket.end('GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n')
    expect((await text(socket)).split('\r\n', 1)).toEqual(['HTTP/1.1 400 Bad Request'])
  })

  it('a request whose headers arrive slowly is 408 within the time for headers, before its key is checked', async () => {
    const limits = { ...LIMITS, connections: { ...LIMITS.connections, requestMs: 50 } }
    const { app } = await createTestConsole(service, undefined, {}, limits)
    await app.listen({ host: '127.0.0.1', port: 0 })
    const { port } = app.server.address() as AddressInfo
    const socket = connect(port, '127.0.0.1')
    socket.write('GET / HTTP/1.1\r\nhost: localhost\r\n')
    expect((await text(socket)).split('\r\n', 1)).toEqual(['HTTP/1.1 408 Request Timeout'])
  })

  it('the console accepts only local names from its own machine, and hosts in CONSOLE_ALLOWED_HOSTS', async () => {
    for (const host of ['evil.example', 'localhost.evil.example', '10.0.0.7:3002']) {
      await expectRejected(403, () => site.get('/', key.act, { host }))
    }
    const remoteAddress = '10.0.0.9'
    const headers = { host: 'localhost:3002', authorization: basic(key.act) }
    expect((await site.app.inject({ method: 'GET', url: '/', headers, remoteAddress })).statusCode).toBe(403)
    const allowed = await createTestConsole(service, undefined, { CONSOLE_ALLOWED_HOSTS: 'console.example' })
    expect((await allowed.get('/', key.act, { host: 'console.example' })).status).toBe(200)
  })
})

describe('responses', () => {
  it('no page allows a script, sets a cookie or sends its address to another site', async () => {
    const paths = ['/', '/search?q=1', `/payments-show?order-id=${orderId}`, '/payments-show?order-id=1', '/nothing']
    for (const path of paths) {
      const { headers, body } = await site.get(path, key.act)
      expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'self'; img-src data:;/)
      expect(headers['content-security-policy']).not.toMatch(/script|unsafe/)
      expect(headers).toMatchObject({ 'referrer-policy': 'same-origin', 'cache-control': 'no-store' })
      expect(headers['set-cookie']).toBeUndefined()
      expect(body).not.toMatch(/<script| style=| on\w+=/)
    }
  })

  it('a page escapes what it shows, and ignores flags that it must not set', async () => {
    const { body } = await site.get(`/search?q=${encodeURIComponent('"><script>')}`, key.act)
    expect(body).not.toContain('<script>')
    const shown = await site.get(`/payments-show?order-id=${orderId}&by=meera&json=on&csv=on&file=/etc/passwd`, key.act)
    expect(shown.status).toBe(200)
    const change = { ...(await CHANGES['refunds create']?.()), by: 'meera', file: '/etc/passwd', json: 'on' }
    const { fields } = await site.post('/refunds-create', change, key.act)
    expect(JSON.stringify(JSON.parse(fields.change as string).values)).not.toMatch(/meera|passwd|json/)
    const many = { all: 'on', yes: 'on', reason: 'refunded in cash' }
    await expectRejected(400, () => site.post('/payments-resolve', many, key.act))
  })

  it('a form that repeats a field is rejected, because the default of a missing amount is the whole rest', async () => {
    const headers = { ...SAME_ORIGIN, host: 'localhost:3002', authorization: basic(key.act) }
    const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' }
    const payload = `order-id=${orderId}&note=One+cup&amount=1&amount=1`
    const sent = await site.app.inject({ method: 'POST', url: '/refunds-create', headers: form, payload })
    expect([sent.statusCode, sent.body]).toEqual([400, expect.stringContaining('A field was sent twice')])
  })

  it('a body whose fields are objects causes no error of the console', async () => {
    const payload = { 'order-id': orderId, amount: '1', note: 'One cup', back: { toString: 1 } }
    const headers = { host: 'localhost:3002', authorization: basic(key.act), ...SAME_ORIGIN }
    const { statusCode } = await site.app.inject({ method: 'POST', url: '/refunds-create', headers, payload })
    expect(statusCode).toBe(200)
  })

  it('a change returns only to a page of the console', async () => {
    for (const back of ['https://evil.example', '//evil.example', '/\\evil.example', 'refunds-create', 'nothing?x']) {
      const fields = { 'order-id': orderId, amount: '1', note: 'One cup', back }
      const signed = await site.post('/refunds-create', fields, key.act)
      expect((await site.post('/refunds-create', signed.fields, key.act)).headers.location).toBe('.')
    }
  })
})

it('ops console exits with 1 and names the settings to change, if another program listens on its port', async () => {
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  onTestFinished(() => void other.close())
  const port = String((other.address() as AddressInfo).port)
  expect(await runOps(asRole(service.databaseUrl, 'upi_console'), ['console'], '', { CONSOLE_PORT: port })).toEqual({
    code: 1,
    stdout: '',
    stderr: `ops: listen EADDRINUSE: address already in use 127.0.0.1:${port}: set another CONSOLE_PORT or CONSOLE_HOST\n`,
  })
})

it('ops console exits with 1 and prints the command that creates a key, if no operator has a valid key', async () => {
  await service.db.query('update operator_keys set revoked_at = now()')
  expect(await runOps(asRole(service.databaseUrl, 'upi_console'), ['console'])).toEqual({
    code: 1,
    stdout: '',
    stderr: 'ops: no operator has a valid key: create one with ops keys create --operator NAME --rights read,act\n',
  })
})

it('ops console exits with 1 without CONSOLE_DATABASE_URL, and does not connect as another role', async () => {
  const settings = { DATABASE_URL: service.databaseUrl, DATABASE_MIGRATE_URL: service.databaseUrl }
  expect(await runOps(undefined, ['console'], '', settings)).toEqual({
    code: 1,
    stdout: '',
    stderr:
      'ops: CONSOLE_DATABASE_URL is required. Set it to the URL of the database for the role upi_console: postgres://upi_console:password@host:5432/name\n',
  })
})
