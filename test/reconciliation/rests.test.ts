import { parse } from 'csv-parse/sync'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { listArrivals } from '../../src/books/reports/arrivals.ts'
import { journalOf } from '../../src/books/reports/journal.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { newUtr } from '../support/acquirer.ts'
import type { FakeCashfree } from '../support/cashfree-bank.ts'
import { number } from '../support/cashfree-forms.ts'
import { type ReconEvent, reconEvent, serveRecon } from '../support/cashfree-recon.ts'
import { createTestDatabase } from '../support/database.ts'
import { CASHFREE, CASHFREE_SECRETS, cashfreeSettings } from '../support/fake-cashfree.ts'
import { readAll } from '../support/findings.ts'
import { runOps } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant, unique } from '../support/service.ts'
import { startBank } from '../support/service-with-bank.ts'

const [WEDNESDAY, THURSDAY, FRIDAY] = ['2026-01-14', '2026-01-15', '2026-01-16'] as const
const at = (day: string) => new Date(`${day}T12:00:00+05:30`)
const DAYS = ['--from', WEDNESDAY, '--to', FRIDAY]

let url: string
let db: Database
let bank: FakeCashfree
let [mid, other] = ['', '']
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  bank = await startBank(CASHFREE, () => at(FRIDAY))
})
beforeEach(async () => {
  await db.query('truncate settlements, settlement_versions, settlement_imports, settlement_import_bases, payout_rests')
  ;[mid, other] = [(await newMerchant(db)).mid, (await newMerchant(db)).mid]
})

async function ops(...args: string[]) {
  const { apiUrl, clientId } = cashfreeSettings(bank)
  const settings = {
    ...{ CASHFREE_API_URL: apiUrl, CASHFREE_CLIENT_ID: clientId },
    CASHFREE_CLIENT_SECRET: CASHFREE_SECRETS.join(),
  }
  const { code, stdout, stderr } = await runOps(url, args, '', settings)
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return stdout
}
const json = async (...args: string[]) => JSON.parse(await ops(...args, '--json'))

async function pull(...data: ReconEvent[]) {
  serveRecon(bank, { data })
  return (await json('settlements', 'pull', '--acquirer', 'cashfree', '--from', WEDNESDAY, '--to', THURSDAY)).import
}

/** Stores a paid order of ₹200 and returns its settlement event with a net amount of 197.64. */
async function payment(of: string, payoutUtr: string): Promise<ReconEvent> {
  const utr = newUtr()
  const orderId = await storePaidOrder(db, { mid: of, utr, paidAt: at(WEDNESDAY), acquirer: 'cashfree' })
  await db.query(
    `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
     values ($1, $2, 'cashfree', 'cf', $2, 'tr', 'upi://pay', 0)`,
    [of, orderId],
  )
  return reconEvent('PAYMENT', {
    event_details: {
      event_settlement_amount: number('197.64'),
      event_service_charge: 2,
      event_service_tax: number('0.36'),
    },
    order_details: { order_id: orderId },
    payment_details: { bank_reference: utr },
    settlement_details: { utr: payoutUtr },
  })
}
const adjustment = (payoutUtr: string, rupees: number) =>
  reconEvent('OTHER_ADJUSTMENT', {
    event_details: { sale_type: 'DEBIT', event_settlement_amount: rupees, event_amount: rupees },
    settlement_details: { utr: payoutUtr },
  })
const ofUnknownOrder = (payoutUtr: string, rupees: number) =>
  reconEvent('PAYMENT', {
    event_details: { event_settlement_amount: rupees, event_amount: rupees },
    settlement_details: { utr: payoutUtr },
  })

type Line = Record<string, string | null>
const payouts = async (...args: string[]): Promise<Line[]> =>
  (await json('reconcile', 'payouts', ...DAYS, ...args)).payouts
/** Returns the postings of a transfer; credits have a minus. */
async function voucher(reference: string, ...args: string[]) {
  const { postings, total } = await json('reconcile', 'journal', ...DAYS, ...args)
  expect(total.debit).toBe(total.credit)
  return (postings as Line[])
    .filter((one) => one.reference === reference)
    .map((one) => [one.mid, one.account, one.ledger, one.debit === '0.00' ? `-${one.credit}` : one.debit])
}

