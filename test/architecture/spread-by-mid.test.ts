import { Readable } from 'node:stream'
import fastify from 'fastify'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { OPERATIONS } from '../../src/app.ts'
import { createOrderCounts } from '../../src/books/day.ts'
import { createExceptions } from '../../src/books/exceptions.ts'
import { createOverview } from '../../src/books/overview.ts'
import { createPaymentHistory } from '../../src/books/payment-history.ts'
import { reconcile } from '../../src/books/reconcile.ts'
import { inTransaction } from '../../src/db/pool.ts'
import { REFERENCE_TABLES } from '../../src/db/spread.ts'
import { LIMITS } from '../../src/limits.ts'
import { operatorPageRoutes } from '../../src/operator/routes.ts'
import { forgetCustomers } from '../../src/payments/forget-customers.ts'
import { importDayFile } from '../../src/payments/import-day-file.ts'
import { undoImport } from '../../src/settlements/imports.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { testPool } from '../support/database.ts'
import { asRole } from '../support/database-url.ts'
import {
  CREATE,
  form,
  intentFields,
  LIST,
  newMerchant,
  newPartner,
  post,
  startService,
  type TestService,
} from '../support/service.ts'
import { importFile } from '../support/settlements.ts'
import { allow, newWebhook, SEALING_KEY } from '../support/webhooks.ts'

// What it takes to spread the schema by mid over a distributed PostgreSQL: the operator's guide, "When one machine is not enough".

/** Every node holds a full copy of them, as of PostgreSQL's own. Any other table, a new one too, counts as a tenant's. */
const SMALL_TABLES = [...REFERENCE_TABLES, 'pg_extension']
/** Of an import's own connection. */
const TEMPORARY_TABLES = ['incoming', 'day_file']
/** More than a list that is read in one piece. */
const LONG_LIST_ROWS = 1_500
/** Statements that neither read nor write rows. */
const NO_ROWS =
  /^\s*(begin|commit|rollback|set|analyze day_file|lock table|truncate incoming|create temporary table|fetch|close)\b/i

/** What a service does by itself would be taken for part of the operation that is driven at the same time. */
const QUIET = { limits: { webhooks: { lookIntervalMs: 3_600_000 } } }

let service: TestService
/** The statements of each operation, in the order in which they were sent. */
const sent = new Map<string, Set<string>>()
/** The roles that sent them. */
const sentBy = new Map<string, Set<string | undefined>>()
let operation = ''

beforeAll(async () => {
  service = await startService({ sandbox: true, asServiceRole: true, ...QUIET })
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const text = typeof args[0] === 'string' ? args[0] : (args[0] as { text: string }).text
    if (operation) {
      sent.set(operation, (sent.get(operation) ?? new Set()).add(text))
      sentBy.set(operation, (sentBy.get(operation) ?? new Set()).add(this.user))
    }
    return query.apply(this, args)
  } as never)
  await driveEveryOperation()
  await driveWebhooks()
})
afterAll(() => vi.restoreAllMocks())

