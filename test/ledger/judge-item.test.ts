import { describe, expect, it } from 'vitest'
import { discrepancyId, owedBy } from '../../src/books/ledger/discrepancies.ts'
import type { Item } from '../../src/books/ledger/judge-item.ts'
import { at, day, judge, PAYMENT, refund, row } from './items.ts'

const kindsOf = (...requested: Parameters<typeof judge>) =>
  judge(...requested).map((one) => [one.kind, one.day, owedBy(one)] as const)

describe('discrepancies of one item', () => {
  it.each<[string, Partial<Item>, [kind: string, day: string, owed: number][]]>([
    ['a settled payment', { rows: [row(200_00, 1)] }, []],
    ['a payment without a settlement line', {}, [['missing settlement', day(0), 200_00]]],
    ['a line smaller than the payment', { rows: [row(195_00, 1)] }, [['amount mismatch', day(1), 5_00]]],
    ['a line whose fee does not add up', { rows: [row(195_00, 1, { fee: 1 })] }, [['fee mismatch', day(1), 5_00]]],
    [
      'a short settlement followed by the whole amount',
      { rows: [row(195_00, 1), row(200_00, 2)] },
      [
        ['amount mismatch', day(1), 5_00],
        ['duplicate settlement', day(2), -200_00],
      ],
    ],
    ['a short settlement completed later', { rows: [row(195_00, 1), row(5_00, 2)] }, []],
    ['a chargeback', { rows: [row(200_00, 1), row(-200_00, 2)] }, [['reversal', day(2), 200_00]]],
    ['a won chargeback', { rows: [row(200_00, 1), row(-200_00, 2), row(200_00, 3)] }, []],
    [
      'a won chargeback that is paid short',
      { rows: [row(200_00, 1), row(-200_00, 2), row(190_00, 3)] },
      [
        ['reversal', day(2), 200_00],
        ['duplicate settlement', day(3), -190_00],
      ],
    ],
    ['a duplicate settlement', { rows: [row(200_00, 1), row(200_00, 2)] }, [['duplicate settlement', day(2), -200_00]]],
    ['a duplicate settlement that is reversed', { rows: [row(200_00, 1), row(200_00, 2), row(-200_00, 3)] }, []],
    [
      'a line that changed from SUCCESS to FAILED',
      { rows: [row(200_00, 1, { status: 'FAILED', wasPaidOut: true })] },
      [['reversal', day(0), 200_00]],
    ],
    [
      'a line of an unknown payment',
      { payment: undefined, rows: [row(50_00, 1)] },
      [['unknown payment', day(1), -50_00]],
    ],
    [
      'a line dated more than a day before its payment',
      { payment: { ...PAYMENT, at: at(3), day: day(3) }, rows: [row(200_00, 1)] },
      [
        ['unknown payment', day(1), -200_00],
        ['missing settlement', day(3), 200_00],
      ],
    ],
    [
      'a refund with a deduction of its own',
      { rows: [row(200_00, 1), row(-50_00, 2)], refunds: [refund(50_00, 1)] },
      [],
    ],
    ['a refund netted in the line of its payment', { rows: [row(150_00, 1)], refunds: [refund(50_00, 1)] }, []],
    [
      'a refund that no line deducts',
      { rows: [row(200_00, 1)], refunds: [refund(50_00, 1)] },
      [['refund not deducted', day(1), -50_00]],
    ],
    ['a payment fully refunded before its settlement', { refunds: [refund(200_00, 0)] }, []],
  ])('reconciliation finds the discrepancies of %s', (_what, item, expected) => {
    expect(kindsOf(item)).toEqual(expected)
  })

  it('reconciliation judges a payment only after its payout day, and only as part of the payout if the payout is a total', () => {
    expect(kindsOf({}, { isJudged: false })).toEqual([])
    expect(kindsOf({}, { form: 'by sums' })).toEqual([])
    expect(
      kindsOf({ payment: undefined, rows: [row(200_00, 1, { namesPayment: false })] }, { form: 'by sums' }),
    ).toEqual([])
  })

  it('reconciliation treats a payment as resolved after an operator has resolved its failure, even in a payout by totals', () => {
    const failure = {
      exceptionId: 'E1',
      kind: 'failure after success',
      orderId: 'O1',
      amount: 200_00,
      resolution: 'seen',
    }
    for (const form of ['by payment', 'by sums'] as const) {
      expect(judge({ failure }, { form })).toMatchObject([
        { kind: 'missing settlement', exceptionId: 'E1', resolution: 'seen' },
      ])
    }
    expect(judge({ failure, rows: [row(200_00, 1)] })).toEqual([])
    expect(judge({ failure: { ...failure, resolution: null } }, { form: 'by sums' })).toEqual([])
  })
})

it('the id of a discrepancy never changes, because resolutions and closed months store it', () => {
  const about = { mid: 'M1', day: '2026-11-16', orderId: null, utr: 'P1', settlementUtr: 'N1' }
  const rest = { paid: null, settled: null, exceptionId: null, resolution: null }
  const ids = {
    'missing settlement': '2611165817bf5f32',
    'duplicate settlement': '2611162e88f16107',
    'fee mismatch': '2611168f58c61cdf',
    'amount mismatch': '26111677aa0b4385',
    'unknown payment': '2611160f1ab3edc0',
    'payout total': '261116d5fe9b0aba',
    reversal: '261116d782f5e382',
    'refund not deducted': '2611160174821f8c',
    'return not paid out': '2611164af9777f01',
    'short payout': '2611161008dc1358',
  } as const
  const kinds = Object.keys(ids) as (keyof typeof ids)[]
  expect(Object.fromEntries(kinds.map((kind) => [kind, discrepancyId({ ...about, ...rest, kind })]))).toEqual(ids)
})
