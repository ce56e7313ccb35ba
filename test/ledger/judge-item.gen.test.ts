import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { createBankDays } from '../../src/ledger/bank-days.ts'
import { owedBy } from '../../src/ledger/differences.ts'
import { type Item, type ItemRow, type Judging, judgeItem } from '../../src/ledger/judge-item.ts'
import { matchDeductions, type SuccessfulRefund } from '../../src/ledger/match-deductions.ts'
import { runs } from '../support/generated.ts'

const bankDays = createBankDays(new Set())
/** A Monday. */
const FIRST_DAY = '2026-11-16'
const day = (number: number) => `2026-11-${16 + number}`
const at = (number: number) => new Date(`${day(number)}T12:00:00+05:30`)

const PAYMENT = { orderId: 'O1', day: FIRST_DAY, at: at(0), account: 'direct', amount: 200_00n }

/** A row of `number` days after the payment; a negative amount takes money back. */
function row(gross: bigint, number: number, more: Partial<ItemRow> = {}): ItemRow {
  const of = { utr: `N${number}`, day: day(number), at: at(number), account: null, importId: number }
  const status = { status: 'SUCCESS', isDeduction: gross < 0n, namesPayment: true, wasPaidOut: false } as const
  return { ...of, ...status, gross, fee: null, tax: null, ...more }
}

const refund = (amount: bigint, number: number, more: Partial<SuccessfulRefund> = {}): SuccessfulRefund => ({
  ...{
    refundId: `R${number}`,
    orderId: 'O1',
    utr: 'P1',
    account: 'direct',
    paidOn: FIRST_DAY,
    amount,
    day: day(number),
  },
  ...{ reference: '', isOfSecond: false, paid: 200_00n, settled: null },
  ...more,
})

/** Judges an item of which every day is over, with rows for each payment unless `form` says otherwise. */
function judge(
  item: Partial<Item>,
  {
    form = 'by payment' as const,
    isJudged = true,
    isPaidInSum = false,
  }: { form?: 'by payment' | 'by sums'; isJudged?: boolean; isPaidInSum?: boolean } = {},
) {
  const whole = {
    mid: 'M1',
    utr: 'P1',
    payment: PAYMENT,
    rows: [],
    refunds: [],
    exception: undefined,
    failure: undefined,
    ...item,
  }
  const deductions = whole.rows
    .filter(({ isDeduction }) => isDeduction)
    .map(({ utr, day, gross }) => ({ utr, item: 'P1', day, gross, references: [utr], isNamed: true }))
  const settled = whole.rows.find(({ isDeduction }) => !isDeduction)?.gross ?? null
  const refunds = whole.refunds.map((one) => ({ ...one, settled }))
  const matched = matchDeductions(refunds, deductions, bankDays)
  const judging: Judging = {
    ...matched,
    ...bankDays,
    isJudged: () => isJudged,
    formOf: () => form,
    isPaidInSum: () => isPaidInSum,
    countOf: () => 0,
    contracts: [],
  }
  return judgeItem(whole, judging)
}

const kindsOf = (...asked: Parameters<typeof judge>) =>
  judge(...asked).map((one) => [one.kind, one.day, owedBy(one)] as const)

