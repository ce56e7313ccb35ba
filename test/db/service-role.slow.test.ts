import { mkdtempSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { beforeAll, describe, expect, inject, it, onTestFinished } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import { retryRefund } from '../../src/gateway/refunds/pending-refunds.ts'
import { createRefundUpdates, saveRefundException } from '../../src/gateway/refunds/record-update.ts'
import type { Refund } from '../../src/gateway/refunds/refund.ts'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { blockWith } from '../guides/guides.ts'
import { newUtr } from '../support/acquirer.ts'
import { createTestDatabase } from '../support/database.ts'
import { columnsOf, connect, rightsOf, run } from '../support/database-rights.ts'
import { asRole, databaseUrl, ROLE_PASSWORD } from '../support/database-url.ts'
import { CASHFREE, cashfreeSettings, newCashfreeMerchant } from '../support/fake-cashfree.ts'
import { namingLine, runOps } from '../support/ops.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { connects, startPostgresServer } from '../support/postgres-server.ts'
import {
  CANCEL,
  CREATE,
  intentFields,
  newMerchant,
  post,
  responseOf,
  startService,
  type TestService,
  unique,
} from '../support/service.ts'
import { startServiceBeside } from '../support/service-with-bank.ts'
import type { NewMerchant } from '../support/tenants.ts'
import { startReceiver } from '../support/webhook-receiver.ts'
import { allow, ENCRYPTION_KEYS, newWebhook } from '../support/webhooks.ts'

const ROLES = readFileSync(join(import.meta.dirname, '../../src/operator/deploy/roles.sql'), 'utf8')
const FORBIDDEN = '42501'

/**
 * Every table of the schema with the service's rights to it. A new table needs an entry here and in
 * src/platform/db/grants.sql.
 */
const RIGHTS: Record<string, string[]> = {
  access_keys: ['SELECT'],
  account_lines: [],
  acquirer_accounts: ['SELECT'],
  acquirer_intents: ['INSERT', 'SELECT'],
  audit_commands: [],
  audit_outcomes: [],
  bank_holidays: [],
  bank_holiday_changes: [],
  closed_balances: [],
  closed_items: [],
  closed_months: [],
  current_refunds: ['SELECT'],
  difference_resolutions: [],
  dispute_states: ['INSERT', 'SELECT'],
  disputed_items: [],
  disputes: ['INSERT', 'SELECT'],
  // File layouts and bank statements are for operators alone.
  file_layouts: [],
  key_uses: ['INSERT', 'SELECT'],
  ledger: [],
  ledger_names: [],
  lost_disputes: [],
  contract_rates: [],
  merchant_logos: ['SELECT'],
  merchants: ['SELECT'],
  money_exceptions: [],
  // An attacker in the service must not learn or create an operator's key.
  operator_keys: [],
  partner_merchants: ['SELECT'],
  partners: [],
  payment_attempts: ['INSERT', 'SELECT'],
  payment_exceptions: ['INSERT', 'SELECT'],
  payment_intents: ['INSERT', 'SELECT'],
  payment_resolutions: ['INSERT', 'SELECT'],
  payments: ['INSERT', 'SELECT'],
  payout_rests: [],
  // Only an operator may record that the bank returned a refund, which makes its amount refundable again.
  refund_returns: ['SELECT'],
  refunds: ['INSERT', 'SELECT'],
  returned_amounts: ['SELECT'],
  schema_migrations: ['SELECT'],
  settlement_import_bases: [],
  settlement_imports: [],
  settlement_lines: [],
  settlement_versions: [],
  settlements: ['SELECT'],
  statement_imports: [],
  statement_lines: [],
  webhook_deliveries: ['INSERT', 'SELECT'],
  webhook_endpoints: ['SELECT'],
  webhook_expiries: ['INSERT', 'SELECT', 'UPDATE', 'DELETE'],
}

let service: TestService
beforeAll(async () => {
  service = await startService({ asServiceRole: true })
})

const asService = (statement: string) => run(asRole(service.databaseUrl, 'upi_service'), statement)

const rightsIn = (url: string) => rightsOf('upi_service', url)

describe('the service’s role', () => {
  it('the service’s role has exactly the listed rights on each table', async () => {
    expect(await rightsIn(service.databaseUrl)).toEqual(RIGHTS)
  })

  it.each([
    ['disable the triggers that protect the history of payments', 'alter table payments disable trigger all'],
    ['disable triggers for its session', 'set session_replication_role = replica'],
    ['lock the table of settlements against imports', 'do $$ begin lock table settlements in share mode; end $$'],
    ['create a table', 'create table loot (id integer)'],
    ['create a schema', 'create schema loot'],
    ['change a table', 'alter table merchants add column loot text'],
    ['create a role', 'create role thief superuser'],
    ['become upi_owner', 'set role upi_owner'],
    ['run programs on the database’s machine', `copy (select 1) to program 'true'`],
    ['read the output of programs', `copy schema_migrations (name) from program 'id'`],
    ['read files of the database’s machine', `select pg_read_file('/etc/passwd')`],
    ['write files on the database’s machine', `copy (select 1) to '/tmp/loot'`],
    ['read secrets of other roles', 'select * from pg_authid'],
  ])('the service’s role may not %s', async (_name, statement) => {
    await expect(asService(statement)).rejects.toMatchObject({ code: FORBIDDEN })
  })

  it('the service’s role may update only the listed columns, such as a refund’s status and a key’s last use', async () => {
    expect(await columnsOf('upi_service', 'UPDATE', service.databaseUrl)).toEqual({
      acquirer_intents: 'status_check_at status_checked_at status_checks',
      disputes: 'amount_paise check_at kind reason_code reason_text reported_at respond_by status updated_at',
      key_uses: 'last_used_on',
      payment_attempts: 'failure_code failure_reason',
      payment_intents: 'cancelled_at event_sequence expires_at failure_reported_at status unreadable_at utr',
      payments: 'acquirer_payment_id acquirer_txn_id bank_reference bank_reference_at instrument learned_at',
      refunds: 'accepted_at acquirer_refund_id attempts due_at ended_at reason reference sent_at status',
      webhook_deliveries: 'attempted_at attempts delivered_at due_at outcome response',
      webhook_endpoints: 'disabled_at disabled_reason failing_since',
    })
  })

  it.each(['postgres', 'template1'])('the service’s role may not connect to the database %s', async (database) => {
    const elsewhere = asRole(databaseUrl(service.databaseUrl, database), 'upi_service')
    await expect(run(elsewhere, 'create temporary table loot (id integer)')).rejects.toMatchObject({
      code: FORBIDDEN,
      message: `permission denied for database "${database}"`,
    })
  })

  it('the service’s role detects a deadlock before its lock timeout, so that the service stores the second attempt', async () => {
    const { rows } = await asService(
      `select current_setting('deadlock_timeout') as deadlock, current_setting('lock_timeout') as lock,
              current_setting('client_connection_check_interval') as gone`,
    )
    expect(rows).toEqual([{ deadlock: '200ms', lock: '800ms', gone: '1s' }])
  })

  it('/readyz names the command to run while the service’s role has no rights, for example before the first ops migrate', async () => {
    await service.db.query('revoke all on all tables in schema public from upi_service')
    const unready = responseOf(await service.app.inject('/readyz'))
    expect([unready.status, unready.body.msg]).toEqual([
      503,
      'The role of the service has no rights on the tables. Run "ops migrate" as their owner.',
    ])
    await applyGrants(asRole(service.databaseUrl, 'upi_owner'))
    expect((await service.app.inject('/readyz')).statusCode).toBe(200)
  })

  it('ops rejects the service’s role, and names the role and the variable to use instead', async () => {
    const url = asRole(service.databaseUrl, 'upi_service')
    const rejected = await runOps(url, [
      'merchants',
      'add',
      '--mid',
      'M1',
      '--name',
      'x',
      '--vpa',
      'x@bank',
      '--mcc',
      '5814',
    ])
    expect(namingLine(url)).toContain('as upi_service\n')
    expect(rejected).toEqual({
      code: 1,
      stdout: '',
      stderr:
        'ops: permission denied for table audit_commands: run ops migrate, which grants the console its rights. For all other commands, connect as the owner of the tables with DATABASE_MIGRATE_URL; in compose, use docker compose run --rm ops …\n',
    })
  })
})

describe('an attacker with the service’s DATABASE_URL at refunds and payments', () => {
  /** PostgreSQL's check_violation. */
  const AGAINST_A_RULE = '23514'

  /** A paid order of ₹200 with an open refund of ₹150 at an acquirer that is never called. */
  async function refundedOrder() {
    const merchant = await newMerchant(service.db)
    const [orderId, utr] = [await createOrder(service, merchant, { order_id: unique('O') }), newUtr()]
    await reportPayment(service, orderId, { UTR: utr })
    const requested = { mid: merchant.mid, orderId, refundId: unique('R'), amount: 150_00, note: 'sold out' }
    const created = await createRefund(
      service.pools.requests,
      { ...requested, createdBy: 'merchant' },
      service.clock.now(),
    )
    return { mid: merchant.mid, orderId, utr, refund: (created as { refund: Refund }).refund }
  }
  type Order = Awaited<ReturnType<typeof refundedOrder>>

  const asOwner = (sql: string) => run(asRole(service.databaseUrl, 'upi_owner'), sql)
  async function thief(): Promise<pg.Client> {
    const connection = await connect(asRole(service.databaseUrl, 'upi_service'))
    onTestFinished(() => connection.end())
    return connection
  }
  const report = (order: Order, status: 'SUCCESS' | 'FAIL') =>
    createRefundUpdates(service.pools.due).record(
      order.refund,
      { status, reference: 'ARN1' },
      { source: 'notification', by: 'acquirer', now: service.clock.now },
    )
  const succeeded = (order: Order) => report(order, 'SUCCESS')
  const failed = (order: Order) => report(order, 'FAIL')
  const taken = async ({ refund }: Order) =>
    asOwner(setRefund(refund, `acquirer_refund_id = 'A1', sent_at = now(), accepted_at = now()`))
  const own = async (order: Order) => run(service.databaseUrl, insertRefund(order, OWN))
  const named = ({ utr }: Order) =>
    run(
      service.databaseUrl,
      `update payments set acquirer_payment_id = 'P1', acquirer_txn_id = 'T1' where utr = '${utr}'`,
    )
  const unsure = ({ refund }: Order) =>
    saveRefundException(service.pools.due, 'refund unsure', refund, { source: 'enquiry', now: service.clock.now() })
  const nothing = async () => undefined

  const setRefund = ({ ourRefundId }: { ourRefundId: string }, changes: string) =>
    `update refunds set ${changes} where our_refund_id = '${ourRefundId}'`
  const setOwn = ({ mid }: Order, changes: string) =>
    `update refunds set ${changes} where mid = '${mid}' and created_by = 'acquirer'`
  const OWN = { created_by: `'acquirer'`, acquirer_refund_id: `'A2'`, accepted_at: 'now()' }

  /** Values of `columns` are SQL. */
  function refundRow({ mid, orderId, utr }: Omit<Order, 'refund'>, columns: Record<string, string>): [string, string] {
    const id = unique('r').replace(/\W/g, '')
    const usual = { mid, refund_id: id, our_refund_id: id, order_id: orderId, utr, acquirer: 'direct', note: 'loot' }
    const row = {
      ...Object.fromEntries(Object.entries(usual).map(([name, value]) => [name, `'${value}'`])),
      ...{ amount_paise: '5000', created_by: `'merchant'`, created_at: 'now()', status: `'PENDING'` },
      ...columns,
    }
    return [Object.keys(row).join(', '), Object.values(row).join(', ')]
  }
  const insertRefund = (order: Omit<Order, 'refund'>, columns: Record<string, string> = {}) => {
    const [names, values] = refundRow(order, columns)
    return `insert into refunds (${names}) values (${values})`
  }
  const insertPayment = (mid: string, orderId: string) =>
    `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source)
     values ('${mid}', '${newUtr()}', '${orderId}', 10000000, now(), 'second', 'direct', 'notification')`
  const resolve = ({ mid }: Order, by: string) =>
    `insert into payment_resolutions (mid, exception_id, reason, resolved_by, resolved_at)
     select mid, exception_id, 'seen', '${by}', now() from payment_exceptions where mid = '${mid}'`

  type Try = [string, (order: Order) => Promise<unknown>, (order: Order) => string]
  const REFUSED: Try[] = [
    [
      'a refund that succeeded is sent again',
      succeeded,
      ({ refund }) => setRefund(refund, `status = 'PENDING', ended_at = null`),
    ],
    ['a refund that succeeded has failed', succeeded, ({ refund }) => setRefund(refund, `status = 'FAIL'`)],
    [
      'a refund that succeeded gets another reference',
      succeeded,
      ({ refund }) => setRefund(refund, `reference = 'LOOT'`),
    ],
    ['a refund that succeeded gets another time', succeeded, ({ refund }) => setRefund(refund, `ended_at = now()`)],
    [
      'a refund that failed is sent again',
      failed,
      ({ refund }) => setRefund(refund, `status = 'PENDING', ended_at = null`),
    ],
    ['a refund that the acquirer has is sent again', taken, ({ refund }) => setRefund(refund, 'sent_at = null')],
    [
      'a refund gets another identifier at its acquirer',
      taken,
      ({ refund }) => setRefund(refund, `acquirer_refund_id = 'A9'`),
    ],
    [
      'a refund loses its identifier at its acquirer',
      taken,
      ({ refund }) => setRefund(refund, 'acquirer_refund_id = null'),
    ],
    [
      'a refund loses the time at which its acquirer accepted it',
      taken,
      ({ refund }) => setRefund(refund, 'accepted_at = null'),
    ],
    ['more is refunded than was paid', nothing, (order) => insertRefund(order, { amount_paise: '5001' })],
    [
      'more is refunded than was paid, by two rows of one statement',
      nothing,
      (order) => `${insertRefund(order)}, (${refundRow(order, {})[1]})`,
    ],
    [
      'more is refunded than was paid, by two inserts of one statement',
      nothing,
      (order) => `with first as (${insertRefund(order)} returning 1) ${insertRefund(order)}`,
    ],
    ['a refund in an operator’s name', nothing, (order) => insertRefund(order, { created_by: `'asha'` })],
    [
      'a refund with a final status',
      nothing,
      (order) => insertRefund(order, { status: `'SUCCESS'`, ended_at: 'now()' }),
    ],
    ['a refund of no payment', nothing, (order) => insertRefund({ ...order, utr: newUtr() })],
    ['a refund of another order’s payment', nothing, (order) => insertRefund({ ...order, orderId: unique('O') })],
    [
      'an acquirer’s own refund without its identifier',
      nothing,
      (order) => insertRefund(order, { created_by: `'acquirer'` }),
    ],
    [
      'an acquirer’s own refund that is scheduled to be sent',
      nothing,
      (order) => insertRefund(order, { ...OWN, due_at: 'now()' }),
    ],
    ['an acquirer’s own refund that was sent', nothing, (order) => insertRefund(order, { ...OWN, sent_at: 'now()' })],
    ['an acquirer’s own refund is scheduled to be sent later', own, (order) => setOwn(order, 'due_at = now()')],
    ['an acquirer’s own refund was sent later', own, (order) => setOwn(order, 'sent_at = now()')],
    [
      'a refund refers to another payment',
      named,
      ({ utr }) => `update payments set acquirer_payment_id = 'P9' where utr = '${utr}'`,
    ],
    [
      'a payment is changed so that it cannot be refunded',
      named,
      ({ utr }) => `update payments set acquirer_txn_id = null where utr = '${utr}'`,
    ],
    ['a payment of an order that does not exist', nothing, ({ mid }) => insertPayment(mid, unique('O'))],
    ['an exception that an operator has resolved', unsure, (order) => resolve(order, 'asha')],
  ]

  it.each(REFUSED)('the database rejects an attacker’s change: %s', async (_name, prepare, attack) => {
    const order = await refundedOrder()
    await prepare(order)
    await expect(asService(attack(order))).rejects.toMatchObject({ code: AGAINST_A_RULE })
  })

  // The operator's guide on security incidents describes how to find these changes.
  const POSSIBLE: Try[] = [
    ['a forged payment of an existing order', nothing, ({ mid, orderId }) => insertPayment(mid, orderId)],
    ['an exception that a notification has resolved', unsure, (order) => resolve(order, 'notification')],
    [
      'a success that the bank never reported',
      nothing,
      ({ refund }) => setRefund(refund, `status = 'SUCCESS', ended_at = now()`),
    ],
    [
      'a failure that the bank never reported',
      nothing,
      ({ refund }) => setRefund(refund, `status = 'FAIL', ended_at = now()`),
    ],
    ['a refund within what was paid', nothing, (order) => insertRefund(order)],
  ]

  it.each(POSSIBLE)('the database accepts an attacker’s change: %s', async (_name, prepare, attack) => {
    const order = await refundedOrder()
    await prepare(order)
    expect((await asService(attack(order))).rowCount).toBe(1)
  })

  it('the database rejects the second of two concurrent refunds that exceed the payment, after waiting for the first refund', async () => {
    const order = await refundedOrder()
    const [first, second] = [await thief(), await thief()]
    const { rows } = await second.query('select pg_backend_pid() as pid')
    await first.query('begin')
    await first.query(insertRefund(order))
    const reported = second.query(insertRefund(order)).then(
      () => 'stored',
      ({ code }) => code,
    )
    const LOCKED = `select from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'`
    await expect.poll(async () => (await service.db.query(LOCKED, [rows[0].pid])).rowCount).toBe(1)
    await first.query('commit')
    expect(await reported).toBe(AGAINST_A_RULE)
  })

  it('the database rejects a refund in a transaction whose snapshot is older than another refund', async () => {
    const order = await refundedOrder()
    const connection = await thief()
    await connection.query('begin isolation level repeatable read')
    await connection.query('select 1')
    await asService(insertRefund(order))
    await expect(connection.query(insertRefund(order))).rejects.toMatchObject({ code: AGAINST_A_RULE })
  })

  it('the tables’ own role may resend an unsure refund and create a refund, but may not change a successful refund', async () => {
    const order = await refundedOrder()
    await unsure(order)
    await run(service.databaseUrl, setRefund(order.refund, `sent_at = now(), due_at = null`))
    await asOwner(resolve(order, 'asha'))
    expect(await retryRefund(service.db, { ...order.refund, person: 'asha', now: service.clock.now() })).toHaveLength(1)
    await asOwner(insertRefund(order, { created_by: `'asha'`, due_at: 'now()' }))
    await succeeded(order)
    await expect(asOwner(setRefund(order.refund, `reference = 'OTHER'`))).rejects.toMatchObject({
      code: AGAINST_A_RULE,
    })
  })
})

describe('an attacker with the service’s DATABASE_URL at disputes', () => {
  const AGAINST_A_RULE = '23514'

  /** A merchant with a webhook, and a paid order with a lost dispute. */
  async function disputedOrder() {
    const merchant = await newMerchant(service.db)
    const { mid } = merchant
    const { endpointId } = await newWebhook(service.db, { mid, url: 'https://shop.example/hook' }, service.clock.now())
    const [orderId, utr, id] = [await createOrder(service, merchant), newUtr(), unique('D')]
    await reportPayment(service, orderId, { UTR: utr })
    const { now } = service.clock
    const report = { id, orderId, status: 'lost' } as const
    await createDisputes(service.pools.reports).record('direct', report, { source: 'notification', now })
    return { mid, endpointId, orderId, utr, id }
  }
  type Order = Awaited<ReturnType<typeof disputedOrder>>

  const insertDispute = ({ mid, orderId, utr }: Order, acquirer = 'direct') =>
    `insert into disputes (mid, acquirer, dispute_id, order_id, utr, opened_at, recorded_at, reported_at, status, updated_at)
     values ('${mid}', '${acquirer}', 'FORGED', '${orderId}', '${utr}', now(), now(), now(), 'open', now())`
  const insertState = ({ mid, id }: Order, status: string, by = 'notification') =>
    `insert into dispute_states (mid, acquirer, dispute_id, status, stated_at, recorded_at, reported_by)
     values ('${mid}', 'direct', '${id}', '${status}', now(), now(), '${by}')`
  const insertEvent = ({ mid, endpointId, orderId, utr, id }: Order, status: string) =>
    `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, occurred_at, due_at, type, txn_status, utr, data)
     values ('${mid}', '${endpointId}', '${orderId}', 99, now(), now(), 'dispute.updated', 'SUCCESS', '${utr}',
             '{"dispute_id":"${id}","status":"${status}"}')`
  const setDispute = ({ id }: Order, changes: string) => `update disputes set ${changes} where dispute_id = '${id}'`

  it.each<[string, string, (order: Order, other: Order) => string]>([
    ['a dispute of another merchant’s payment', AGAINST_A_RULE, (order, { utr }) => insertDispute({ ...order, utr })],
    ['a dispute through another account', AGAINST_A_RULE, (order) => insertDispute(order, 'cashfree')],
    ['a state in an operator’s name', AGAINST_A_RULE, (order) => insertState(order, 'open', 'asha')],
    ['a second verdict', '23505', (order) => insertState(order, 'won')],
    ['a verdict that is taken back', AGAINST_A_RULE, (order) => setDispute(order, `status = 'won'`)],
    ['a lower amount of a lost dispute', AGAINST_A_RULE, (order) => setDispute(order, 'amount_paise = 1')],
    ['a state that is deleted', FORBIDDEN, ({ id }) => `delete from dispute_states where dispute_id = '${id}'`],
    [
      'a state that is changed',
      FORBIDDEN,
      ({ id }) => `update dispute_states set status = 'won' where dispute_id = '${id}'`,
    ],
    ['a dispute that is deleted', FORBIDDEN, ({ id }) => `delete from disputes where dispute_id = '${id}'`],
    ['a dispute of another payment', FORBIDDEN, (order, { utr }) => setDispute(order, `utr = '${utr}'`)],
    ['a dispute with another opening', FORBIDDEN, (order) => setDispute(order, `opened_at = now()`)],
    ['an event of a state that is not stored', AGAINST_A_RULE, (order) => insertEvent(order, 'WON')],
    [
      'an event of another merchant’s dispute',
      AGAINST_A_RULE,
      (order, { id }) => insertEvent({ ...order, id }, 'LOST'),
    ],
  ])('the database rejects an attacker’s change: %s', async (_name, code, attack) => {
    const [order, other] = [await disputedOrder(), await disputedOrder()]
    await expect(asService(attack(order, other))).rejects.toMatchObject({ code })
  })

  it('the database accepts an event of the stored state', async () => {
    expect((await asService(insertEvent(await disputedOrder(), 'LOST'))).rowCount).toBe(1)
  })

  it('the states of a dispute are append-only for the tables’ own role too', async () => {
    const { id } = await disputedOrder()
    for (const change of [
      'delete from dispute_states',
      `update dispute_states set status = 'won'`,
      'truncate disputes',
    ])
      await expect(run(asRole(service.databaseUrl, 'upi_owner'), change)).rejects.toMatchObject({
        code: 'P0001',
      })
    const { rows } = await service.db.query('select status from dispute_states where dispute_id = $1', [id])
    expect(rows).toEqual([{ status: 'lost' }])
  })
})

describe('an attacker with the service’s DATABASE_URL at orders, links and events', () => {
  const AGAINST_A_RULE = '23514'
  const asOwner = (sql: string) => run(asRole(service.databaseUrl, 'upi_owner'), sql)

  /** A merchant with a webhook, an open order and a paid one, each of ₹200, and an open refund of ₹50. */
  async function newMerchantAt() {
    const merchant = await newMerchant(service.db)
    const { mid } = merchant
    const { endpointId } = await newWebhook(service.db, { mid, url: 'https://shop.example/hook' }, service.clock.now())
    const [open, paid, utr] = [await createOrder(service, merchant), await createOrder(service, merchant), newUtr()]
    await reportPayment(service, paid, { UTR: utr })
    const fields = { mid, orderId: paid, refundId: 'R1', amount: 50_00, note: 'sold out', createdBy: 'merchant' }
    const created = await createRefund(service.pools.requests, fields, service.clock.now())
    return { mid, endpointId, open, paid, refund: (created as { refund: Refund }).refund }
  }
  type NewMerchantOfTest = Awaited<ReturnType<typeof newMerchantAt>>

  const nothing = async () => undefined
  /** As after a change of acquirer: the open order has no link yet. */
  const hasAcquirer = ({ mid }: NewMerchantOfTest) =>
    asOwner(`update merchants set acquirer = 'cashfree' where mid = '${mid}'`)
  const isOff = ({ mid }: NewMerchantOfTest) =>
    asOwner(`update webhook_endpoints set disabled_at = now(), disabled_reason = 'operator' where mid = '${mid}'`)
  const hasForgedPayment = ({ mid, open }: NewMerchantOfTest) => asService(insertPayment(mid, open, 'first'))

  const insertLink = (link: string) => (store: NewMerchantOfTest) =>
    `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
     values ('${store.mid}', '${store.open}', 'cashfree', 'CF1', 'A1', 'T1', e'${link}', 0)`
  const insertPayment = (
    mid: string,
    orderId: string,
    kind: string,
    { paise = 20_000, source = 'notification', by = 'null' } = {},
  ) =>
    `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source, reported_by)
     values ('${mid}', 'FORGED${orderId.slice(-8)}', '${orderId}', ${paise}, now(), '${kind}', 'direct', '${source}', ${by})`
  const setOrder = (order: string, changes: string) =>
    `update payment_intents set ${changes} where order_id = '${order}'`
  const pay = ({ open }: NewMerchantOfTest) => setOrder(open, `status = 'SUCCESS', utr = 'FORGED${open.slice(-8)}'`)
  const insertEvent = ({ mid, endpointId }: NewMerchantOfTest, orderId: string, columns: string, values: string) =>
    `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, occurred_at, due_at, ${columns})
     values ('${mid}', '${endpointId}', '${orderId}', 9, now(), now(), ${values})`
  const insertException = ({ mid, open }: NewMerchantOfTest, by: string) =>
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, reported_by, received_at)
     values ('${mid}', '${open}', 'double payment', 'U1', 20000, '${by}', now())`
  const setEndpoint = ({ endpointId }: NewMerchantOfTest, changes: string) =>
    `update webhook_endpoints set ${changes} where endpoint_id = '${endpointId}'`

  const OWN = 'upi://pay?pa=chaipoint@examplebank&am=200.00&cu=INR&tr=T1'
  const EVENT = 'type, txn_status, utr'
  type Attempt = [string, (store: NewMerchantOfTest) => Promise<unknown>, (store: NewMerchantOfTest) => string]

  const REJECTED: Attempt[] = [
    ['a link that pays another payee', hasAcquirer, insertLink('upi://pay?pa=thief@bank&am=200.00')],
    ['a link without a payee', hasAcquirer, insertLink('upi://pay?am=200.00')],
    ['a link with a second payee in capitals', hasAcquirer, insertLink(`${OWN}&PA=thief@bank`)],
    ['a link with a second payee in an encoded name', hasAcquirer, insertLink(`upi://pay?p%61=thief@bank&${OWN}`)],
    [
      'a link whose line break browsers remove',
      hasAcquirer,
      insertLink('upi://pay?p\\na=thief@bank&pa=chaipoint@examplebank'),
    ],
    ['a link that begins with another scheme', hasAcquirer, insertLink('http://thief.example/')],
    ['a link of an open order without an acquirer', nothing, insertLink(OWN)],
    ['a web page as the link of an open order without an acquirer', nothing, insertLink('https://thief.example/')],
    ['a paid order is reopened', nothing, ({ paid }) => setOrder(paid, `status = 'PENDING', utr = null`)],
    ['a paid order is cancelled', nothing, ({ paid }) => setOrder(paid, `status = 'CANCELLED', utr = null`)],
    ['a paid order has another UTR', nothing, ({ paid }) => setOrder(paid, `utr = 'LOOT1'`)],
    ['an order is paid without a payment', nothing, pay],
    [
      'an order is paid by a payment of another amount',
      ({ mid, open }) => asService(insertPayment(mid, open, 'first', { paise: 100 })),
      pay,
    ],
    [
      'an order is paid by a second payment, which the ledger leaves out',
      ({ mid, open }) => asService(insertPayment(mid, open, 'second')),
      pay,
    ],
    [
      'a new order is paid',
      nothing,
      ({ open }) =>
        `insert into payment_intents (mid, order_id, merchant_order_id, amount_paise, redirect_url, note, customer_name, customer_email,
           customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, status, utr)
         select mid, 'LOOT' || order_id, 'LOOT' || order_id, amount_paise, redirect_url, note, customer_name, customer_email,
           customer_mobile, payee_vpa, payee_name, payee_mcc, created_at, expires_at, 'SUCCESS', 'LOOT1'
           from payment_intents where order_id = '${open}'`,
    ],
    [
      'a payment in an operator’s name',
      nothing,
      ({ mid, open }) => insertPayment(mid, open, 'first', { by: `'asha'` }),
    ],
    [
      'an operator’s payment without a name',
      nothing,
      ({ mid, open }) => insertPayment(mid, open, 'first', { source: 'operator' }),
    ],
    [
      'a payment of a daily transaction report',
      nothing,
      ({ mid, open }) => insertPayment(mid, open, 'second', { source: 'day file' }),
    ],
    [
      'another time of a cancellation',
      ({ open }) => asOwner(setOrder(open, `status = 'CANCELLED', cancelled_at = now()`)),
      ({ open }) => setOrder(open, `cancelled_at = now() + interval '1 hour'`),
    ],
    ['a cancellation without a time', nothing, ({ open }) => setOrder(open, `status = 'CANCELLED'`)],
    [
      'a failed attempt that an operator has reported',
      nothing,
      ({ mid, open }) =>
        `insert into payment_attempts (mid, order_id, status, attempt, source, received_at)
         values ('${mid}', '${open}', 'FAIL', '', 'operator', now())`,
    ],
    ['an exception in an operator’s name', nothing, (store) => insertException(store, 'asha')],
    [
      'the event payment.succeeded of an open order',
      nothing,
      (store) => insertEvent(store, store.open, EVENT, `'payment.succeeded', 'SUCCESS', 'LOOT1'`),
    ],
    [
      'the event payment.succeeded with another UTR',
      nothing,
      (store) => insertEvent(store, store.paid, EVENT, `'payment.succeeded', 'SUCCESS', 'LOOT1'`),
    ],
    [
      'the event payment.expired with the status SUCCESS',
      nothing,
      (store) => insertEvent(store, store.open, EVENT, `'payment.expired', 'SUCCESS', 'LOOT1'`),
    ],
    [
      'the event payment.cancelled of a paid order',
      nothing,
      (store) => insertEvent(store, store.paid, EVENT, `'payment.cancelled', 'FAIL', null`),
    ],
    [
      'the event refund.succeeded of an open refund',
      nothing,
      (store) =>
        insertEvent(
          store,
          store.paid,
          `${EVENT}, our_refund_id`,
          `'refund.succeeded', 'SUCCESS', '', '${store.refund.ourRefundId}'`,
        ),
    ],
    [
      'an endpoint that an operator has disabled',
      nothing,
      (store) => setEndpoint(store, `disabled_at = now(), disabled_reason = 'operator'`),
    ],
    [
      'an endpoint is enabled again',
      isOff,
      (store) => setEndpoint(store, 'disabled_at = null, disabled_reason = null'),
    ],
    [
      'an endpoint’s disabling by an operator is attributed to the service',
      isOff,
      (store) => setEndpoint(store, `disabled_reason = 'answered 410'`),
    ],
  ]

  it.each(REJECTED)('the database rejects a change of the service’s role: %s', async (_name, prepare, attack) => {
    const store = await newMerchantAt()
    await prepare(store)
    await expect(asService(attack(store))).rejects.toMatchObject({ code: AGAINST_A_RULE })
  })

  // The operator's guide on security incidents describes how to find these changes.
  const POSSIBLE: Attempt[] = [
    ['a link that pays the order’s payee', hasAcquirer, insertLink(OWN.replace('@', '%40'))],
    ['a web page as a missing link of a merchant’s acquirer', hasAcquirer, insertLink('https://thief.example/')],
    ['an order is paid by a forged payment', hasForgedPayment, pay],
    [
      'the event of an order that is paid by a forged payment',
      async (store) => {
        await hasForgedPayment(store)
        await asService(pay(store))
      },
      (store) =>
        insertEvent(store, store.open, EVENT, `'payment.succeeded', 'SUCCESS', 'FORGED${store.open.slice(-8)}'`),
    ],
    ['a payment of an open order', nothing, ({ mid, open }) => insertPayment(mid, open, 'first')],
    ['an open order is cancelled', nothing, ({ open }) => setOrder(open, `status = 'CANCELLED', cancelled_at = now()`)],
    [
      'the event payment.expired of an open order',
      nothing,
      (store) => insertEvent(store, store.open, EVENT, `'payment.expired', 'FAIL', null`),
    ],
    ['an exception that a notification has reported', nothing, (store) => insertException(store, 'notification')],
    [
      'a delivery that was never sent',
      nothing,
      ({ paid }) => `update webhook_deliveries set due_at = null, delivered_at = now() where order_id = '${paid}'`,
    ],
    [
      'an endpoint that returned 410',
      nothing,
      (store) => setEndpoint(store, `disabled_at = now(), disabled_reason = 'answered 410'`),
    ],
  ]

  it.each(POSSIBLE)('the database accepts a change of the service’s role: %s', async (_name, prepare, attack) => {
    const store = await newMerchantAt()
    await prepare(store)
    expect((await asService(attack(store))).rowCount).toBe(1)
  })

  it('the service records a payment although an attacker with the service’s role has forged another payment of the same order', async () => {
    const store = await newMerchantAt()
    await hasForgedPayment(store)
    const utr = newUtr()
    await reportPayment(service, store.open, { UTR: utr })
    const { rows } = await asOwner(`select status, utr from payment_intents where order_id = '${store.open}'`)
    expect(rows).toEqual([{ status: 'SUCCESS', utr }])
  })

  it('the database never reopens a paid order, not even for the tables’ own role', async () => {
    const { paid } = await newMerchantAt()
    await expect(asOwner(setOrder(paid, `status = 'PENDING', utr = null`))).rejects.toMatchObject({
      code: AGAINST_A_RULE,
    })
  })
})

