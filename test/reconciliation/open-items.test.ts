import { beforeAll, expect, it } from 'vitest'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

let url: string
let db: Database
let [byPayment, byTotals] = ['', '']
const orderIds: Record<string, string> = {}

const at = (day: string, time = '12:00:00') => istMoment(day, time)

/** The payments and files of one merchant that is paid out payment by payment, and of one that is paid out in totals. */
beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
  byPayment = (await newMerchant(db)).mid
  byTotals = (await newMerchant(db)).mid
  const pay = async (mid: string, utr: string, day: string, rupees: number) => {
    orderIds[utr] = await storePaidOrder(db, { mid, utr, paidAt: at(day), rupees })
  }
  const settle = (mid: string, day: string, utrs: Record<string, number>) =>
    importRows(
      db,
      Object.entries(utrs).map(([utr, amount]) => ({ mid, utr, day, amount })),
      at(day, '20:00:00'),
    )
  // 28 October 2026 is a Wednesday.
  await pay(byPayment, 'SETTLED', '2026-10-28', 100)
  await pay(byPayment, 'MISSING', '2026-10-28', 20)
  await settle(byPayment, '2026-10-29', { SETTLED: 100_00 })
  await pay(byPayment, 'NEXTDAY', '2026-10-31', 40)
  await settle(byPayment, '2026-11-02', { NEXTDAY: 40_00 })
  await settle(byPayment, '2026-11-05', { MISSING: 20_00 })
  await pay(byTotals, 'SUM1', '2026-10-28', 100)
  await pay(byTotals, 'SUM2', '2026-10-28', 50)
  await settle(byTotals, '2026-10-29', { TOTAL1: 145_00 })
  await pay(byTotals, 'SUM3', '2026-10-31', 60)
  await pay(byTotals, 'SUM4', '2026-10-31', 5)
  await settle(byTotals, '2026-11-02', { TOTAL2: 65_00 })
})

const { jsonOn, opsOn } = opsAtNoon(() => url)

type Items = { openItems: Record<string, string | null>[]; total: { amount: string } }
const openItemsOf = (mid: string, day: string, ...args: string[]): Promise<Items> =>
  jsonOn(day, 'reconcile', 'open', '--mid', mid, ...args)
const brief = ({ openItems }: Items) =>
  openItems.map(({ day, kind, utr, amount, settledOn }) => [day, kind, utr, amount, settledOn])

it('reconcile open lists an open discrepancy and the payment that is not judged yet, with the day on which each was settled later', async () => {
  const items = await openItemsOf(byPayment, '2026-11-10', '--as-of', '2026-10-31')
  expect(brief(items)).toEqual([
    ['2026-10-28', 'missing settlement', 'MISSING', '20.00', '2026-11-05'],
    ['2026-10-31', 'not judged yet', 'NEXTDAY', '40.00', '2026-11-02'],
  ])
  expect(items.total).toEqual({ amount: '60.00' })
  const { MISSING: orderId = '' } = orderIds
  expect(items.openItems[0]).toMatchObject({ mid: byPayment, orderId, merchantOrderId: orderId })
  expect(items.openItems[0]?.differenceId).toMatch(/^261028[0-9a-f]{10}$/)
})

it('reconcile open knows no later settlement when it is run on the day itself, and lists nothing that was settled by today', async () => {
  const items = await openItemsOf(byPayment, '2026-10-31')
  expect(brief(items)).toEqual([
    ['2026-10-28', 'missing settlement', 'MISSING', '20.00', null],
    ['2026-10-31', 'not judged yet', 'NEXTDAY', '40.00', null],
  ])
  expect((await openItemsOf(byPayment, '2026-11-10')).openItems).toEqual([])
})

it('reconcile open lists of a merchant with payouts in totals the payout that differs and the payments of the next payout', async () => {
  const items = await openItemsOf(byTotals, '2026-11-10', '--as-of', '2026-10-31')
  expect(brief(items)).toEqual([
    ['2026-10-29', 'payout total', null, '5.00', null],
    ['2026-10-31', 'not judged yet', 'SUM3', '60.00', '2026-11-02'],
    ['2026-10-31', 'not judged yet', 'SUM4', '5.00', '2026-11-02'],
  ])
})

it.each(['2026-10-28', '2026-10-29', '2026-10-31', '2026-11-02', '2026-11-05'])(
  'the open items as of %s add up to the balance that reconcile carries forward from this day',
  async (asOf) => {
    const { total } = await jsonOn('2026-11-10', 'reconcile', 'open', '--as-of', asOf)
    const book = await jsonOn('2026-11-10', 'reconcile', '--from', asOf, '--to', asOf, '--as-of', asOf)
    expect(total.amount).toBe(book.total.carriedForward)
  },
)

it('reconcile open of a closed month adds up to the figure that the close has stored', async () => {
  const closed = await jsonOn('2026-11-01', 'reconcile', 'close', '--month', '2026-10')
  const { total } = await jsonOn('2026-11-10', 'reconcile', 'open', '--as-of', '2026-10-31')
  expect(total.amount).toBe(closed.figures['*'].carriedForward)
})

it('reconcile open rejects an unknown merchant and an invalid day', async () => {
  expect(await opsOn('2026-11-10', 'reconcile', 'open', '--mid', 'NONE')).toMatchObject({ code: 1 })
  expect(await opsOn('2026-11-10', 'reconcile', 'open', '--as-of', '2026-10-32')).toMatchObject({ code: 2 })
})
