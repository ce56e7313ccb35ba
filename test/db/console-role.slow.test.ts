import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, inject, it } from 'vitest'
import { createRefund } from '../../src/gateway/refunds/create-refund.ts'
import type { Refund } from '../../src/gateway/refunds/refund.ts'
import { applyGrants } from '../../src/platform/db/grants.ts'
import { migrate } from '../../src/platform/db/migrate.ts'
import { newUtr } from '../support/acquirer.ts'
import { newOperatorKey } from '../support/console.ts'
import { columnsOf, rightsOf, run } from '../support/database-rights.ts'
import { asRole } from '../support/database-url.ts'
import { createOrder, reportPayment } from '../support/orders.ts'
import { startPostgresServer } from '../support/postgres-server.ts'
import { newMerchant, startService, type TestService, unique } from '../support/service.ts'
import { newWebhook } from '../support/webhooks.ts'

/** insufficient_privilege: the role lacks a right. */
const FORBIDDEN = '42501'
/** check_violation: a trigger rejects the row. */
const AGAINST_A_RULE = '23514'
/** raise_exception: a trigger rejects every change of the row. */
const APPEND_ONLY = 'P0001'

/**
 * Every table of the schema with the console's rights to the whole table. A new table needs an entry here and, if a
 * command of the console uses it, in src/platform/db/console-grants.sql.
 */
const RIGHTS: Record<string, string[]> = {
  access_keys: [],
  account_lines: ['SELECT'],
  acquirer_accounts: ['SELECT'],
  acquirer_intents: ['SELECT'],
  audit_commands: ['INSERT', 'SELECT'],
  // Citus needs the right to update for `on conflict`.
  audit_outcomes: ['INSERT', 'SELECT', 'UPDATE'],
  bank_holiday_changes: ['SELECT'],
  bank_holidays: ['SELECT'],
  closed_balances: ['INSERT', 'SELECT'],
  closed_items: ['INSERT', 'SELECT'],
  // The lock of a close needs the right to update.
  closed_months: ['INSERT', 'SELECT', 'UPDATE'],
  current_refunds: ['SELECT'],
  difference_resolutions: ['INSERT', 'SELECT'],
  dispute_states: ['INSERT', 'SELECT'],
  disputed_items: ['SELECT'],
  disputes: ['INSERT', 'SELECT'],
  file_layouts: ['SELECT'],
  key_uses: ['SELECT'],
  ledger: ['SELECT'],
  ledger_names: [],
  lost_disputes: ['SELECT'],
  contract_rates: ['SELECT'],
  merchant_logos: [],
  merchants: ['SELECT'],
  money_exceptions: ['SELECT'],
  operator_keys: ['SELECT'],
  partner_merchants: ['SELECT'],
  partners: ['SELECT'],
  payment_attempts: ['INSERT', 'SELECT'],
  payment_exceptions: ['INSERT', 'SELECT'],
  payment_intents: [],
  payment_resolutions: ['INSERT', 'SELECT'],
  payments: ['INSERT', 'SELECT'],
  payout_rests: ['INSERT', 'SELECT'],
  refund_returns: ['INSERT', 'SELECT'],
  refunds: ['INSERT', 'SELECT'],
  returned_amounts: ['SELECT'],
  schema_migrations: ['SELECT'],
  settlement_import_bases: ['INSERT', 'SELECT'],
  settlement_imports: ['INSERT', 'SELECT'],
  settlement_lines: ['SELECT'],
  settlement_versions: ['INSERT', 'SELECT'],
  settlements: ['INSERT', 'SELECT', 'DELETE'],
  // The lock of an import needs the right to update.
  statement_imports: ['INSERT', 'SELECT', 'UPDATE'],
  statement_lines: ['INSERT', 'SELECT', 'DELETE'],
  webhook_deliveries: ['INSERT', 'SELECT'],
  webhook_endpoints: [],
  webhook_expiries: ['SELECT'],
}

let service: TestService
beforeAll(async () => {
  service = await startService()
})

const asConsole = (statement: string) => run(asRole(service.databaseUrl, 'upi_console'), statement)
const asOwner = (statement: string) => run(asRole(service.databaseUrl, 'upi_owner'), statement)

