import { text as readAll } from 'node:stream/consumers'
import type { QueryConfig } from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { readDatabaseConfig } from '../../src/config.ts'
import type { DisputeStatus } from '../../src/gateway/disputes/dispute.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createAccessKeys } from '../../src/gateway/tenants/access-keys.ts'
import { showToday } from '../../src/operator/commands/today.ts'
import { writeJson } from '../../src/operator/terminal/json.ts'
import { parseArguments } from '../../src/operator/terminal/parse.ts'
import { writeText } from '../../src/operator/terminal/text.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { newOperatorKey } from '../support/console.ts'
import { createTestDatabase } from '../support/database.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import {
  CREATE,
  intentFields,
  newKey,
  newMerchant,
  newPartner,
  post,
  startService,
  type TestService,
} from '../support/service.ts'

const CANCEL = '/v1/payments/cancelPayment'

let service: TestService
let chai: { mid: string; key: { publicKey: string; secretKey: string } }
let books: typeof chai

beforeAll(async () => {
  service = await startService()
  chai = await newMerchant(service.db, { mid: 'CHAI', input: 'shop' })
  books = await newMerchant(service.db, { mid: 'BOOKS' })
})

const order = async ({ mid, key }: typeof chai, amount: string): Promise<string> =>
  (await post(service.app, CREATE, intentFields(mid, { amount }), key)).body.data.orderId

const report = async (orderId: string, changes: Parameters<typeof notification>[1]) =>
  expect((await notify(service, notification(orderId, changes))).status).toBe(200)

/** Runs `ops today` with `args` at the time of the service’s clock. */
async function run(args: string[], db: unknown = service.db) {
  const config = readDatabaseConfig({ DATABASE_URL: service.databaseUrl })
  const asJson = args.includes('--json')
  const clocks = {
    now: service.clock.now(),
    sleep: async () => undefined,
    databaseTime: async () => service.clock.now(),
  }
  const unused = {
    auditId: 'unused',
    open: expect.unreachable,
    note: () => undefined,
    noteInText: () => undefined,
    isTerminal: false,
    ask: async () => undefined,
    stopSignal: expect.unreachable,
  }
  const context = {
    config,
    db: db as never,
    ...clocks,
    person: 'asha',
    ...unused,
    withProgress: () => expect.unreachable(),
  }
  const { data = '' } = await showToday.prepare(parseArguments(showToday, args).values).run(context)
  return asJson ? JSON.parse(await readAll(writeJson(data))) : readAll(writeText(data))
}

const today = (...args: string[]) => run(args)

const NOTHING = { orders: 0, paid: 0, failed: 0, expired: 0, cancelled: 0, waiting: 0, amount: 0, paidAmount: 0 }