describe('amounts besides settlements of known orders', () => {
  it('reconcile includes adjustments in the net and journal of the merchant whose lines alone make up the payout', async () => {
    const reference = unique('PGI')
    await pull(await payment(mid, reference), adjustment(reference, 7), ofUnknownOrder(reference, 100))
    const { rows } = await db.query('select amount_paise, unknown_orders_paise, day::text from payout_rests')
    expect(rows).toEqual([{ amount_paise: 9300, unknown_orders_paise: 10000, day: THURSDAY }])
    const net = { day: THURSDAY, mid, gross: '200.00', fee: '2.00', tax: '0.36', deductions: '93.00', net: '290.64' }
    expect(await payouts()).toEqual([expect.objectContaining(net)])
    expect(await payouts('--mid', mid)).toEqual([expect.objectContaining(net)])
    expect(await voucher(reference)).toEqual([
      [mid, 'cashfree', 'UPI clearing cashfree', '-200.00'],
      [mid, 'cashfree', 'Bank', '290.64'],
      [mid, 'cashfree', 'cashfree charges', '2.36'],
      [mid, 'cashfree', 'Suspense', '7.00'],
      [mid, 'cashfree', 'Unknown payments', '-100.00'],
    ])
    const { lines } = await json('reconcile', 'statement', '--mid', mid, ...DAYS)
    expect((lines as Line[]).map(({ kind, amount, balance }) => `${kind} ${amount} ${balance}`)).toEqual([
      ...[
        'opening 0.00 0.00',
        'payment 200.00 200.00',
        'payout -290.64 -90.64',
        'fee -2.00 -92.64',
        'tax -0.36 -93.00',
      ],
      ...['adjustment -7.00 -100.00', 'unknown order 100.00 0.00', 'closing 0.00 0.00'],
    ])
    const { total, rests } = await json('reconcile', '--payout', reference)
    expect({ net: total.net, rests }).toEqual({
      net: '290.64',
      rests: [
        {
          day: THURSDAY,
          account: 'cashfree',
          bankReference: reference,
          mid,
          adjustments: '-7.00',
          unknownOrders: '100.00',
        },
      ],
    })
    expect(await ops('reconcile', '--payout', reference)).toContain(
      'Included in net, but not stored by settlements pull:',
    )
    expect((await db.query('select from settlements')).rowCount).toBe(1)
  })

  it('reconcile lists adjustments of a shared payout once, under the acquirer account without a merchant', async () => {
    const [shared, foreign] = [unique('PGI'), unique('PGJ')]
    await pull(
      ...[await payment(mid, shared), await payment(other, shared), adjustment(shared, 7), ofUnknownOrder(shared, 100)],
      ofUnknownOrder(foreign, 50),
    )
    const ofMerchant = (of: string) => expect.objectContaining({ mid: of, bankReference: shared, net: '197.64' })
    const ofAccount = (bankReference: string, net: string) =>
      expect.objectContaining({ day: THURSDAY, mid: null, account: 'cashfree', bankReference, rows: 0, net })
    const ofAll = await payouts()
    expect(ofAll).toEqual([
      ...[mid, other].sort().map(ofMerchant),
      ofAccount(shared, '93.00'),
      ofAccount(foreign, '50.00'),
    ])
    expect(await payouts('--mid', mid)).toEqual([ofMerchant(mid)])
    expect((await voucher(shared)).slice(-3)).toEqual([
      [null, 'cashfree', 'Bank', '93.00'],
      [null, 'cashfree', 'Suspense', '7.00'],
      [null, 'cashfree', 'Unknown payments', '-100.00'],
    ])
    expect((await voucher(shared, '--mid', mid)).map(([of]) => of)).not.toContain(null)
    expect((await json('reconcile', '--payout', shared)).total.net).toBe('488.28')
    expect((await json('reconcile', '--payout', shared, '--mid', mid)).total.net).toBe('197.64')
    expect(await ops('reconcile', 'payouts', ...DAYS)).toMatch(/PGJ.* - +cashfree /)
  })

  it('reconcile dates adjustments on the day of the import if the acquirer reports no payout day', async () => {
    const reference = unique('PGI')
    const event = adjustment(reference, 7)
    await pull({
      ...event,
      settlement_details: { utr: reference, settlement_initiated_on: null, settlement_date: null },
    })
    expect((await db.query('select day from payout_rests')).rows).toEqual([{ day: null }])
    const { rows } = await db.query(
      `select to_char(imported_at at time zone 'Asia/Kolkata', 'YYYY-MM-DD') as day from settlement_imports`,
    )
    const { rests } = await json('reconcile', '--payout', reference)
    expect(rests).toMatchObject([{ day: rows[0]?.day, adjustments: '-7.00' }])
  })

  it('reconcile drops adjustments when the import is undone, but retains adjustments in reports as of earlier times', async () => {
    const reference = unique('PGI')
    const importId = await pull(await payment(mid, reference), adjustment(reference, 7))
    const before = new Date()
    await ops('settlements', 'undo', '--import', String(importId))
    expect([await payouts(), await voucher(reference)]).toEqual([[], []])
    const requested = { from: WEDNESDAY, to: FRIDAY, now: before }
    expect(await readAll(listArrivals(db, requested))).toMatchObject([{ mid, net: 190_64 }])
    const postings = await readAll(journalOf(db, { ...requested, charges: 'supplier' }))
    expect(postings.filter(({ ledger }) => ledger === 'Suspense')).toMatchObject([{ mid, debit: 7_00 }])
    expect(await readAll(listArrivals(db, { ...requested, now: at(THURSDAY) }))).toEqual([])
  })

  it('reconcile uses the adjustments from the newest pull', async () => {
    const reference = unique('PGI')
    const paid = await payment(mid, reference)
    await pull(paid, adjustment(reference, 7))
    const second = await pull(paid)
    expect(await payouts()).toMatchObject([{ net: '197.64' }])
    await ops('settlements', 'undo', '--import', String(second))
    expect(await payouts()).toMatchObject([{ net: '190.64' }])
  })

  it('reconcile payouts expects the adjustments of a shared payout once in the bank statement', async () => {
    const reference = unique('PGI')
    await pull(await payment(mid, reference), await payment(other, reference), adjustment(reference, 7))
    const layout = unique('bank')
    const columns = ['day=Date', 'reference=Text', 'debit=Debit', 'credit=Credit', 'balance=Balance']
    const flags = columns.flatMap((column) => ['--column', column])
    await ops('settlements', 'layout', 'add', '--name', layout, '--date', 'dd/mm/yyyy', ...flags)
    const file = `Date,Text,Debit,Credit,Balance\n14/01/2026,RENT,1.00,,100.00\n15/01/2026,NEFT-${reference},,388.28,488.28\n16/01/2026,RENT,1.00,,487.28\n`
    const days = ['--from', WEDNESDAY, '--to', FRIDAY]
    const args = ['statements', 'import', '-', '--layout', layout, '--mid', mid, '--mid', other, ...days]
    expect(await runOps(url, args, file)).toMatchObject({ code: 0 })
    expect((await payouts()).map(({ arrival }) => arrival)).toEqual(['arrived', 'arrived', 'arrived'])
  })
})

describe('CSV of journal and statement', () => {
  it('reconcile --csv writes plain identifiers, and formulas only with --for excel', async () => {
    const reference = '523504870001'
    await pull(await payment(mid, reference))
    for (const command of ['journal', 'statement']) {
      const list = ['reconcile', command, '--mid', mid, ...DAYS, '--csv']
      const valuesOf = (csv: string) =>
        (parse(csv, { bom: true, columns: true }) as Line[]).map((record) => record.reference)
      const plain = await ops(...list)
      expect(valuesOf(plain)).toContain(reference)
      expect(plain).not.toMatch(/="/)
      const forExcel = await ops(...list, '--for', 'excel')
      expect(valuesOf(forExcel)).toContain(`="${reference}"`)
    }
    const rejected = await runOps(url, ['reconcile', 'journal', ...DAYS, '--for', 'excel'])
    expect(rejected).toMatchObject({ code: 2, stderr: expect.stringContaining('--for excel requires --csv') })
  })
})
