import { beforeAll, beforeEach, expect, it } from 'vitest'
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

/** Stores a payment of ₹200. */
async function pay(utr: string, day: string): Promise<void> {
  count += 1
  const [paidAt, orderId] = [at(day), orderIdsBegin(at(day)) + String(count).padStart(20, '0')]
  await storeReports(db, {
    intents: [[mid, orderId, 200, 0, paidAt, 'SUCCESS', utr]],
    payments: [[mid, utr, orderId, 200_00, paidAt, paidAt, 'first', 'notification']],
    exceptions: [],
  })
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
    fees: [{ acquirer: 'direct', since: '2026-10-06', fee: '1.80', tax: '18.00' }],
  })
  // 1.8 % of 200.00 is 3.60, and 18 % of that is 0.648.
  await settle('2026-10-05', '2026-10-06', {
    ...{ EXACT: stored(3_60, 65), PAISA: stored(3_61, 65), TWO: stored(3_61, 66), NOTHING: {}, LESS: stored(1_00, 18) },
    ...{
      HALF: stored(100_00, 0),
      NOTAX: { amount: 196_00, fee: 4_00 },
      FAILED: { ...stored(9_00, 0), status: 'FAILED' },
    },
  })
  expect(await excessOn('2026-10-20')).toEqual(['HALF 95.75', 'TWO 0.02'])
  const { fees, total } = await feesOn('2026-10-20')
  expect(fees[1]).toEqual({
    ...{ mid, day: '2026-10-06', settlementUtr: 'TWO', utr: 'TWO', orderId: expect.any(String), gross: '200.00' },
    ...{ fee: '3.61', tax: '0.66', allowed: '4.25', excess: '0.02' },
  })
  expect(total).toEqual({ gross: '400.00', fee: '103.61', tax: '0.66', allowed: '8.50', excess: '95.77' })
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
    { settlementUtr: 'MORE', utr: null, orderId: null, gross: '600.00', allowed: '12.74', excess: '0.04' },
  ])
})

it('reconcile fees lists a fee above the contract as text and CSV, and reconcile reports no discrepancy for the fee', async () => {
  await setFees('2026-10-01', '--fee', '1.8', '--tax', '18')
  await settle('2026-10-05', '2026-10-06', { DEAR: stored(4_00, 72) })
  const report = await jsonOn('2026-10-20', 'reconcile', '--month', '2026-10', '--mid', mid)
  expect(report).toMatchObject({ balances: true, merchants: [{ differences: [] }] })
  const list = ['reconcile', 'fees', '--from', '2026-10-06', '--to', '2026-10-06', '--mid', mid]
  const cells = / DEAR +DEAR +\w{32} +₹200\.00 +₹4\.00 +₹0\.72 +₹4\.25 +₹0\.47\ntotal .* ₹0\.47$/
  expect((await opsOn('2026-10-20', ...list)).stdout.trimEnd()).toMatch(cells)
  const { stdout } = await opsOn('2026-10-20', ...list, '--csv')
  expect(stdout).toContain('mid,day,settlement_utr,utr,order_id,gross,fee,tax,allowed,excess\n')
  expect(stdout).toContain(',200.00,4.00,0.72,4.25,0.47\n')
  expect((await opsOn('2026-10-20', 'reconcile', 'fees')).stderr).toContain('give either --from and --to, or --month')
})

it('reconcile fees applies the contract that is valid on the day of each line', async () => {
  await setFees('2026-10-01', '--fee', '2', '--tax', '18')
  await settle('2026-10-05', '2026-10-06', { CHEAP: stored(4_00, 72), DEAR: stored(5_00, 90) })
  await setFees('2026-11-03', '--fee', '1', '--tax', '18')
  await settle('2026-11-02', '2026-11-03', { NEXT: stored(4_00, 72) })
  await setFees('2026-11-21', '--fee', 'none')
  await settle('2026-11-20', '2026-11-21', { FREE: stored(100_00, 0) })
  expect(await excessOn('2026-11-25')).toEqual(['DEAR 1.18'])
  expect(await excessOn('2026-11-25', '2026-11')).toEqual(['NEXT 2.36'])
})

it("reconcile fees applies the contract of each acquirer according to the line's acquirer account", async () => {
  await db.query(`update merchants set acquirer = 'setu:acme', fallback_acquirer = 'cashfree' where mid = $1`, [mid])
  const feesListed = async () =>
    (await opsOn('2026-10-20', 'merchants', 'list')).stdout.split('\n').find((one) => one.startsWith(mid))
  expect(await feesListed()).not.toContain('% tax')
  await db.query(
    `insert into merchant_fees values ($1, 'setu', '2026-10-01', 1, 18), ($1, 'cashfree', '2026-10-01', 2, 18)`,
    [mid],
  )
  await settle('2026-10-05', '2026-10-06', {
    SETU: stored(4_00, 72),
    CASHFREE: stored(4_00, 72),
    UNKNOWN: stored(4_00, 72),
  })
  await db.query(`update settlements set account = 'setu:acme' where mid = $1 and utr = 'SETU'`, [mid])
  await db.query(`update settlements set account = 'cashfree' where mid = $1 and utr = 'CASHFREE'`, [mid])
  expect(await excessOn('2026-10-20')).toEqual(['SETU 2.36'])
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
  expect((await db.query('select from merchant_fees where mid = $1', [mid])).rowCount).toBe(0)
})