describe('the console’s role', () => {
  it('the console’s role has exactly the listed rights on each table', async () => {
    expect(await rightsOf('upi_console', service.databaseUrl)).toEqual(RIGHTS)
  })

  it('the console’s role reads orders without their customer, and API keys and endpoints without their secret', async () => {
    expect(await columnsOf('upi_console', 'SELECT', service.databaseUrl)).toEqual({
      access_keys: 'created_at expires_on label mid pid public_key revoked_at rights',
      payment_intents:
        'amount_paise cancelled_at created_at event_sequence expires_at failure_reported_at merchant_order_id mid note order_id payee_name status unreadable_at utr',
      webhook_endpoints: 'created_at disabled_at disabled_reason endpoint_id failing_since kind label mid url',
    })
  })

  it('the console’s role updates only the listed columns', async () => {
    expect(await columnsOf('upi_console', 'UPDATE', service.databaseUrl)).toEqual({
      acquirer_intents: 'status_check_at status_checked_at status_checks',
      disputes: 'amount_paise check_at kind reason_code reason_text reported_at respond_by status updated_at',
      payment_attempts: 'failure_code failure_reason',
      payment_intents: 'event_sequence status unreadable_at utr',
      payments: 'acquirer_payment_id acquirer_txn_id bank_reference bank_reference_at instrument learned_at',
      refunds: 'acquirer_refund_id attempts due_at ended_at reason reference sent_at status',
      settlement_imports: 'undone_at undone_by',
      settlements: 'account event fee_paise import_id paid_account payment_utr recorded_at status tax_paise value_date',
      statement_lines: 'matched_payout',
      webhook_deliveries: 'attempts delivered_at due_at',
      webhook_expiries: 'final_at',
    })
  })

  it('the console’s role compiles no statement, creates temporary tables, and locks what imports and closes lock', async () => {
    const { rows } = await asConsole(`select current_setting('jit') as jit`)
    expect(rows).toEqual([{ jit: 'off' }])
    await asConsole('create temporary table incoming (line integer)')
    for (const table of ['closed_months', 'settlements', 'statement_imports']) {
      await asConsole(`do $$ begin lock table ${table} in share row exclusive mode; end $$`)
    }
  })

  it.each(['postgres', 'template1'])('the console’s role may not connect to the database %s', async (database) => {
    const elsewhere = new URL(asRole(service.databaseUrl, 'upi_console'))
    elsewhere.pathname = `/${database}`
    await expect(run(elsewhere.href, 'select 1')).rejects.toMatchObject({
      code: FORBIDDEN,
      message: `permission denied for database "${database}"`,
    })
  })
})

/**
 * A merchant with a webhook and a key, an open and a paid order, each of ₹200, an open refund of ₹50, and a closed month
 * and a bank statement.
 */
async function newStore() {
  const merchant = await newMerchant(service.db)
  const { mid } = merchant
  const now = service.clock.now()
  const { endpointId } = await newWebhook(service.db, { mid, url: 'https://shop.example/hook' }, now)
  await newOperatorKey(service.db)
  const [open, paid, utr] = [await createOrder(service, merchant), await createOrder(service, merchant), newUtr()]
  await reportPayment(service, paid, { UTR: utr })
  const fields = { mid, orderId: paid, refundId: unique('R'), amount: 50_00, note: 'sold out', createdBy: 'merchant' }
  const created = await createRefund(service.pools.requests, fields, now)
  stores += 1
  await asOwner(
    `insert into closed_months (month, closed_at, closed_by, sha256, figures) values ('${1000 + stores}-01', now(), 'asha', '', '{}')`,
  )
  await asOwner(
    `insert into statement_imports (import_id, imported_at, imported_by, file, sha256, mids, covers_from, stored)
     values (${stores}, now(), 'asha', 'bank.csv', '', '{${mid}}', '2026-03-01', 0)`,
  )
  return { mid, endpointId, open, paid, utr, refund: (created as { refund: Refund }).refund.ourRefundId }
}
let stores = 0

type Store = Awaited<ReturnType<typeof newStore>>
type Attempt = [name: string, attack: (store: Store) => string, prepare?: (store: Store) => Promise<unknown>]

const setOrder = (orderId: string, changes: string) =>
  `update payment_intents set ${changes} where order_id = '${orderId}'`
const setRefund = ({ refund }: Store, changes: string) =>
  `update refunds set ${changes} where our_refund_id = '${refund}'`
const utrOf = (orderId: string) => `FORGED${orderId.slice(-8)}`
const insertPayment = (mid: string, orderId: string, { kind = 'first', paise = 20_000 } = {}) =>
  `insert into payments (mid, utr, order_id, amount_paise, received_at, kind, acquirer, source, reported_by, note)
   values ('${mid}', '${utrOf(orderId)}', '${orderId}', ${paise}, now(), '${kind}', 'direct', 'operator', 'meera', '')`
