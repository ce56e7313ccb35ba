import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bankAmount,
  orderAmount,
  shopAmount,
  shopAmountText,
  toDecimalText,
  toIndianRupees,
  toIndianText,
  toJsonNumber,
  toPlainText,
  toSumText,
  totalText,
} from '../src/money.ts'
import { runs } from './support/generated.ts'

/** Every amount that an intent can have. */
const paise = fc.integer({ min: 100, max: 10_000_000 })
const MANY = { numRuns: runs(20_000) }

describe('an amount, 1.00 to 100000.00 rupees', () => {
  it('is read back unchanged from each of its spellings', () => {
    fc.assert(
      fc.property(paise, (amount) => {
        const asJson = JSON.stringify(toJsonNumber(amount))
        const spelled = [toPlainText(amount), toDecimalText(amount), toIndianText(amount).replace(/[₹,]/g, ''), asJson]
        expect(spelled.map((text) => shopAmount.parse(text))).toEqual(spelled.map(() => amount))
        expect(shopAmount.parse(JSON.parse(asJson))).toBe(amount)
        // As the bank tells of it, and as it is compared.
        const told = [toDecimalText(amount), toPlainText(amount), JSON.parse(asJson)]
        expect(told.map((amount) => bankAmount.parse(amount))).toEqual(told.map(() => toDecimalText(amount)))
      }),
      MANY,
    )
  })

  it('is written with its exact digits, never with those of a float', () => {
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

  it('in whole rupees is the same for a strict and a shop merchant', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), fc.constantFrom('', '.0', '.00'), (rupees, decimals) => {
        for (const value of [`${rupees}${decimals}`, `00${rupees}${decimals}`, rupees]) {
          expect([orderAmount.parse(value), shopAmount.parse(value)]).toEqual([rupees * 100, rupees * 100])
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
  [9_999_999, '₹99,999.99'],
])('%i paise are, for people, %s', (amount, text) => {
  expect(toIndianText(amount)).toBe(text)
})

it.each([
  [0n, '₹0.00'],
  [-50n, '-₹0.50'],
  [123_456_700n, '₹12,34,567.00'],
  [-20_000n, '-₹200.00'],
  // More than a float holds.
  [12_345_678_901_234_567_891n, '₹1,23,45,67,89,01,23,45,678.91'],
])('%i paise are, as a sum for people, %s', (paise, text) => {
  expect(toIndianRupees(toSumText(paise))).toBe(text)
  expect(totalText.parse(text.replace('₹', ''))).toBe(paise)
})

it.each([
  ['1234567', 123_456_700n],
  ['1,234,567.5', 123_456_750n],
  ['-12,34,567.05', -123_456_705n],
  ['90071992547409930.01', 9_007_199_254_740_993_001n],
])('a person may write the sum %s', (text, paise) => {
  expect(totalText.parse(text)).toBe(paise)
})

it.each(['', '1,5', '1.234,50', '1,2345', ',123', '12,34', '1.005', '₹1', '1 000', '+1', '1e3'])(
  'nobody may write the sum %j, which could be misread',
  (text) => {
    expect(totalText.safeParse(text).success).toBe(false)
  },
)

it.each(['0.99', '100000.01', '588.823', '1e3', '0x10', '+5', '-5', '5.', '.5', '1,000', '1 000', '५', '', 'NaN'])(
  'no merchant may send the amount %j',
  (amount) => {
    expect([orderAmount, shopAmount, shopAmountText].map((schema) => schema.safeParse(amount).success)).toEqual([
      false,
      false,
      false,
    ])
  },
)

it.each([0.99, 100_000.01, 588.823, -5, 0.1 + 0.2, 1e21, Number.NaN, Number.POSITIVE_INFINITY])(
  'no merchant may send the JSON number %d',
  (amount) => {
    expect([orderAmount, shopAmount].map((schema) => schema.safeParse(amount).success)).toEqual([false, false])
  },
)
