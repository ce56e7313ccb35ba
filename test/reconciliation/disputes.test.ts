import { beforeAll, describe, expect, it } from 'vitest'
import type { DisputeReport, DisputeStatus } from '../../src/gateway/disputes/dispute.ts'
import { createDisputes } from '../../src/gateway/disputes/record-dispute.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { opsAtNoon } from '../support/ops.ts'
import { storePaidOrder } from '../support/paid-orders.ts'
import { newMerchant } from '../support/service.ts'
import { importRows, istMoment, type Row } from './rows.ts'

let url: string
let db: Database
let number = 0

const { jsonOn } = opsAtNoon(() => url, ['reconcile'])
const at = (day: string, time = '12:00:00') => istMoment(`2026-${day}`, time)

beforeAll(async () => {
  ;({ url, db } = await createTestDatabase())
})

type Disputed = { mid: string; utr: string; orderId: string }

/** Stores a payment of ₹200 of 5 October that was settled on 6 October without a fee. */
async function settledPayment(): Promise<Disputed> {
  const { mid } = await newMerchant(db)
  number += 1
  const utr = `PAID${number}`
  const orderId = await storePaidOrder(db, { mid, utr, paidAt: at('10-05') })
  await line({ mid, utr, orderId }, '10-06', 200_00, { utr, event: 'PAYMENT', paymentUtr: undefined })
  return { mid, utr, orderId }
}

/** Imports a line at 20:00 of its day. By default, it names the payment and has a UTR of its own. */
async function line(of: Disputed, day: string, amount: number, more: Partial<Row> & { importedAt?: Date } = {}) {
  number += 1
  const { importedAt = at(day, '20:00:00'), ...row } = more
  const own = {
    mid: of.mid,
    day: `2026-${day}`,
    amount,
    utr: `LINE${number}`,
    paymentUtr: of.utr,
    reference: `BRN${number}`,
  }
  await importRows(db, [{ ...own, ...row }], importedAt, 'direct')
}

const report = (of: Disputed, day: string, status: DisputeStatus, more: Partial<DisputeReport> = {}) =>
  createDisputes(db).record(
    'direct',
    { id: 'D1', orderId: of.orderId, status, statedAt: at(day), amount: 200_00, ...more },
    { source: 'asha', now: () => at(day) },
  )

const deduct = (of: Disputed, day: string, amount = -200_00, more = {}) =>
  line(of, day, amount, { event: 'CHARGEBACK', ...more })
const payAgain = (of: Disputed, day: string, amount = 200_00, more = {}) =>
  line(of, day, amount, { event: 'CHARGEBACK_REVERSE', ...more })

/** Returns the ledgers that are not 0 at the end, the open discrepancies, and the balance that is carried forward. */
async function books({ mid }: Disputed, on = '2026-11-10') {
  const days = ['--from', '2026-10-01', '--to', '2026-11-09', '--mid', mid]
  const { merchants } = await jsonOn(on, ...days)
  const { total, differences } = merchants[0]
  const { postings } = await jsonOn(on, 'journal', ...days)
  const { lines } = await jsonOn(on, 'statement', ...days)
  const listed = await jsonOn(on, 'open', '--mid', mid)
  expect(lines.at(-1).balance).toBe(total.carriedForward)
  expect(listed.total.amount).toBe(total.carriedForward)
  const sums = new Map<string, number>()
  for (const { ledger, debit, credit } of postings)
    sums.set(ledger, (sums.get(ledger) ?? 0) + Number(debit) - Number(credit))
  const ledgers = Object.fromEntries([...sums].filter(([, sum]) => sum !== 0))
  const causes = differences.flatMap(({ resolution, cause }: Record<string, string | null>) =>
    resolution ? [] : [cause],
  )
  return { ledgers, causes, carried: total.carriedForward, disputed: total.disputed }
}

const EVEN = { causes: [], carried: '0.00' }
const RECEIPTS = { 'UPI receipts': -200 }

