import { beforeEach, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

let url: string
let db: Database
let mid: string
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  ;({ mid } = await newMerchant(db))
})

const { jsonOn, opsOn } = opsAtNoon(() => url)
const at = (day: string, time = '12:00:00') => istMoment(day, time)
const pay = (utr: string, day: string, rupees: number, acquirer: string, reportedAt = at(day)) =>
  storePaidOrder(db, { mid, utr, paidAt: at(day), reportedAt, rupees, acquirer })

/** Imports lines of a file that names the account, or none. */
const settle = (day: string, utrs: Record<string, number>, account?: string) =>
  importRows(
    db,
    Object.entries(utrs).map(([utr, rupees]) => ({ mid, utr, day, amount: rupees * 100 })),
    at(day, '20:00:00'),
    account,
  )

/** Returns the balances that `reconcile` carries forward from October, as known on `day`. */
async function carriedOn(day: string, ...args: string[]): Promise<Record<string, string>> {
  const { merchants } = await jsonOn(day, 'reconcile', '--month', '2026-10', '--mid', mid, ...args)
  const [{ accounts, total }] = merchants
  const sum = accounts.reduce((all: number, one: { carriedForward: string }) => all + Number(one.carriedForward), 0)
  expect(sum.toFixed(2)).toBe(total.carriedForward)
  return Object.fromEntries(accounts.map((one: Record<string, string>) => [one.account, one.carriedForward]))
}

it('reconcile carries the balance of each acquirer account forward, which add up to the merchant’s', async () => {
  await pay('A1', '2026-10-05', 100, 'setu:acme')
  await pay('A2', '2026-10-05', 50, 'setu:acme')
  await pay('D1', '2026-10-05', 30, 'direct')
  // The account of a line is that of its payment.
  await settle('2026-10-06', { A1: 100, D1: 10 })
  expect(await carriedOn('2026-11-10')).toEqual({ 'setu:acme': '50.00', direct: '20.00' })
  const { stdout } = await opsOn('2026-11-10', 'reconcile', '--month', '2026-10', '--mid', mid)
  expect(stdout).toMatch(/By acquirer account\naccount +carriedForward\ndirect +₹20\.00\nsetu:acme +₹50\.00\n/)
})

it('the account of a line without a known payment is the file’s, otherwise unknown until the next import after its payment', async () => {
  await settle('2026-10-06', { L1: 40 })
  await settle('2026-10-07', { F1: 25 }, 'cashfree')
  expect(await carriedOn('2026-10-08')).toEqual({ unknown: '-40.00', cashfree: '-25.00' })
  await pay('L1', '2026-10-05', 40, 'setu:acme', at('2026-10-09'))
  await pay('F1', '2026-10-05', 25, 'cashfree:second', at('2026-10-09'))
  expect(await carriedOn('2026-10-09')).toEqual({
    ...{ unknown: '-40.00', 'setu:acme': '40.00' },
    ...{ cashfree: '-25.00', 'cashfree:second': '25.00' },
  })
  await settle('2026-10-12', { N1: 1 }, 'direct')
  expect(await carriedOn('2026-10-13')).toEqual({ cashfree: '-25.00', 'cashfree:second': '25.00', direct: '-1.00' })
  // The line's new version has a time of its own.
  expect(await carriedOn('2026-10-13', '--as-of', '2026-10-11')).toMatchObject({ unknown: '-40.00' })
})

it('a payment that is recorded after its line does not change the account that the file names', async () => {
  await settle('2026-10-06', { F1: 25, 523504870001: 30 }, 'cashfree')
  await pay('F1', '2026-10-05', 25, 'setu:acme', at('2026-10-09'))
  await pay('B1', '2026-10-05', 30, 'setu:acme', at('2026-10-09'))
  await db.query(
    `update payments set bank_reference = '523504870001', bank_reference_at = $2 where mid = $1 and utr = 'B1'`,
    [mid, at('2026-10-10')],
  )
  const later = [{ mid, utr: 'F1', day: '2026-10-06', amount: 25_00, fee: 1_00 }]
  await importRows(db, later, at('2026-10-12'), 'cashfree')
  expect(await carriedOn('2026-10-13')).toEqual({ cashfree: '-56.00', 'setu:acme': '55.00' })
})

it('reconcile and close print the balance of lines of no known account, even if the merchant has no other balance', async () => {
  await settle('2026-10-06', { L1: 40 })
  for (const command of [['reconcile'], ['reconcile', 'close']]) {
    const { stdout } = await opsOn('2026-11-10', ...command, '--month', '2026-10')
    expect(stdout).toMatch(/By acquirer account\n.*carriedForward\n.*unknown +-₹40\.00\n/)
  }
})

it('a resolution changes the balance of the account of its payment, or of its payout by totals', async () => {
  await pay('A1', '2026-10-05', 100, 'setu:acme')
  await pay('T1', '2026-10-05', 80, 'cashfree')
  await settle('2026-10-06', { TOTAL: 70 }, 'cashfree')
  await settle('2026-10-06', { OTHER: 5 }, 'setu:acme')
  const { differences } = await jsonOn('2026-10-20', 'reconcile', 'differences', '--mid', mid)
  expect(differences.length).toBeGreaterThan(1)
  for (const { id } of differences) {
    await jsonOn('2026-10-21', 'reconcile', 'resolve', '--difference', id, '--reason', 'looked into')
  }
  expect(await carriedOn('2026-10-22')).toEqual({})
})

it('a close stores the balance of each account, from which later reports continue', async () => {
  await pay('A1', '2026-10-05', 100, 'setu:acme')
  await pay('D1', '2026-10-05', 30, 'direct')
  const closed = await jsonOn('2026-11-04', 'reconcile', 'close', '--month', '2026-10')
  expect(closed.accounts).toEqual([
    { mid, account: 'direct', carriedForward: '30.00' },
    { mid, account: 'setu:acme', carriedForward: '100.00' },
  ])
  expect(closed.figures[mid].carriedForward).toBe('130.00')
  const again = await jsonOn('2026-11-04', 'reconcile', 'close', '--month', '2026-10')
  expect([again.accounts, again.sha256]).toEqual([closed.accounts, closed.sha256])
  await settle('2026-11-05', { A1: 100 })
  const { merchants } = await jsonOn('2026-11-10', 'reconcile', '--month', '2026-11', '--mid', mid)
  expect(merchants[0].accounts).toEqual([
    { account: 'direct', broughtForward: '30.00', carriedForward: '30.00' },
    { account: 'setu:acme', broughtForward: '100.00', carriedForward: '0.00' },
  ])
})
