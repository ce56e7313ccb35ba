import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createPaymentHistory } from '../../src/operator/support/payment-history.ts'
import { RIGHTS } from '../../src/platform/rights.ts'
import { newUtr, notification, notify } from '../support/acquirer.ts'
import { ON_CITUS } from '../support/installed-postgres.ts'
import {
  addLogo,
  CANCEL,
  CREATE,
  intentFields,
  LIST,
  newKey,
  newMerchant,
  newPartner,
  ORDER,
  OWN_ORDERS,
  OWN_REFUNDS,
  post,
  REFUND,
  REFUND_STATUS,
  STATUS,
  startService,
  type TestService,
  TRANSACTIONS,
} from '../support/service.ts'
import { addSettlements } from '../support/settlements.ts'

// A statement that names its merchant goes to the one shard with the merchant's rows, so that it costs one node's work.
// Every write does. Only look-ups by the service's orderId alone or by a payment's UTR query every shard. Runs only on
// a database with shards: TEST_CITUS=1.

/** More rows than a list that is read in one piece. */
const LONG_LIST_ROWS = 1_500

/** A read that names an order or a UTR, but no merchant. */
const LOOK_UP = /^\s*select [^$]*where ((i\.)?order_id|utr) = (any \()?\$1\)?( order by received_at, mid)?\s*$/

type Sent = { text: string; values: unknown[] }

let service: TestService
/** The statements that each operation sent. */
const sent = new Map<string, Sent[]>()
let operation = ''

describe.skipIf(!ON_CITUS)('distributed database', () => {
  beforeAll(async () => {
    service = await startService({ limits: { webhooks: { lookIntervalMs: 3_600_000 } } })
    const query = pg.Client.prototype.query as (...args: unknown[]) => unknown
    vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...args: unknown[]) {
      const [first, second] = args
      const { text, values } = typeof first === 'string' ? { text: first, values: second } : (first as Sent)
      if (operation) sent.get(operation)?.push({ text, values: Array.isArray(values) ? values : [] })
      return query.apply(this, args)
    } as never)
    await driveTheHotPath()
  }, 120_000)
  afterAll(() => vi.restoreAllMocks())

  const NAMING_THEIR_MERCHANT = [
    'create',
    'order',
    'status',
    'cancel',
    'refund',
    'list',
    'long list',
    'transactions',
    'orders',
    'refunds',
  ]
  const BY_ORDER_ID = ['payment', 'failed attempt', 'page', 'QR', 'logo', 'open page', 'ops payments show']

  it.each([...NAMING_THEIR_MERCHANT, ...BY_ORDER_ID])(
    'each SQL statement of the operation "%s" touches one shard, except the look-up of an orderId or a UTR',
    async (name) => {
      const client = new pg.Client({ connectionString: service.databaseUrl })
      await client.connect()
      try {
        const statements = (sent.get(name) ?? []).filter(({ text }) =>
          /payment|refunds|settlements|acquirer_|webhook_|merchant_logos/.test(text),
        )
        expect(statements.length).toBeGreaterThan(0)
        for (const statement of statements) {
          const queriesAll = BY_ORDER_ID.includes(name) && LOOK_UP.test(statement.text)
          expect(await shardsOf(client, statement), statement.text).toBeLessThanOrEqual(queriesAll ? Infinity : 1)
        }
      } finally {
        await client.end()
      }
    },
  )
})

async function driveTheHotPath() {
  const { app, db } = service
  const { mid, key } = await newMerchant(db)
  const partner = await newPartner(db, mid)
  const create = async () => (await post(app, CREATE, intentFields(mid), key)).body.data.orderId as string
  const [cancelled, paid, failed] = [await create(), await create(), await create()]
  const ok = (response: { status: number }) => expect(response.status).toBe(200)

  await as('create', async () => {
    const fields = intentFields(mid, { order_id: '1001' })
    for (let i = 0; i < 2; i++) ok(await post(app, CREATE, fields, key, { 'idempotency-key': 'once' }))
    expect((await post(app, CREATE, fields, key)).status).toBe(409)
  })
  await as('order', async () => ok(await post(app, ORDER, intentFields(mid), key)))
  await as('status', async () => {
    for (const order_id of ['1001', paid]) ok(await post(app, STATUS, { mid, order_id }, key))
  })
  await as('cancel', async () => ok(await post(app, CANCEL, { mid, order_id: cancelled }, key)))
  await as('payment', async () => ok(await notify(service, notification(paid, { UTR: newUtr() }))))
  await as('failed attempt', async () =>
    ok(await notify(service, notification(failed, { status: 'FAIL', UTR: undefined }))),
  )
  const mayRefund = await newKey(db, { mid }, RIGHTS)
  const refund = { mid, order_id: paid, refund_id: 'R1', note: 'Cold tea' }
  await as('refund', async () => {
    for (let i = 0; i < 2; i++) ok(await post(app, REFUND, refund, mayRefund))
    ok(await post(app, REFUND_STATUS, { mid, refund_id: 'R1' }, key))
  })
  const days = { pid: partner.pid, mid, s_date: '01-01-2026', e_date: '31-12-2026' }
  const list = () => post(app, LIST, days, partner.key)
  await as('transactions', async () => ok(await post(app, TRANSACTIONS, days, partner.key)))
  await as('orders', async () => {
    for (const status of ['', 'PENDING', 'SUCCESS', 'FAIL', 'REJECT']) {
      ok(await post(app, OWN_ORDERS, { ...days, status }, key))
    }
  })
  await as('refunds', async () => ok(await post(app, OWN_REFUNDS, days, key)))
  await as('list', async () => ok(await list()))
  await addSettlements(db, mid, LONG_LIST_ROWS)
  await as('long list', async () => ok(await list()))
  await as('page', async () => expect((await app.inject(`/pay/${failed}`)).statusCode).toBe(200))
  await as('QR', async () => expect((await app.inject(`/pay/${failed}/qr.svg`)).statusCode).toBe(200))
  await addLogo(db, mid)
  await as('logo', async () => expect((await app.inject(`/pay/${failed}/logo.png`)).statusCode).toBe(200))
  await as('open page', async () => {
    const events = app.inject(`/pay/${failed}/events`)
    await vi.waitFor(
      () =>
        expect(
          sent
            .get('open page')
            ?.map(({ text }) => text)
            .join(),
        ).toContain('where i.order_id = any ($1)'),
      {
        timeout: 10_000,
      },
    )
    await notify(service, notification(failed, { UTR: newUtr() }))
    expect((await events).payload).toContain('over')
  })
  await as('ops payments show', async () =>
    expect(await createPaymentHistory(db, new Date()).find(paid)).toMatchObject({ mid, status: 'SUCCESS' }),
  )
}

async function as(name: string, work: () => Promise<unknown>) {
  operation = name
  sent.set(name, [])
  await work()
  operation = ''
}

/**
 * The largest number of shards that one step of its plan reads; none for an insert of values, whose rows are of one
 * merchant.
 */
async function shardsOf(client: pg.Client, { text, values }: Sent): Promise<number> {
  const inner = /^\s*copy \(([\s\S]*)\) to stdout\s*$/.exec(text)?.[1] ?? text
  const { rows } = await client.query(`explain (format json) ${inner}`, values)
  const counts = [...JSON.stringify(rows).matchAll(/"Task Count":(\d+)/g)].map(([, count]) => Number(count))
  return Math.max(0, ...counts)
}