describe('a dispute whose lines the file names', () => {
  it('leaves no balance and no discrepancy after it was won and paid again', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open')
    await deduct(of, '10-12')
    expect(await books(of)).toEqual({
      ...{ ...EVEN, disputed: '200.00' },
      ledgers: { ...RECEIPTS, 'UPI disputes': 200 },
    })
    await report(of, '10-20', 'won')
    await payAgain(of, '10-22')
    expect(await books(of)).toEqual({ ...EVEN, disputed: '0.00', ledgers: { ...RECEIPTS, Bank: 200 } })
  })

  it.each(['lost', 'accepted'] as const)('is moved once to Chargebacks after it was %s', async (status) => {
    const of = await settledPayment()
    await report(of, '10-10', 'open')
    await deduct(of, '10-12')
    await report(of, '10-20', status)
    await report(of, '10-21', status)
    expect(await books(of)).toEqual({ ...EVEN, disputed: '200.00', ledgers: { ...RECEIPTS, Chargebacks: 200 } })
    const days = ['--month', '2026-10', '--mid', of.mid]
    const { postings } = await jsonOn('2026-11-10', 'journal', ...days)
    const moved = postings.filter(({ ledger }: { ledger: string }) => ['Chargebacks', 'UPI disputes'].includes(ledger))
    expect(
      moved.map(({ date, voucherId, ledger, debit, credit }: Record<string, string>) => {
        return [date, voucherId?.slice(0, 8), ledger, debit, credit]
      }),
    ).toEqual([
      ['2026-10-12', 'D261012-', 'UPI disputes', '200.00', '0.00'],
      ['2026-10-20', 'D261020-', 'UPI disputes', '0.00', '200.00'],
      ['2026-10-20', 'D261020-', 'Chargebacks', '200.00', '0.00'],
    ])
  })

  it('is moved to Chargebacks on the day of its deduction if that follows the verdict', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open')
    await report(of, '10-20', 'lost')
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Bank: 200 } })
    await deduct(of, '10-23')
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Chargebacks: 200 } })
  })

  it('explains a deduction that precedes its report, from the report on', async () => {
    const of = await settledPayment()
    await deduct(of, '10-12')
    expect(await books(of)).toMatchObject({
      ...{ carried: '200.00', ledgers: { ...RECEIPTS, 'UPI clearing direct': 200 } },
      causes: ['the bank deducted it for a dispute that is not stored: run ops disputes add'],
    })
    await report(of, '10-15', 'open')
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, 'UPI disputes': 200 } })
    const before = ['--from', '2026-10-12', '--to', '2026-10-13', '--mid', of.mid, '--as-of', '2026-10-13']
    expect((await jsonOn('2026-11-10', ...before)).merchants[0].total.carriedForward).toBe('200.00')
  })

  it('may concern a part of the payment', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open', { amount: 50_00 })
    await deduct(of, '10-12', -50_00)
    await report(of, '10-20', 'lost', { amount: 50_00 })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Chargebacks: 50, Bank: 150 } })
  })

  it('may have two phases with an id each', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open')
    await deduct(of, '10-11')
    await report(of, '10-13', 'won')
    await payAgain(of, '10-14')
    await report(of, '10-16', 'open', { id: 'D2', kind: 'PRE_ARBITRATION' })
    await deduct(of, '10-17')
    await report(of, '10-20', 'lost', { id: 'D2' })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Chargebacks: 200 } })
  })

  it('may be won after an earlier phase was lost', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'lost')
    await deduct(of, '10-11')
    await report(of, '10-16', 'open', { id: 'D2' })
    await report(of, '10-18', 'won', { id: 'D2' })
    await payAgain(of, '10-19')
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Bank: 200 } })
  })

  it('may be named by its id alone', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open', { id: 'D77' })
    await deduct(of, '10-12', -200_00, { utr: 'D77', paymentUtr: undefined })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, 'UPI disputes': 200 } })
  })

  it('may be stored after a file whose lines share its id', async () => {
    const of = await settledPayment()
    await deduct(of, '10-12', -200_00, { utr: 'D78', paymentUtr: undefined })
    await report(of, '10-13', 'open', { id: 'D78' })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, 'UPI disputes': 200 } })
    await report(of, '10-20', 'won', { id: 'D78' })
    await payAgain(of, '10-22', 200_00, { utr: 'D78', paymentUtr: undefined })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Bank: 200 } })
  })

  it('is paid again by a positive line, whatever its word', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open')
    await deduct(of, '10-12')
    await report(of, '10-20', 'won')
    await deduct(of, '10-22', 200_00, { utr: of.utr, paymentUtr: undefined })
    expect(await books(of)).toMatchObject({ ...EVEN, disputed: '0.00', ledgers: { ...RECEIPTS, Bank: 200 } })
  })

  it('of a duplicate payment is not an expense of the merchant', async () => {
    const of = await settledPayment()
    await db.query(
      `insert into payments (mid, utr, order_id, amount_paise, paid_at, received_at, kind, acquirer, source)
       values ($1, 'SECOND', $2, 20000, $3, $3, 'second', 'direct', 'notification')`,
      [of.mid, of.orderId, at('10-05')],
    )
    await line(of, '10-06', 200_00, { utr: 'SECOND', paymentUtr: undefined })
    await report(of, '10-10', 'open', { utr: 'SECOND' })
    await deduct(of, '10-12', -200_00, { paymentUtr: 'SECOND' })
    await report(of, '10-20', 'lost', { utr: 'SECOND' })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Bank: 200 } })
  })

  it('may repeat the UTR of its payment in its lines', async () => {
    const of = await settledPayment()
    await report(of, '10-10', 'open')
    await deduct(of, '10-12', -200_00, { utr: of.utr, paymentUtr: undefined })
    await payAgain(of, '10-22', 200_00, { utr: of.utr, paymentUtr: undefined })
    expect(await books(of)).toMatchObject({ ...EVEN, ledgers: { ...RECEIPTS, Bank: 200 } })
  })

  it('never takes the deduction of a refund of the same amount, nor the refund that of the dispute', async () => {
    const of = await settledPayment()
    await db.query(
      `insert into refunds (mid, refund_id, our_refund_id, order_id, utr, amount_paise, note, acquirer, created_by, created_at,
         status, ended_at)
       values ($1, 'R1', $4, $2, $3, 20000, '', 'direct', 'merchant', $5, 'SUCCESS', $5)`,
      [of.mid, of.orderId, of.utr, `OURS${number}`, at('10-11')],
    )
    await report(of, '10-10', 'open')
    await deduct(of, '10-12')
    expect((await books(of)).causes).toEqual([
      expect.stringMatching(/^refund OURS\d+: the payment was settled in full/),
    ])
    await line(of, '10-13', -200_00, { event: 'REFUND' })
    expect(await books(of)).toMatchObject({
      ...EVEN,
      ledgers: { ...RECEIPTS, 'UPI refunds': 200, 'UPI disputes': 200, Bank: -200 },
    })
  })
})