const pay = ({ open }: Store) => setOrder(open, `status = 'SUCCESS', utr = '${utrOf(open)}'`)
const refundValues = ({ mid, paid, utr }: Store, paise: number, { status = 'PENDING', by = 'meera' } = {}) => {
  const id = unique('r').replace(/\W/g, '')
  return `('${mid}', '${id}', '${id}', '${paid}', '${utr}', ${paise}, 'loot', 'direct', '${by}', now(), '${status}')`
}
const REFUND = `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
                                     status) values`
const insertRefund = (store: Store, paise: number, given: { status?: string; by?: string } = {}) =>
  `${REFUND} ${refundValues(store, paise, given)}`
const insertReturn = ({ mid, refund }: Store) =>
  `insert into refund_returns (mid, our_refund_id, reference, reason, returned_by, returned_at)
   values ('${mid}', '${refund}', 'RET1', 'closed account', 'meera', now())`
const insertEvent = ({ mid, endpointId }: Store, orderId: string, [type, status, utr, refund]: string[]) =>
  `insert into webhook_deliveries (mid, endpoint_id, order_id, sequence, occurred_at, due_at, type, txn_status, utr, our_refund_id)
   values ('${mid}', '${endpointId}', '${orderId}', 9, now(), now(), '${type}', '${status}', '${utr}', ${refund ? `'${refund}'` : 'null'})`
const succeeded = (store: Store) =>
  asOwner(setRefund(store, `status = 'SUCCESS', reference = 'ARN1', ended_at = now()`))
const failed = (store: Store) => asOwner(setRefund(store, `status = 'FAIL', ended_at = now()`))

const WITHOUT_RIGHT: Attempt[] = [
  ['deletes a table', () => 'drop table payments'],
  ['disables the triggers of payments', () => 'alter table payments disable trigger all'],
  ['disables triggers for its session', () => 'set session_replication_role = replica'],
  ['deletes a trigger', () => 'drop trigger payments_append_only on payments'],
  ['replaces the function of a trigger', () => CHANGED_FUNCTION],
  ['creates a trigger', () => 'create trigger loot before insert on payments execute function refuse_to_rewrite()'],
  ['creates a table', () => 'create table loot (id integer)'],
  ['creates a view', () => 'create view loot as select public_key from operator_keys'],
  ['creates a function', () => `create function loot() returns integer language sql as 'select 1'`],
  ['creates a schema', () => 'create schema loot'],
  ['adds a column', () => 'alter table merchants add column loot text'],
  ['creates an index', () => 'create index loot on payments (order_id)'],
  ['takes a table over', () => 'alter table payments owner to upi_console'],
  ['creates a large object', () => 'select lo_create(0)'],
  ['creates a role', () => 'create role thief superuser'],
  ['changes the password of the owner', () => `alter role upi_owner password 'loot'`],
  ['becomes the owner', () => 'set role upi_owner'],
  ['becomes the service', () => 'set role upi_service'],
  ['joins the owner', () => 'grant upi_owner to upi_console'],
  ['grants a right', () => 'grant select on merchant_logos to upi_service'],
  ['runs a program', () => `copy (select 1) to program 'true'`],
  ['reads the output of a program', () => `copy schema_migrations (name) from program 'id'`],
  ['reads a file of the machine', () => `select pg_read_file('/etc/passwd')`],
  ['lists a folder of the machine', () => `select pg_ls_dir('/')`],
  ['writes a file of the machine', () => `copy (select 1) to '/tmp/loot'`],
  ['reads the passwords of roles', () => 'select * from pg_authid'],
  ['empties payments', () => 'truncate payments cascade'],
  ['empties settlements', () => 'truncate settlements'],
  ['deletes payments', () => 'delete from payments'],
  ['deletes orders', () => 'delete from payment_intents'],
  ['deletes refunds', () => 'delete from refunds'],
  ['deletes the audit', () => 'delete from audit_commands'],
  ['deletes a closed month', () => 'delete from closed_months'],
  ['deletes the import of a statement', () => 'delete from statement_imports'],
  ['deletes the versions of settlements', () => 'delete from settlement_versions'],
  ['deletes an exception', () => 'delete from payment_exceptions'],
  ['changes the amount of a payment', ({ utr }) => `update payments set amount_paise = 1 where utr = '${utr}'`],
  ['changes the order of a payment', ({ utr }) => `update payments set order_id = 'LOOT' where utr = '${utr}'`],
  ['changes the amount of an order', ({ open }) => setOrder(open, 'amount_paise = 100')],
  ['changes the payee of an order', ({ open }) => setOrder(open, `payee_vpa = 'thief@bank'`)],
  ['changes the amount of a refund', (store) => setRefund(store, 'amount_paise = 20000')],
  ['changes the payment of a refund', (store) => setRefund(store, `utr = 'LOOT1'`)],
  ['changes the amount of a settlement', () => 'update settlements set amount_paise = 1'],
  ['changes a version of a settlement', () => 'update settlement_versions set amount_paise = 1'],
  ['changes a resolution', () => `update payment_resolutions set resolved_by = 'asha'`],
  ['changes the audit', () => `update audit_commands set person = 'asha'`],
  ['stores an order', ({ mid }) => `insert into payment_intents (mid, order_id) values ('${mid}', 'LOOT')`],
  [
    'stores a payment link',
    ({ mid, open }) => `insert into acquirer_intents (mid, order_id) values ('${mid}', '${open}')`,
  ],
  ['changes a payment link', () => `update acquirer_intents set link = 'upi://pay?pa=thief@bank'`],
  ['changes the payee of a merchant', () => `update merchants set vpa = 'thief@bank'`],
  ['adds a merchant', () => `insert into merchants (mid) values ('LOOT')`],
  ['links a merchant to a partner', ({ mid }) => `insert into partner_merchants (pid, mid) values ('P1', '${mid}')`],
  ['changes the URL of an endpoint', () => `update webhook_endpoints set url = 'https://thief.example/'`],
  ['enables an endpoint', () => 'update webhook_endpoints set disabled_at = null, disabled_reason = null'],
  ['changes the content of an event', () => `update webhook_deliveries set txn_status = 'SUCCESS'`],
  ['changes the secrets of an acquirer account', () => `update acquirer_accounts set secrets = ''`],
  ['changes a fee rate', () => 'update contract_rates set percent = 0'],
  ['adds a file layout', () => `insert into file_layouts (name) values ('loot')`],
  ['adds a bank holiday', () => `insert into bank_holiday_changes (day) values ('2026-10-02')`],
  ['creates an operator’s key', () => `insert into operator_keys (public_key) values ('LOOT')`],
  ['extends the rights of an operator’s key', () => `update operator_keys set rights = '{read,act}'`],
  ['restores an operator’s key', () => 'update operator_keys set revoked_at = null'],
  ['creates an API key', () => `insert into access_keys (public_key) values ('LOOT')`],
  ['restores an API key', () => 'update access_keys set revoked_at = null'],
  ['reads the hashes of API keys', () => 'select secret_hash from access_keys'],
  ['reads the secrets of endpoints', () => 'select secret from webhook_endpoints'],
  ['reads the mobile numbers of customers', () => 'select customer_mobile from payment_intents'],
  ['reads whole orders', () => 'select * from payment_intents'],
]
const CHANGED_FUNCTION = `create or replace function refuse_row() returns trigger language plpgsql as 'begin return new; end'`
const auditRow = (column: string, value: string) =>
  `insert into audit_commands (audit_id, person, command, arguments, ${column}) values ('${unique('A')}', 'asha', 'loot', '{}', ${value})`

