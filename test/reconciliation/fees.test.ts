import { afterEach, beforeEach, expect, it } from 'vitest'
import { orderIdsBegin } from '../../src/gateway/payments/intent.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment, type Row, storeReports } from './months.ts'

const KIND = 'fee above the contract'

let url: string
let db: Database
let mid: string
let count = 0

// Of its own for each test, since a month is closed once.
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})
afterEach(async () => {})

const at = (day: string) => istMoment(day, '12:00:00')

const { opsOn, jsonOn } = opsAtNoon(() => url)

const setFees = (day: string, ...args: string[]) => jsonOn(day, 'merchants', 'update', '--mid', mid, ...args)

const reportOn = (day: string, ...args: string[]) =>
  jsonOn(day, 'reconcile', ...(args.length > 0 ? args : ['--month', '2026-10']), '--mid', mid)

/** The differences of October, each with its row and what the bank has kept too much. */
async function foundOn(day: string, ...args: string[]): Promise<string[]> {
  const [book] = (await reportOn(day, ...args)).merchants
  return book.differences.map((one: Record<string, string>) => `${one.kind} ${one.settlementUtr} ${one.owed}`)
}

/** Stores a payment of ₹200. */
async function pay(utr: string, day: string): Promise<void> {
  count += 1
  const [paidAt, orderId] = [at(day), orderIdsBegin(at(day)) + String(count).padStart(20, '0')]
  await storeReports(db, {
    intents: [[mid, orderId, 200, 0, paidAt, 'SUCCESS', utr]],
    changes: [[mid, orderId, utr, paidAt, 'notification', paidAt]],
    payments: [[mid, utr, orderId, 200_00, paidAt, paidAt]],
    exceptions: [],
  })
}

const kept = (fee: number, tax: number, gross = 200_00) => ({ amount: gross - fee - tax, fee, tax })

/** Stores payments and the rows of the bank day after, each of which says what the bank has kept. */
async function settle(paidOn: string, day: string, rows: Record<string, Partial<Row>>): Promise<void> {
  for (const utr of Object.keys(rows)) await pay(utr, paidOn)
  const told = Object.entries(rows).map(([utr, row]) => ({ mid, utr, day, amount: 200_00, ...row }))
  await importRows(db, told, at(day))
}

it('a row that keeps more than the contract by two paise is a difference, and one paisa, less and nothing stated are none', async () => {
  await settle('2026-10-01', '2026-10-05', { BEFORE: kept(10_00, 1_80) })
  expect(await setFees('2026-10-06', '--fee', '1.8', '--tax', '18')).toMatchObject({
    fees: [{ acquirer: 'direct', since: '2026-10-06', fee: '1.80', tax: '18.00' }],
  })
  // 1.8 % of 200.00 are 3.60, and 18 % of these 0.648.
  await settle('2026-10-05', '2026-10-06', {
    ...{ EXACT: kept(3_60, 65), PAISA: kept(3_61, 65), TWO: kept(3_61, 66), NOTHING: {}, LESS: kept(1_00, 18) },
    ...{ HALF: kept(100_00, 0), NOTAX: { amount: 196_00, fee: 4_00 } },
  })
  expect(await foundOn('2026-10-20')).toEqual([`${KIND} TWO 0.02`, `${KIND} HALF 95.75`])
  const [book] = (await reportOn('2026-10-20')).merchants
  expect(book.differences[0]).toMatchObject({
    ...{ day: '2026-10-06', utr: 'TWO', paid: '200.00', settled: '199.98', orderId: expect.any(String) },
    cause: 'fee and tax are 4.27, and 4.25 by the contract of 1.80 % and 18.00 % tax',
  })
  expect(book.total).toMatchObject({ differences: 2, carriedForward: '0.00' })
})

it('a sum may differ by one paisa for each payment that it is for', async () => {
  await setFees('2026-10-01', '--fee', '1.8', '--tax', '18')
  for (const utr of ['P1', 'P2', 'P3']) await pay(utr, '2026-10-05')
  for (const utr of ['P4', 'P5', 'P6']) await pay(utr, '2026-10-06')
  // Of 600.00 it may keep 10.80 and 1.94.
  await importRows(db, [{ mid, utr: 'SUM1', day: '2026-10-06', ...kept(10_83, 1_94, 600_00) }], at('2026-10-06'))
  await importRows(db, [{ mid, utr: 'SUM2', day: '2026-10-07', ...kept(10_84, 1_94, 600_00) }], at('2026-10-07'))
  expect(await foundOn('2026-10-20')).toEqual([`${KIND} SUM2 0.04`])
})

