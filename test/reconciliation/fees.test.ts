import { beforeAll, beforeEach, expect, it } from 'vitest'
import type { Instrument } from '../../src/gateway/payments/instrument.ts'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment, type Row, storeReports } from './rows.ts'

let url: string
let db: Database
let mid: string
let count = 0

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
})
beforeEach(async () => {
  ;({ mid } = await newMerchant(db))
})

const at = (day: string) => istMoment(day, '12:00:00')

const { opsOn, jsonOn } = opsAtNoon(() => url)

const setFees = (day: string, ...args: string[]) => jsonOn(day, 'merchants', 'update', '--mid', mid, ...args)

const feesOn = (day: string, month = '2026-10') => jsonOn(day, 'reconcile', 'fees', '--month', month, '--mid', mid)

/** Returns each listed line with the amount that it deducts above the contract. */
async function excessOn(day: string, month?: string): Promise<string[]> {
  const { fees } = await feesOn(day, month)
  return fees.map((one: Record<string, string>) => `${one.settlementUtr} ${one.excess}`)
}

const sumOf = (account: string, more: object) => ({
  ...{
    account,
    instrument: null,
    isJudged: true,
    gross: '200.00',
    fee: '4.00',
    tax: '0.72',
    listed: 0,
    excess: '0.00',
  },
  ...more,
})

type Paid = { account?: string; rupees?: number; instrument?: Instrument | null }

/** Stores a payment of ₹200. */
async function pay(utr: string, day: string, { account = 'direct', rupees = 200, instrument = null }: Paid = {}) {
  count += 1
  const [paidAt, orderId] = [at(day), orderIdsBegin(at(day)) + String(count).padStart(20, '0')]
  await storeReports(db, {
    intents: [[mid, orderId, rupees, 0, paidAt, 'SUCCESS', utr]],
    payments: [[mid, utr, orderId, rupees * 100, paidAt, paidAt, 'first', 'notification', account]],
    exceptions: [],
  })
  await db.query('update payments set instrument = $1 where mid = $2 and utr = $3', [instrument, mid, utr])
  return orderId
}

const stored = (fee: number, tax: number, gross = 200_00) => ({ amount: gross - fee - tax, fee, tax })

/** Stores payments, and settlement lines on `day` with the fee and tax that the bank deducted. */
async function settle(paidOn: string, day: string, rows: Record<string, Partial<Row>>): Promise<void> {
  for (const utr of Object.keys(rows)) await pay(utr, paidOn)
  const reported = Object.entries(rows).map(([utr, row]) => ({ mid, utr, day, amount: 200_00, ...row }))
  await importRows(db, reported, at(day))
}

it('reconcile fees lists a line two paise above the contract, but no line one paisa above the contract or without a fee', async () => {
  await settle('2026-10-01', '2026-10-05', { BEFORE: stored(10_00, 1_80) })
  expect(await setFees('2026-10-06', '--fee', '1.8', '--tax', '18')).toMatchObject({
    fees: [rateOn('1.80', '2026-10-06', { acquirer: 'direct' })],
  })
  // 1.8 % of 200.00 is 3.60, and 18 % of that is 0.648.
  await settle('2026-10-06', '2026-10-07', {
    ...{ EXACT: stored(3_60, 65), PAISA: stored(3_61, 66), TWO: stored(3_62, 65), NOTHING: {}, LESS: stored(1_00, 18) },
    ...{
      HALF: stored(100_00, 0),
      NOTAX: { amount: 196_00, fee: 4_00 },
      FAILED: { ...stored(9_00, 0), status: 'FAILED' },
    },
  })
  expect(await excessOn('2026-10-20')).toEqual(['HALF 96.40', 'NOTAX 0.40', 'TWO 0.02'])
  const { fees, total } = await feesOn('2026-10-20')
  expect(fees[2]).toEqual({
    ...{ mid, day: '2026-10-07', settlementUtr: 'TWO', utr: 'TWO', orderId: expect.any(String), gross: '200.00' },
    ...{
      account: 'direct',
      instrument: null,
      fee: '3.62',
      tax: '0.65',
      allowedFee: '3.60',
      allowedTax: '0.65',
      excess: '0.02',
    },
  })
  const allowed = { allowedFee: '10.80', allowedTax: '1.95' }
  expect(total).toEqual({ gross: '600.00', fee: '107.62', tax: '0.65', ...allowed, excess: '96.82' })
})

