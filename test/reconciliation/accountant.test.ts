import { readFile } from 'node:fs/promises'
import { parse } from 'csv-parse/sync'
import { beforeAll, expect, it } from 'vitest'
import type { DisputeStatus } from '../../src/gateway/disputes/dispute.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment, type Row, storeReports } from './rows.ts'

let url: string
let db: Database
let mid: string
const orders: Record<string, string> = {}
let exceptionId: string
let chargeback: string

const at = (day: string, time = '12:00:00') => istMoment(day, time)

const { opsOn, jsonOn } = opsAtNoon(() => url, ['reconcile'])

/** Stores a payment of ₹200 with the merchant's own `order_id`. */
async function pay(utr: string, day: string, number: string): Promise<void> {
  const [paidAt, orderId] = [at(day), orderIdsBegin(at(day)) + number.padStart(20, '0')]
  orders[utr] = orderId
  await storeReports(db, {
    intents: [[mid, orderId, 200, 0, paidAt, 'SUCCESS', utr]],
    payments: [[mid, utr, orderId, 200_00, paidAt, paidAt, 'first', 'notification']],
    exceptions: [],
  })
  await db.query('update payment_intents set merchant_order_id = $2 where order_id = $1', [orderId, number])
}

/**
 * September's payment is paid out in October, and October's last one in November. One payment is refunded, one charged back,
 * one paid twice.
 */
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
  await pay('P0', '2026-09-30', '1000')
  await pay('P1', '2026-10-05', '1001')
  await pay('P2', '2026-10-05', '1002')
  await pay('P3', '2026-10-30', '1003')
  const saved = { amount: 195_28, fee: 4_00, tax: 72 }
  const row = (utr: string, day: string, more: Partial<Row>): Row => ({ mid, utr, day, amount: 200_00, ...more })
  const rows = [
    row('P0', '2026-10-01', { ...saved, reference: 'BANK1' }),
    row('P1', '2026-10-06', { ...saved, reference: 'BANK2' }),
    row('P2', '2026-10-06', { ...saved, reference: 'BANK2' }),
    row('PX', '2026-10-06', { ...saved, reference: 'BANK2' }),
    row('E1', '2026-10-08', { amount: -50_00, paymentUtr: 'P1', reference: 'BANK3' }),
    row('E2', '2026-10-08', { amount: -200_00, paymentUtr: 'P2', reference: 'BANK3' }),
  ]
  await importRows(db, rows, at('2026-10-08', '20:00:00'))
  await storeReports(db, {
    ...{ intents: [], payments: [] },
    exceptions: [[mid, orders.P1, 'double payment', 'PX', '200.00', at('2026-10-05')]],
  })
  const { rows: stored } = await db.query('select exception_id as id from payment_exceptions')
  exceptionId = stored[0].id
  await db.query(`insert into payment_resolutions values ($1, $2, 'refunded by hand', 'asha', $3)`, [
    ...[mid, exceptionId, at('2026-10-09')],
  ])
  await db.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status, ended_at)
     values ($1, 'R1', 'OURS1', $2, 'P1', 5000, '', 'direct', 'merchant', $3, 'SUCCESS', $3)`,
    [mid, orders.P1, at('2026-10-07')],
  )
  const [book] = (await jsonOn('2026-10-20', '--month', '2026-10')).merchants
  chargeback = book.differences.find(({ kind }: { kind: string }) => kind === 'reversal').id
  await jsonOn('2026-10-20', 'resolve', '--difference', chargeback, '--reason', 'lost', '--as', 'chargeback')
})

const OCTOBER = ['--month', '2026-10']

it('reconcile journal posts each movement to two ledgers, payments by day and payouts by bank reference', async () => {
  const { postings, total } = await jsonOn('2026-11-02', 'journal', ...OCTOBER, '--mid', mid)
  const reported = postings.map((one: Record<string, string>) => {
    const { date, voucherId = '', reference, ledger, debit, credit } = one
    return `${date} ${voucherId.slice(0, 8)}${reference}: ${ledger} ${debit} ${credit}${one.mid === mid ? '' : one.mid}`
  })
  expect(reported).toEqual([
    '2026-10-01 P261001-BANK1: UPI clearing direct 0.00 200.00',
    '2026-10-01 P261001-BANK1: Bank 195.28 0.00',
    '2026-10-01 P261001-BANK1: direct charges 4.72 0.00',
    '2026-10-05 R261005-receipts 2026-10-05: UPI clearing direct 400.00 0.00',
    '2026-10-05 R261005-receipts 2026-10-05: UPI receipts 0.00 400.00',
    '2026-10-06 P261006-BANK2: UPI clearing direct 0.00 400.00',
    '2026-10-06 P261006-BANK2: Bank 390.56 0.00',
    '2026-10-06 P261006-BANK2: direct charges 9.44 0.00',
    // No payment is known for this line, and its file names no account.
    '2026-10-06 P261006-BANK2: UPI clearing unknown 0.00 200.00',
    '2026-10-06 P261006-BANK2: Bank 195.28 0.00',
    '2026-10-06 P261006-BANK2: unknown charges 4.72 0.00',
    `2026-10-06 X261006-${exceptionId}: UPI clearing unknown 200.00 0.00`,
    `2026-10-06 X261006-${exceptionId}: Suspense 0.00 200.00`,
    '2026-10-07 F261007-refunds 2026-10-07: UPI clearing direct 0.00 50.00',
    '2026-10-07 F261007-refunds 2026-10-07: UPI refunds 50.00 0.00',
    '2026-10-08 P261008-BANK3: UPI clearing direct 250.00 0.00',
    '2026-10-08 P261008-BANK3: Bank 0.00 250.00',
    `2026-10-08 D261008-chargeback ${chargeback}: UPI clearing direct 0.00 200.00`,
    `2026-10-08 D261008-chargeback ${chargeback}: Chargebacks 200.00 0.00`,
    '2026-10-30 R261030-receipts 2026-10-30: UPI clearing direct 200.00 0.00',
    '2026-10-30 R261030-receipts 2026-10-30: UPI receipts 0.00 200.00',
  ])
  expect(total).toEqual({ debit: '2100.00', credit: '2100.00' })
})

it('reconcile journal lists the vouchers of exceptions of a day in the order of their ids', async () => {
  const { url: ofDay, db: dayDb } = await createTestDatabase()
  const { mid: merchant } = await newMerchant(dayDb)
  const dayOps = opsAtNoon(() => ofDay, ['reconcile'])
  const names = Array.from({ length: 8 }, (_, index) => `X${index}`)
  const orderId = await storePaidOrder(dayDb, { mid: merchant, utr: 'P1', paidAt: at('2026-10-05') })
  const rows = names.map((utr) => ({ mid: merchant, utr, day: '2026-10-06', amount: 200_00 }))
  await importRows(dayDb, rows, at('2026-10-06', '20:00:00'))
  await storeReports(dayDb, {
    ...{ intents: [], payments: [] },
    exceptions: names.map((utr) => [merchant, orderId, 'double payment', utr, '200.00', at('2026-10-05')]),
  })
  await dayDb.query(
    `insert into payment_resolutions select mid, exception_id, 'refunded by hand', 'asha', $1 from payment_exceptions`,
    [at('2026-10-09')],
  )
  const { postings } = await dayOps.jsonOn('2026-11-02', 'journal', '--month', '2026-10')
  const ids = postings.flatMap((one: Record<string, string>) => (one.ledger === 'Suspense' ? [one.reference] : []))
  expect(ids).toHaveLength(8)
  expect(ids).toEqual([...ids].sort())
})

it('reconcile journal --charges split posts fees and tax to a ledger each', async () => {
  const { postings } = await jsonOn('2026-11-02', 'journal', ...OCTOBER, '--mid', mid, '--charges', 'split')
  const ofBank1 = postings.filter((one: Record<string, string>) => one.reference === 'BANK1')
  expect(ofBank1.map(({ ledger, debit }: Record<string, string>) => `${ledger} ${debit}`)).toEqual([
    ...['UPI clearing direct 0.00', 'Bank 195.28', 'direct fees 4.00', 'direct input GST 0.72'],
  ])
})

it('reconcile journal --csv writes a line for each ledger of a voucher, and its columns have equal sums', async () => {
  const { stdout } = await opsOn('2026-11-02', 'journal', ...OCTOBER, '--csv')
  const records: Record<string, string>[] = parse(stdout, { bom: true, columns: true })
  expect(Object.keys(records[0] ?? {})).toEqual([
    ...['date', 'voucher_id', 'reference', 'original_day', 'mid', 'account', 'ledger', 'debit', 'credit'],
  ])
  const sum = (side: string) => records.reduce((paise, record) => paise + Number(record[side]?.replace('.', '')), 0)
  expect([sum('debit'), sum('credit')]).toEqual([2100_00, 2100_00])
  const text = (await opsOn('2026-11-02', 'journal', ...OCTOBER)).stdout
  expect(text.trimEnd().split('\n').at(-1)).toMatch(/^total +- +- +₹2,100\.00 +₹2,100\.00 +/)
})

it("reconcile statement lists every movement from opening to closing balance with the merchant's own order_id", async () => {
  const { lines } = await jsonOn('2026-11-02', 'statement', '--mid', mid, ...OCTOBER)
  const reported = lines.map((line: Record<string, string | null>) =>
    [line.day, line.kind, line.merchantOrderId, line.reference, line.amount, line.balance].filter(Boolean).join(' '),
  )
  expect(reported).toEqual([
    '2026-10-01 opening 0.00 200.00',
    '2026-10-01 payout BANK1 -195.28 4.72',
    '2026-10-01 fee BANK1 -4.00 0.72',
    '2026-10-01 tax BANK1 -0.72 0.00',
    '2026-10-05 payment 1001 P1 200.00 200.00',
    '2026-10-05 payment 1002 P2 200.00 400.00',
    '2026-10-06 payout BANK2 -390.56 9.44',
    '2026-10-06 fee BANK2 -8.00 1.44',
    '2026-10-06 tax BANK2 -1.44 0.00',
    '2026-10-06 payout BANK2 -195.28 -195.28',
    '2026-10-06 fee BANK2 -4.00 -199.28',
    '2026-10-06 tax BANK2 -0.72 -200.00',
    `2026-10-06 exception 1001 ${exceptionId} 200.00 0.00`,
    '2026-10-07 refund 1001 OURS1 -50.00 -50.00',
    '2026-10-08 payout BANK3 250.00 200.00',
    `2026-10-08 chargeback 1002 ${chargeback} -200.00 0.00`,
    '2026-10-30 payment 1003 P3 200.00 200.00',
    '2026-10-31 closing 0.00 200.00',
  ])
  const { total } = await jsonOn('2026-11-02', ...OCTOBER, '--mid', mid)
  expect([total.broughtForward, total.carriedForward]).toEqual(['200.00', '200.00'])
  const csv = (await opsOn('2026-11-02', 'statement', '--mid', mid, ...OCTOBER, '--csv')).stdout
  const records: Record<string, string>[] = parse(csv, { bom: true, columns: true })
  expect(records.map(({ merchant_order_id, amount }) => [merchant_order_id, amount]).slice(4, 7)).toEqual([
    ...[
      ['1001', '200.00'],
      ['1002', '200.00'],
      ['', '-390.56'],
    ],
  ])
  expect((await opsOn('2026-11-02', 'statement', ...OCTOBER)).stderr).toContain('--mid is required')
})

it("every reconcile list shows the merchant's own order_id", async () => {
  const { stdout } = await opsOn('2026-11-02', ...OCTOBER, '--mid', mid)
  expect(stdout).toContain(`order ${orders.P2}, order_id 1002, UTR P2`)
  const csv = async (...args: string[]): Promise<Record<string, string>[]> =>
    parse((await opsOn('2026-11-02', ...args, '--csv')).stdout, { bom: true, columns: true })
  for (const list of [[...OCTOBER], ['resolutions']]) {
    expect((await csv(...list)).some(({ merchant_order_id }) => merchant_order_id === '="1002"')).toBe(true)
  }
  const { settlements } = await jsonOn('2026-11-02', '--payout', 'BANK2')
  expect(settlements.map((row: Record<string, string>) => row.merchantOrderId)).toEqual(['1001', '1002', null])
  expect((await opsOn('2026-11-02', '--payout', 'BANK2')).stdout).toMatch(/orderId +merchantOrderId +utr/)
})

/** Returns the lines of a section's tables of vouchers, as `date reference original day ledger debit credit`. */
async function vouchersInGuide(section: string): Promise<string[]> {
  const guide = await readFile('src/docs/guides/operator/accounting.md', 'utf8')
  const [text = ''] = guide
    .split(`\n## ${section}\n`)
    .slice(1)
    .map((rest) => rest.split('\n## ')[0])
  let first: string[] = []
  return text.split('\n').flatMap((line) => {
    const cells = line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim())
    if (/^2026-/.test(cells[0] ?? '')) first = cells
    const isVoucher = /^(?:2026-.*)?$/.test(cells[0] ?? 'none') && cells.length >= 5
    if (!isVoucher) return []
    const [ledger, debit, credit] = cells.slice(-3)
    const original = cells.length === 6 ? (first[2] ?? '') : ''
    return [[first[0], first[1]?.replaceAll('`', ''), original, ledger, debit || '0.00', credit || '0.00'].join(' | ')]
  })
}

