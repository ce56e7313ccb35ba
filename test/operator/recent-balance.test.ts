import { beforeAll, expect, it } from 'vitest'
import { balanceUntilYesterday } from '../../src/books/reports/recent-balance.ts'
import { shownBalance } from '../../src/operator/support/today.ts'
import { openDifferencesText, recentBalanceText } from '../../src/operator/support/today-facts.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { findingsOf } from '../support/findings.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'

const at = (day: string) => new Date(`${day}T12:00:00+05:30`)
/** A Wednesday, so that the last days have no weekend. */
const NOW = at('2026-11-18')
const DAYS = { from: '2026-11-16', to: '2026-11-17' }

let db: Database

beforeAll(async () => {
  ;({ db } = await createTestDatabase())
})

const pay = (mid: string, utr: string, day: string) => storePaidOrder(db, { mid, utr, paidAt: at(day) })

const settle = (mid: string, utr: string, day: string, amount = 200, paymentUtr: string | null = null) =>
  db.query(
    `insert into settlements
       (mid, utr, amount_paise, payment_utr, bank_reference_number, status, initiated_at, created_at, recorded_at)
     values ($1, $2, $3, $4, 'BRN', 'SUCCESS', $5, $5, $5)`,
    [mid, utr, amount * 100, paymentUtr, at(day)],
  )

const balance = (limitMs = 4_000) => balanceUntilYesterday(db, NOW, limitMs)

/** The last line of `ops reconcile`. */
async function endOfReport() {
  for (const finding of await findingsOf(db, { ...DAYS, now: NOW })) {
    if (finding.type !== 'end') continue
    const { differences, openExceptions, carried } = finding.sums
    return { ...DAYS, balances: finding.balances, differences, openExceptions, carriedForward: carried }
  }
  throw new Error('a report without an end')
}

it('ops today reports that yesterday balances if payouts match payments, including merchants settled in daily totals', async () => {
  const nothing = { count: 0, owed: 0, oldest: null }
  const none = { ...DAYS, balances: true, errors: [], differences: 0, openExceptions: 0, open: nothing }
  expect(await balance()).toEqual({ ...none, carriedForward: 0 })
  const [{ mid: named }, { mid: bySums }] = [await newMerchant(db), await newMerchant(db)]
  for (const mid of [named, bySums]) {
    await pay(mid, `A${mid.toUpperCase()}`, '2026-11-13')
    await pay(mid, `B${mid.toUpperCase()}`, '2026-11-16')
    await pay(mid, `C${mid.toUpperCase()}`, '2026-11-17')
  }
  await settle(named, 'N1', '2026-11-16', 200, `A${named}`)
  await settle(named, 'N2', '2026-11-17', 200, `B${named}`)
  await settle(bySums, 'S1', '2026-11-16')
  await settle(bySums, 'S2', '2026-11-17')
  // The payout of yesterday’s two payments is not due yet.
  const found = await balance()
  expect(found).toEqual({ ...none, carriedForward: 400_00 })
  expect(found).toMatchObject((await endOfReport()) as object)
  expect(recentBalanceText(found ? shownBalance(found) : null)).toBe(
    '2026-11-16 to 2026-11-17 balances, ₹400.00 carried forward, none of it due yet',
  )
})

it('ops today reports that yesterday does not balance if ops reconcile finds a discrepancy', async () => {
  const { mid: named } = await newMerchant(db)
  // A settled payment, an unsettled one, and a settlement without a payment.
  await pay(named, 'D1', '2026-11-16')
  await pay(named, 'D2', '2026-11-16')
  await settle(named, 'N3', '2026-11-17', 200, 'D1')
  await settle(named, 'N4', '2026-11-17', 200, 'NOBODY')
  const { mid: bySums } = await newMerchant(db)
  await pay(bySums, 'E1', '2026-11-16')
  await settle(bySums, 'S3', '2026-11-17', 150)
  await db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, paid_at, received_at)
     values ('', 'gone', 'unknown order', 'UNKNOWN', 20000, 'SUCCESS', $1, $1)`,
    [at('2026-11-17')],
  )
  // A resolved difference, and one that cleared since.
  const { mid: ended } = await newMerchant(db)
  await db.query(
    `insert into difference_resolutions
       (mid, difference_id, entry, day, kind, amount_paise, account, reason, resolved_by, resolved_at)
     values ($1, '2611170123456789', 1, '2026-11-17', 'payout total', 5000, 'direct', 'paid by hand', 'asha', $2)`,
    [ended, at('2026-11-17')],
  )
  await pay(named, 'D0', '2026-10-05')
  const found = await balance()
  expect(found).toMatchObject((await endOfReport()) as object)
  expect(found).toMatchObject({ ...DAYS, balances: false, differences: 4, openExceptions: 1 })
  // Open are the settlement without a payment, D2, S3, the resolution of the cleared difference, and D0 of October.
  expect(found?.open).toEqual({ count: 5, owed: -200_00 + 200_00 + 50_00 + 50_00 + 200_00, oldest: '2026-10-05' })
  const shown = found ? shownBalance(found) : null
  expect([recentBalanceText(shown), openDifferencesText(shown)]).toEqual([
    '2026-11-16 to 2026-11-17 does not balance: 4 discrepancies, 1 open exception (ops reconcile --from 2026-11-16 --to 2026-11-17)',
    '5 open, total ₹300.00, oldest 2026-10-05 (ops reconcile differences)',
  ])
})

it('ops today reports no balance for yesterday if a database query times out or the number of merchants is too high', async () => {
  const locker = await db.connect()
  await locker.query('begin; lock table payments, payment_intents')
  expect(await balance(100)).toBeUndefined()
  await locker.query('rollback')
  locker.release()
  expect(await balance()).toMatchObject({ balances: false })
  await db.query(
    `insert into payment_exceptions (mid, order_id, kind, utr, amount_paise, status, received_at)
     select 'MANY' || i, 'order', 'double payment', i, 20000, 'SUCCESS', $1 from generate_series(1, 200) i`,
    [at('2026-11-17')],
  )
  expect(await balance()).toBeUndefined()
})