it('reconcile fees computes the allowed fee from the payment, or from the line if the line names no known payment', async () => {
  await setFees('2026-10-01', '--fee', '1.8', '--tax', '18')
  await pay('PART', '2026-10-05')
  const lines = {
    PART: stored(3_60, 65, 100_00),
    TOTAL: stored(10_80, 1_94, 600_00),
    MORE: stored(10_84, 1_94, 600_00),
  }
  const rows = Object.entries(lines).map(([utr, line]) => ({ mid, utr, day: '2026-10-06', ...line }))
  await importRows(db, rows, at('2026-10-06'))
  expect((await feesOn('2026-10-20')).fees).toMatchObject([
    {
      settlementUtr: 'MORE',
      utr: null,
      orderId: null,
      gross: '600.00',
      allowedFee: '10.80',
      allowedTax: '1.94',
      excess: '0.04',
    },
  ])
})

it('reconcile fees lists a fee above the contract as text and CSV, and reconcile reports no discrepancy for the fee', async () => {
  await setFees('2026-10-01', '--fee', '1.8', '--tax', '18')
  await settle('2026-10-05', '2026-10-06', { DEAR: stored(4_00, 72) })
  const report = await jsonOn('2026-10-20', 'reconcile', '--month', '2026-10', '--mid', mid)
  expect(report).toMatchObject({ balances: true, merchants: [{ differences: [] }] })
  const list = ['reconcile', 'fees', '--from', '2026-10-06', '--to', '2026-10-06', '--mid', mid]
  const cells = / DEAR +₹200\.00 +₹4\.00 +₹0\.72 +₹3\.60 +₹0\.65 +₹0\.47 +DEAR +\w{32}\ntotal .* ₹0\.47 /
  expect((await opsOn('2026-10-20', ...list)).stdout).toMatch(cells)
  const { stdout } = await opsOn('2026-10-20', ...list, '--csv')
  expect(stdout).toContain(
    'mid,day,account,instrument,settlement_utr,gross,fee,tax,allowed_fee,allowed_tax,excess,utr,order_id\n',
  )
  expect(stdout).toContain(',200.00,4.00,0.72,3.60,0.65,0.47,DEAR,')
  expect((await opsOn('2026-10-20', 'reconcile', 'fees')).stderr).toContain('give either --from and --to, or --month')
})

it('reconcile fees applies the contract that is valid on the day of each payment', async () => {
  await setFees('2026-10-01', '--fee', '2', '--tax', '18')
  await settle('2026-10-05', '2026-10-06', { CHEAP: stored(4_00, 72), DEAR: stored(5_00, 90) })
  await setFees('2026-11-03', '--fee', '1', '--tax', '18')
  await settle('2026-11-02', '2026-11-03', { OLD: stored(4_00, 72) })
  await settle('2026-11-03', '2026-11-04', { NEXT: stored(4_00, 72) })
  await setFees('2026-11-21', '--fee', 'none')
  await settle('2026-11-21', '2026-11-22', { FREE: stored(100_00, 0) })
  expect(await excessOn('2026-11-25')).toEqual(['DEAR 1.18'])
  expect(await excessOn('2026-11-25', '2026-11')).toEqual(['NEXT 2.36'])
})

it("reconcile fees applies the contract of each acquirer according to the line's acquirer account", async () => {
  await db.query(`update merchants set acquirer = 'setu:acme', fallback_acquirer = 'cashfree' where mid = $1`, [mid])
  const feesListed = async () =>
    (await opsOn('2026-10-20', 'merchants', 'list')).stdout.split('\n').find((one) => one.startsWith(mid))
  expect(await feesListed()).not.toContain('% tax')
  await db.query(
    `insert into contract_rates values ($1, 'setu', '', 0, '2026-10-01', 1, 0, 18), ($1, 'cashfree', '', 0, '2026-10-01', 2, 0, 18)`,
    [mid],
  )
  for (const [utr, account] of [
    ['SETU', 'setu:acme'],
    ['CASHFREE', 'cashfree'],
    ['OTHER', 'direct'],
  ] as const)
    await pay(utr, '2026-10-05', { account })
  const rows = ['SETU', 'CASHFREE', 'OTHER', 'NAMELESS'].map((utr) => ({
    mid,
    utr,
    day: '2026-10-06',
    ...stored(4_00, 72),
  }))
  await importRows(db, rows, at('2026-10-06'))
  await importRows(db, [{ mid, utr: 'FILE', day: '2026-10-06', ...stored(4_00, 72) }], at('2026-10-06'), 'setu:other')
  expect(await excessOn('2026-10-20')).toEqual(['FILE 2.36', 'SETU 2.36'])
  expect((await feesOn('2026-10-20')).sums).toEqual([
    sumOf('cashfree', { lines: 1 }),
    sumOf('direct', { lines: 1, isJudged: false }),
    sumOf('setu:acme', { lines: 1, listed: 1, excess: '2.36' }),
    sumOf('setu:other', { lines: 1, listed: 1, excess: '2.36' }),
    sumOf('unknown', { lines: 1, isJudged: false }),
  ])
  expect(await feesListed()).toContain(
    'cashfree 2.00 % and 18.00 % tax since 2026-10-01, setu 1.00 % and 18.00 % tax since 2026-10-01',
  )
})

