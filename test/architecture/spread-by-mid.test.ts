import { readFileSync } from 'node:fs'
import { Readable } from 'node:stream'
import pg from 'pg'
import { beforeAll, expect, it, vi } from 'vitest'
import { importDailyReport } from '../../src/gateway/payments/import-daily-report.ts'
import { OPERATIONS } from '../../src/operations.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import {
  addLogo,
  CREATE,
  form,
  intentFields,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  post,
  REFUND,
  startService,
  type TestService,
} from '../support/service.ts'
import { importFile } from '../support/settlements.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

// Requirements for distributing the schema by mid over several PostgreSQL servers: the operator manual,
// "Sharding with Citus". The services have the rights of an installation, so that an operation that lacks a right
// fails here.

/**
 * Every node has a full copy of these tables, as of PostgreSQL's own. Any other table, including a new one, is treated
 * as a tenant's.
 */
const DISTRIBUTE = readFileSync(new URL('../../src/operator/deploy/citus.sql', import.meta.url), 'utf8')
const WHOLE_ON_EACH_NODE = /whole_on_each_node constant text\[\] := array\[([^\]]*)\]/.exec(DISTRIBUTE)?.[1] ?? ''
const SMALL_TABLES = [...[...WHOLE_ON_EACH_NODE.matchAll(/\w+/g)].map(([name]) => name), 'pg_extension']
/** Tables of an import's own connection. */
const TEMPORARY_TABLES = [
  'incoming',
  'deductions',
  'names',
  'payment_names',
  'paid_accounts',
  'instruments',
  'daily_report',
]
/** Statements that neither read nor write rows, or only temporary ones. */
const NO_ROWS =
  /^\s*(begin|commit|rollback|set|analyze daily_report|lock table|truncate incoming|create temporary table|copy (incoming|daily_report))\b/i

let service: TestService
/** The statements of each operation. */
const sent = new Map<string, Set<string>>()
let operation = ''

beforeAll(async () => {
  // Jobs that the service runs by itself would be attributed to the operation that is called at the same time.
  const quiet = { webhooks: { lookIntervalMs: 3_600_000 } }
  service = await startService({ sandbox: true, asServiceRole: true, limits: quiet })
  const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
  vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
    const text = typeof args[0] === 'string' ? args[0] : (args[0] as { text: string }).text
    if (operation) sent.set(operation, (sent.get(operation) ?? new Set()).add(text))
    return query.apply(this, args)
  } as never)
  await driveEveryOperation()
  await driveWebhooks()
})