it('the month of the accountant’s guide is what the journal posts', async () => {
  const { url: guideUrl, db: guideDb } = await createTestDatabase()
  const { mid: merchant } = await newMerchant(guideDb)
  const guideOps = opsAtNoon(() => guideUrl, ['reconcile'])
  const pay = (utr: string, day: string, rupees: number, acquirer = 'setu:acme', reportedAt = at(day)) =>
    storePaidOrder(guideDb, { mid: merchant, utr, paidAt: at(day), reportedAt, rupees, acquirer })
  const settle = (row: Partial<Row> & { utr: string; day: string; amount: number }) =>
    importRows(guideDb, [{ mid: merchant, ...row }], at(row.day, '20:00:00'))
  const orderId = await pay('G1', '2026-10-05', 600)
  await pay('G2', '2026-10-05', 400)
  await pay('G3', '2026-10-05', 200, 'direct')
  await settle({ utr: 'G1', day: '2026-10-06', amount: 592_92, fee: 6_00, tax: 1_08, reference: 'BRN2001' })
  await settle({ utr: 'G2', day: '2026-10-06', amount: 395_28, fee: 4_00, tax: 72, reference: 'BRN2001' })
  await settle({ utr: 'G3', day: '2026-10-06', amount: 200_00, reference: 'BRN2002' })
  await guideDb.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at, status, ended_at)
     values ($1, 'R1', 'OURS1', $2, 'G1', 40000, '', 'setu:acme', 'merchant', $3, 'SUCCESS', $3)`,
    [merchant, orderId, at('2026-10-07')],
  )
  await settle({ utr: 'D1', day: '2026-10-08', amount: -400_00, paymentUtr: 'G1', reference: 'BRN2003' })
  await pay('G4', '2026-10-30', 300)
  await settle({ utr: 'G4', day: '2026-11-02', amount: 296_46, fee: 3_00, tax: 54, reference: 'BRN2004' })
  const { accounts } = await guideOps.jsonOn('2026-11-04', 'close', '--month', '2026-10')
  expect(accounts).toEqual([{ mid: merchant, account: 'setu:acme', carriedForward: '300.00' }])
  await pay('G5', '2026-10-20', 100, 'setu:acme', at('2026-11-10'))
  const posted: string[] = []
  for (const month of ['2026-10', '2026-11'])
    posted.push(...asInGuide(await guideOps.jsonOn('2026-11-20', 'journal', '--month', month)))
  const inGuide = await vouchersInGuide('A month in figures')
  expect(inGuide.length).toBeGreaterThan(15)
  expect(posted).toEqual(inGuide)
})

const asInGuide = ({ postings }: { postings: Record<string, string>[] }) =>
  postings.map(({ date, voucherId = '', reference, originalDay, ledger, debit, credit }) => {
    const kind = /^[A-Z]+/.exec(voucherId)?.[0]
    return [date, `${kind} ${reference}`, originalDay ?? '', ledger, debit, credit].join(' | ')
  })

it('the disputes of the accountant’s guide are what the journal posts', async () => {
  const { url: guideUrl, db: guideDb } = await createTestDatabase()
  const { mid: merchant } = await newMerchant(guideDb)
  const guideOps = opsAtNoon(() => guideUrl, ['reconcile'])
  const disputes = createDisputes(guideDb)
  const reportOn = (day: string, id: string, orderId: string, status: DisputeStatus) =>
    disputes.record('cashfree', { id, orderId, status }, { source: 'notification', now: () => at(day) })
  const settle = (row: Partial<Row> & { utr: string; day: string; amount: number }) =>
    importRows(guideDb, [{ mid: merchant, ...row }], at(row.day, '20:00:00'), 'cashfree')
  const paid = { mid: merchant, paidAt: at('2026-12-01'), acquirer: 'cashfree' }
  const first = await storePaidOrder(guideDb, { ...paid, utr: 'G1', rupees: 500 })
  const second = await storePaidOrder(guideDb, { ...paid, utr: 'G2', rupees: 200 })
  await settle({ utr: 'G1', day: '2026-12-02', amount: 500_00, reference: 'BRN3001' })
  await settle({ utr: 'G2', day: '2026-12-02', amount: 200_00, reference: 'BRN3001' })
  await reportOn('2026-12-04', 'DISPUTE1', first, 'open')
  await reportOn('2026-12-05', 'DISPUTE2', second, 'open')
  const deducted = { day: '2026-12-07', event: 'CHARGEBACK', reference: 'BRN3002' }
  await settle({ utr: 'E4711', amount: -500_00, paymentUtr: 'G1', ...deducted })
  await settle({ utr: 'E4712', amount: -200_00, paymentUtr: 'G2', ...deducted })
  await reportOn('2026-12-15', 'DISPUTE1', first, 'won')
  for (const day of ['2026-12-16', '2026-12-17']) await reportOn(day, 'DISPUTE2', second, 'lost')
  const returned = { day: '2026-12-18', event: 'CHARGEBACK_REVERSE', reference: 'BRN3003' }
  await settle({ utr: 'E4713', amount: 500_00, paymentUtr: 'G1', ...returned })
  const posted = await guideOps.jsonOn('2026-12-31', 'journal', '--month', '2026-12')
  expect(asInGuide(posted)).toEqual(await vouchersInGuide('Disputes in figures'))
  const [book] = (await guideOps.jsonOn('2026-12-31', '--month', '2026-12')).merchants
  expect(book).toMatchObject({ differences: [], total: { carriedForward: '0.00', disputed: '200.00' } })
})