const AUDIT_ROW = `insert into audit_commands (audit_id, person, command, arguments) values ('${unique('A')}', 'asha', 'loot', '{}')`

const AGAINST_RULES: Attempt[] = [
  ['stores an audit row of another role', () => auditRow('database_role', `'upi_owner'`)],
  ['stores an audit row of another time', () => auditRow('begun_at', `'2026-01-01'`)],
  ['marks an order as paid without a payment', pay],
  [
    'marks an order as paid by a payment of another amount',
    pay,
    ({ mid, open }) => asConsole(insertPayment(mid, open, { paise: 100 })),
  ],
  [
    'marks an order as paid by a duplicate payment',
    pay,
    ({ mid, open }) => asConsole(insertPayment(mid, open, { kind: 'second' })),
  ],
  ['reopens a paid order', ({ paid }) => setOrder(paid, `status = 'PENDING', utr = null`)],
  ['changes the UTR of a paid order', ({ paid }) => setOrder(paid, `utr = 'LOOT1'`)],
  ['cancels an order without a time', ({ open }) => setOrder(open, `status = 'CANCELLED'`)],
  ['stores a payment of an order that does not exist', ({ mid }) => insertPayment(mid, unique('O'))],
  [
    'changes the acquirer’s id of a payment',
    ({ utr }) => `update payments set acquirer_payment_id = 'P9' where utr = '${utr}'`,
    ({ utr }) => asOwner(`update payments set acquirer_payment_id = 'P1' where utr = '${utr}'`),
  ],
  ['refunds more than was paid', (store) => insertRefund(store, 150_01)],
  [
    'refunds more than was paid by two rows of one statement',
    (store) => `${insertRefund(store, 100_00)}, ${refundValues(store, 50_01)}`,
  ],
  ['refunds no payment', (store) => insertRefund({ ...store, utr: newUtr() }, 100)],
  ['refunds the payment of another order', (store) => insertRefund({ ...store, paid: store.open }, 100)],
  ['stores a refund that has succeeded', (store) => insertRefund(store, 100, { status: 'SUCCESS' })],
  ['stores a refund of the acquirer', (store) => insertRefund(store, 100, { by: 'acquirer' })],
  ['sends a failed refund again', (store) => setRefund(store, `status = 'PENDING', ended_at = null`), failed],
  ['changes the reference of a successful refund', (store) => setRefund(store, `reference = 'LOOT'`), succeeded],
  ['reopens a successful refund', (store) => setRefund(store, `status = 'PENDING', ended_at = null`), succeeded],
  ['stores the return of an open refund', insertReturn],
  ['stores the return of a failed refund', insertReturn, failed],
  [
    'stores the return of a refund at an acquirer',
    insertReturn,
    async (store) => {
      await asOwner(setRefund(store, `acquirer = 'cashfree'`))
      await succeeded(store)
    },
  ],
  [
    'stores the event payment.succeeded of an open order',
    (store) => insertEvent(store, store.open, ['payment.succeeded', 'SUCCESS', 'LOOT1']),
  ],
  [
    'stores the event payment.succeeded with another UTR',
    (store) => insertEvent(store, store.paid, ['payment.succeeded', 'SUCCESS', 'LOOT1']),
  ],
  [
    'stores the event refund.succeeded of an open refund',
    (store) => insertEvent(store, store.paid, ['refund.succeeded', 'SUCCESS', '', store.refund]),
  ],
]