async function driveEveryOperation() {
  const { app, db, clock } = service
  const { mid, key } = await newMerchant(db, { maxExpiryMinutes: 43_200 })
  const partner = await newPartner(db, mid)
  const create = async () => (await post(app, CREATE, intentFields(mid), key)).body.data.orderId
  await as('createPaymentIntent', async () => {
    const headers = { 'idempotency-key': 'once' }
    const fields = intentFields(mid, { order_id: '1001' })
    for (let i = 0; i < 2; i++) expect((await post(app, CREATE, fields, key, headers)).status).toBe(200)
    expect((await post(app, CREATE, fields, key)).status).toBe(409)
    // The order_id may be an orderId of the service.
    expect((await post(app, CREATE, { ...fields, order_id: '0'.repeat(32) }, key)).status).toBe(200)
    const long = { ...fields, order_id: '1002', expiry_minutes: '4320' }
    expect((await post(app, CREATE, long, key)).status).toBe(200)
  })
  const watched = await create()
  await addLogo(db, mid)
  await as('pay page', async () => {
    for (const address of [`/pay/${watched}`, `/pay/${watched}/qr.svg`, `/pay/${watched}/logo.png`]) {
      expect((await app.inject(address)).statusCode).toBe(200)
    }
    const events = app.inject(`/pay/${watched}/events`)
    await vi.waitFor(() => expect([...(sent.get('pay page') ?? [])].join()).toContain('any ($1)'), { timeout: 10_000 })
    // The order expires and is then paid.
    const simulate = { method: 'POST' as const, url: `/pay/${watched}/simulate`, payload: form({ status: 'LATE' }) }
    const type = { 'content-type': 'application/x-www-form-urlencoded' }
    expect((await app.inject({ ...simulate, headers: type })).statusCode).toBe(303)
    expect((await events).payload).toContain('over')
  })
  const orderId = await create()
  await as('paymentNotification', async () => {
    const utr = newUtr()
    expect((await notify(service, notification(orderId, { status: 'FAIL', UTR: undefined }))).status).toBe(200)
    expect((await notify(service, notification(orderId, { UTR: utr }))).status).toBe(200)
    expect((await notify(service, notification(orderId, { UTR: utr, amount: 1 }))).status).toBe(409)
    expect((await notify(service, notification('0'.repeat(32)))).status).toBe(404)
  })
  await as('settlements import', async () => {
    for (const status of ['PENDING', 'SUCCESS']) {
      const line = `${mid},1.00,UTR1,BRN1,${status},2026-01-15T00:00:00Z,wallet`
      const csv = `mid,amount,utr,bank_reference_number,status,initiation_date,instrument\n${line}\n${line.replace('1.00', '-1.00')}\n`
      await importFile(db, Readable.from([csv]), { now: clock.now() })
    }
  })
  await as('fetchSettlementList', async () => {
    const list = { pid: partner.pid, mid, s_date: '15-01-2026', e_date: '15-01-2026' }
    expect((await post(app, LIST, list, partner.key)).body.data).toHaveLength(2)
  })
  await as('refundPayment', async () => {
    const refund = { mid, order_id: orderId, refund_id: 'R1', note: 'Cold tea' }
    const mayRefund = await newKey(db, { mid }, RIGHTS)
    for (let i = 0; i < 2; i++) expect((await post(app, REFUND, refund, mayRefund)).status).toBe(200)
  })
  await as('simulated refund', async () => {
    const ended = await post(app, `/pay/${orderId}/simulate`, { refund_id: 'R1', status: 'SUCCESS' })
    expect(ended.status).toBe(303)
  })
  // Every other operation is called with its example, so that a new one cannot be forgotten.
  for (const { name, path, body, tag } of OPERATIONS.v1) {
    if (sent.has(name)) continue
    const fields = { ...body?.example, mid, order_id: '1001', pid: partner.pid }
    await as(name, () => post(app, path, fields, tag === 'Partner' ? partner.key : key))
  }
  const reported = await create()
  await as('payments import', async () => {
    const day = `acquirer_reference,status,utr,amount,paid_at,acquirer_payment_id
${reported},SUCCESS,${newUtr()},200,2026-03-31 23:55:00,
nobody,FAIL,,200,,
,FAIL,,200,,nobody
`
    expect(await importDailyReport(db, Readable.from([day]), { now: clock.now })).toMatchObject({ recorded: 1 })
  })
}