async function driveEveryOperation() {
  const { app, db, clock } = service
  const { mid, key } = await newMerchant(db)
  const partner = await newPartner(db, mid)
  const csv = ['mid,amount,utr,bank_reference_number,status,initiation_date']
  for (let i = 0; i < LONG_LIST_ROWS; i++) csv.push(`${mid},1.00,LONG${i},BRN${i},PENDING,2026-01-15T00:00:00Z`)
  const file = () => Readable.from([`${csv.join('\n')}\n`])

  await as('createPaymentIntent', async () => {
    const headers = { 'idempotency-key': 'once' }
    const fields = intentFields(mid, { order_id: '1001' })
    expect((await post(app, CREATE, fields, key, headers)).status).toBe(200)
    expect((await post(app, CREATE, fields, key, headers)).status).toBe(200)
    expect((await post(app, CREATE, fields, key)).status).toBe(409)
    expect((await post(app, CREATE, { ...fields, order_id: '0'.repeat(32) }, key)).status).toBe(200)
  })
  let orderId = ''
  await as('createOrderRequest', async () => {
    const { body } = await post(app, '/v1/payments/createOrderRequest', intentFields(mid), key)
    orderId = body.data.orderId
  })
  await as('checkPaymentStatus', async () => {
    for (const id of ['1001', orderId]) {
      expect((await post(app, '/v1/payments/checkPaymentStatus', { mid, order_id: id }, key)).status).toBe(200)
    }
  })
  const watched = (await post(app, CREATE, intentFields(mid), key)).body.data.orderId
  await as('pay page', async () => {
    for (const address of [`/pay/${watched}`, `/pay/${watched}/qr.svg`]) {
      expect((await app.inject(address)).statusCode).toBe(200)
    }
    const events = app.inject(`/pay/${watched}/events`)
    await vi.waitFor(() => expect([...(sent.get('pay page') ?? [])].join()).toContain('any ($1)'), { timeout: 10_000 })
    // The time to pay ends, and then it is paid.
    const simulate = { method: 'POST' as const, url: `/pay/${watched}/simulate`, payload: form({ status: 'LATE' }) }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await app.inject({ ...simulate, headers: type })).statusCode).toBe(303)
    expect((await events).payload).toContain('over')
  })
  await as('paymentNotification', async () => {
    const utr = newUtr()
    expect((await notify(service, notification(orderId, { status: 'FAIL', UTR: undefined }))).status).toBe(200)
    expect((await notify(service, notification(orderId, { UTR: utr }))).status).toBe(200)
    expect((await notify(service, notification(orderId, { UTR: utr, amount: 1 }))).status).toBe(409)
    expect((await notify(service, notification('0'.repeat(32)))).status).toBe(404)
    expect((await notify(service, '{')).status).toBe(400)
  })
  await as('settlements import', async () => {
    await importFile(service.db, file(), { now: clock.now() })
    csv.splice(0, csv.length, ...csv.map((line) => line.replace('PENDING', 'SUCCESS')))
    expect(await importFile(service.db, file(), { now: clock.now() })).toMatchObject({
      updated: LONG_LIST_ROWS,
    })
  })
  await as('fetchSettlementList', async () => {
    for (const [day, rows] of [
      ['15-01-2026', LONG_LIST_ROWS],
      ['16-01-2026', 0],
    ] as const) {
      const { body } = await post(app, LIST, { pid: partner.pid, mid, s_date: day, e_date: day }, partner.key)
      expect(body.data).toHaveLength(rows)
    }
  })
  // Any other by its example, so that a new one cannot be forgotten.
  for (const { name, path, body, tag } of OPERATIONS.v1) {
    if (sent.has(name)) continue
    const fields = { ...body?.example, mid, order_id: '1001', pid: partner.pid }
    await as(name, () => post(app, path, fields, tag === 'Partner' ? partner.key : key))
  }
  await as('payments import', async () => {
    const [first, second] = [
      await post(app, CREATE, intentFields(mid), key),
      await post(app, CREATE, intentFields(mid), key),
    ]
    const day = `acquirer_reference,status,utr,amount,paid_at
${first.body.data.orderId},SUCCESS,${newUtr()},200,2026-03-31 23:55:00
${second.body.data.orderId},FAIL,,200,
nobody,FAIL,,200,
`
    const { recorded } = await importDayFile(db, Readable.from([day]), { now: clock.now })
    expect(recorded).toBe(2)
  })
  await as('reconcile', async () => {
    const findings = []
    for await (const finding of reconcile(db, { from: '2026-01-01', to: '2026-03-31', now: clock.now() })) {
      findings.push(finding.type)
    }
    expect(findings).toContain('exception')
  })
  await as('settlements undo', async () => {
    const person = { now: clock.now(), person: 'test' }
    expect(await inTransaction(db, (client) => undoImport(client, 2, person))).toMatchObject({
      restored: LONG_LIST_ROWS,
    })
  })
  const { databaseUrl, log } = service
  await as('operator’s page', async () => {
    const operators = fastify()
    const own = testPool(asRole(databaseUrl, 'upi_service'), 1)
    const warn = (facts: unknown) => void log.push(JSON.stringify(facts))
    const page = { db: own, log: { warn }, now: clock.now, publicUrl: '', latenessMs: () => 0, limits: LIMITS }
    operatorPageRoutes(operators, page as never)
    expect((await operators.inject('/')).statusCode).toBe(200)
    await operators.close()
    await own.end()
  })
  await as('today', async () => {
    const now = clock.now()
    await createOrderCounts(db).countByHour({ since: now, hours: 24 }, now)
    await createOrderCounts(db).countByHourAndMerchant({ since: now, hours: 24 }, now)
    await createOverview(db).read(now)
  })
  await as('payments show', () => createPaymentHistory(db).find(orderId))
  await as('payments exceptions', () => createExceptions(db).list({ open: true }))
  await as('payments forget-customers', () => forgetCustomers(db, { before: new Date('2100-01-01T00:00:00Z') }))
}

