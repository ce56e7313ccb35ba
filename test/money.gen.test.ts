import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import {
  bankAmount,
  HIGHEST_MAX_RUPEES,
  lenientAmount,
  lenientAmountText,
  lenientRefund,
  orderAmount,
  toDecimalText,
  toIndianText,
  toJsonNumber,
  toPlainText,
} from '../src/platform/money.ts'
import { runs } from './support/generated.ts'

/** Every amount that an intent can have. */
const paise = fc.integer({ min: 100, max: 50_000_000 })
const [ORDER, SHOP] = [orderAmount(HIGHEST_MAX_RUPEES), lenientAmount(HIGHEST_MAX_RUPEES)]
const MANY = { numRuns: runs(20_000) }

describe('a merchant’s maximum amount', () => {
  const takes = (schema: { safeParse: (value: unknown) => { success: boolean } }, value: unknown) =>
    schema.safeParse(value).success

  it('accepts amounts up to the merchant’s maximum and rejects larger amounts, in whole rupees and with paise', () => {
    const least = fc.integer({ min: 1, max: HIGHEST_MAX_RUPEES })
    const near = (max: number) =>
      fc.oneof(fc.integer({ min: 0, max: 1_000_000 }), fc.integer({ min: Math.max(0, max - 12), max: max + 12 }))
    const pairs = least.chain((max) => near(max).map((rupees): [number, number] => [max, rupees]))
    fc.assert(
      fc.property(pairs, ([max, rupees]) => {
        const expected = rupees >= 1 && rupees <= max
        const values = [rupees, `${rupees}`, `00${rupees}.0`, `${rupees}.00`]
        for (const schema of [orderAmount(max), lenientAmount(max)]) {
          expect(values.map((value) => takes(schema, value))).toEqual(values.map(() => expected))
        }
        const withPaise = [`${rupees}.01`, rupees + 0.01]
        expect(withPaise.map((value) => takes(lenientAmount(max), value))).toEqual(
          withPaise.map(() => expected && rupees < max),
        )
        expect(withPaise.map((value) => takes(orderAmount(max), value))).toEqual([false, false])
      }),
      { numRuns: runs(5_000) },
    )
  })
})

describe('an amount from 1.00 to 500000.00 rupees', () => {
  it('the service parses an amount unchanged from each of its formats', () => {
    fc.assert(
      fc.property(paise, (amount) => {
        const asJson = JSON.stringify(toJsonNumber(amount))
        const formatted = [
          toPlainText(amount),
          toDecimalText(amount),
          toIndianText(amount).replace(/[₹,]/g, ''),
          asJson,
        ]
        expect(formatted.map((text) => SHOP.parse(text))).toEqual(formatted.map(() => amount))
        expect(SHOP.parse(JSON.parse(asJson))).toBe(amount)
        // Some store software sends four decimals.
        expect([SHOP, lenientAmountText, lenientRefund].map((of) => of.parse(`${toDecimalText(amount)}00`))).toEqual([
          ...[amount, amount, amount],
        ])
        expect(
          [SHOP, lenientAmountText, lenientRefund].map((of) => of.safeParse(`${toDecimalText(amount)}01`).success),
        ).toEqual([...[false, false, false]])
        // As the bank reports it, and as it is compared.
        const reported = [toDecimalText(amount), toPlainText(amount), JSON.parse(asJson)]
        expect(reported.map((amount) => bankAmount.parse(amount))).toEqual(reported.map(() => amount))
      }),
      MANY,
    )
  })

  it('the service formats an amount with its exact digits, never with the digits of a float', () => {
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

  it('the service parses an amount in whole rupees as the same paise, whether or not the merchant may send paise', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 500_000 }), fc.constantFrom('', '.0', '.00'), (rupees, decimals) => {
        for (const value of [`${rupees}${decimals}`, `00${rupees}${decimals}`, rupees]) {
          expect([ORDER.parse(value), SHOP.parse(value)]).toEqual([rupees * 100, rupees * 100])
        }
      }),
    )
  })
})
