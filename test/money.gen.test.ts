import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bankAmount,
  groupRupees,
  HIGHEST_MAX_RUPEES,
  orderAmount,
  shopAmount,
  shopAmountText,
  shopRefund,
  toDecimalText,
  toIndianRupees,
  toIndianText,
  toJsonNumber,
  toPlainText,
  toSumText,
  totalText,
  USUAL_MAX_RUPEES,
} from '../src/money.ts'
import { runs } from './support/generated.ts'

/** Every amount that an intent can have. */
const paise = fc.integer({ min: 100, max: 50_000_000 })
const [ORDER, SHOP] = [orderAmount(HIGHEST_MAX_RUPEES), shopAmount(HIGHEST_MAX_RUPEES)]
const MANY = { numRuns: runs(20_000) }

describe('the largest amount of a merchant', () => {
  const takes = (schema: { safeParse: (value: unknown) => { success: boolean } }, value: unknown) =>
    schema.safeParse(value).success

  it('amounts up to the merchant’s largest are accepted, and none above, in whole rupees and where paise are allowed', () => {
    const least = fc.integer({ min: 1, max: HIGHEST_MAX_RUPEES })
    const near = (max: number) =>
      fc.oneof(fc.integer({ min: 0, max: 1_000_000 }), fc.integer({ min: Math.max(0, max - 12), max: max + 12 }))
    const pairs = least.chain((max) => near(max).map((rupees): [number, number] => [max, rupees]))
    fc.assert(
      fc.property(pairs, ([max, rupees]) => {
        const expected = rupees >= 1 && rupees <= max
        const values = [rupees, `${rupees}`, `00${rupees}.0`, `${rupees}.00`]
        for (const schema of [orderAmount(max), shopAmount(max)]) {
          expect(values.map((value) => takes(schema, value))).toEqual(values.map(() => expected))
        }
        const withPaise = [`${rupees}.01`, rupees + 0.01]
        expect(withPaise.map((value) => takes(shopAmount(max), value))).toEqual(
          withPaise.map(() => expected && rupees < max),
        )
        expect(withPaise.map((value) => takes(orderAmount(max), value))).toEqual([false, false])
      }),
      { numRuns: runs(5_000) },
    )
  })

  it.each([1, 2, 9, 10, 11, 99, 100, 101, 588, 999, 1_000, 4_999, 200_000, 499_999])(
    'the largest amount of a merchant may be %i: every amount up to it is accepted',
    (max) => {
      const schema = orderAmount(max)
      const taken = Array.from(
        { length: Math.min(max, 2_000) + 2 },
        (_, index) => Math.max(0, max - 2_000) + index,
      ).filter((rupees) => takes(schema, `${rupees}`))
      expect([taken[0], taken.at(-1)]).toEqual([Math.max(1, max - 2_000), max])
      expect(taken).toHaveLength(max - (taken[0] ?? 0) + 1)
    },
  )

  it('the largest amount of a merchant is the interface’s own unless it is set', () => {
    const refused = (schema: ReturnType<typeof orderAmount | typeof shopAmount>) =>
      schema.safeParse('100000.01').error?.issues[0]?.message
    expect(refused(orderAmount(USUAL_MAX_RUPEES))).toBe('must be a whole number from 1 to 100000')
    expect(refused(shopAmount(USUAL_MAX_RUPEES))).toBe(
      'must be rupees from 1.00 to 100000.00 with at most two decimals, such as 588.82',
    )
    // The example must not be one that is refused.
    expect(refused(shopAmount(500))).toBe('must be rupees from 1.00 to 500.00 with at most two decimals')
  })
})

it.each(['0.01', '0.5', '0.0100', '1', '500000', '500000.0000', '500000.00', '499999.99', 0.01, 500_000])(
  'a shop’s refund may be of %j',
  (amount) => {
    expect(shopRefund.safeParse(amount).success).toBe(true)
  },
)

it.each([
  '0',
  '0.00',
  '0.0000',
  '0.001',
  '0.0101',
  '500000.0001',
  '500000.01',
  '500001',
  '1e2',
  '',
  '.5',
  0,
  500_000.01,
])('a shop’s refund may not be of %j', (amount) => {
  expect(shopRefund.safeParse(amount).success).toBe(false)
})

