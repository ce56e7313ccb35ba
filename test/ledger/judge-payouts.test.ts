import { describe, expect, it } from 'vitest'
import { createBankDays } from '../../src/books/ledger/bank-days.ts'
import type { PayoutForm } from '../../src/books/ledger/judge-item.ts'
import { differingPayouts, judgePayouts, type PaidOn, type SettledOn } from '../../src/books/ledger/judge-payouts.ts'

const bankDays = createBankDays(new Set())
/** Bank days from Monday to Thursday. Friday the 20th and Saturday the 21st, the third of its month, are bank days too. */
const [MONDAY, TUESDAY, WEDNESDAY, THURSDAY] = ['2026-11-16', '2026-11-17', '2026-11-18', '2026-11-19'] as const

const paid = (day: string, rupees: number, more: Partial<PaidOn> = {}): PaidOn => ({
  ...{ acquirer: 'direct', day, settledDay: null, count: rupees / 100, paid: rupees * 100 },
  ...more,
})

/** Creates the settlement lines of one day: the total of unnamed lines and the number of lines that name a payment. */
const settled = (day: string, unnamed: number, named = 0, acquirer: string | null = null): SettledOn => ({
  ...{ acquirer, day, settledCount: named + 1, gross: 0, fee: 0, tax: 0, net: 0 },
  ...{ paidOut: named + (unnamed > 0 ? 1 : 0), unnamedRows: unnamed > 0 ? 1 : 0, unnamed: unnamed * 100 },
})

const refund = (day: string, rupees: number) => ({
  refundId: 'R',
  acquirer: 'direct',
  day,
  amount: rupees * 100,
})

type Facts = { paid: PaidOn[]; settled: SettledOn[]; undeducted?: ReturnType<typeof refund>[]; formBefore?: PayoutForm }

const formsOf = ({ undeducted = [], formBefore, ...facts }: Facts) =>
  judgePayouts({ ...facts, undeducted, formBefore }, bankDays).payouts.map(({ day, acquirer, form }) => [
    ...[day, acquirer, form],
  ])

const differing = ({ undeducted = [], formBefore, ...facts }: Facts) => {
  const { payouts } = judgePayouts({ ...facts, undeducted, formBefore }, bankDays)
  return differingPayouts(payouts, undeducted, () => 0, bankDays).map(({ day, acquirer, paid, settled }) => [
    ...[day, acquirer, Number(paid) / 100, Number(settled) / 100],
  ])
}

describe('the form of a payout', () => {
  it('reconciliation treats a payout as a total if the payout’s lines omit more payments than the lines name', () => {
    expect(formsOf({ paid: [paid(MONDAY, 300)], settled: [settled(TUESDAY, 300, 2)] })).toEqual([
      [TUESDAY, null, 'by sums'],
    ])
    expect(formsOf({ paid: [paid(MONDAY, 200)], settled: [settled(TUESDAY, 200, 2)] })).toEqual([
      [TUESDAY, null, 'by payment'],
    ])
  })

  it('reconciliation still treats a payout as a total after a later line names one of the payout’s payments', () => {
    const late = paid(MONDAY, 100, { settledDay: THURSDAY })
    expect(formsOf({ paid: [paid(MONDAY, 100), late], settled: [settled(TUESDAY, 200, 1)] })).toEqual([
      [TUESDAY, null, 'by sums'],
    ])
    expect(differing({ paid: [paid(MONDAY, 100), late], settled: [settled(TUESDAY, 200, 1)] })).toEqual([
      [TUESDAY, null, 100, 200],
    ])
    expect(differing({ paid: [paid(MONDAY, 100), late], settled: [settled(TUESDAY, 100, 1)] })).toEqual([])
  })

  it("reconciliation gives first payouts without lines the form of the acquirer's later payouts, or of another acquirer's payouts", () => {
    const both = [paid(MONDAY, 100, { acquirer: 'setu' }), paid(MONDAY, 100, { acquirer: 'cashfree' })]
    const rows = [settled(TUESDAY, 0, 1, 'setu'), settled(WEDNESDAY, 300, 0, 'cashfree')]
    expect(formsOf({ paid: both, settled: rows })).toContainEqual([TUESDAY, 'cashfree', 'by sums'])
    const named = [settled(TUESDAY, 0, 1, 'setu'), settled(WEDNESDAY, 0, 1, 'cashfree')]
    expect(formsOf({ paid: both, settled: named })).toContainEqual([TUESDAY, 'cashfree', 'by payment'])
    const others = [...both, paid(MONDAY, 100)]
    expect(formsOf({ paid: others, settled: named })).toContainEqual([TUESDAY, null, 'by payment'])
  })

  it('reconciliation gives a payout without lines the form of the previous payout', () => {
    const rows = [settled(TUESDAY, 100)]
    expect(formsOf({ paid: [paid(MONDAY, 100), paid(TUESDAY, 100)], settled: rows })).toEqual([
      [TUESDAY, null, 'by sums'],
      [WEDNESDAY, null, 'by sums'],
    ])
  })
})

describe('payouts by totals', () => {
  it('reconciliation compares each acquirer account’s daily payouts with the account’s own payments', () => {
    const ofSetu = { acquirer: 'setu' }
    const rows = [settled(TUESDAY, 100, 0, 'setu'), settled(TUESDAY, 300)]
    const both = [paid(MONDAY, 100, ofSetu), paid(MONDAY, 300)]
    expect(differing({ paid: both, settled: rows })).toEqual([])
    expect(differing({ paid: [paid(MONDAY, 200, ofSetu), paid(MONDAY, 200)], settled: rows })).toEqual([
      [TUESDAY, null, 200, 300],
      [TUESDAY, 'setu', 200, 100],
    ])
  })

  it('reconciliation accepts refunds that are deducted from the payout of the same days or from the next payout', () => {
    const facts = { paid: [paid(MONDAY, 300), paid(TUESDAY, 200)], undeducted: [refund(MONDAY, 50)] }
    expect(differing({ ...facts, settled: [settled(TUESDAY, 250), settled(WEDNESDAY, 200)] })).toEqual([])
    expect(differing({ ...facts, settled: [settled(TUESDAY, 300), settled(WEDNESDAY, 150)] })).toEqual([])
    expect(differing({ ...facts, settled: [settled(TUESDAY, 300), settled(WEDNESDAY, 149)] })).toEqual([
      [TUESDAY, null, 250, 300],
      [WEDNESDAY, null, 200, 149],
    ])
  })

  it('reconciliation reports two payouts if one exceeds and the next falls short by an amount that matches no refund', () => {
    const facts = { paid: [paid(MONDAY, 300), paid(TUESDAY, 200)], undeducted: [refund(MONDAY, 40)] }
    expect(differing({ ...facts, settled: [settled(TUESDAY, 310), settled(WEDNESDAY, 150)] })).toEqual([
      [TUESDAY, null, 260, 310],
      [WEDNESDAY, null, 200, 150],
    ])
  })
})
