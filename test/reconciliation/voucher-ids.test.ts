import { beforeEach, expect, it } from 'vitest'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

let url: string
let db: Database
let mids: string[]
beforeEach(async () => {
  ;({ url, db } = await createTestDatabase())
  mids = [await newMerchant(db), await newMerchant(db), await newMerchant(db)].map(({ mid }) => mid)
})

const { jsonOn, opsOn } = opsAtNoon(() => url, ['reconcile'])
const at = (day: string, time = '12:00:00') => istMoment(day, time)

/** Imports a line of the transfer BANK7 for each merchant. */
const settle = (utr: string, day: string, importedOn: string, fee?: number) =>
  importRows(
    db,
    mids.map((mid) => ({ mid, utr: `${utr}${mid}`, day, amount: 100_00, reference: 'BANK7', fee })),
    at(importedOn, '20:00:00'),
    'setu:acme',
  )

type Posting = Record<'voucherId' | 'mid' | 'date' | 'reference' | 'ledger' | 'debit' | 'credit', string> & {
  originalDay: string | null
}

/** Returns the vouchers of a month, as `day merchant original day` by id. */
async function vouchers(day: string, month: string, ...args: string[]): Promise<Record<string, string>> {
  const { postings } = await jsonOn(day, 'journal', '--month', month, ...args)
  const names = (postings as Posting[]).map(({ voucherId, date, mid, originalDay }) => {
    const number = mids.indexOf(mid)
    return [voucherId, [date, number, originalDay ?? ''].join(' ').trim()] as const
  })
  const byId = Object.fromEntries(names)
  for (const [id, name] of names) expect(byId[id], `${id} names one voucher`).toBe(name)
  return byId
}

const PAYOUT = /^PL?26\d{4}-[A-Z2-7]{16}$/

it('one bank reference of three merchants on two days is six vouchers, whose ids do not change with a fee', async () => {
  await settle('A', '2026-10-06', '2026-10-06')
  await settle('B', '2026-10-07', '2026-10-07')
  const before = await vouchers('2026-10-08', '2026-10')
  expect(Object.values(before).sort()).toEqual([
    ...['2026-10-06 0', '2026-10-06 1', '2026-10-06 2', '2026-10-07 0', '2026-10-07 1', '2026-10-07 2'],
  ])
  for (const id of Object.keys(before)) expect(id).toMatch(PAYOUT)
  await settle('A', '2026-10-06', '2026-10-08', 2_00)
  expect(await vouchers('2026-10-09', '2026-10')).toEqual(before)
})

it('rows, fees and undone imports after the close have vouchers of their own for each original day and posting day', async () => {
  await settle('A', '2026-10-06', '2026-10-06')
  await settle('B', '2026-10-07', '2026-10-07')
  await opsOn('2026-11-04', 'close', '--month', '2026-10')
  const october = await vouchers('2026-11-05', '2026-10')
  const late = await settle('C', '2026-10-06', '2026-11-06')
  await settle('B', '2026-10-07', '2026-11-07', 2_00)
  await settle('D', '2026-11-05', '2026-11-07')
  const november = await vouchers('2026-11-10', '2026-11')
  expect(Object.values(november).sort()).toEqual([
    ...['2026-11-05 0', '2026-11-05 1', '2026-11-05 2'],
    ...['2026-11-30 0 2026-10-06', '2026-11-30 0 2026-10-07', '2026-11-30 1 2026-10-06', '2026-11-30 1 2026-10-07'],
    ...['2026-11-30 2 2026-10-06', '2026-11-30 2 2026-10-07'],
  ])
  await opsOn('2026-12-02', 'close', '--month', '2026-11')
  await inTransaction(db, (client) => undoImport(client, late, { now: at('2026-12-03'), person: 'asha' }))
  const december = await vouchers('2026-12-04', '2026-12')
  expect(Object.values(december).sort()).toEqual([
    ...['2026-12-31 0 2026-10-06', '2026-12-31 1 2026-10-06', '2026-12-31 2 2026-10-06'],
  ])
  expect(await vouchers('2026-12-04', '2026-11')).toEqual(november)
  const ids = [october, november, december].flatMap((one) => Object.keys(one))
  expect(new Set(ids).size).toBe(ids.length)
  for (const id of ids) expect(id).toMatch(PAYOUT)
})

it('journal, statement, payouts and differences with --as-of ignore what was recorded later, closes included', async () => {
  const mid = mids[0] as string
  await storePaidOrder(db, { mid, utr: 'P1', paidAt: at('2026-10-05'), acquirer: 'setu:acme' })
  await importRows(db, [{ mid, utr: 'P1', day: '2026-10-06', amount: 200_00 }], at('2026-11-10'), 'setu:acme')
  const lists = [
    ...[
      ['journal', '--month', '2026-10'],
      ['statement', '--mid', mid, '--month', '2026-10'],
    ],
    ...[['payouts', '--month', '2026-10'], ['differences']],
  ]
  const printed = async (day: string, ...args: string[]) => {
    const all: string[] = []
    for (const list of lists) all.push((await opsOn(day, ...list, ...args)).stdout)
    return all
  }
  const asOf = ['--as-of', '2026-11-11']
  const open = await printed('2026-11-12', ...asOf)
  expect(open.map((text) => text.includes('P1') || text.includes('2026-10-05'))).toEqual([true, true, false, false])
  await opsOn('2026-11-12', 'close', '--month', '2026-10')
  await importRows(db, [{ mid, utr: 'P2', day: '2026-10-07', amount: 70_00 }], at('2026-11-13'), 'setu:acme')
  const { stdout } = await opsOn('2026-11-20', 'journal', '--month', '2026-11')
  expect(stdout).toContain('70.00')
  expect(await printed('2026-11-20', ...asOf)).toEqual(open)
  expect((await opsOn('2026-11-20', 'journal', '--month', '2026-11', ...asOf)).stdout).toBe('No rows.\n')
})
