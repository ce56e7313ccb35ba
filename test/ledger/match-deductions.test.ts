import { describe, expect, it } from 'vitest'
import { createBankDays } from '../../src/books/ledger/bank-days.ts'
import { type Deduction, matchDeductions, type SuccessfulRefund } from '../../src/books/ledger/match-deductions.ts'

const bankDays = createBankDays(new Set())
/** Bank days of one week. */
const [MONDAY, TUESDAY, WEDNESDAY, FRIDAY] = ['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-20'] as const

const refund = (refundId: string, rupees: number, more: Partial<SuccessfulRefund> = {}): SuccessfulRefund => ({
  ...{ refundId, orderId: `O${refundId}`, utr: `P${refundId}`, acquirer: 'direct', paidOn: MONDAY, day: MONDAY },
  ...{ amount: rupees * 100, reference: '', paid: 200_00, settled: 200_00, returnedOn: null },
  ...more,
})

const row = (utr: string, rupees: number, more: Partial<Deduction> = {}): Deduction => ({
  ...{ utr, item: utr, day: WEDNESDAY, gross: rupees * -100, references: [utr], isNamed: false },
  ...more,
})

/** Returns the ids of the refunds that each settlement line deducts. */
function match(refunds: SuccessfulRefund[], rows: Deduction[]): Record<string, string[]> {
  const { refundsOf, rowOf } = matchDeductions(refunds, rows, bankDays)
  const found = [...refundsOf].map(([utr, of]) => [utr, of.map(({ refundId }) => refundId)] as const)
  for (const [utr, ids] of found) for (const id of ids) expect(rowOf.get(id)?.utr).toBe(utr)
  return Object.fromEntries(found)
}

describe('refunds that a settlement line deducts', () => {
  it.each<[string, SuccessfulRefund[], Deduction[], Record<string, string[]>]>([
    [
      'the refund that has the deduction’s reference, not with an older refund of the same payment and amount',
      [refund('A', 50, { utr: 'P' }), refund('B', 50, { utr: 'P', reference: 'ARN' })],
      [row('ARN', 50, { item: 'P', isNamed: true })],
      { ARN: ['B'] },
    ],
    [
      'all refunds that have the deduction’s reference and add up to the deduction',
      [refund('A', 50, { reference: 'ARN' }), refund('B', 30, { reference: 'ARN' })],
      [row('E1', 80, { references: ['E1', 'ARN'] })],
      { E1: ['A', 'B'] },
    ],
    [
      'the oldest refund of the same payment and amount',
      [refund('A', 50, { utr: 'P' }), refund('B', 50, { utr: 'P' })],
      [row('PR1', 50, { item: 'P', isNamed: true })],
      { PR1: ['A'] },
    ],
    [
      'all refunds of the same payment that add up to the deduction',
      [refund('A', 50, { utr: 'P' }), refund('B', 30, { utr: 'P' }), refund('C', 80)],
      [row('PR1', 80, { item: 'P', isNamed: true })],
      { PR1: ['A', 'B'] },
    ],
    ['the one refund of the same amount', [refund('A', 50), refund('B', 30)], [row('D', 30)], { D: ['B'] }],
    ['neither of two refunds of the same amount', [refund('A', 50), refund('B', 50)], [row('D', 50)], {}],
    [
      'all refunds of one bank day and of the Sunday before it',
      [refund('A', 50, { day: '2026-11-21' }), refund('B', 30, { day: '2026-11-22' }), refund('C', 45)],
      [row('D', 80, { day: '2026-11-24' })],
      { D: ['A', 'B'] },
    ],
    [
      'no refund if the refunds of two bank days each add up to the deduction',
      [refund('A', 50), refund('B', 30), refund('C', 60, { day: TUESDAY }), refund('D', 20, { day: TUESDAY })],
      [row('R', 80)],
      {},
    ],
    [
      'all remaining refunds',
      [refund('A', 50), refund('B', 30, { day: TUESDAY }), refund('C', 45, { reference: 'ARN' })],
      [row('D', 80), row('ARN', 45)],
      { D: ['A', 'B'], ARN: ['C'] },
    ],
    ['no refund if the deduction names another payment', [refund('A', 50)], [row('D', 50, { isNamed: true })], {}],
    ['no refund that succeeded days later', [refund('A', 50, { day: FRIDAY })], [row('D', 50)], {}],
    [
      'the one refund of the same amount, although an earlier line deducts all other refunds of the bank day',
      [refund('A', 50), refund('B', 60), refund('C', 70)],
      [row('D', 110), row('E', 70)],
      { D: ['A', 'B'], E: ['C'] },
    ],
    [
      'no refund that is netted in the line of its own payment',
      [refund('A', 50, { settled: 150_00 }), refund('B', 30), refund('C', 20)],
      [row('D', 50)],
      { D: ['B', 'C'] },
    ],
    ['no refund of another amount', [refund('A', 50)], [row('D', 51)], {}],
  ])('reconciliation matches a deduction with %s', (_what, refunds, rows, expected) => {
    expect(match(refunds, rows)).toEqual(expected)
  })
})
