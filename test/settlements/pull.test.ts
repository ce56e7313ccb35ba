import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { newId } from '../../src/gateway/payments/intent.ts'
import { createReports } from '../../src/gateway/payments/reports.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { newUtr } from '../support/acquirer.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { number } from '../support/cashfree-forms.ts'
import { type ReconEvent, reconEvent, serveRecon } from '../support/cashfree-recon.ts'
import { createTestDatabase } from '../support/database.ts'
import { CASHFREE, CASHFREE_SECRETS, cashfreeSettings } from '../support/fake-cashfree.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, unique } from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'

const [WEDNESDAY, THURSDAY, FRIDAY] = ['2026-01-14', '2026-01-15', '2026-01-16'] as const
const at = (day: string) => new Date(`${day}T12:00:00+05:30`)
const DAYS = ['--from', WEDNESDAY, '--to', THURSDAY]
const NOTHING = 'inserted, 0 unchanged, 0 updated'

let url: string
let db: Database
let bank: FakeCashfree
let mid: string

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  bank = await startBank(CASHFREE, () => at(FRIDAY))
})
beforeEach(async () => {
  await db.query('truncate settlements, settlement_versions, settlement_imports, settlement_import_bases, payout_rests')
  ;({ mid } = await newMerchant(db))
})

const environment = () => {
  const { apiUrl, clientId } = cashfreeSettings(bank)
  return { CASHFREE_API_URL: apiUrl, CASHFREE_CLIENT_ID: clientId, CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join() }
}
const ops = (args: string[], settings: Record<string, string> = environment()) => runOps(url, args, '', settings)
const pull = (...more: string[]) => ops(['settlements', 'pull', '--acquirer', 'cashfree', ...DAYS, ...more])

