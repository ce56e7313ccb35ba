import { expect, it } from 'vitest'
import {
  addPaise,
  groupRupees,
  HIGHEST_MAX_RUPEES,
  lenientAmount,
  lenientAmountText,
  lenientRefund,
  orderAmount,
  toDecimalText,
  toIndianRupees,
  toIndianText,
  totalText,
  USUAL_MAX_RUPEES,
} from '../src/platform/money.ts'

const [ORDER, SHOP] = [orderAmount(HIGHEST_MAX_RUPEES), lenientAmount(HIGHEST_MAX_RUPEES)]

it.each([1, 2, 9, 10, 11, 99, 100, 101, 588, 999, 1_000, 4_999, 200_000, 499_999])(
  'the service accepts every amount up to a merchant’s maximum of %i rupees',
  (max) => {
    const schema = orderAmount(max)
    const taken = Array.from(
      { length: Math.min(max, 2_000) + 2 },
      (_, index) => Math.max(0, max - 2_000) + index,
    ).filter((rupees) => schema.safeParse(`${rupees}`).success)
    expect([taken[0], taken.at(-1)]).toEqual([Math.max(1, max - 2_000), max])
    expect(taken).toHaveLength(max - (taken[0] ?? 0) + 1)
  },
)

it('the service applies the interface’s maximum amount unless another maximum is set', () => {
  const rejected = (schema: ReturnType<typeof orderAmount | typeof lenientAmount>) =>
    schema.safeParse('100000.01').error?.issues[0]?.message
  expect(rejected(orderAmount(USUAL_MAX_RUPEES))).toBe('must be a whole number from 1 to 100000')
  expect(rejected(lenientAmount(USUAL_MAX_RUPEES))).toBe(
    'must be rupees from 1.00 to 100000.00 with at most two decimals, such as 588.82',
  )
  // The example in the rule must itself be accepted.
  expect(rejected(lenientAmount(500))).toBe('must be rupees from 1.00 to 500.00 with at most two decimals')
})

it.each(['0.01', '0.5', '0.0100', '1', '500000', '500000.0000', '500000.00', '499999.99', 0.01, 500_000])(
  'the service accepts a refund of %j rupees from a merchant with the input setting `shop`',
  (amount) => {
    expect(lenientRefund.safeParse(amount).success).toBe(true)
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
])('the service rejects a refund of %j rupees from a merchant with the input setting `shop`', (amount) => {
  expect(lenientRefund.safeParse(amount).success).toBe(false)
})

it.each([
  [100, '₹1'],
  [58_882, '₹588.82'],
  [58_850, '₹588.50'],
  [100_005, '₹1,000.05'],
  [10_000_000, '₹1,00,000'],
  [50_000_000, '₹5,00,000'],
  [9_999_999, '₹99,999.99'],
])('the service formats %i paise as %s for people', (amount, text) => {
  expect(toIndianText(amount)).toBe(text)
})

it.each([
  [0, '₹0.00'],
  [-50, '-₹0.50'],
  [123_456_700, '₹12,34,567.00'],
  [-20_000, '-₹200.00'],
  [999_999_999_999_999, '₹99,99,99,99,99,999.99'],
])('the service formats a sum of %i paise as %s for people', (paise, text) => {
  expect(toIndianRupees(paise)).toBe(text)
  expect(totalText.parse(text.replace('₹', ''))).toBe(paise)
})

it.each([
  ['1234567', 123_456_700],
  ['1,234,567.5', 123_456_750],
  ['-12,34,567.05', -123_456_705],
  ['9999999999999.99', 999_999_999_999_999],
])('the service accepts the sum %s from an operator', (text, paise) => {
  expect(totalText.parse(text)).toBe(paise)
})

it.each(['', '1,5', '1.234,50', '1,2345', ',123', '12,34', '1.005', '₹1', '1 000', '+1', '1e3', '99999999999999'])(
  'the service rejects the ambiguous or invalid sum %j from an operator',
  (text) => {
    expect(totalText.safeParse(text).success).toBe(false)
  },
)

it.each(['0.99', '500000.01', '588.823', '1e3', '0x10', '+5', '-5', '5.', '.5', '1,000', '1 000', '५', '', 'NaN'])(
  'the service rejects the amount %j from any merchant',
  (amount) => {
    expect([ORDER, SHOP, lenientAmountText].map((schema) => schema.safeParse(amount).success)).toEqual([
      false,
      false,
      false,
    ])
  },
)

it.each([0.99, 500_000.01, 588.823, -5, 0.1 + 0.2, 1e21, Number.NaN, Number.POSITIVE_INFINITY])(
  'the service rejects the JSON number %d from any merchant',
  (amount) => {
    expect([ORDER, SHOP].map((schema) => schema.safeParse(amount).success)).toEqual([false, false])
  },
)

it.each([
  ['0.00', '0.00'],
  ['999.99', '999.99'],
  ['1000.00', '1,000.00'],
  ['-3218361.86', '-32,18,361.86'],
  // More digits than a float can represent.
  ['123456789012345678.91', '1,23,45,67,89,01,23,45,678.91'],
  ['paid 4000.00, settled 3000.00: UTR 523504870405', 'paid 4,000.00, settled 3,000.00: UTR 523504870405'],
  // Texts that are not amounts.
  ['10.1.2024.10 and 1234.567 of U1234.50', '10.1.2024.10 and 1234.567 of U1234.50'],
])('the service formats the rupees in the text "%s" for people as "%s"', (text, grouped) => {
  expect(groupRupees(text)).toBe(grouped)
})

it('the service adds amounts up to 2^53 paise, and throws beyond', () => {
  const most = Number.MAX_SAFE_INTEGER
  expect([most - 1, 1].reduce(addPaise)).toBe(most)
  expect(addPaise(-most, most)).toBe(0)
  for (const sign of [1, -1]) expect(() => addPaise(sign * most, sign)).toThrow('more than 90 lakh crore rupees')
})

it('the service formats exact sums of any size', () => {
  expect([12345678901234567890n, -1n, 0n].map(toDecimalText)).toEqual(['123456789012345678.90', '-0.01', '0.00'])
})