const REWRITTEN: Attempt[] = [
  ['changes the outcome of a command', () => `update audit_outcomes set outcome = 'done'`],
  ['changes a closed month', () => `update closed_months set figures = '[]'`],
  ['changes the file of a statement', () => `update statement_imports set file = 'loot.csv'`],
  ['changes the merchants of a statement', () => `update statement_imports set mids = '{LOOT}'`],
]

describe('a flaw in a page of the console', () => {
  describe.each([
    ['for lack of a right', FORBIDDEN, WITHOUT_RIGHT],
    ['by a rule about money', AGAINST_A_RULE, AGAINST_RULES],
    ['because its row is append-only', APPEND_ONLY, REWRITTEN],
  ])('a statement that the database rejects %s', (_reason, code, attempts) => {
    it.each(attempts)('the database rejects a statement that %s', async (_name, attack, prepare) => {
      const store = await newStore()
      await prepare?.(store)
      await expect(asConsole(attack(store))).rejects.toMatchObject({ code })
    })
  })

  // The operator's guide on security incidents describes how to find these changes.
  it.each<Attempt>([
    ['a forged payment of an open order', ({ mid, open }) => insertPayment(mid, open)],
    ['an order paid by a forged payment', pay, ({ mid, open }) => asConsole(insertPayment(mid, open))],
    ['a refund within what was paid', (store) => insertRefund(store, 150_00)],
    ['a final status of an open refund', (store) => setRefund(store, `status = 'SUCCESS', ended_at = now()`)],
    ['the return of a successful refund', insertReturn, succeeded],
    [
      'a refund of the returned amount',
      (store) => insertRefund(store, 200_00),
      async (store) => {
        await succeeded(store)
        await asConsole(insertReturn(store))
      },
    ],
    ['an audit row in another operator’s name', () => AUDIT_ROW],
    ['a closed month', () => `insert into closed_months values ('9${unique('m')}', now(), 'asha', '', '{}')`],
  ])('the database accepts %s', async (_name, attack, prepare) => {
    const store = await newStore()
    await prepare?.(store)
    expect((await asConsole(attack(store))).rowCount).toBe(1)
  })
})

describe('ops migrate', () => {
  it.each(['upi_console', 'upi_service'] as const)(
    'ops migrate grants the rights of %s although the other role does not exist',
    async (role) => {
      const postgres = await startPostgresServer(mkdtempSync(join(inject('runDirectory'), 'console-role-')))
      try {
        const url = postgres.urlOf('postgres')
        await run(url, `create role ${role}`)
        await migrate(url)
        await applyGrants(url)
        expect((await rightsOf(role, url)).schema_migrations).toEqual(['SELECT'])
      } finally {
        postgres.stop()
      }
    },
  )
})