/** By a service that looks for what is due all the time. */
async function driveWebhooks() {
  const { app, db, clock } = await startService({
    asServiceRole: true,
    webhooks: { sealingKey: SEALING_KEY, allowedNetworks: allow() },
    limits: { webhooks: { lookIntervalMs: 20 } },
  })
  const { mid, key } = await newMerchant(db)
  await newWebhook(db, { mid, url: 'https://127.0.0.1/' }, clock.now())
  expect((await post(app, CREATE, intentFields(mid), key)).status).toBe(200)
  await as('webhooks', async () => {
    clock.advance(25 * 60)
    const settled = () => [...(sent.get(operation) ?? [])].join().includes('failing_since = case')
    await vi.waitFor(() => expect(settled()).toBe(true), { timeout: 10_000 })
  })
}

async function as(name: string, work: () => Promise<unknown>) {
  operation = name
  await work()
  operation = ''
}

/** What the operator does at the command line, as the owner of the tables. */
const OF_THE_OPERATOR = /^settlements |^payments |^reconcile$|^today$/

it('every operation works with the rights that an installation gives the service: src/db/grants.sql', () => {
  const roles = [...sentBy].filter(([name]) => !OF_THE_OPERATOR.test(name)).flatMap(([, users]) => [...users])
  expect(new Set(roles)).toEqual(new Set(['upi_service']))
})

/** A place of a statement's plan that reads or writes a tenant's table, and by what it finds its rows. */
type Access = { table: string; by: string }

type Plan = { Plans?: Plan[]; [property: string]: unknown }

/** Asks PostgreSQL itself how it would run `statement`, and not what its text looks like. */
async function accessesOf(client: pg.Client, statement: string): Promise<Access[]> {
  const inner = /^\s*copy \(([\s\S]*)\) to stdout\s*$/.exec(statement)?.[1] ?? statement
  const { rows } = await client.query(`explain (generic_plan, format json) ${inner}`)
  const accesses: Access[] = []
  const walk = (plan: Plan) => {
    const table = plan['Relation Name']
    if (typeof table === 'string' && ![...SMALL_TABLES, ...TEMPORARY_TABLES].includes(table)) {
      if (plan['Node Type'] !== 'ModifyTable') {
        accesses.push({ table, by: [plan['Index Cond'], plan['Recheck Cond'], plan.Filter].filter(Boolean).join(' ') })
      } else if (plan.Operation === 'Insert') {
        const columns = new RegExp(`insert into ${table}\\s*\\(([^)]*)\\)`).exec(statement)?.[1] ?? ''
        accesses.push({ table, by: columns.split(/,\s*/).includes('mid') ? 'mid = inserted' : '' })
      }
    }
    plan.Plans?.forEach(walk)
  }
  walk(rows[0]['QUERY PLAN'][0].Plan)
  return accesses
}

const carriesMid = ({ by }: Access) => /\bmid = /.test(by)
/** Our orderId is unguessable and says enough. */
const carriesOrderId = ({ by }: Access) => /(?<![a-z_])order_id = /.test(by)