it('two instances with the service’s role record payments, failures, cancellations, expiries and refunds, and deliver each event', async () => {
  const receiver = await startReceiver()
  onTestFinished(() => receiver.close())
  const options = {
    asServiceRole: true,
    webhooks: { encryptionKeys: ENCRYPTION_KEYS, allowedNetworks: allow('127.0.0.1/32') },
    limits: { webhooks: { lookIntervalMs: 20 } },
  }
  const { service: first, bank } = await startServiceBeside(CASHFREE, options)
  const acquirers = { cashfree: cashfreeSettings(bank) }
  const second = await startService({ ...options, acquirers, replicated: { url: first.databaseUrl } })
  const merchants = [await newMerchant(first.db), await newCashfreeMerchant(first)]
  for (const [number, { mid }] of merchants.entries()) {
    await newWebhook(first.db, { mid, url: `${receiver.url}/${number}` }, first.clock.now())
  }
  const [direct, linked] = merchants as [NewMerchant, NewMerchant]
  const eventsAt = (path: string) => receiver.to(path).map(({ body }) => JSON.parse(body).type)

  const [paid, cancelled] = [await createOrder(first, direct), await createOrder(second, direct)]
  await createOrder(first, direct)
  await reportPayment(second, paid, { status: 'FAIL', UTR: undefined })
  await reportPayment(first, paid)
  expect((await post(first.app, CANCEL, { mid: direct.mid, order_id: cancelled }, direct.key)).status).toBe(200)
  await reportPayment(second, cancelled)
  const refund = {
    mid: direct.mid,
    orderId: paid,
    refundId: 'R1',
    amount: 200_00,
    note: 'sold out',
    createdBy: 'merchant',
  }
  const created = (await createRefund(first.pools.requests, refund, first.clock.now())) as { refund: Refund }
  const sent = { status: 'SUCCESS', reference: 'ARN1' } as const
  await createRefundUpdates(second.pools.due).record(created.refund, sent, {
    source: 'notification',
    by: 'acquirer',
    now: second.clock.now,
  })
  const paidByLink = await createOrder(second, linked)
  await bank.pay(paidByLink)
  // An instance whose clock is ahead repeats a delivery that is in progress.
  const delivered = `select count(*)::int as events, count(delivered_at)::int as delivered from webhook_deliveries`
  await expect
    .poll(async () => (await first.db.query(delivered)).rows, { timeout: 20_000 })
    .toEqual([{ events: 6, delivered: 6 }])
  for (const { clock } of [first, second]) clock.advance(25 * 60)

  await expect
    .poll(() => eventsAt('/0').toSorted(), { timeout: 20_000 })
    .toEqual([
      'payment.attempt_failed',
      'payment.cancelled',
      'payment.expired',
      'payment.succeeded',
      'payment.succeeded',
      'refund.succeeded',
    ])
  await expect.poll(() => eventsAt('/1'), { timeout: 20_000 }).toEqual(['payment.succeeded'])
  expect([...first.log, ...second.log].filter((line) => /"level":"(error|fatal)"/.test(line))).toEqual([])
})