describe('the differences of an item', () => {
  it.each<[string, Partial<Item>, [kind: string, day: string, owed: bigint][]]>([
    ['a payment that is settled', { rows: [row(200_00n, 1)] }, []],
    ['a payment without a row', {}, [['not settled', day(0), 200_00n]]],
    ['a row of less than the payment', { rows: [row(195_00n, 1)] }, [['amount differs', day(1), 5_00n]]],
    ['a row whose fee does not add up', { rows: [row(195_00n, 1, { fee: 1n })] }, [['fee differs', day(1), 5_00n]]],
    [
      'too little, and again the whole amount',
      { rows: [row(195_00n, 1), row(200_00n, 2)] },
      [
        ['amount differs', day(1), 5_00n],
        ['settled twice', day(2), -200_00n],
      ],
    ],
    ['too little, and the rest later', { rows: [row(195_00n, 1), row(5_00n, 2)] }, []],
    ['a chargeback', { rows: [row(200_00n, 1), row(-200_00n, 2)] }, [['taken back', day(2), 200_00n]]],
    ['a chargeback that is won', { rows: [row(200_00n, 1), row(-200_00n, 2), row(200_00n, 3)] }, []],
    [
      'a chargeback that is won with too little',
      { rows: [row(200_00n, 1), row(-200_00n, 2), row(190_00n, 3)] },
      [
        ['taken back', day(2), 200_00n],
        ['settled twice', day(3), -190_00n],
      ],
    ],
    ['a second settlement', { rows: [row(200_00n, 1), row(200_00n, 2)] }, [['settled twice', day(2), -200_00n]]],
    ['a second settlement that is taken back', { rows: [row(200_00n, 1), row(200_00n, 2), row(-200_00n, 3)] }, []],
    [
      'a row that was paid out and failed',
      { rows: [row(200_00n, 1, { status: 'FAILED', wasPaidOut: true })] },
      [['taken back', day(0), 200_00n]],
    ],
    [
      'a row of no known payment',
      { payment: undefined, rows: [row(50_00n, 1)] },
      [['no known payment', day(1), -50_00n]],
    ],
    [
      'a row more than a day before its payment',
      { payment: { ...PAYMENT, at: at(3), day: day(3) }, rows: [row(200_00n, 1)] },
      [
        ['no known payment', day(1), -200_00n],
        ['not settled', day(3), 200_00n],
      ],
    ],
    ['a refund with a row of its own', { rows: [row(200_00n, 1), row(-50_00n, 2)], refunds: [refund(50_00n, 1)] }, []],
    ['a refund netted from the payment’s row', { rows: [row(150_00n, 1)], refunds: [refund(50_00n, 1)] }, []],
    [
      'a refund that nothing deducts',
      { rows: [row(200_00n, 1)], refunds: [refund(50_00n, 1)] },
      [['refund not deducted', day(1), -50_00n]],
    ],
    ['a payment that went back whole before it was settled', { refunds: [refund(200_00n, 0)] }, []],
  ])('the differences of %s', (_what, item, expected) => {
    expect(kindsOf(item)).toEqual(expected)
  })

  it('a payment is not judged before its payout, nor by itself where the payout is one sum', () => {
    expect(kindsOf({}, { isJudged: false })).toEqual([])
    expect(kindsOf({}, { form: 'by sums' })).toEqual([])
    expect(
      kindsOf({ payment: undefined, rows: [row(200_00n, 1, { namesPayment: false })] }, { form: 'by sums' }),
    ).toEqual([])
  })

  it('a row that pays a payment which the sum of its payout has paid is a second settlement, and ends a chargeback', () => {
    const inSum = { form: 'by sums', isPaidInSum: true } as const
    expect(kindsOf({ rows: [row(200_00n, 3)] }, inSum)).toEqual([['settled twice', day(3), -200_00n]])
    expect(kindsOf({ rows: [row(200_00n, 1)] }, inSum)).toEqual([])
    expect(kindsOf({ rows: [row(-200_00n, 2), row(200_00n, 3)] }, inSum)).toEqual([])
  })

  it('a payment whose failure a person has resolved is accounted for, in a payout of one sum too', () => {
    const failure = {
      exceptionId: 'E1',
      kind: 'failure after success',
      orderId: 'O1',
      amount: 200_00n,
      resolution: 'seen',
    }
    for (const form of ['by payment', 'by sums'] as const) {
      expect(judge({ failure }, { form })).toMatchObject([
        { kind: 'not settled', exceptionId: 'E1', resolution: 'seen' },
      ])
    }
    expect(judge({ failure, rows: [row(200_00n, 1)] })).toEqual([])
  })

  it('what the differences of an item owe adds up to what its movements leave, whatever the bank does', () => {
    const movements = fc.array(
      fc.record({
        paise: fc.constantFrom(-200_00n, -150_00n, -50_00n, 5_00n, 50_00n, 150_00n, 195_00n, 200_00n),
        days: fc.nat(8),
      }),
      { maxLength: 6 },
    )
    const refunds = fc.array(fc.record({ paise: fc.constantFrom(50_00n, 100_00n, 200_00n), days: fc.nat(6) }), {
      maxLength: 3,
    })
    fc.assert(
      fc.property(movements, refunds, fc.boolean(), (moved, sentBack, isKnown) => {
        const sorted = [...moved].sort((a, b) => a.days - b.days)
        const rows = sorted.map(({ paise, days }, index) => row(paise, days, { utr: `N${index}` }))
        const of = sentBack.map(({ paise, days }, index) => refund(paise, days, { refundId: `R${index}` }))
        const item = isKnown ? { rows, refunds: of } : { payment: undefined, rows }
        const owed = judge(item).reduce((sum, one) => sum + owedBy(one), 0n)
        const went = isKnown ? of.reduce((sum, { amount }) => sum + amount, 0n) : 0n
        const settled = rows.reduce((sum, { gross }) => sum + gross, 0n)
        expect(owed).toBe((isKnown ? PAYMENT.amount : 0n) - settled - went)
      }),
      { numRuns: runs(20_000, 2_000) },
    )
  })
})