it.each([
  [['--fee', '1.8'], 'give --fee and --tax together, each with one value or one for each of direct'],
  [['--fee', '1.8,2', '--tax', '18'], 'give --fee and --tax together, each with one value or one for each of direct'],
  [['--tax', '18'], 'give --fee and --tax together, each with one value or one for each of direct'],
  [['--fee', '1.805', '--tax', '18'], '--fee must be percent with at most two decimals, such as 1.8'],
  [['--fee', '1.8', '--tax', '100'], '--tax must be percent with at most two decimals, such as 1.8'],
])('merchants update rejects %j with a usage message and stores no contract', async (args, message) => {
  const { code, stderr } = await opsOn('2026-10-01', 'merchants', 'update', '--mid', mid, ...args)
  expect(code).toBe(2)
  expect(stderr).toContain(`ops: ${message}`)
  expect((await db.query('select from contract_rates where mid = $1', [mid])).rowCount).toBe(0)
})

const addRate = (...args: string[]) => jsonOn('2026-10-01', 'fees', 'add', '--mid', mid, ...args)
const rateOn = (percent: string, from: string, more: object = {}) => ({
  ...{
    mid,
    acquirer: 'setu',
    instrument: null,
    above: '0.00',
    since: from,
    percent,
    flat: '0.00',
    tax: '18.00',
    ...more,
  },
})

it('ops fees adds, replaces, ends and lists the rates of a merchant', async () => {
  const named = ['--acquirer', 'setu:acme', '--instrument', 'credit-card', '--above', '2000']
  const card = { acquirer: 'setu:acme', instrument: 'credit card', above: '2000.00' }
  await addRate('--acquirer', 'setu', '--percent', '0.25', '--from', '2026-04-01')
  await addRate(...named, '--percent', '1.9', '--from', '2026-04-01')
  await addRate(...named, '--percent', '1.95', '--flat', '1.50', '--tax', '12', '--from', '2026-04-01')
  const rates = [rateOn('0.25', '2026-04-01'), rateOn('1.95', '2026-04-01', { ...card, flat: '1.50', tax: '12.00' })]
  expect(await jsonOn('2026-10-01', 'fees', 'list', '--mid', mid)).toEqual(rates)
  const end = ['fees', 'end', '--mid', mid, ...named]
  const early = await opsOn('2026-10-01', ...end, '--from', '2026-03-31')
  expect(early).toMatchObject({ code: 1, stderr: expect.stringContaining(`ops fees list --mid ${mid}`) })
  const ended = { ...rateOn('', '2026-10-16', card), percent: null, flat: null, tax: null }
  expect(await jsonOn('2026-10-01', ...end, '--from', '2026-10-16')).toEqual([...rates, ended])
  expect((await opsOn('2026-10-01', ...end, '--from', '2026-10-17')).code).toBe(1)
  // The end on 16 October and a rate of the next year are not valid yet.
  await addRate('--acquirer', 'setu', '--percent', '0.3', '--flat', '0.00', '--above', '0', '--from', '2027-04-01')
  const { fees } = await jsonOn('2026-10-01', 'merchants', 'update', '--mid', mid, '--fee', '1', '--tax', '18')
  expect(fees).toEqual([rateOn('1.00', '2026-10-01', { acquirer: 'direct' }), ...rates])
  const acme = ['--acquirer', 'setu:acme', '--above', '100', '--percent', '1', '--flat', '1.50', '--from', '2026-04-01']
  await addRate(...acme)
  expect((await opsOn('2026-10-01', 'merchants', 'list')).stdout).toContain(
    'setu:acme above ₹100.00 1.00 % plus ₹1.50 and 18.00 % tax since 2026-04-01',
  )
})

it('ops fees list shows the rate of a payment', async () => {
  await addRate('--acquirer', 'setu', '--percent', '1', '--from', '2026-10-01')
  await addRate('--acquirer', 'setu', '--instrument', 'wallet', '--percent', '1.1', '--from', '2026-10-06')
  const rateOfOrder = async (day: string, paid: Paid) => {
    const orderId = await pay(`W${count}`, day, paid)
    await db.query(
      `insert into acquirer_intents (mid, order_id, acquirer, acquirer_merchant_id, acquirer_order_id, reference, link, status_checks)
       values ($1, $2, $3, 'AM', 'AO', 'TR', 'upi://pay', 0)`,
      [mid, orderId, paid.account ?? 'direct'],
    )
    return (await jsonOn('2026-10-20', 'fees', 'list', '--order-id', orderId)).map(
      (one: { percent: string }) => one.percent,
    )
  }
  const wallet = { account: 'setu:acme', instrument: 'wallet' } as const
  expect(await rateOfOrder('2026-10-05', wallet)).toEqual(['1.00'])
  expect(await rateOfOrder('2026-10-06', wallet)).toEqual(['1.10'])
  expect(await rateOfOrder('2026-10-06', {})).toEqual([])
})