describe('ops today', () => {
  it('ops today prints zeros before the first order, not NaN or undefined', async () => {
    expect(await today('--json', '--by-merchant')).toEqual({
      day: '2026-03-31',
      at: '2026-03-31T18:29:59.000Z',
      ...NOTHING,
      conversion: null,
      hours: [],
      merchants: [],
      exceptions: { open: { 'under 1 day': 0, '1 to 2 days': 0, 'over 2 days': 0 }, amount: '0.00', oldest: [] },
      refunds: { open: 0, overdue: 0, amount: 0, oldest: [] },
      disputes: { awaiting: 0, passed: 0, unknown: 0, amount: 0, first: null, respondBy: null },
      failures: [],
      byNextAcquirer: 0,
      webhooks: { behind: 0, longest: [] },
      returnCalls: { givenUp: 0, newest: [] },
      warnings: [],
      settlementImport: null,
      arrivals: [],
      arrivalErrors: [],
      expiringKeys: [],
      balance: {
        ...{ from: '2026-03-27', to: '2026-03-30', balances: true, differences: 0, openExceptions: 0 },
        ...{ errors: [], carriedForward: '0.00', open: { count: 0, owed: '0.00', oldest: null } },
      },
      migration: expect.stringMatching(/^\d{4}_/),
      databaseBytes: expect.any(Number),
    })
    expect(await today('--by-merchant')).not.toMatch(/NaN|undefined|null|Infinity/)
  })

  it('ops today counts the orders of the IST day by hour and by merchant, with amounts to the paisa', async () => {
    const { clock } = service
    clock.set('2026-03-31T18:29:59.999Z')
    await report(await order(chai, '1000.00'), { amount: 1000, UTR: newUtr() })
    // Midnight IST.
    clock.set('2026-03-31T18:30:00.000Z')
    await report(await order(chai, '10.10'), { amount: 10.1, UTR: newUtr() })
    await report(await order(chai, '10.20'), { amount: 10.2, UTR: newUtr() })
    // 09:05 IST.
    clock.set('2026-04-01T03:35:00.000Z')
    await order(books, '300')
    await report(await order(books, '40'), { status: 'FAIL', amount: 40, UTR: undefined })
    await report(await order(books, '5'), { status: 'REJECT', amount: 5, UTR: undefined })
    const closed = await order(books, '7')
    expect((await post(service.app, CANCEL, { mid: 'BOOKS', order_id: closed }, books.key)).status).toBe(200)
    // 10:00 IST, after the first orders have expired.
    clock.set('2026-04-01T04:30:00.000Z')
    await order(chai, '2.00')
    await report(await order(books, '9'), { status: 'FAIL', amount: 9, UTR: undefined })
    expect((await notify(service, notification('0'.repeat(32)))).status).toBe(404)

    const shown = await today('--json', '--by-merchant')
    const ofChai = { ...NOTHING, orders: 3, paid: 2, waiting: 1, conversion: 1, amount: 22.3, paidAmount: 20.3 }
    const ofBooks = {
      ...NOTHING,
      orders: 5,
      failed: 2,
      expired: 1,
      cancelled: 1,
      waiting: 1,
      conversion: 0,
      amount: 361,
    }
    expect(shown).toMatchObject({
      day: '2026-04-01',
      orders: 8,
      paid: 2,
      failed: 2,
      expired: 1,
      cancelled: 1,
      waiting: 2,
      conversion: 2 / 6,
      amount: 383.3,
      paidAmount: 20.3,
    })
    expect(shown.hours).toEqual([
      { ...NOTHING, hour: 0, orders: 2, paid: 2, conversion: 1, amount: 20.3, paidAmount: 20.3 },
      { ...NOTHING, hour: 9, orders: 4, failed: 2, expired: 1, cancelled: 1, conversion: 0, amount: 352 },
      { ...NOTHING, hour: 10, orders: 2, waiting: 2, conversion: null, amount: 11 },
    ])
    expect(shown.merchants).toEqual([
      { mid: 'BOOKS', ...ofBooks },
      { mid: 'CHAI', ...ofChai },
    ])
    const text: string = await today()
    expect(text.split('\n').slice(0, 11)).toEqual([
      '2026-04-01 10:00:00 IST: orders created today',
      '',
      'orders               8  ████████████████████  ₹383.30',
      'paid                 2  █████                 ₹20.30',
      'waiting              2  █████',
      'failed               2  █████',
      'expired              1  ██▌',
      'cancelled            1  ██▌',
      'conversion      33.3 %  of orders with a final status',
      '',
      'by hour       ▄        █▄',
    ])
  })

  /** Stores open exceptions, failing endpoints, abandoned callbacks and an undone import, as of 2026-04-05 11:30 IST. */
  async function storeOpenWork() {
    const { db, clock } = service
    const exception = (orderId: string, receivedAt: string, amount = 1) =>
      db.query(
        `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
         values ('CHAI', $1, 'double payment', 'U', $3, 'SUCCESS', $2)`,
        [orderId, receivedAt, amount * 100],
      )
    clock.set('2026-04-05T06:00:00.000Z')
    await exception('yesterday', '2026-04-04T06:00:00Z')
    await exception('a', '2026-04-01T06:00:00Z')
    await exception('b', '2026-04-03T07:00:00Z', 1_200_000)
    await exception('c', '2026-04-01T05:00:00Z')
    await db.query(
      `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
       select mid, exception_id, 'refunded', 'asha', now() from payment_exceptions where order_id = 'c'`,
    )
    await db.query(
      `insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at, failing_since, disabled_at, disabled_reason)
       values ('CHAI', 'ep_fails', 'webhook', 'https://a.example/', '\\x00', now(), '2026-04-05T03:00:00Z', null, null),
              ('CHAI', 'ep_fails_briefly', 'webhook', 'https://a.example/', '\\x00', now(), '2026-04-05T05:45:01Z', null, null),
              ('CHAI', 'ep_off', 'webhook', 'https://a.example/', '\\x00', now(), null, '2026-04-05T04:00:00Z', 'answered 410'),
              ('CHAI', 'ep_off_by_us', 'webhook', 'https://a.example/', '\\x00', now(), null, '2026-04-05T04:00:00Z', 'operator'),
              ('CHAI', 'ep_well', 'webhook', 'https://a.example/', '\\x00', now(), null, null, null),
              ('CHAI', 'return-call', 'return call', null, null, now(), '2026-04-05T03:00:00Z', null, null)`,
    )
    const { rows: orders } = await db.query(`select order_id from payment_intents where mid = 'CHAI' order by order_id`)
    const [paidOrderId, reportedOrderId, earlierOrderId, weekOldOrderId] = orders.map(({ order_id }) => order_id)
    await db.query(
      `insert into webhook_deliveries
         (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, attempts, attempted_at, delivered_at)
       values ('CHAI', 'return-call', $1, 1, 'payment.succeeded', 'SUCCESS', now(), 10, '2026-04-05T05:00:00Z', null),
              ('CHAI', 'return-call', $2, 1, 'payment.succeeded', 'SUCCESS', now(), 10, '2026-04-05T05:00:00Z', now()),
              ('CHAI', 'return-call', $3, 1, 'payment.succeeded', 'SUCCESS', now(), 10, '2026-03-29T05:59:59Z', null),
              ('CHAI', 'return-call', $4, 1, 'payment.succeeded', 'SUCCESS', now(), 10, '2026-03-29T06:00:01Z', null)`,
      [paidOrderId, reportedOrderId, earlierOrderId, weekOldOrderId],
    )
    await db.query(
      `insert into settlement_imports (import_id, imported_at, imported_by, file, sha256, inserted, unchanged, updated, undone_at, undone_by)
       values (1, '2026-04-05T02:00:00Z', 'asha', 'bank.csv', '', 1, 0, 0, null, null),
              (2, '2026-04-05T05:00:00Z', 'asha', 'wrong.csv', '', 1, 0, 0, now(), 'asha')`,
    )
    return { paidOrderId, weekOldOrderId }
  }

  it('ops today prints open exceptions and the state of webhooks, callbacks, imports and reconciliation', async () => {
    const { paidOrderId, weekOldOrderId } = await storeOpenWork()
    expect(await today('--json')).toMatchObject({
      ...NOTHING,
      exceptions: {
        open: { 'under 1 day': 0, '1 to 2 days': 2, 'over 2 days': 2 },
        amount: '1200202.00',
        oldest: [
          { kind: 'unknown order', mid: '', orderId: '0'.repeat(32), id: expect.stringMatching(/^[0-9a-f]{12}$/) },
          { kind: 'double payment', mid: 'CHAI', orderId: 'a', amount: '1.00' },
          { kind: 'double payment', mid: 'CHAI', orderId: 'b', amount: '1200000.00' },
          { orderId: 'yesterday' },
        ],
      },
      webhooks: {
        behind: 2,
        longest: [
          { mid: 'CHAI', endpointId: 'ep_fails', failingSince: '2026-04-05T03:00:00.000Z', switchedOffAt: null },
          { mid: 'CHAI', endpointId: 'ep_off', switchedOffAt: '2026-04-05T04:00:00.000Z' },
        ],
      },
      returnCalls: {
        givenUp: 2,
        newest: [
          { mid: 'CHAI', orderId: paidOrderId, givenUpAt: '2026-04-05T05:00:00.000Z' },
          { mid: 'CHAI', orderId: weekOldOrderId, givenUpAt: '2026-03-29T06:00:01.000Z' },
        ],
      },
      settlementImport: { importedAt: '2026-04-05T02:00:00.000Z', file: 'bank.csv' },
    })
    const text = await today()
    for (const line of [
      'exceptions            4 open, ₹12,00,202.00: 2 for 1 to 2 days, 2 for over 2 days; oldest: unknown order',
      'webhooks              2 behind; longest: CHAI ep_fails, failing for 3 h',
      `return-URL callbacks  2 abandoned in the last 7 days; latest: CHAI ${paidOrderId}, 60 min ago`,
      'settlements           bank.csv imported 4 h ago',
      'reconciliation        2026-04-03 to 2026-04-04 does not balance: 2 open exceptions (ops reconcile --from 2026-04-03 --to 2026-04-04)',
      'discrepancies         1 open, total ₹1,020.30, oldest 2026-04-01 (ops reconcile differences)',
    ]) {
      expect(text).toContain(line)
    }
  })

  it('ops today shows an endpoint as behind when its last 10 deliveries failed, before it has failed for 15 minutes', async () => {
    const { db, clock } = service
    const merchant = await newMerchant(db)
    const orderId = await order(merchant, '1')
    const since = new Date(clock.now().getTime() - 60_000)
    const failing = async (endpointId: string, failed: number) => {
      await db.query(
        `insert into webhook_endpoints (mid, endpoint_id, kind, url, secret, created_at, failing_since)
         values ($1, $2, 'webhook', 'https://a.example/', '\\x00', now(), $3)`,
        [merchant.mid, endpointId, since],
      )
      // Deliveries before the last success, failed deliveries after it, and deliveries that were not attempted yet.
      await db.query(
        `insert into webhook_deliveries
           (mid, endpoint_id, order_id, sequence, type, txn_status, occurred_at, attempts, attempted_at, due_at)
         select $1, $2, $3, n, 'payment.attempt_failed', 'PENDING', now(), 1,
                case when n <= 5 then $4::timestamptz - interval '1 second' when n <= 5 + $5 then $4 end, $4
           from generate_series(1, 30) n`,
        [merchant.mid, endpointId, orderId, since, failed],
      )
    }
    await failing('ep_nine', 9)
    await failing('ep_ten', 10)
    const { webhooks } = await today('--json')
    const ofMerchant = webhooks.longest.filter(({ mid }: { mid: string }) => mid === merchant.mid)
    expect(ofMerchant).toEqual([
      {
        mid: merchant.mid,
        endpointId: 'ep_ten',
        dueSince: since.toISOString(),
        failingSince: since.toISOString(),
        switchedOffAt: null,
      },
    ])
    expect(webhooks.behind).toBe(webhooks.longest.length)
  })

  it('ops today lists open disputes from 48 hours before their deadline until 30 days after it, and those without one', async () => {
    const { db } = await createTestDatabase()
    service.clock.set('2026-04-20T06:30:00.000Z')
    const now = service.clock.now()
    const { mid } = await newMerchant(db)
    const [ms, hour] = [1, 60 * 60_000]
    const day = 24 * hour
    const disputeOf = async (id: string, fields: { dueMs?: number; amount?: number; status?: DisputeStatus }) => {
      const { dueMs, amount, status = 'open' } = fields
      const orderId = await storePaidOrder(db, { mid, utr: newUtr(), paidAt: now })
      const respondBy = dueMs === undefined ? undefined : new Date(now.getTime() + dueMs)
      const report = { id, orderId, status, amount, respondBy }
      await createDisputes(db).record('direct', report, { source: 'asha', now: () => now })
    }
    await disputeOf('LATER', { dueMs: 48 * hour + ms })
    await disputeOf('OVER', { dueMs: -30 * day })
    await disputeOf('ANSWERED', { dueMs: hour, status: 'under review' })
    expect((await run(['--json'], db)).disputes).toEqual({
      ...{ awaiting: 0, passed: 0, unknown: 0, amount: 0, first: null, respondBy: null },
    })
    expect(await run([], db)).not.toContain('disputes')
    await disputeOf('SECOND', { dueMs: 48 * hour })
    await disputeOf('FIRST', { dueMs: ms, amount: 123_456 })
    await disputeOf('PASSED', { dueMs: 0 })
    await disputeOf('LONG_PASSED', { dueMs: -30 * day + ms })
    await disputeOf('UNKNOWN', {})
    expect((await run(['--json'], db)).disputes).toEqual({
      ...{ awaiting: 2, passed: 2, unknown: 1, amount: 1434.56 },
      ...{ first: 'FIRST', respondBy: '2026-04-20T06:30:00.001Z' },
    })
    const text = await run([], db)
    for (const line of [
      /^now +disputes +2 awaiting a response, ₹1,434\.56; first: FIRST by 2026-04-20 12:00:00 IST *$/m,
      /^now +disputes +2 open, deadline passed, status unknown: look it up .* run ops disputes update *$/m,
      /^today +disputes +1 open, deadline unknown: .* run ops disputes update *$/m,
    ])
      expect(text).toMatch(line)
  })

  it('ops today prints the size of the database beside its schema', async () => {
    const { db } = await createTestDatabase()
    const { databaseBytes } = await run(['--json'], db)
    const { rows } = await db.query('select pg_database_size(current_database()) as bytes')
    expect(Math.abs(databaseBytes - rows[0].bytes)).toBeLessThan(10_000_000)
    expect(await run([], db)).toMatch(/^information +database +\d+\.\d MB, schema \d{4}_\w+ *$/m)
  })

  it('ops today lists the valid keys of merchants, partners and operators that expire within 14 days, the earliest first', async () => {
    const { db } = await createTestDatabase()
    const [{ mid }, { pid }] = [await newMerchant(db), await newPartner(db)]
    const keyOf = async (owner: { mid: string } | { pid: string }, lastDay?: string) =>
      (await newKey(db, owner, ['list'], lastDay)).publicKey
    service.clock.set('2026-04-03T18:30:00.000Z')
    expect(await run([], db)).not.toMatch(/^Keys|keys /m)
    const [last, first] = [await keyOf({ mid }, '2026-04-18'), await keyOf({ pid }, '2026-04-04')]
    const { publicKey: between } = await newOperatorKey(db, ['read'], { expiresOn: '2026-04-09' })
    for (const day of ['2026-04-03', '2026-04-19', undefined]) await keyOf({ mid }, day)
    await createAccessKeys(db).revoke(await keyOf({ mid }, '2026-04-10'), new Date())
    expect((await run(['--json'], db)).expiringKeys).toMatchObject([
      { publicKey: first, mid: null, pid, expiresOn: '2026-04-04' },
      { publicKey: between, mid: null, pid: null, operator: 'asha', expiresOn: '2026-04-09' },
      { publicKey: last, mid, pid: null, expiresOn: '2026-04-18' },
    ])
    expect(await run([], db)).toMatch(
      new RegExp(`Keys that expire within 14 days\n.*\n${first} .*\n${between} .*\n${last} `),
    )
    for (let i = 0; i < 20; i++) await keyOf({ mid }, '2026-04-18')
    expect(await run([], db)).toMatch(/^and 3 more: use --json to list all$/m)
  })

  it('ops today prints the exact sum of the open exceptions even if the sum exceeds 2^53 paise', async () => {
    const { db } = await createTestDatabase()
    await db.query(
      `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
       select '', 'o' || n, 'unknown order', 'U' || n, 99999999999999, 'SUCCESS', $1 from generate_series(1, 95) n`,
      [service.clock.now()],
    )
    const exceptions = { open: { 'under 1 day': 95 }, amount: '94999999999999.05' }
    expect(await run(['--json'], db)).toMatchObject({ exceptions })
  })

  it('ops today reads only the day’s orders, in one pass over the index of orderIds', async () => {
    const { db, clock } = service
    clock.set('2026-04-03T18:00:00.000Z')
    await db.query(
      `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name,
         customer_email, customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at)
       select 'CHAI', lpad(to_hex((extract(epoch from at) * 1000)::bigint), 12, '0') || md5(n::text)::char(20), md5(n::text),
              100, '', '', '', '', '', '', '', '', at, at
         from (select n, '2026-03-01T00:00:00Z'::timestamptz + n * interval '1 minute' as at
                 from generate_series(1, 50000) n) s`,
    )
    await db.query('analyze payment_intents')
    const sent: QueryConfig[] = []
    const query = (statement: string | QueryConfig, values: unknown[] = []) => {
      const config = typeof statement === 'string' ? { text: statement, values } : statement
      sent.push(config)
      return db.query(config)
    }
    expect(await run(['--json'], { query, connect: () => db.connect() })).toMatchObject({ orders: 24 * 60 })
    const [{ text = '', values = [] } = {}, ...others] = sent.filter(({ text }) => text.includes('payment_intents'))
    expect(others).toEqual([])
    const { rows } = await db.query(`explain (analyze, format json) ${text}`, values)
    type Plan = Record<string, unknown> & { Plans?: Plan[] }
    const nodes = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodes)]
    const scans = nodes(rows[0]['QUERY PLAN'][0].Plan).filter((plan) => plan['Relation Name'] ?? plan['Index Name'])
    const condition = '((order_id >= h.first) AND (order_id < h.next))'
    expect(scans).toMatchObject([{ 'Index Name': 'payment_intents_order_id_idx', 'Index Cond': condition }])
    const [{ 'Actual Rows': read, 'Actual Loops': loops, 'Rows Removed by Filter': leftOut = 0 } = {}] = scans
    expect([Number(read) * Number(loops), leftOut]).toEqual([24 * 60, 0])
  })

  it('ops today prints at most one screen of text, and with --json one JSON document', async () => {
    const text = await runOps(service.databaseUrl, ['today'])
    expect([text.code, text.stderr]).toEqual([0, ''])
    expect(text.stdout.split('\n').length).toBeLessThan(24)
    expect(Math.max(...text.stdout.split('\n').map((line) => line.length))).toBeLessThan(110)
    const json = await runOps(service.databaseUrl, ['today', '--json'])
    expect(JSON.parse(json.stdout)).toMatchObject({ day: expect.stringMatching(/^\d{4}-\d\d-\d\d$/) })
  })
})
