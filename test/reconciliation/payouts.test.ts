import { parse } from 'csv-parse/sync'
import { beforeAll, expect, it } from 'vitest'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsOn } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { newPartner } from '../support/tenants.ts'
import { importRows, istMoment, type Row } from './rows.ts'

let url: string
let db: Database
let [mid, other] = ['', '']

/** Settlement lines of a transfer with a deduction, of one over midnight, a failed one, and one of an undone file. */
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  ;[mid, other] = [(await newMerchant(db)).mid, (await newMerchant(db)).mid]
  const row = (utr: string, day: string, amount: number, rest: Partial<Row>): Row => ({
    ...{ mid, utr, day, amount },
    ...rest,
  })
  await importRows(
    db,
    [
      row('A1', '2026-10-05', 196_46, { fee: 3_00, tax: 54, reference: '523504870001' }),
      row('A2', '2026-10-05', 98_23, { fee: 1_50, tax: 27, reference: '523504870001' }),
      row('A3', '2026-10-05', -50_00, { reference: '523504870001' }),
      row('A4', '2026-10-05', 77_00, { reference: '523504870001', status: 'FAILED' }),
      row('B1', '2026-10-05', 10_00, { reference: 'NIGHT', time: '23:59:59' }),
      row('B2', '2026-10-06', 20_00, { reference: 'NIGHT', time: '00:00:01' }),
      row('C1', '2026-10-07', -5_00, { reference: 'BACK' }),
      row('D1', '2026-10-06', 1_00, { mid: other, reference: 'NIGHT' }),
    ],
    istMoment('2026-10-08', '09:00:00'),
  )
  const wrong = await importRows(
    db,
    [row('E1', '2026-10-06', 9_00, { reference: 'NIGHT' })],
    istMoment('2026-10-08', '10:00:00'),
  )
  const undone = { now: istMoment('2026-10-08', '11:00:00'), person: 'asha' }
  await inTransaction(db, (client) => undoImport(client, wrong, undone))
})

const { ops, json } = opsOn(() => url, ['reconcile', 'payouts'])
const days = ['--from', '2026-10-05', '--to', '2026-10-06']

const payout = (day: string, bankReference: string, [gross, fee, tax, deductions, net]: string[], rows: number) => ({
  ...{ day, mid, account: null, bankReference, rows, gross, fee, tax, deductions, net },
  // No bank statement was imported.
  ...{ arrival: 'not known', arrivedOn: null, credited: null, difference: null, statement: null },
  ...{ differenceId: null, resolution: null },
})
/** The columns of the text output, beside those of the amounts. */
const FIRST = ['day', 'bankReference', 'arrival', 'net', 'credited', 'difference', 'mid']
const LAST = ['arrivedOn', 'statement', 'differenceId', 'resolution']
const MORNING = () => payout('2026-10-05', '523504870001', ['300.00', '4.50', '0.81', '-50.00', '244.69'], 3)
const NIGHT = () => payout('2026-10-06', 'NIGHT', ['30.00', '0.00', '0.00', '0.00', '30.00'], 2)

it('reconcile payouts sums the SUCCESS lines of one bank reference on the day of the last line, with net = gross - fee - tax + deductions', async () => {
  expect(await json(...days, '--mid', mid)).toEqual({
    payouts: [MORNING(), NIGHT()],
    total: { gross: '330.00', fee: '4.50', tax: '0.81', deductions: '-50.00', net: '274.69' },
  })
  expect((await json('--from', '2026-10-05', '--to', '2026-10-05', '--mid', mid)).payouts).toEqual([MORNING()])
  expect((await json('--from', '2026-10-07', '--to', '2026-10-07')).payouts).toMatchObject([
    { rows: 1, gross: '0.00', deductions: '-5.00', net: '-5.00' },
  ])
})

it('reconcile payouts includes the fee and tax of a deduction in the expected payout, whether charged or returned', async () => {
  const { mid } = await newMerchant(db)
  const rows = [
    { utr: 'F1', amount: 195_28, fee: 4_00, tax: 72 },
    { utr: 'F2', amount: -195_28, fee: -4_00, tax: -72 },
    { utr: 'F3', amount: -235_40, fee: 30_00, tax: 5_40 },
  ]
  await importRows(
    db,
    rows.map((row) => ({ ...row, mid, day: '2026-10-12', reference: 'LOST' })),
    istMoment('2026-10-12', '12:00:00'),
  )
  const lost = ['--from', '2026-10-12', '--to', '2026-10-12', '--mid', mid]
  const stored = { fee: '30.00', tax: '5.40' }
  const { payouts } = await json(...lost)
  expect(payouts).toMatchObject([{ gross: '200.00', ...stored, deductions: '-400.00', net: '-235.40' }])
  const { merchants } = await opsOn(() => url, ['reconcile']).json(...lost)
  expect(merchants[0].total).toMatchObject(stored)
})

