import { beforeEach, expect, it } from 'vitest'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

let url: string
let db: Database
let mid: string
let other: string
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  ;[mid, other] = [(await newMerchant(db)).mid, (await newMerchant(db)).mid]
})

const { jsonOn, opsOn } = opsAtNoon(() => url, ['reconcile'])
const at = (day: string) => istMoment(day, '10:00:00')

/** Imports a line of the payout R, and returns the number of the import. */
const settle = (utr: string, day: string, importedOn: string, of = mid) =>
  importRows(db, [{ mid: of, utr, day, amount: 100_00, reference: 'R' }], at(importedOn), 'cashfree')

/** Stores the amounts of the payout R beside its lines, as a pull with this import does. */
const storeRest = (importId: number, amount: number, unknownOrders = 0) =>
  db.query(`insert into payout_rests values ($1, 'cashfree', 'R', '2026-10-31', $2, $3)`, [
    ...[importId, amount, unknownOrders],
  ])

/** Returns the balances of `Suspense` and `Unknown payments` after October and November, and the original days posted. */
async function posted() {
  const sums: Record<string, number> = {}
  const originalDays = new Set<string>()
  for (const month of ['2026-10', '2026-11']) {
    const { postings } = await jsonOn('2026-12-10', 'journal', '--month', month)
    for (const { ledger, debit, credit, originalDay } of postings) {
      if (!/^(Suspense|Unknown payments)$/.test(ledger)) continue
      sums[ledger] = (sums[ledger] ?? 0) + Number(debit) - Number(credit)
      if (originalDay !== null) originalDays.add(originalDay)
    }
  }
  return { sums, originalDays: [...originalDays] }
}

const close = async () => expect(await opsOn('2026-11-04', 'close', '--month', '2026-10')).toMatchObject({ code: 0 })

it.each(['the same', 'another'] as const)(
  'an adjustment is posted once, although a line of %s merchant moves its payout to the next month after the close',
  async (whose) => {
    await storeRest(await settle('L1', '2026-10-30', '2026-10-31'), -7_00)
    await close()
    expect((await posted()).sums).toEqual({ Suspense: 7 })
    await settle('L2', '2026-11-02', '2026-11-05', whose === 'another' ? other : mid)
    expect(await posted()).toEqual({ sums: { Suspense: 7 }, originalDays: ['2026-10-30'] })
  },
)

it('an adjustment is posted once, although an undo after the close moves its payout to the closed month', async () => {
  await storeRest(await settle('L1', '2026-10-30', '2026-10-31'), -7_00)
  const second = await settle('L2', '2026-11-02', '2026-11-02')
  await close()
  await inTransaction(db, (client) => undoImport(client, second, { now: at('2026-11-10'), person: 'asha' }))
  expect(await posted()).toEqual({ sums: { Suspense: 7 }, originalDays: ['2026-10-30'] })
})

it('amounts that cancel each other until a pull after the close are posted in whole', async () => {
  await storeRest(await settle('L1', '2026-10-30', '2026-10-31'), 0, 100_00)
  await close()
  await storeRest(await settle('L2', '2026-10-30', '2026-11-06'), 50_00, 100_00)
  expect((await posted()).sums).toEqual({ Suspense: 50, 'Unknown payments': -100 })
})