describe('an amount, 1.00 to 500000.00 rupees', () => {
  it('an amount of 1.00 to 500000.00 rupees is read back unchanged from each of its spellings', () => {
    fc.assert(
      fc.property(paise, (amount) => {
        const asJson = JSON.stringify(toJsonNumber(amount))
        const spelled = [toPlainText(amount), toDecimalText(amount), toIndianText(amount).replace(/[₹,]/g, ''), asJson]
        expect(spelled.map((text) => SHOP.parse(text))).toEqual(spelled.map(() => amount))
        expect(SHOP.parse(JSON.parse(asJson))).toBe(amount)
        // Some store software sends four decimals.
        expect([SHOP, shopAmountText, shopRefund].map((of) => of.parse(`${toDecimalText(amount)}00`))).toEqual([
          ...[amount, amount, amount],
        ])
        expect(
          [SHOP, shopAmountText, shopRefund].map((of) => of.safeParse(`${toDecimalText(amount)}01`).success),
        ).toEqual([...[false, false, false]])
        // As the bank tells of it, and as it is compared.
        const told = [toDecimalText(amount), toPlainText(amount), JSON.parse(asJson)]
        expect(told.map((amount) => bankAmount.parse(amount))).toEqual(told.map(() => toDecimalText(amount)))
      }),
      MANY,
    )
  })

  it('an amount is written with its exact digits, never with a float’s', () => {
    fc.assert(
      fc.property(paise, (amount) => {
        const digits = String(amount)
        const [whole, decimals] = [digits.slice(0, -2), digits.slice(-2)]
        expect(toDecimalText(amount)).toBe(`${whole}.${decimals}`)
        expect(toPlainText(amount)).toBe(decimals === '00' ? whole : `${whole}.${decimals}`)
        expect(JSON.stringify(toJsonNumber(amount))).toBe(`${whole}.${decimals}`.replace(/\.?0{1,2}$/, ''))
      }),
      MANY,
    )
  })

  it('an amount in whole rupees is read as the same paise, whether the merchant may send paise or not', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500_000 }), fc.constantFrom('', '.0', '.00'), (rupees, decimals) => {
        for (const value of [`${rupees}${decimals}`, `00${rupees}${decimals}`, rupees]) {
          expect([ORDER.parse(value), SHOP.parse(value)]).toEqual([rupees * 100, rupees * 100])
        }
      }),
    )
  })
})

it.each([
  [100, '₹1'],
  [58_882, '₹588.82'],
  [58_850, '₹588.50'],
  [100_005, '₹1,000.05'],
  [10_000_000, '₹1,00,000'],
  [50_000_000, '₹5,00,000'],
  [9_999_999, '₹99,999.99'],
])('%i paise are shown to people as %s', (amount, text) => {
  expect(toIndianText(amount)).toBe(text)
})

it.each([
  [0n, '₹0.00'],
  [-50n, '-₹0.50'],
  [123_456_700n, '₹12,34,567.00'],
  [-20_000n, '-₹200.00'],
  // More than a float holds.
  [12_345_678_901_234_567_891n, '₹1,23,45,67,89,01,23,45,678.91'],
])('a sum of %i paise is shown to people as %s', (paise, text) => {
  expect(toIndianRupees(toSumText(paise))).toBe(text)
  expect(totalText.parse(text.replace('₹', ''))).toBe(paise)
})

it.each([
  ['1234567', 123_456_700n],
  ['1,234,567.5', 123_456_750n],
  ['-12,34,567.05', -123_456_705n],
  ['90071992547409930.01', 9_007_199_254_740_993_001n],
])('an operator may write the sum %s', (text, paise) => {
  expect(totalText.parse(text)).toBe(paise)
})

it.each(['', '1,5', '1.234,50', '1,2345', ',123', '12,34', '1.005', '₹1', '1 000', '+1', '1e3'])(
  'an operator may not write the sum %j, which could be misread',
  (text) => {
    expect(totalText.safeParse(text).success).toBe(false)
  },
)

it.each(['0.99', '500000.01', '588.823', '1e3', '0x10', '+5', '-5', '5.', '.5', '1,000', '1 000', '५', '', 'NaN'])(
  'no merchant may send the amount %j',
  (amount) => {
    expect([ORDER, SHOP, shopAmountText].map((schema) => schema.safeParse(amount).success)).toEqual([
      false,
      false,
      false,
    ])
  },
)

it.each([0.99, 500_000.01, 588.823, -5, 0.1 + 0.2, 1e21, Number.NaN, Number.POSITIVE_INFINITY])(
  'no merchant may send the JSON number %d',
  (amount) => {
    expect([ORDER, SHOP].map((schema) => schema.safeParse(amount).success)).toEqual([false, false])
  },
)

it.each([
  ['0.00', '0.00'],
  ['999.99', '999.99'],
  ['1000.00', '1,000.00'],
  ['-3218361.86', '-32,18,361.86'],
  // More than a float holds.
  ['123456789012345678.91', '1,23,45,67,89,01,23,45,678.91'],
  ['paid 4000.00, settled 3000.00: UTR 523504870405', 'paid 4,000.00, settled 3,000.00: UTR 523504870405'],
  // Neither are amounts.
  ['10.1.2024.10 and 1234.567 of U1234.50', '10.1.2024.10 and 1234.567 of U1234.50'],
])('the rupees of "%s" are shown to people as "%s"', (text, grouped) => {
  expect(groupRupees(text)).toBe(grouped)
})