it('docker-compose.yml gives the service’s container access to the service’s role and to no other role', () => {
  const compose = readFileSync(join(import.meta.dirname, '../../docker-compose.yml'), 'utf8')
  const api = /^ {2}api:\n[\s\S]*?(?=^ {2}\w+:\n)/m.exec(compose)?.[0] ?? ''
  expect(api.match(/postgres:\/\/\w+/g)).toEqual(['postgres://upi_service'])
  expect(api).not.toMatch(/DATABASE_MIGRATE_URL|network_mode|upi_owner/)
  // Connections from this network need no password.
  expect(compose.match(/network_mode: .*/g)).toEqual(['network_mode: service:db', 'network_mode: service:db'])
  expect(compose).toContain('alter role upi password null')
})

describe('ops migrate', () => {
  it('ops migrate restores the service’s rights in one step, even in concurrent runs', async () => {
    const owner = asRole(service.databaseUrl, 'upi_owner')
    await service.db.query('grant delete on payment_intents to upi_service')
    await service.db.query('revoke select on merchants from upi_service')
    const { mid, key } = await newMerchant(service.db)
    await Promise.all(Array.from({ length: 4 }, () => applyGrants(owner)))
    expect(await rightsIn(service.databaseUrl)).toEqual(RIGHTS)
    let statuses: number[] = []
    const again = (async () => {
      for (let i = 0; i < 20; i++) await applyGrants(owner)
    })()
    const settled = again.then(() => true)
    while (!(await Promise.race([settled, new Promise<false>((resolve) => setImmediate(() => resolve(false)))]))) {
      statuses = [...statuses, (await post(service.app, CREATE, intentFields(mid), key)).status]
    }
    expect(new Set(statuses)).toEqual(new Set([200]))
  })

  it('ops migrate is the only command that a new database needs after roles.sql', async () => {
    const database = await createTestDatabase({ empty: true })
    await run(database.url, ROLES)
    const { code } = await runOps(asRole(database.url, 'upi_owner'), ['migrate'])
    expect([code, await rightsIn(database.url)]).toEqual([0, RIGHTS])
  })
})

