import { describe, expect, it } from 'vitest'
import { owedBy } from '../../src/books/ledger/differences.ts'
import type { Item } from '../../src/books/ledger/judge-item.ts'
import { at, day, judge, PAYMENT, refund, row } from './items.ts'

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
})