describe('every statement on a tenant’s table', () => {
  const accesses = new Map<string, Access[]>()

  beforeAll(async () => {
    const client = new pg.Client({ connectionString: service.databaseUrl })
    await client.connect()
    try {
      await client.query('begin')
      // The tables of a test are small; the plan is to be that of large ones.
      for (const way of ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin']) {
        await client.query(`set local enable_${way} = off`)
      }
      const statements = [...sent].flatMap(([name, texts]) =>
        // A message may hold several.
        [...texts].flatMap((all) => all.split(';')).map((text) => ({ name, text })),
      )
      for (const { text } of statements) if (text.includes('create temporary table')) await client.query(text)
      for (const { name, text } of statements) {
        if (NO_ROWS.test(text) || /^\s*copy (incoming|day_file)/.test(text)) continue
        accesses.set(name, [...(accesses.get(name) ?? []), ...(await accessesOf(client, text))])
      }
    } finally {
      await client.end()
    }
  })

  it('was asked for: every operation that takes a body is driven', () => {
    const withBody = Object.values(OPERATIONS)
      .flat()
      .filter(({ body }) => body)
    expect(withBody.filter(({ name }) => !sent.has(name))).toEqual([])
  })

  it('was seen: each operation has touched a tenant’s table', () => {
    expect([...sent.keys()].filter((name) => !accesses.get(name)?.length)).toEqual([])
  })

  it('carries mid, or our unguessable orderId where the customer, the bank or the operator has nothing else', () => {
    const withoutMid = [...accesses].flatMap(([name, all]) =>
      all.filter((access) => !carriesMid(access)).map((access) => ({ name, ...access })),
    )
    const byOrderId = new Set(withoutMid.filter(carriesOrderId).map(({ name, table }) => `${name}: ${table}`))
    expect([...byOrderId].sort()).toEqual([
      'pay page: payment_intents',
      'paymentNotification: payment_intents',
      'payments import: payment_intents',
      'payments show: payment_intents',
    ])
    const overAll = withoutMid.filter((access) => !carriesOrderId(access))
    // The acquirer's file knows an intent by its reference alone. A bank's file and the overview of exceptions cover all
    // merchants.
    const overviews = ['operator’s page', 'today']
    expect(overAll.filter(({ name }) => name !== 'webhooks' && !overviews.includes(name))).toEqual([
      { name: 'payments import', table: 'acquirer_intents', by: '(reference = ANY ($1))' },
      ...['settlement_updates', 'settlement_updates', 'settlements'].map((table) => ({
        ...{ name: 'settlements undo', table, by: '(import_id = $1)' },
      })),
      { name: 'payments exceptions', table: 'payment_exceptions', by: '' },
    ])
    // The operator's overviews are of all merchants too. Of orders they read the time that they are about, and no others.
    for (const name of overviews) {
      const read = overAll.filter((access) => access.name === name).map(({ table, by }) => `${table} ${by}`)
      expect(new Set(read)).toEqual(
        new Set([
          'payment_intents ((order_id >= h.first) AND (order_id < h.next))',
          'payment_exceptions ',
          'webhook_endpoints ',
          'webhook_deliveries (attempted_at > $1)',
        ]),
      )
    }
    // What is due and which orders expire is looked for over all merchants; deliveries are served merchant by merchant.
    expect(new Set(overAll.filter(({ name }) => name === 'webhooks').map(({ table }) => table))).toEqual(
      new Set(['payment_intents', 'webhook_endpoints', 'webhook_expiries']),
    )
  })
})

describe('the schema', () => {
  it('makes nothing unique over merchants: every unique index of a tenant’s table begins with mid', async () => {
    const { rows } = await service.db.query<{ table: string; index: string; first: string }>(
      `select i.indrelid::regclass::text as table, i.indexrelid::regclass::text as index, a.attname as first
         from pg_index i
         join pg_class c on c.oid = i.indrelid and c.relnamespace = 'public'::regnamespace
         left join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indisunique and c.relname <> all ($1)
        order by 1, 2`,
      [SMALL_TABLES],
    )
    expect(rows.length).toBeGreaterThan(10)
    expect(rows.filter(({ first }) => first !== 'mid')).toEqual([])
  })

  it('refers from one tenant’s table to another within a merchant only', async () => {
    const { rows } = await service.db.query<{ name: string; own: string; other: string }>(
      `select conname as name,
              (select attname from pg_attribute where attrelid = conrelid and attnum = conkey[1]) as own,
              (select attname from pg_attribute where attrelid = confrelid and attnum = confkey[1]) as other
         from pg_constraint
        where contype = 'f' and confrelid::regclass::text <> all ($1)
        order by 1`,
      [SMALL_TABLES],
    )
    expect(rows.length).toBeGreaterThan(3)
    expect(rows.filter(({ own, other }) => own !== 'mid' || other !== 'mid')).toEqual([])
  })

  it('gives every tenant’s table a primary key', async () => {
    const { rows } = await service.db.query(
      `select relname from pg_class
        where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all ($1)
          and not exists (select from pg_constraint where conrelid = pg_class.oid and contype = 'p')`,
      [SMALL_TABLES],
    )
    expect(rows).toEqual([])
  })
})