describe('roles.sql', () => {
  it('roles.sql transfers all objects that a superuser created to upi_owner, and changes nothing when repeated', async () => {
    const database = await createTestDatabase({ empty: true })
    await migrate(database.url)
    await run(
      database.url,
      `insert into merchants (mid, name, vpa, mcc, dynamic_qr, created_at) values ('M1', 'x', 'x@bank', '5814', 'link', now())`,
    )
    for (const _ of ['first', 'repeated']) {
      await run(database.url, ROLES)
      expect(await ownersIn(database.url)).toEqual(['upi_owner'])
    }
    const { stdout } = await runOps(asRole(database.url, 'upi_owner'), ['migrate', '--json'])
    expect([stdout, await rightsIn(database.url)]).toEqual(['{"applied":[],"forgotten":[]}\n', RIGHTS])
    const filler = await connect(asRole(database.url, 'upi_service'))
    await expect(filler.query('create temporary table loot (id integer)')).rejects.toMatchObject({ code: FORBIDDEN })
    await filler.end()
    const owner = await connect(asRole(database.url, 'upi_owner'))
    await owner.query('alter table merchants add column later text')
    expect((await owner.query('select mid from merchants')).rows).toEqual([{ mid: 'M1' }])
    await owner.end()
  })

  it('roles.sql stops waiting for a long reader, so that payments do not wait for roles.sql', async () => {
    const database = await createTestDatabase({ empty: true })
    await migrate(database.url)
    const backup = await connect(database.url)
    await backup.query('begin')
    for (const table of Object.keys(RIGHTS)) await backup.query(`lock table ${table} in access share mode`)
    await expect(run(database.url, ROLES)).rejects.toMatchObject({ code: '55P03' })
    await backup.query('rollback')
    await run(database.url, ROLES)
    expect(await ownersIn(database.url)).toEqual(['upi_owner'])
    await backup.end()
  })

  it('roles.sql excludes the service, but no other existing role, from the server’s other databases', async () => {
    const postgres = await startPostgresServer(mkdtempSync(join(inject('runDirectory'), 'service-role-')))
    try {
      const admin = postgres.urlOf('postgres')
      for (const sql of [
        'create database upi',
        'create role upi_service login',
        'create role member login in role upi_service',
        'create role monitor login',
        ...['upi_service', 'member', 'monitor'].map((role) => `alter role ${role} password 'x'`),
      ]) {
        await run(admin, sql)
      }
      const enters = (role: string, database: string) => {
        const url = new URL(postgres.urlOf(database))
        ;[url.username, url.password] = [role, 'x']
        return connects(url.href)
      }
      const entering = async (role: string) =>
        Promise.all(['upi', 'postgres', 'template1'].map((database) => enters(role, database)))
      const EVERYWHERE = [true, true, true]
      const OWN_ONLY = [true, false, false]
      for (const role of ['upi_service', 'member', 'monitor']) expect(await entering(role)).toEqual(EVERYWHERE)

      for (const _ of ['first', 'repeated']) {
        await run(postgres.urlOf('upi'), ROLES)
        await run(admin, `alter role upi_owner password 'x'`)
        for (const role of ['upi_service', 'member', 'upi_owner']) expect(await entering(role)).toEqual(OWN_ONLY)
        expect(await entering('monitor')).toEqual(EVERYWHERE)
        for (const database of ['postgres', 'template1']) await run(postgres.urlOf(database), 'select 1')
      }

      await run(admin, `create role later login password 'x'`)
      expect(await entering('later')).toEqual(OWN_ONLY)
      await run(admin, 'grant connect on database postgres to later')
      expect(await entering('later')).toEqual([true, true, false])
    } finally {
      postgres.stop()
    }
  })

  it('the operator manual’s SQL and roles.sql reset an attacker’s settings for the role, and disconnect the attacker', async () => {
    const statements = blockWith('operator', 'sql', 'alter role upi_service nologin')
    const postgres = await startPostgresServer(mkdtempSync(join(inject('runDirectory'), 'service-role-')))
    try {
      await run(postgres.urlOf('postgres'), 'create database upi')
      const admin = postgres.urlOf('upi')
      await run(admin, ROLES)
      await run(admin, `alter role upi_service password '${ROLE_PASSWORD}'`)
      const url = asRole(admin, 'upi_service')
      const intruder = await connect(url)
      intruder.on('error', () => undefined)
      const ended = new Promise<void>((resolve) => intruder.once('end', resolve))
      await intruder.query('alter role upi_service set default_transaction_read_only = on')
      await intruder.query(`alter role upi_service in database upi set search_path = 'loot'`)
      await intruder.query(`alter role upi_service password 'of-the-intruder'`)
      await run(admin, statements)
      await ended
      await run(admin, `alter role upi_service password '${ROLE_PASSWORD}' login`)
      await run(admin, ROLES)
      const { rows } = await run(
        url,
        `select current_setting('default_transaction_read_only') as readonly, current_setting('search_path') as path,
                current_setting('deadlock_timeout') as deadlock`,
      )
      expect(rows).toEqual([{ readonly: 'off', path: '"$user", public', deadlock: '200ms' }])
    } finally {
      postgres.stop()
    }
  })

  it('roles.sql allows the service to connect to the database that roles.sql was run in, even if the database is postgres', async () => {
    const postgres = await startPostgresServer(mkdtempSync(join(inject('runDirectory'), 'service-role-')))
    try {
      await run(postgres.urlOf('postgres'), ROLES)
      await run(postgres.urlOf('postgres'), `alter role upi_service password '${ROLE_PASSWORD}'`)
      await run(asRole(postgres.urlOf('postgres'), 'upi_service'), 'select 1')
    } finally {
      postgres.stop()
    }
  })

  /** Of the database, and of all objects in its schema. */
  async function ownersIn(url: string): Promise<string[]> {
    const { rows } = await run(
      url,
      `select pg_get_userbyid(datdba) as owner from pg_database where datname = current_database()
       union select pg_get_userbyid(relowner) from pg_class where relnamespace = 'public'::regnamespace
       union select pg_get_userbyid(proowner) from pg_proc where pronamespace = 'public'::regnamespace
       union select pg_get_userbyid(typowner) from pg_type where typnamespace = 'public'::regnamespace`,
    )
    return rows.map(({ owner }) => owner)
  }
})