it('reconcile payouts lists two merchants with the same bank reference as two payouts', async () => {
  const { payouts, total } = await json(...days)
  expect(payouts).toHaveLength(3)
  expect(payouts).toContainEqual(expect.objectContaining({ mid: other, bankReference: 'NIGHT', rows: 1, net: '1.00' }))
  expect(total.net).toBe('275.69')
})

it('reconcile payouts prints the same values as text, CSV and JSON, and preserves the digits of references', async () => {
  const text = (await ops(...days, '--mid', mid)).stdout.trimEnd().split('\n')
  expect(text.map((line) => line.split(/ {2,}/))).toEqual([
    [...FIRST, 'account', 'rows', 'gross', 'fee', 'tax', 'deductions', ...LAST],
    [
      ...['2026-10-05', '523504870001', 'not known', '₹244.69', '-', '-', mid],
      ...['-', '3', '₹300.00', '₹4.50', '₹0.81', '-₹50.00', ...LAST.map(() => '-')],
    ],
    [
      ...['2026-10-06', 'NIGHT', 'not known', '₹30.00', '-', '-', mid],
      ...['-', '2', '₹30.00', '₹0.00', '₹0.00', '₹0.00', ...LAST.map(() => '-')],
    ],
    [
      ...['total', '-', '-', '₹274.69', '-', '-', '-'],
      ...['-', '-', '₹330.00', '₹4.50', '₹0.81', '-₹50.00', ...LAST.map(() => '-')],
    ],
  ])
  const csv = (await ops(...days, '--mid', mid, '--csv')).stdout
  expect(parse(csv, { bom: true, columns: true })).toEqual(
    [MORNING(), NIGHT()].map(({ bankReference, account: _, rows, arrivedOn: __, differenceId: ___, ...one }) => ({
      ...{ ...one, account: '', rows: String(rows), arrived_on: '', credited: '', difference: '', statement: '' },
      ...{ difference_id: '', resolution: '' },
      bank_reference: /^\d+$/.test(bankReference) ? `="${bankReference}"` : bankReference,
    })),
  )
  expect((await ops('--from', '2020-01-01', '--to', '2020-01-01')).stdout).toBe('No rows.\n')
})

it('reconcile payouts rejects days in the wrong order, an unknown merchant, and --csv with --json', async () => {
  expect(await ops('--from', '2026-10-06', '--to', '2026-10-05')).toMatchObject({ code: 2 })
  expect(await ops(...days, '--csv', '--json')).toMatchObject({ code: 2 })
  expect((await ops(...days, '--mid', 'NOBODY')).stderr).toContain('mid NOBODY does not exist')
})

it('reconcile --payout finds a payout by bank reference or by UTR in either letter case, and lists the payments that the payout’s total covers', async () => {
  const { mid } = await newMerchant(db)
  const merchantOf = ['--mid', mid]
  await storePaidOrder(db, { mid, utr: 'PP1', paidAt: istMoment('2026-09-01', '12:00:00') })
  const orderId = await storePaidOrder(db, { mid, utr: 'PP2', paidAt: istMoment('2026-09-01', '13:00:00') })
  const rows = [
    { mid, utr: 'pn1', day: '2026-09-02', amount: 200_00, paymentUtr: 'PP1', reference: 'PAYOUTREF' },
    { mid, utr: 'PT1', day: '2026-09-02', amount: 195_00, fee: 4_00, tax: 1_00, reference: 'PAYOUTREF' },
  ]
  await importRows(db, rows, istMoment('2026-09-03', '09:00:00'))
  const { json: found, ops: text } = opsOn(() => url, ['reconcile'])
  for (const name of ['pn1', 'PN1']) {
    const { settlements, payments } = await found('--payout', name, ...merchantOf)
    expect([settlements.length, settlements[0].settlementUtr, settlements[0].utr, payments]).toEqual([
      1,
      'pn1',
      'PP1',
      [],
    ])
  }
  const payout = await found('--payout', 'PAYOUTREF', ...merchantOf)
  expect(payout.settlements.map((one: { settlementUtr: string }) => one.settlementUtr)).toEqual(['PT1', 'pn1'])
  expect(payout.payments).toMatchObject([{ orderId, utr: 'PP2', paid: '200.00' }])
  expect(payout.total).toEqual({ paid: '200.00', gross: '400.00', fee: '4.00', tax: '1.00', net: '395.00' })
  expect((await text('--payout', 'PAYOUTREF', ...merchantOf)).stdout).toContain('for these 1 payment, total ₹200.00')
  expect((await text('--payout', 'NOBODYS1')).stdout).toBe('No settlements with the UTR or bank reference NOBODYS1.\n')
  const { pid } = await newPartner(db, other)
  expect(await found('--payout', 'PAYOUTREF', '--pid', pid)).toMatchObject({ settlements: [], payments: [] })
})
