import { describe, expect, it } from 'vitest'
import { createBankDays } from '../../src/books/ledger/bank-days.ts'
import {
  differingPayouts,
  judgePayouts,
  type PaidOn,
  type PayoutForm,
  payoutKey,
  type ReturnedRefund,
  type SettledOn,
  type UndeductedRefund,
  undecidedPayouts,
} from '../../src/books/ledger/judge-payouts.ts'

const bankDays = createBankDays(new Set())
/** Bank days from Monday to Friday. Saturday the 21st, the third of its month, is a bank day too. */
const [MONDAY, TUESDAY, WEDNESDAY, THURSDAY, FRIDAY] = [16, 17, 18, 19, 20].map((day) => `2026-11-${day}`) as [
  ...[string, string, string, string, string],
]

const paid = (day: string, rupees: number, more: Partial<PaidOn> = {}): PaidOn => ({
  ...{ acquirer: 'direct', day, settledDay: null, count: rupees / 100, paid: rupees * 100 },
  ...more,
})

/** Creates the settlement lines of one day: the total of unnamed lines and the number of lines that name a payment. */
const settled = (day: string, unnamed: number, named = 0, acquirer: string | null = null): SettledOn => ({
  ...{ acquirer, day, settledCount: named + 1, gross: 0, fee: 0, tax: 0, net: 0, disputed: 0 },
  ...{ paidOut: named + (unnamed > 0 ? 1 : 0), unnamedRows: unnamed > 0 ? 1 : 0, unnamed: unnamed * 100 },
})

/** Creates a refund of a payment with a settlement line. */
const refund = (day: string, rupees: number, more: Partial<UndeductedRefund> = {}): UndeductedRefund => ({
  ...{ refundId: 'R', acquirer: 'direct', day, amount: rupees * 100, paidOn: MONDAY, settled: rupees * 100 },
  ...more,
})

/** `since` names acquirers with the first day of their files; `known` has the forms of the payouts that lines do not decide. */
type Given = {
  paid: PaidOn[]
  settled: SettledOn[]
  undeducted?: UndeductedRefund[]
  returned?: ReturnedRefund[]
  since?: Record<string, string>
  known?: Record<string, PayoutForm>
}

function judge({ paid, settled, undeducted = [], returned = [], since = {}, known = {} }: Given) {
  const facts = {
    ...{ paid, settled, undeducted, returned, window: { from: MONDAY, to: FRIDAY } },
    namedSince: new Map(Object.entries(since)),
  }
  const undecided = undecidedPayouts(facts, bankDays)
  const forms = new Map(undecided.map((one) => [payoutKey(one), known[payoutKey(one)] ?? 'by sums']))
  return { ...judgePayouts(facts, forms, bankDays), undecided: undecided.map(payoutKey) }
}

const formsOf = (given: Given) => judge(given).payouts.map(({ day, acquirer, form }) => [day, acquirer, form])

const differing = (given: Given) =>
  differingPayouts(judge(given).payouts, () => 0, bankDays).map(({ day, acquirer, paid, settled }) => [
    ...[day, acquirer, paid / 100, settled / 100],
  ])

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

  it('reconciliation reads the form of first payouts without lines, for each acquirer, before the days of its facts', () => {
    const both = [paid(MONDAY, 100, { acquirer: 'setu' }), paid(MONDAY, 100)]
    const rows = [settled(TUESDAY, 0, 1, 'setu'), settled(WEDNESDAY, 300)]
    const given = { paid: both, settled: rows, since: { setu: '2026-10-01' } }
    expect(judge(given).undecided).toEqual([`${TUESDAY} `])
    for (const form of ['by payment', 'by sums'] as const) {
      expect(formsOf({ ...given, known: { [`${TUESDAY} `]: form } })).toEqual([
        [TUESDAY, null, form],
        [TUESDAY, 'setu', 'by payment'],
        [WEDNESDAY, null, 'by sums'],
      ])
    }
  })

  it('reconciliation gives a payout without lines the form of the previous payout', () => {
    const rows = [settled(TUESDAY, 100)]
    const known = { [`${TUESDAY} `]: 'by payment' as const }
    expect(formsOf({ paid: [paid(MONDAY, 100), paid(TUESDAY, 100)], settled: rows, known })).toEqual([
      [TUESDAY, null, 'by sums'],
      [WEDNESDAY, null, 'by sums'],
    ])
  })

  it('reconciliation assigns payments to their acquirer from the first bank day on which a file names the acquirer', () => {
    const ofSetu = [MONDAY, TUESDAY, WEDNESDAY].map((day) => paid(day, 100, { acquirer: 'setu' }))
    expect(formsOf({ paid: ofSetu, settled: [settled(WEDNESDAY, 0, 1, 'setu')], since: { setu: WEDNESDAY } })).toEqual([
      [TUESDAY, null, 'by sums'],
      [WEDNESDAY, 'setu', 'by payment'],
      [THURSDAY, 'setu', 'by payment'],
    ])
  })
})

describe('payouts by totals', () => {
  it('reconciliation compares each acquirer account’s daily payouts with the account’s own payments', () => {
    const ofSetu = { acquirer: 'setu' }
    const rows = [settled(TUESDAY, 100, 0, 'setu'), settled(TUESDAY, 300)]
    const both = [paid(MONDAY, 100, ofSetu), paid(MONDAY, 300)]
    const since = { setu: TUESDAY }
    expect(differing({ paid: both, settled: rows, since })).toEqual([])
    expect(differing({ paid: [paid(MONDAY, 200, ofSetu), paid(MONDAY, 200)], settled: rows, since })).toEqual([
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

  it('reconciliation accepts a refund that the next payout deducts only if the refund went through the same acquirer', () => {
    const both = (day: string) => [paid(day, 300), paid(day, 300, { acquirer: 'setu' })]
    const given = {
      ...{ paid: [...both(MONDAY), ...both(TUESDAY)], since: { setu: MONDAY } },
      settled: [
        ...[settled(TUESDAY, 350), settled(WEDNESDAY, 250)],
        ...[settled(TUESDAY, 250, 0, 'setu'), settled(WEDNESDAY, 300, 0, 'setu')],
      ],
    }
    const ofSetu = refund(MONDAY, 50, { acquirer: 'setu' })
    expect(differing({ ...given, undeducted: [ofSetu] })).toEqual([
      [TUESDAY, null, 300, 350],
      [WEDNESDAY, null, 300, 250],
    ])
  })

  it('reconciliation deducts a refund from the total of its own day, unless its payment was owed payment by payment', () => {
    const given = {
      ...{ paid: [paid(MONDAY, 100), paid(TUESDAY, 500)] },
      settled: [settled(TUESDAY, 0, 3), settled(WEDNESDAY, 500)],
    }
    const unpaid = refund(TUESDAY, 100, { settled: null })
    expect(differing({ ...given, undeducted: [unpaid] })).toEqual([])
    expect(differing({ ...given, undeducted: [{ ...unpaid, settled: 100_00 }] })).toEqual([[WEDNESDAY, null, 400, 500]])
    const earlier = { ...unpaid, paidOn: '2026-11-13' }
    expect(judge({ ...given, undeducted: [earlier] }).undecided).toEqual([`${MONDAY} `])
    const known = { [`${MONDAY} `]: 'by payment' as const }
    expect(differing({ ...given, undeducted: [earlier], known })).toEqual([])
    expect(differing({ ...given, undeducted: [earlier] })).toEqual([[WEDNESDAY, null, 400, 500]])
  })
})
