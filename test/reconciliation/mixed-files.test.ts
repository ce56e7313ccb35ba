import { beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { readClosedBase } from '../../src/books/closing/closed-items.ts'
import { findOpen } from '../../src/books/closing/open-discrepancies.ts'
import { readMerchant } from '../../src/books/reading/merchant.ts'
import { readSnapshot } from '../../src/books/reading/snapshot.ts'
import { undoImport } from '../../src/books/settlements/imports.ts'
import { newId } from '../../src/gateway/payments/intent.ts'
import { type Database, inTransaction } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { findingsOf } from '../support/findings.ts'
import { runOps } from '../support/ops.ts'
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

describe('a change after the close that decides other days', () => {
  let url: string

  // Each test needs its own database, since a month can be closed only once.
  beforeEach(async () => {
    ;({ db, url } = await createTestDatabase())
    ;({ mid } = await newMerchant(db))
  })

  async function closeOctober() {
    // Reports continue from a closed month only if it has open items.
    const neighbour = await newMerchant(db)
    await storePaidOrder(db, { mid: neighbour.mid, utr: 'N', paidAt: istMoment('2026-10-20', '12:00:00') })
    vi.useFakeTimers({ toFake: ['Date'], now: istMoment('2026-11-05', '12:00:00') })
    const { code } = await runOps(url, ['reconcile', 'close', '--month', '2026-10'])
    vi.useRealTimers()
    expect(code).toBe(0)
  }

  /** Undoes a file on 10 November and imports a total of the same day instead. */
  async function replaceByTotal(importId: number, day: string, rupees: number) {
    const undo = { now: istMoment('2026-11-10', '10:00:00'), person: 'asha' }
    await inTransaction(db, (client) => undoImport(client, importId, undo))
    await importLate({ utr: 'LATE', day, rupees })
  }

  const importLate = ({ utr, day, rupees, account, paymentUtr }: File & { utr: string; day: string; rupees: number }) =>
    importRows(db, [{ mid, utr, day, amount: rupees * 100, paymentUtr }], istMoment('2026-11-10', '11:00:00'), account)

  /** Returns the open discrepancies, which must be the same from the close and from the first day. */
  async function openDiscrepancies() {
    const [since, whole] = await readSnapshot(db, istMoment('2026-11-12', '12:00:00'), async (snapshot) => {
      const merchant = await readMerchant(snapshot, mid)
      const closed = await readClosedBase(snapshot, '2026-11-12')
      expect(closed?.month).toBe('2026-10')
      const listed = async (base: typeof closed) => {
        const open: (readonly [string, string, number])[] = []
        await findOpen(merchant, { closed: base, to: '2026-11-11' }, (found) => {
          open.push(...found.map(({ day, kind, owed }) => [day, kind, owed / 100] as const))
        })
        return open.sort()
      }
      return [await listed(closed), await listed(undefined)]
    })
    expect(since).toEqual(whole)
    return since
  }

  it('reconcile judges again a payout without rows whose form an earlier payout decides', async () => {
    await pay('PA', '2026-10-01', 100)
    await settle('NA', '2026-10-05', 100, { paymentUtr: 'PA' })
    await pay('P0', '2026-10-05', 200)
    const named = await settle('N0', '2026-10-06', 200, { paymentUtr: 'P0' })
    await refund(await pay('P1', '2026-10-08', 200), '2026-10-12')
    await closeOctober()
    expect(await openDiscrepancies()).toEqual([])
    await replaceByTotal(named, '2026-10-06', 200)
    expect(await openDiscrepancies()).toEqual([
      ['2026-10-09', 'payout total', 200],
      ['2026-10-13', 'payout total', -200],
    ])
  })

  it('reconcile judges again a payout with a refund whose payment’s payout has changed', async () => {
    await pay('P0', '2026-10-01', 100)
    await settle('N0', '2026-10-05', 100, { paymentUtr: 'P0' })
    const unpaid = await pay('P1', '2026-10-05', 200)
    await pay('P2', '2026-10-05', 200)
    const named = await settle('N2', '2026-10-06', 200, { paymentUtr: 'P2' })
    await pay('P3', '2026-10-06', 100)
    await settle('N3', '2026-10-07', 100, { paymentUtr: 'P3' })
    await refund(unpaid, '2026-10-14')
    await pay('P4', '2026-10-14', 300)
    await settle('T4', '2026-10-15', 300)
    await closeOctober()
    expect(await openDiscrepancies()).toEqual([])
    await replaceByTotal(named, '2026-10-06', 200)
    expect(await openDiscrepancies()).toEqual([
      ['2026-10-06', 'payout total', 200],
      ['2026-10-15', 'payout total', -200],
    ])
  })

  it('reconcile judges again all payouts from the first day on which a late file names an acquirer', async () => {
    for (const [index, day] of ['2026-10-05', '2026-10-06', '2026-10-20'].entries()) {
      await pay(`S${index}`, day, 100, 'setu')
      await pay(`D${index}`, day, 300)
    }
    await settle('T0', '2026-10-06', 400)
    await settle('T1', '2026-10-07', 300)
    await settle('T2', '2026-10-21', 400)
    await closeOctober()
    expect(await openDiscrepancies()).toEqual([['2026-10-07', 'payout total', 100]])
    await importLate({ utr: 'LATE', day: '2026-10-07', rupees: 100, account: 'setu:acme', paymentUtr: 'S1' })
    expect(await openDiscrepancies()).toEqual([
      ['2026-10-20', 'missing settlement', 100],
      ['2026-10-21', 'payout total', -100],
    ])
  })
})
