import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bandsOf, type Rate, rateOf } from '../../src/books/ledger/rate-of.ts'
import { INSTRUMENTS } from '../../src/gateway/payments/instrument.ts'

const rate = (percent: string | null, more: Partial<Rate> = {}): Rate => ({
  ...{ acquirer: 'setu', instrument: null, above: 0, since: '2026-04-01' },
  ...{ percent, flat: percent === null ? null : 0, tax: percent === null ? null : '18', ...more },
})
type RatedPayment = Parameters<typeof rateOf>[0]

const payment = (more: Partial<RatedPayment> = {}): RatedPayment => ({
  ...{ account: 'setu', instrument: 'bank account', amount: 500_00, day: '2026-10-05', ...more },
})
const CARD = { instrument: 'credit card' } as const
const ACME = { acquirer: 'setu:acme' }
const PAID = { account: 'setu:acme' }

it.each<[string, Partial<RatedPayment>, Rate[], string | undefined]>([
  ['no rate', {}, [], undefined],
  ['a rate of another acquirer', {}, [rate('1', { acquirer: 'cashfree' })], undefined],
  ['a rate of another account', {}, [rate('1', ACME)], undefined],
  ['a rate of its acquirer for an account', PAID, [rate('1')], '1'],
  ['the rate of its account before that of the acquirer', PAID, [rate('1'), rate('2', ACME)], '2'],
  [
    'the rate of its account before a rate by instrument',
    { ...PAID, ...CARD },
    [rate('1', CARD), rate('2', ACME)],
    '2',
  ],
  ['a rate for any instrument', CARD, [rate('1')], '1'],
  ['the rate of its instrument before any', CARD, [rate('1'), rate('2', CARD)], '2'],
  ['the rate for any instrument if its own is unknown', { instrument: null }, [rate('1'), rate('2', CARD)], '1'],
  ['no rate of an instrument if its own is unknown', { instrument: null }, [rate('2', CARD)], undefined],
  ['no rate of another instrument', {}, [rate('2', CARD)], undefined],
  ['the highest amount below its own', { amount: 2000_01 }, [rate('1'), rate('2', { above: 2000_00 })], '2'],
  ['no rate above its own amount', { amount: 2000_00 }, [rate('1'), rate('2', { above: 2000_00 })], '1'],
  ['its instrument before the amount', CARD, [rate('1', { above: 100_00 }), rate('2', CARD)], '2'],
  ['the newest rate of its day or before', { day: '2026-10-16' }, [rate('1'), rate('2', { since: '2026-10-16' })], '2'],
  ['no later rate', { day: '2026-10-15' }, [rate('1'), rate('2', { since: '2026-10-16' })], '1'],
  ['no rate before the first', { day: '2026-03-31' }, [rate('1')], undefined],
  ['no rate that ended', {}, [rate('1'), rate(null, { since: '2026-10-05' })], undefined],
  ['a rate until its end', { day: '2026-10-04' }, [rate('1'), rate(null, { since: '2026-10-05' })], '1'],
  [
    'a less specific rate after the end',
    CARD,
    [rate('1'), rate('2', CARD), rate(null, { ...CARD, since: '2026-05-01' })],
    '1',
  ],
])('a payment has %s', (_, of, rates, expected) => {
  expect(rateOf(payment(of), rates)?.percent).toBe(expected)
  expect(rateOf(payment(of), rates.toReversed())?.percent).toBe(expected)
})

it('the bands of random rates contain the rate of each payment, and no other', () => {
  const day = fc.constantFrom('2026-04-01', '2026-10-01', '2026-10-16')
  const instrument = fc.constantFrom(...INSTRUMENTS, null)
  const account = fc.constantFrom('setu', 'setu:acme', 'cashfree')
  const cents = fc.constantFrom(0, 100, 2000_00)
  const rates = fc.uniqueArray(
    fc.record({ acquirer: account, instrument, above: cents, since: day, ends: fc.boolean() }),
    { selector: ({ ends: _, ...name }) => JSON.stringify(name), maxLength: 12 },
  )
  const paid = fc.record({
    ...{ account: fc.constantFrom('setu', 'setu:acme', 'setu:other', 'cashfree'), instrument },
    ...{
      amount: fc.constantFrom(1, 100, 101, 2000_00, 2000_01),
      day: fc.constantFrom('2026-03-31', '2026-04-01', '2026-10-15', '2026-10-16'),
    },
  })
  fc.assert(
    fc.property(rates, paid, (named, of) => {
      const all = named.map(({ ends, ...name }, at) => rate(ends ? null : String(at), name))
      const accounts = all.map(({ acquirer }) => acquirer)
      const key = accounts.includes(of.account) ? of.account : of.account.split(':')[0]
      const found = bandsOf(all).filter(
        (band) =>
          band.account === key &&
          band.instrument === of.instrument &&
          of.amount > band.above &&
          of.amount <= (band.upTo ?? Infinity) &&
          of.day >= band.since &&
          of.day < (band.until ?? '9'),
      )
      expect(found.map(({ percent }) => percent)).toEqual([rateOf(of, all)?.percent].filter(Boolean))
    }),
    { numRuns: 500 },
  )
})