it('a fee above the contract is listed until a person ends it, in the month and after it was closed, and moves no money', async () => {
  await setFees('2026-10-01', '--fee', '1.8', '--tax', '18')
  await settle('2026-10-05', '2026-10-06', { DEAR: kept(4_00, 72) })
  const before = (await reportOn('2026-11-02')).total
  expect((await opsOn('2026-11-02', 'reconcile', 'close', '--month', '2026-10')).code).toBe(0)
  const { differences } = await jsonOn('2026-11-20', 'reconcile', 'differences')
  expect(differences).toMatchObject([{ kind: KIND, owed: '0.47', settlementUtr: 'DEAR', ageDays: 45 }])
  expect((await opsOn('2026-11-20', 'today')).stdout).toMatch(/1 open, together 0\.47, the oldest of 2026-10-06/)
  const resolve = ['reconcile', 'resolve', '--difference', differences[0].id, '--reason', 'billed so', '--as', 'charge']
  expect((await opsOn('2026-11-21', ...resolve)).stdout).toContain(`${KIND} of 0.47, is resolved as charge`)
  expect((await opsOn('2026-11-22', ...resolve)).stderr).toContain('was resolved already: billed so')
  expect((await jsonOn('2026-11-22', 'reconcile', 'differences')).differences).toEqual([])
  const after = await reportOn('2026-11-22')
  expect(after.balances).toBe(true)
  expect(after.total).toEqual({ ...before, differences: 0 })
  expect(after.merchants[0].changed.by).toEqual([`resolution of difference ${differences[0].id}`])
  const november = await reportOn('2026-11-22', '--month', '2026-11')
  expect(november.total).toMatchObject({ broughtForward: '0.00', carriedForward: '0.00' })
})

it('a contract changes neither the report of a closed month nor one as of a day before it', async () => {
  await setFees('2026-10-01', '--fee', '2', '--tax', '18')
  await settle('2026-10-05', '2026-10-06', { CHEAP: kept(4_00, 72), DEAR: kept(5_00, 90) })
  const found = [`${KIND} DEAR 1.18`]
  const closed = await jsonOn('2026-11-02', 'reconcile', 'close', '--month', '2026-10')
  await setFees('2026-11-03', '--fee', '1', '--tax', '18')
  await settle('2026-11-02', '2026-11-03', { NEXT: kept(4_00, 72) })
  expect(await foundOn('2026-11-20')).toEqual(found)
  expect(await foundOn('2026-11-20', '--month', '2026-10', '--as-of', '2026-10-31')).toEqual(found)
  expect((await reportOn('2026-11-20')).merchants[0].changed).toBeNull()
  expect(await jsonOn('2026-11-20', 'reconcile', 'close', '--month', '2026-10')).toEqual(closed)
  expect(await foundOn('2026-11-20', '--month', '2026-11')).toEqual([`${KIND} NEXT 2.36`])
  await setFees('2026-11-21', '--fee', 'none')
  await settle('2026-11-20', '2026-11-21', { FREE: kept(100_00, 0) })
  expect(await foundOn('2026-11-25', '--month', '2026-11')).toEqual([`${KIND} NEXT 2.36`])
})

it('each acquirer of a merchant has a contract of its own, by the account that the row names', async () => {
  await db.query(`update merchants set acquirer = 'setu:acme', next_acquirer = 'cashfree' where mid = $1`, [mid])
  const before = await opsOn('2026-10-01', 'merchants', 'list')
  expect(before.stdout).not.toContain('% tax')
  await db.query(
    `insert into merchant_fees values ($1, 'setu', '2026-10-01', 1, 18), ($1, 'cashfree', '2026-10-01', 2, 18)`,
    [mid],
  )
  await settle('2026-10-05', '2026-10-06', { SETU: kept(4_00, 72), CASHFREE: kept(4_00, 72), UNKNOWN: kept(4_00, 72) })
  await db.query(`update settlements set account = 'setu:acme' where utr = 'SETU'`)
  await db.query(`update settlements set account = 'cashfree' where utr = 'CASHFREE'`)
  expect(await foundOn('2026-10-20')).toEqual([`${KIND} SETU 2.36`])
  expect((await opsOn('2026-10-20', 'merchants', 'list')).stdout).toContain(
    'cashfree 2.00 % and 18.00 % tax since 2026-10-01, setu 1.00 % and 18.00 % tax since 2026-10-01',
  )
})

it.each([
  [['--fee', '1.8'], 'give --fee and --tax together, one of each or one for each of direct'],
  [['--fee', '1.8,2', '--tax', '18'], 'give --fee and --tax together, one of each or one for each of direct'],
  [['--tax', '18'], 'give --fee and --tax together, one of each or one for each of direct'],
  [['--fee', '1.805', '--tax', '18'], '--fee must be percent with at most two decimals, such as 1.8'],
  [['--fee', '1.8', '--tax', '100'], '--tax must be percent with at most two decimals, such as 1.8'],
])('merchants update refuses %j with usage, and nothing is expected', async (args, message) => {
  const { code, stderr } = await opsOn('2026-10-01', 'merchants', 'update', '--mid', mid, ...args)
  expect(code).toBe(2)
  expect(stderr).toContain(`ops: ${message}`)
  expect((await db.query('select from merchant_fees')).rowCount).toBe(0)
})