/** Uses a service that polls for pending jobs all the time. */
async function driveWebhooks() {
  const { app, db, clock } = await startService({
    asServiceRole: true,
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow() },
    limits: { webhooks: { lookIntervalMs: 100 } },
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

/** A part of a statement's plan that reads or writes a tenant's table, and the columns by which it finds its rows. */
type Access = { table: string; by: string }
type Plan = { Plans?: Plan[]; [property: string]: unknown }

/** Reads PostgreSQL's own plan for `statement` instead of its text. */
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

/** The accesses of each operation to tenants' tables. */
async function accessesOfAll(): Promise<Map<string, Access[]>> {
  const client = new pg.Client({ connectionString: service.databaseUrl })
  await client.connect()
  try {
    await client.query('begin')
    // The tables of a test are small, but the plan must be that of large ones.
    for (const way of ['seqscan', 'bitmapscan', 'hashjoin', 'mergejoin']) {
      await client.query(`set local enable_${way} = off`)
    }
    // A message may contain several statements. A `;` with an even number of quotes after it is in no text.
    const separator = /;(?=[^']*(?:'[^']*'[^']*)*$)/
    const all = [...sent].map(([name, texts]) => [name, [...texts].flatMap((text) => text.split(separator))] as const)
    for (const [, texts] of all) {
      for (const text of texts) if (text.includes('create temporary table')) await client.query(text)
    }
    const accesses = new Map<string, Access[]>()
    for (const [name, texts] of all) {
      const found = []
      for (const text of texts) if (!NO_ROWS.test(text)) found.push(...(await accessesOf(client, text)))
      accesses.set(name, found)
    }
    return accesses
  } finally {
    await client.end()
  }
}

it('every statement on a tenant’s table names mid, or the service’s unguessable orderId if the mid is unknown', async () => {
  const accesses = await accessesOfAll()
  const withBody = Object.values(OPERATIONS)
    .flat()
    .filter(({ body }) => body)
  expect(withBody.filter(({ name }) => !accesses.has(name))).toEqual([])
  // A partner's merchants are in tables of which every node has a copy.
  expect([...accesses].filter(([, all]) => all.length === 0)).toEqual([['fetchMerchantList', []]])

  const withoutMid = [...accesses].flatMap(([name, all]) =>
    all.filter(({ by }) => !/\bmid = /.test(by)).map((access) => ({ name, ...access })),
  )
  const isByOrderId = ({ by }: Access) => /(?<![a-z_])order_id = /.test(by)
  expect(new Set(withoutMid.filter(isByOrderId).map(({ name, table }) => `${name}: ${table}`))).toEqual(
    new Set(
      ['pay page', 'simulated refund', 'paymentNotification', 'payments import', 'settlements import'].map(
        (name) => `${name}: payment_intents`,
      ),
    ),
  )
  expect(
    new Set(withoutMid.filter((access) => !isByOrderId(access)).map(({ name, table }) => `${name}: ${table}`)),
  ).toEqual(
    new Set([
      // A notification of an unknown order may name a payment of any merchant by its UTR.
      'paymentNotification: payments',
      // The acquirer's file identifies an intent by its reference alone, or a payment by its id.
      'payments import: acquirer_intents',
      'payments import: payments',
      // An import matches rows of all merchants with the bank references that became known since the last import.
      'settlements import: payments',
      // It finds rows of no known account by the UTRs of payments that became known since.
      'settlements import: settlements',
      // Pending jobs and expired orders are found over all merchants; they are claimed merchant by merchant.
      'webhooks: acquirer_intents',
      'webhooks: disputes',
      'webhooks: payment_intents',
      'webhooks: refunds',
      'webhooks: disputes',
      // Checks whether the UTR of a payment of the last minutes has also paid another merchant.
      'webhooks: payments',
      'webhooks: webhook_endpoints',
      // On distributed tables, the poll does not read deliveries.
      'webhooks: webhook_deliveries',
      'webhooks: webhook_expiries',
    ]),
  )
})

it('every primary key, unique index and reference of a tenant’s table begins with mid', async () => {
  const { rows } = await service.db.query<{ name: string; columns: (string | null)[] }>(
    `select i.indexrelid::regclass::text as name,
            array[(select attname::text from pg_attribute where attrelid = i.indrelid and attnum = i.indkey[0])] as columns
       from pg_index i
       join pg_class c on c.oid = i.indrelid and c.relnamespace = 'public'::regnamespace
      where i.indisunique and c.relname <> all ($1)
      union all
     select conname,
            array[(select attname::text from pg_attribute where attrelid = conrelid and attnum = conkey[1]),
                  (select attname::text from pg_attribute where attrelid = confrelid and attnum = confkey[1])]
       from pg_constraint
      where contype = 'f' and confrelid::regclass::text <> all ($1)
      union all
     select 'no primary key: ' || relname, array[null]
       from pg_class
      where relnamespace = 'public'::regnamespace and relkind = 'r' and relname <> all ($1)
        and not exists (select from pg_constraint where conrelid = pg_class.oid and contype = 'p')`,
    [SMALL_TABLES],
  )
  expect(rows.length).toBeGreaterThan(13)
  expect(rows.filter(({ columns }) => columns.some((column) => column !== 'mid'))).toEqual([])
})