it('a dispute in a file of totals is the likely cause of the difference', async () => {
  const { mid } = await newMerchant(db)
  const orderId = await storePaidOrder(db, { mid, utr: 'T1', paidAt: at('10-05') })
  const of = { mid, utr: 'T1', orderId }
  await storePaidOrder(db, { mid, utr: 'T2', paidAt: at('10-05'), rupees: 300 })
  await storePaidOrder(db, { mid, utr: 'T3', paidAt: at('10-12'), rupees: 350 })
  await line(of, '10-06', 500_00, { utr: 'TOTAL1', paymentUtr: undefined })
  await report(of, '10-10', 'open')
  await line(of, '10-13', 150_00, { utr: 'TOTAL2', paymentUtr: undefined })
  const { causes } = await books(of)
  expect(causes).toEqual([
    '200.00 less than the payments of 2026-10-12 through direct; likely dispute D1 (of 200.00, open): resolve it --as chargeback',
  ])
})

it('a line of a dispute closes itself in the open items of a merchant with totals', async () => {
  const { mid } = await newMerchant(db)
  const orderId = await storePaidOrder(db, { mid, utr: 'V1', paidAt: at('10-05') })
  const of = { mid, utr: 'V1', orderId }
  await line(of, '10-06', 200_00, { utr: 'TOTAL9', paymentUtr: undefined })
  await report(of, '11-05', 'open')
  await deduct(of, '11-09')
  const { openItems, total } = await jsonOn('2026-11-10', 'open', '--mid', mid)
  expect({ openItems, total }).toEqual({ openItems: [], total: { amount: '0.00' } })
})

describe('a verdict after the close of the month', () => {
  it('is posted in the first open month, and the closed month keeps its bytes', async () => {
    const { url: own, db: ownDb } = await createTestDatabase()
    const [earlierUrl, earlierDb] = [url, db]
    ;[url, db] = [own, ownDb]
    try {
      const of = await settledPayment()
      await report(of, '10-10', 'open')
      await deduct(of, '10-12')
      const journal = () => jsonOn('2026-11-20', 'journal', '--month', '2026-10')
      await jsonOn('2026-11-04', 'close', '--month', '2026-10')
      const october = await journal()
      await report(of, '11-10', 'lost', { statedAt: at('10-28') })
      expect(await journal()).toEqual(october)
      const { postings } = await jsonOn('2026-11-20', 'journal', '--month', '2026-11')
      expect(
        postings.map(({ date, originalDay, ledger, debit, credit }: Record<string, string>) => {
          return [date, originalDay, ledger, debit, credit]
        }),
      ).toEqual([
        ['2026-11-30', '2026-10-28', 'UPI disputes', '0.00', '200.00'],
        ['2026-11-30', '2026-10-28', 'Chargebacks', '200.00', '0.00'],
      ])
    } finally {
      ;[url, db] = [earlierUrl, earlierDb]
    }
  })
})
