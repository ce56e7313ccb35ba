import { beforeAll, describe, expect, it } from 'vitest'
import { listArrivals } from '../../src/books/reconciliation/arrivals.ts'
import { type JournalLine, journalOf } from '../../src/books/reconciliation/journal.ts'
import { enterResolution, WRITTEN_OFF_AS } from '../../src/books/reconciliation/resolutions.ts'
import { type StatementLine, statementOf } from '../../src/books/reconciliation/statement.ts'
import type { Database } from '../../src/platform/db/pool.ts'
import { createTestDatabase } from '../support/database.ts'
import { isGenerated } from '../support/generated.ts'
import { type Finding, findingsOf } from './findings.ts'
import { istMoment } from './months.ts'
import { MONTHS, type Planted, plantFaults, storePlanted } from './planted-faults.ts'

/** After everything is known, and after most exceptions have come to an end. */
const NOW = istMoment('2026-07-27', '23:59:59')

let db: Database
let planted: Planted

beforeAll(async () => {
  ;({ db } = await createTestDatabase())
  const seed = isGenerated() ? Date.now() % 100_000 : 5
  if (isGenerated()) console.log(`the planted faults of seed ${seed}`)
  planted = plantFaults({ sets: 1, perDay: 6, seed })
  await storePlanted(db, planted, async () => undefined)
  // Every second one is written off, under every word for it.
  const differences = (await findingsOf(db, { from: MONTHS[0].from, to: MONTHS[3].to, now: NOW })).filter(
    (one): one is Extract<Finding, { type: 'difference' }> => one.type === 'difference' && one.resolution === null,
  )
  for (const [index, one] of differences.entries()) {
    const as = [...WRITTEN_OFF_AS, undefined][(index >> 1) % 5]
    if (index % 2 === 0) await enterResolution(db, one, { reason: 'looked into', as, by: 'asha', now: NOW })
  }
}, 600_000)

async function all<T>(found: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = []
  for await (const one of found) list.push(one)
  return list
}

const sumOf = (postings: readonly JournalLine[], ...ledgers: string[]) =>
  postings.filter(({ ledger }) => ledgers.includes(ledger)).reduce((sum, { debit, credit }) => sum + debit - credit, 0)

describe.each(MONTHS)('the month from $from', (days) => {
  it('the journal balances to 0.00, voucher by voucher and in all, and its ledgers are the sums of reconcile', async () => {
    const findings = await findingsOf(db, { ...days, now: NOW })
    const { sums } = findings.at(-1) as Extract<Finding, { type: 'end' }>
    const postings = await all(journalOf(db, { ...days, now: NOW }))
    const byVoucher = new Map<string, number>()
    for (const { date, mid, voucher, debit, credit } of postings) {
      expect(date >= days.from && date <= days.to && debit >= 0 && credit >= 0 && debit + credit > 0).toBe(true)
      const key = [date, mid, voucher].join(' ')
      byVoucher.set(key, (byVoucher.get(key) ?? 0) + debit - credit)
    }
    expect([...byVoucher].filter(([, sum]) => sum !== 0)).toEqual([])
    const charges = postings.filter(({ voucher }) => /^[0-9a-f]{16}$/.test(voucher))
    expect({
      ...{ paid: 0 - sumOf(postings, 'sales'), refunded: sumOf(postings, 'refunds'), net: sumOf(postings, 'bank') },
      ...{ fee: sumOf(postings, 'fees') - sumOf(charges, 'fees'), tax: sumOf(postings, 'input GST') },
      resolved: -sumOf(postings, 'chargebacks', 'written off', 'suspense') - sumOf(charges, 'fees'),
      moved: sumOf(postings, 'acquirer receivable'),
    }).toEqual({
      ...{ paid: sums.paid, refunded: sums.refunded, net: sums.net, fee: sums.fee, tax: sums.tax },
      ...{ resolved: sums.resolved, moved: sums.carried - sums.brought },
    })
  })

  it('each merchant’s statement adds up line by line from what is brought forward to what is carried forward', async () => {
    const findings = await findingsOf(db, { ...days, now: NOW })
    for (const { mid } of planted.books) {
      const lines = await all(statementOf(db, { mid, ...days, now: NOW }))
      const [opening, closing] = [lines[0], lines.at(-1)] as [StatementLine, StatementLine]
      let balance = opening.balance
      for (const line of lines) {
        balance += line.amount
        expect(line.balance).toBe(balance)
      }
      const total = findings.find((one) => one.type === 'total' && one.mid === mid)
      const sums = (total as Extract<Finding, { type: 'total' }> | undefined)?.sums
      expect([opening.balance, closing.balance], mid).toEqual([sums?.brought ?? 0, sums?.carried ?? 0])
      expect(lines.map(({ day }) => day)).toEqual(lines.map(({ day }) => day).sort())
      const payments = lines.filter(({ kind }) => kind === 'payment')
      expect([payments.length, payments.every(({ merchantOrderId }) => merchantOrderId !== null)]).toEqual([
        ...[sums?.paidCount ?? 0, true],
      ])
    }
  })
})

it('the payouts of all days are what was settled, to the paisa', async () => {
  const days = { from: '2026-01-01', to: '2026-12-31' }
  const payouts = await all(listArrivals(db, { ...days, now: NOW }))
  const { sums } = (await findingsOf(db, { ...days, now: NOW })).at(-1) as Extract<Finding, { type: 'end' }>
  expect(payouts.reduce((sum, { net }) => sum + net, 0)).toBe(sums.net)
  for (const { gross, fee, tax, deductions, net } of payouts) expect(gross - fee - tax + deductions).toBe(net)
})