/** Runs `settlements pull` on these pages and returns its JSON output. */
async function pullPages(...pages: ReconEvent[][]) {
  serveRecon(bank, ...pages.map((data, index) => (index < pages.length - 1 ? { data, cursor: `c${index}` } : { data })))
  const { code, stdout, stderr } = await pull('--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return JSON.parse(stdout)
}

const pullError = async (...pages: Parameters<typeof serveRecon>[1][]) => {
  serveRecon(bank, ...pages)
  const { code, stdout, stderr } = await pull()
  expect({ code, stdout }).toEqual({ code: 1, stdout: '' })
  return stderr
}

/** Stores an order of ₹200 that was paid through `acquirer`. */
async function payOrder(acquirer = 'cashfree') {
  const utr = newUtr()
  const orderId = await storePaidOrder(db, { mid, utr, paidAt: at(WEDNESDAY) })
  await db.query(
    `insert into acquirer_intents
       (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
     values ($1, $2, $3, 'cf', $2, 'tr', 'upi://pay', 0)`,
    [mid, orderId, acquirer],
  )
  return { orderId, utr }
}
type Order = Awaited<ReturnType<typeof payOrder>>

const of = ({ orderId, utr }: Order, type: string, details: ReconEvent[string] = {}, parts: ReconEvent = {}) =>
  reconEvent(type, {
    event_details: details,
    order_details: { order_id: orderId },
    payment_details: { bank_reference: utr },
    ...parts,
  })
const net = (settled: string, fee: string, tax: string) => ({
  event_settlement_amount: number(settled),
  event_service_charge: number(fee),
  event_service_tax: number(tax),
})
const arn = (refund_arn: unknown) => ({ refund_details: { refund_arn } })

async function stored() {
  const { rows } = await db.query(
    `select utr, (amount_paise * 0.01)::text as amount, (fee_paise * 0.01)::text as fee, (tax_paise * 0.01)::text as tax, payment_utr, bank_reference_number as brn, status, initiated_at, created_at, account, event
       from settlements where mid = $1 order by utr`,
    [mid],
  )
  return rows
}

const lastOfAudit = async () => JSON.parse((await ops(['audit', '--json'])).stdout).at(-1)

const counts = { inserted: 0, unchanged: 0, updated: 0 }

describe('ops settlements pull', () => {
  it.each([
    ['UPI_CREDIT_CARD', 'credit card'],
    ['upi_ppi', 'wallet'],
    ['UPI_PPI_OFFLINE', 'wallet'],
    ['UPI', null],
    ['CREDIT_CARD', null],
    ['a "quoted", word', null],
    [7, null],
    [{ mode: 'upi_ppi' }, null],
    [null, null],
  ])(
    'settlements pull reads the payment mode %j as the instrument %s of the payment',
    async (payment_mode, instrument) => {
      const order = await payOrder()
      const payment_details = { bank_reference: order.utr, payment_mode }
      await pullPages([of(order, 'PAYMENT', {}, { payment_details })])
      const { rows } = await db.query('select instrument from payments where order_id = $1', [order.orderId])
      expect(rows).toEqual([{ instrument }])
    },
  )

  it('settlements pull stores a line for each payment and deduction of known orders, in an import with source and acquirer', async () => {
    const [first, second] = [await payOrder(), await payOrder()]
    const document = await pullPages(
      [of(first, 'PAYMENT', net('197.64', '2', '0.36')), of(second, 'PAYMENT')],
      [
        of(first, 'REFUND', { event_settlement_amount: 50, event_amount: 50 }, arn('ARN1')),
        of(second, 'DISPUTE', { event_id: 4711, event_settlement_amount: number('-200.00') }),
      ],
    )
    expect(document).toEqual({
      ...{ import: 1, inserted: 4, unchanged: 0, updated: 0, matched: 0, insertedAmount: '147.64', amount: '147.64' },
      ...{ warnings: [], notStored: [], inClosedMonths: 0 },
    })
    const line = { brn: 'PGI45406', status: 'SUCCESS', fee: '0.00', tax: '0.00', account: 'cashfree' }
    const dated = { initiated_at: new Date(`${THURSDAY}T04:30:00Z`), created_at: new Date(`${THURSDAY}T13:03:51Z`) }
    expect(await stored()).toEqual([
      {
        utr: first.utr,
        amount: '197.64',
        ...line,
        fee: '2.00',
        tax: '0.36',
        payment_utr: first.utr,
        ...dated,
        event: 'payment',
      },
      { utr: second.utr, amount: '200.00', ...line, payment_utr: second.utr, ...dated, event: 'payment' },
      { utr: 'ARN1', amount: '-50.00', ...line, payment_utr: first.utr, ...dated, event: 'refund' },
      { utr: 'E4711', amount: '-200.00', ...line, payment_utr: second.utr, ...dated, event: 'dispute' },
    ])
    const imports = JSON.parse((await ops(['settlements', 'imports', '--json'])).stdout)
    expect(imports).toMatchObject([{ import: 1, file: 'cashfree 2026-01-14..2026-01-15', inserted: 4 }])
    expect(await lastOfAudit()).toMatchObject({
      ...{ arguments: { acquirer: 'cashfree', from: WEDNESDAY, to: THURSDAY }, outcome: 'done' },
      detail: { import: 1, inserted: 4 },
    })
  })

  it('settlements pull reports the number and sum of the events that settlements pull does not store', async () => {
    const order = await payOrder()
    const ofSetu = await payOrder('setu')
    serveRecon(bank, {
      data: [
        of(order, 'RISK_REVERSE', { event_settlement_amount: number('12.50') }),
        of(order, 'RISK_REVERSE'),
        of(order, 'OTHER_ADJUSTMENT', { sale_type: 'DEBIT', event_settlement_amount: 7 }),
        reconEvent('PAYMENT'),
        of(ofSetu, 'PAYMENT'),
        reconEvent('OTHER_ADJUSTMENT', { order_details: { order_id: null } }),
        of(order, 'PAYMENT', {}, { settlement_details: { utr: null } }),
        of(order, 'PAYMENT', { event_status: 'PENDING' }),
      ],
    })
    const notStored = [
      { what: 'RISK_REVERSE', events: 2, amount: '212.50' },
      { what: 'OTHER_ADJUSTMENT', events: 2, amount: '193.00' },
      { what: 'of unknown orders', events: 2, amount: '400.00' },
      { what: 'not paid out yet', events: 1, amount: '200.00' },
      { what: 'PAYMENT PENDING', events: 1, amount: '200.00' },
    ]
    expect(JSON.parse((await pull('--json')).stdout)).toMatchObject({ ...counts, notStored })
    // The payout exceeds the sum of its lines by this amount.
    const { rows } = await db.query('select import_id, account, bank_reference_number, amount_paise from payout_rests')
    expect(rows).toEqual([
      { import_id: 1, account: 'cashfree', bank_reference_number: 'PGI45406', amount_paise: 80550 },
    ])
    expect((await pull()).stdout).toBe(
      `Import 2: 0 ${NOTHING}; not stored: 2 RISK_REVERSE (₹212.50), 2 OTHER_ADJUSTMENT (₹193.00), 2 of unknown orders (₹400.00), 1 not paid out yet (₹200.00), 1 PAYMENT PENDING (₹200.00).\n`,
    )
    expect(await stored()).toEqual([])
  })

  it('settlements pull stores each returned deduction as a line under the event’s id, and not in the adjustments', async () => {
    const [order, unknown] = [await payOrder(), { orderId: 'somebody_elses_2', utr: newUtr() }]
    const types = ['REFUND', 'DISPUTE', 'CHARGEBACK'].flatMap((type) => [`${type}_REVERSAL`, `${type}_REVERSE`])
    const returned = types.map((type, index) => of(order, type, { event_id: 100 + index }))
    const others = [of(order, 'OTHER_ADJUSTMENT', { event_settlement_amount: 3 }), of(unknown, 'DISPUTE_REVERSAL')]
    expect(await pullPages([...returned, ...others])).toMatchObject({
      ...{ ...counts, inserted: 6, amount: '1200.00' },
      notStored: [
        { what: 'OTHER_ADJUSTMENT', events: 1, amount: '3.00' },
        { what: 'of unknown orders', events: 1, amount: '200.00' },
      ],
    })
    expect((await stored()).map(({ utr, amount, payment_utr }) => [utr, amount, payment_utr])).toEqual(
      types.map((_, index) => [`E${100 + index}`, '200.00', order.utr]),
    )
    const { rows } = await db.query('select amount_paise, unknown_orders_paise from payout_rests')
    expect(rows).toEqual([{ amount_paise: 203_00, unknown_orders_paise: 200_00 }])
    expect(await pullPages([...returned, ...others])).toMatchObject({ ...counts, unchanged: 6 })
  })

  it('settlements pull stores a deduction and its return under the payment of their order if the events contain no payment', async () => {
    const order = await payOrder()
    const none = { payment_details: { bank_reference: null, cf_payment_id: null } }
    await pullPages([
      of(order, 'DISPUTE', { event_id: 201 }, none),
      of(order, 'DISPUTE_REVERSAL', { event_id: 202 }, none),
    ])
    expect(await stored()).toMatchObject([
      { utr: 'E201', payment_utr: order.utr },
      { utr: 'E202', payment_utr: order.utr },
    ])
  })

  it('settlements pull reports the number of lines that it adds to days of closed months', async () => {
    const order = await payOrder()
    await db.query(
      `insert into closed_months (month, closed_at, closed_by, sha256, figures) values ('2025-12', '2026-01-02', 'asha', '', '{}')`,
    )
    const on = (day: string) => ({ settlement_details: { settlement_initiated_on: `${day}T00:00:00+05:30` } })
    const events = [
      of(order, 'PAYMENT', {}, on('2025-12-01')),
      of(order, 'DISPUTE', {}, on('2025-11-30')),
      of(order, 'DISPUTE_REVERSAL', {}, on('2025-12-31')),
      of(order, 'DISPUTE', {}, on('2026-01-01')),
    ]
    expect(await pullPages(events.slice(0, 1))).toMatchObject({ inserted: 1, inClosedMonths: 1 })
    expect(await pullPages(events)).toMatchObject({ inserted: 3, unchanged: 1, inClosedMonths: 1 })
    expect(await pullPages(events)).toMatchObject({ inserted: 0, unchanged: 4, inClosedMonths: 0 })
    await db.query(
      'truncate settlements, settlement_versions, settlement_imports, settlement_import_bases, payout_rests',
    )
    serveRecon(bank, { data: events })
    expect((await pull()).stdout).toBe(
      'Import 1: 4 inserted, ₹0.00, 0 unchanged, 0 updated; 2 rows inserted on days of closed months.\n',
    )
  })

  it('settlements pull changes nothing when repeated, and settlements undo reverts the pull', async () => {
    const order = await payOrder()
    const events = [of(order, 'PAYMENT'), of(order, 'REFUND', {}, arn('ARN2'))]
    await pullPages(events)
    expect(await pullPages(events)).toMatchObject({ import: 2, ...counts, unchanged: 2 })
    // An amount of 0 replaces what an earlier pull found.
    const { rows } = await db.query('select amount_paise from payout_rests where import_id = 2')
    expect(rows).toEqual([{ amount_paise: 0 }])
    for (const [number, removed] of [
      [2, 0],
      [1, 2],
    ]) {
      expect((await ops(['settlements', 'undo', '--import', `${number}`])).stdout).toContain(`${removed} removed`)
    }
    expect(await stored()).toEqual([])
    expect(await pullPages(events)).toMatchObject({ ...counts, inserted: 2 })
  })

  it('settlements pull does not change the UTR of a refund whose bank reference is reported later', async () => {
    const order = await payOrder()
    const refund = of(order, 'REFUND', { event_id: 99 })
    await pullPages([refund])
    expect(await pullPages([{ ...refund, ...arn('ARN3') }])).toMatchObject({ ...counts, unchanged: 1 })
    expect(await stored()).toMatchObject([{ utr: 'E99' }])
  })

  it('settlements pull matches a stored row with the payment whose bank reference became known after the row', async () => {
    const { orderId, utr: id } = await payOrder()
    await db.query('update payments set acquirer_payment_id = utr where mid = $1 and utr = $2', [mid, id])
    const rrn = newUtr()
    const row = `${mid},200.00,${rrn},BRN,SUCCESS,${THURSDAY} 10:00:00`
    const csv = `mid,amount,utr,bank_reference_number,status,initiation_date\n${row}\n`
    await runOps(url, ['settlements', 'import', '-'], csv)
    const report = { orderId, status: 'SUCCESS' as const, utr: rrn, amount: 200_00, paidAt: undefined, names: { id } }
    await createReports(db).record(report, { source: 'enquiry', now: () => new Date() })
    expect(await pullPages([of(await payOrder(), 'PAYMENT')])).toMatchObject({ import: 2, inserted: 1, matched: 1 })
    expect((await stored()).find(({ utr }) => utr === rrn)).toMatchObject({ payment_utr: id })
  })

  it('settlements pull reads all pages before locking the settlements, so that other imports do not wait for Cashfree', async () => {
    const [first, second] = [await payOrder(), await payOrder()]
    const requested = serveRecon(
      bank,
      { data: [of(first, 'PAYMENT')], cursor: 'c1' },
      { data: [of(second, 'PAYMENT')] },
    )
    const client = await db.connect()
    await client.query('begin; lock table settlements in share row exclusive mode')
    const pulled = pull()
    await expect.poll(() => requested.length, { timeout: 20_000 }).toBe(2)
    await client.query('rollback')
    client.release()
    expect(await pulled).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Import \d+: 2 inserted/) })
  })

  it('settlements pull stores nothing if a later page fails, and records the failure in the audit', async () => {
    const order = await payOrder()
    const late = of(order, 'REFUND', { event_id: 12, event_settlement_amount: number('1.005') })
    const fault = await pullError({ data: [of(order, 'PAYMENT')], cursor: 'c1' }, { data: [late] })
    expect(fault).toMatch(
      /^ops: Cashfree returned .*event_settlement_amount of the row with id 12 must be rupees with at most two decimals \(request \w+\); nothing was imported\n$/,
    )
    expect(await stored()).toEqual([])
    expect((await ops(['settlements', 'imports'])).stdout).toBe('No settlement imports.\n')
    expect(await lastOfAudit()).toMatchObject({ command: 'settlements pull', outcome: 'failed' })
  })

  it('settlements pull reports the next step when Cashfree rejects the credentials or is busy', async () => {
    bank.nextFaults.recon = [{ status: 429 }, { status: 401 }]
    expect(await pullError({ data: [] })).toMatch(
      /^ops: a call to Cashfree failed \(status 429, request \w+\); nothing was imported: try again in a minute\n$/,
    )
    expect(await pullError({ data: [] })).toMatch(
      /CASHFREE_CLIENT_SECRET .*\(status 401, .*\); nothing was imported\n$/,
    )
  })

  it('settlements pull names the order of a rejected line, and lets no acquirer field start another column or line', async () => {
    const [one, two] = [await payOrder(), await payOrder()]
    const split = of(two, 'PAYMENT', {}, { settlement_details: { utr: 'PGI1","SUCCESS\nM1,1.00,U1' } })
    const unnamed = of(one, 'PAYMENT', {}, { payment_details: { bank_reference: null } })
    expect(await pullError({ data: [unnamed] })).toBe(
      `ops: 1 invalid line, nothing was imported; order ${one.orderId}: utr must be 1 to 35 letters and digits\n`,
    )
    expect(await pullError({ data: [split] })).toContain('without control characters')
    const quoted = of(two, 'PAYMENT', {}, { settlement_details: { utr: 'PGI1","SUCCESS' } })
    expect(await pullError({ data: [of(one, 'PAYMENT'), quoted] })).toContain(
      `order ${two.orderId}: bank_reference_number must be`,
    )
    await pullPages([of(one, 'PAYMENT')])
    const elsewhere = of(one, 'PAYMENT', {}, { settlement_details: { utr: 'PGI2' } })
    expect(await pullError({ data: [elsewhere] })).toContain(
      `order ${one.orderId}: this mid and utr are stored with another bank_reference_number`,
    )
  })

  it('settlements pull rejects an unsupported acquirer, invalid days and missing settings, and reports the next step', async () => {
    const rejected = async (acquirer: string, from: string, to: string, settings?: Record<string, string>) => {
      const args = ['settlements', 'pull', '--acquirer', acquirer, '--from', from, '--to', to]
      return (await ops(args, settings)).stderr.split('\n')[0]
    }
    const requested = bank.countOf('recon')
    expect(await rejected('setu', WEDNESDAY, THURSDAY)).toBe(
      'ops: --acquirer must be cashfree or razorpay: for other acquirers, import the file with ops settlements import',
    )
    expect(await rejected('cashfree', THURSDAY, WEDNESDAY)).toBe('ops: --from must not be after --to')
    expect(await rejected('cashfree', THURSDAY, '2099-12-31')).toMatch(/^ops: --to must not be after today, 20\d\d-/)
    expect(await rejected('cashfree', WEDNESDAY, THURSDAY, {})).toBe(
      'ops: acquirer account cashfree is not configured: set CASHFREE_CLIENT_ID and CASHFREE_CLIENT_SECRET',
    )
    expect(bank.countOf('recon')).toBe(requested)
  })

  it.each([
    ['a won dispute', ['DISPUTE', 'DISPUTE_REVERSAL'], []],
    ['a won chargeback with charges', ['CHARGEBACK', 'CHARGEBACK_REVERSE'], ['197.64', '2', '0.36']],
    ['a refund that the bank returned', ['REFUND', 'REFUND_REVERSAL'], []],
    ['two disputes of which one is won', ['DISPUTE', 'CHARGEBACK', 'DISPUTE_REVERSAL'], []],
    ['a lost dispute', ['DISPUTE'], []],
  ] as const)(
    'reconcile reports the same after settlements pull and after a file with the same rows: %s',
    async (_what, types, [settled = '200', fee = '0', tax = '0']) => {
      const pulledFor = mid
      const order = await payOrder()
      const days = [THURSDAY, FRIDAY, '2026-01-17', '2026-01-19']
      const events = ['PAYMENT', ...types].map((type, index) =>
        of(order, type, net(settled, fee, tax), {
          settlement_details: { utr: `PGI${index}`, settlement_initiated_on: `${days[index]}T10:00:00+05:30` },
        }),
      )
      await pullPages(events)
      const rows = await stored()
      ;({ mid } = await newMerchant(db))
      const { utr } = await payOrder()
      const file = rows.map((row) =>
        [
          ...[mid, row.amount, row.utr === order.utr ? utr : row.utr, row.brn, row.status],
          ...[row.initiated_at.toISOString(), row.fee, row.tax, utr, row.event],
        ].join(),
      )
      const header = 'mid,amount,utr,bank_reference_number,status,initiation_date,fee,tax,payment_utr,event'
      const imported = await runOps(
        url,
        ['settlements', 'import', '-', '--acquirer', 'cashfree'],
        [header, ...file, ''].join('\n'),
      )
      expect(imported).toMatchObject({ code: 0, stderr: '' })
      const bookOf = async (of: string, own: string) => {
        const report = ['reconcile', '--from', WEDNESDAY, '--to', '2026-01-31', '--mid', of, '--json']
        const { merchants } = JSON.parse((await ops(report)).stdout.replaceAll(own, 'OWN'))
        const { differences, total } = merchants[0]
        return {
          total,
          differences: differences.map(
            ({ id: _, orderId: __, merchantOrderId: ___, cause, ...one }: { [name: string]: string }) => ({
              ...one,
              cause: cause?.replace(/import \d+/g, 'import'),
            }),
          ),
        }
      }
      const pulled = await bookOf(pulledFor, order.utr)
      expect(pulled).toEqual(await bookOf(mid, utr))
      const isClosed = types.length % 2 === 0
      expect(pulled.differences.map(({ kind }: { kind: string }) => kind)).toEqual(isClosed ? [] : ['reversal'])
      expect(pulled.total.carriedForward).toBe(isClosed ? '0.00' : '200.00')
      const report = { id: unique('D'), orderId: order.orderId, status: 'open' } as const
      await createDisputes(db).record('direct', report, { source: 'notification', now: () => new Date() })
      const explained = await bookOf(pulledFor, order.utr)
      expect(explained).toMatchObject({ differences: [], total: { carriedForward: '0.00' } })
    },
  )

  it('reconcile balances to 0.00 after settlements pull with fees, refunds and refund charges', async () => {
    const [paid, refunded, charged] = [await payOrder(), await payOrder(), await payOrder()]
    for (const [{ orderId, utr }, rupees, reference] of [
      [refunded, 200, 'ARN10'],
      [charged, 50, ''],
    ] as const) {
      await db.query(
        `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status,
           reference, ended_at)
         values ($1, $2, $2, $3, $4, $5, 'cold', 'cashfree', 'merchant', $6, 'SUCCESS', $7, $6)`,
        [mid, newId(at(WEDNESDAY)), orderId, utr, rupees * 100, at(WEDNESDAY), reference],
      )
    }
    await pullPages([
      ...[paid, refunded, charged].map((order) => of(order, 'PAYMENT', net('197.64', '2', '0.36'))),
      // The acquirer returns the fee of a fully refunded payment.
      of(refunded, 'REFUND', net('197.64', '2', '0.36'), arn('ARN10')),
      of(charged, 'REFUND', { event_amount: 50, ...net('51.18', '1', '0.18') }),
    ])
    const report = ['reconcile', '--from', WEDNESDAY, '--to', FRIDAY, '--mid', mid]
    const { merchants, balances } = JSON.parse((await ops([...report, '--json'])).stdout)
    expect({ merchants, balances }).toMatchObject({
      balances: true,
      merchants: [
        {
          mid,
          differences: [],
          total: {
            ...{ paid: '600.00', settled: '350.00', fee: '5.00', tax: '0.90', net: '344.10', refunded: '250.00' },
            ...{ carriedForward: '0.00', awaited: '0.00' },
          },
        },
      ],
    })
  })
})