it('reconcile fees --by account assigns the fee that a refund returns to the day of the refund', async () => {
  const account = `setu:${mid}`
  await pay('KEPT', '2026-09-30', { account })
  await pay('BACK', '2026-09-30', { account })
  const rows = ['KEPT', 'BACK'].map((utr) => ({ mid, utr, day: '2026-10-01', ...stored(4_00, 72) }))
  const refund = { mid, utr: 'E1', paymentUtr: 'BACK', day: '2026-10-08', amount: -195_28, fee: -4_00, tax: -72 }
  await importRows(db, [...rows, refund], at('2026-10-08'), account)
  const list = ['reconcile', 'fees', '--month', '2026-10']
  const charges = await jsonOn('2026-11-02', ...list, '--by', 'account')
  expect(charges.find((one: { account: string }) => one.account === account)).toEqual({
    ...{ account, lines: 3, gross: '200.00', fee: '4.00', tax: '0.72', otherFee: '8.00', otherTax: '1.44' },
    ...{ laterFee: '0.00', laterTax: '0.00', resolved: '0.00' },
  })
  // The invoice of September contains both payments, and the credit note of October the returned fee.
  const invoiced = await opsOn('2026-11-02', ...list, '--account', account, '--invoice', '-4', '--invoice-tax', '-0.72')
  expect(invoiced.stdout).toContain('The invoice equals the charges by the day of the payment.')
  const other = await jsonOn('2026-11-02', ...list, '--account', account, '--invoice', '10', '--invoice-tax', '1')
  const remains = other.comparison.filter(({ item }: { item: string }) => item.startsWith('remains'))
  expect(remains).toEqual([
    { item: 'remains by payment day', fee: '14.00', tax: '1.72', total: '15.72' },
    { item: 'remains by settlement day', fee: '6.00', tax: '0.28', total: '6.28' },
  ])
})

it('reconcile fees --by account includes a line that is dated before the month of its payment in both months', async () => {
  const account = `setu:${mid}`
  await pay('LATE', '2026-11-01', { account })
  await importRows(db, [{ mid, utr: 'LATE', day: '2026-10-31', ...stored(4_00, 72) }], at('2026-11-02'), account)
  const invoice = ['--account', account, '--invoice', '4', '--invoice-tax', '0.72']
  const { comparison } = await jsonOn('2026-12-02', 'reconcile', 'fees', '--month', '2026-11', ...invoice)
  expect(comparison.map(({ item, total }: Record<string, string>) => `${item} ${total}`)).toEqual([
    ...['settlement lines 0.00', 'resolved as a charge 0.00', 'of payments on other days 0.00'],
    ...['settled on other days 4.72', 'charged for payments 4.72', 'invoice 4.72'],
    ...['remains by payment day 0.00', 'remains by settlement day 4.72'],
  ])
  const october = await opsOn('2026-12-02', 'reconcile', 'fees', '--month', '2026-10', ...invoice)
  expect(october.stdout).toContain('The invoice equals the charges by the day of the settlement.')
})

it('reconcile fees judges no line that pays a returned refund, and assigns its fee to its own day', async () => {
  const account = `setu:${mid}`
  await addRate('--acquirer', 'setu', '--percent', '2', '--from', '2026-04-01')
  await pay('P1', '2026-09-30', { account })
  const of = { mid, paymentUtr: 'P1' }
  const rows = [
    { mid, utr: 'P1', day: '2026-10-01', ...stored(4_00, 72) },
    { ...of, utr: 'E1', day: '2026-10-08', event: 'REFUND', amount: -195_28, fee: -4_00, tax: -72 },
    { ...of, utr: 'E2', day: '2026-10-20', event: 'REFUND_REVERSAL', ...stored(9_00, 72) },
  ]
  await importRows(db, rows, at('2026-10-20'), account)
  expect(await excessOn('2026-11-02')).toEqual([])
  const charges = await jsonOn('2026-11-02', 'reconcile', 'fees', '--month', '2026-10', '--by', 'account')
  expect(charges.find((one: { account: string }) => one.account === account)).toMatchObject({
    fee: '9.00',
    otherFee: '4.00',
  })
})
