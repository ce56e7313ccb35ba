import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newId } from '../../src/gateway/payments/intent.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { findingsOf } from '../support/findings.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment } from './rows.ts'

/** Bank days from Monday to Friday. */
const [MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY] = [16, 17, 18, 19, 20].map((day) => `2026-11-${day}`) as [
  ...[string, string, string, string, string],
]
const NOW = istMoment('2026-12-15', '12:00:00')

let db: Database
let mid: string

beforeAll(async () => {
  ;({ db } = await createTestDatabase())
})
beforeEach(async () => {
  ;({ mid } = await newMerchant(db))
})

async function pay(utr: string, day: string, rupees: number, acquirer = 'direct') {
  const orderId = await storePaidOrder(db, { mid, utr, paidAt: istMoment(day, '12:00:00'), rupees, acquirer })
  return { orderId, utr, rupees, acquirer }
}

type Paid = Awaited<ReturnType<typeof pay>>

/** Stores a refund of the whole payment that succeeded on `day`. */
async function refund({ orderId, utr, rupees, acquirer }: Paid, day: string) {
  const at = istMoment(day, '13:00:00')
  const id = newId(at)
  await db.query(
    `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
       status, reference, ended_at)
     values ($1, $2, $2, $3, $4, $5, 'cold', $6, 'merchant', $7, 'SUCCESS', '', $7)`,
    [mid, id, orderId, utr, rupees * 100, acquirer, at],
  )
  return id
}

type File = { account?: string; paymentUtr?: string }
/** Imports a file with one row, which names its payment or is the total of a payout. */
const settle = (utr: string, day: string, rupees: number, { account, paymentUtr }: File = {}) =>
  importRows(db, [{ mid, utr, day, amount: rupees * 100, paymentUtr }], istMoment(day, '20:00:00'), account)

async function differencesOf(from: string, to: string) {
  const findings = await findingsOf(db, { mid, from, to, now: NOW })
  return findings.flatMap((one) => (one.type === 'difference' ? [one] : []))
}

async function report(from = MONDAY, to = FRIDAY) {
  const total = (await findingsOf(db, { mid, from, to, now: NOW })).find((one) => one.type === 'total')
  const differences = await differencesOf(from, to)
  const carried = total?.type === 'total' ? total.sums.carried : 0
  return {
    found: differences.map(({ day, kind, account, owed }) => [day, kind, ...(account ? [account] : []), owed / 100]),
    carried: carried / 100,
    owed: differences.reduce((sum, { owed }) => sum + owed, 0) / 100,
  }
}

describe('a refund without a line', () => {
  it('reconcile reports a refund that no row deducts if its payment was part of a total and later rows name payments', async () => {
    const paid = await pay('P', MONDAY, 100)
    await settle('T1', TUESDAY, 100)
    await pay('Q', TUESDAY, 200)
    await refund(paid, TUESDAY)
    await settle('N2', WEDNESDAY, 200, { paymentUtr: 'Q' })
    expect(await report()).toEqual({
      ...{ found: [[TUESDAY, 'refund not deducted', -100]], carried: -100, owed: -100 },
    })
  })

  it('reconcile reports no discrepancy if a payment was never paid out and was refunded before a total', async () => {
    const paid = await pay('P', MONDAY, 100)
    await pay('O', MONDAY, 300)
    await settle('N1', TUESDAY, 300, { paymentUtr: 'O' })
    await pay('Q', TUESDAY, 500)
    await refund(paid, TUESDAY)
    await settle('T2', WEDNESDAY, 500)
    expect(await report()).toEqual({ found: [], carried: 0, owed: 0 })
  })

  it('reconcile judges a refund by the payout of a payment that was paid before the reported days', async () => {
    const paid = await pay('P', MONDAY, 100)
    await pay('O', MONDAY, 300)
    await settle('N1', TUESDAY, 300, { paymentUtr: 'O' })
    await pay('Q', THURSDAY, 500)
    await refund(paid, THURSDAY)
    await settle('T2', FRIDAY, 500)
    expect((await report(MONDAY, FRIDAY)).found).toEqual([])
    expect((await report(FRIDAY, FRIDAY)).found).toEqual([])
    expect((await report(THURSDAY, THURSDAY)).found).toEqual([])
  })
})

describe('the acquirers that files name', () => {
  it('reconcile gives a payout the same acquirer in the report of a day and of a month', async () => {
    await pay('S1', MONDAY, 100, 'setu')
    await pay('D1', MONDAY, 300)
    await settle('T1', TUESDAY, 400)
    await pay('S2', WEDNESDAY, 100, 'setu')
    await pay('D2', WEDNESDAY, 300)
    await settle('T2', THURSDAY, 290)
    await settle('SET', THURSDAY, 100, { account: 'setu:acme', paymentUtr: 'S2' })
    const all = await differencesOf(MONDAY, FRIDAY)
    expect(all.map(({ day, kind, owed }) => [day, kind, owed])).toEqual([[THURSDAY, 'payout total', 10_00]])
    for (const day of [MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY]) {
      const ids = (await differencesOf(day, day)).map(({ id }) => id)
      expect(ids, day).toEqual(all.filter((one) => one.day === day).map(({ id }) => id))
    }
  })

  it('reconcile gives a payout without rows the form of its own acquirer’s previous payout in every report', async () => {
    await pay('S1', MONDAY, 100, 'setu')
    await pay('D1', MONDAY, 300)
    await settle('SET1', TUESDAY, 100, { account: 'setu', paymentUtr: 'S1' })
    await settle('T1', TUESDAY, 300)
    await pay('S2', THURSDAY, 100, 'setu')
    await pay('D2', THURSDAY, 300)
    const all = await differencesOf(MONDAY, FRIDAY)
    expect(all.map(({ day, kind, owed }) => [day, kind, owed])).toEqual([
      [THURSDAY, 'missing settlement', 100_00],
      [FRIDAY, 'payout total', 300_00],
    ])
    for (const day of [THURSDAY, FRIDAY]) {
      const ids = (await differencesOf(day, day)).map(({ id }) => id)
      expect(ids, day).toEqual(all.filter((one) => one.day === day).map(({ id }) => id))
    }
  })
})
