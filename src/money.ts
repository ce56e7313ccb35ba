import * as z from 'zod'
import { errorText } from './fields.ts'

/**
 * Rupees and paise: the one place where an amount is read, and each way to spell it. The amount of an intent is a whole number
 * of paise, 100 to 10,000,000; what the bank says is decimal text. Neither is ever a float.
 */

const ORDER_RULE = 'must be a whole number from 1 to 100000'
const SHOP_RULE = 'must be rupees from 1.00 to 100000.00 with at most two decimals, such as 588.82'

/**
 * Whole rupees as text, 1 to 100000; the result is paise. Shop plugins send `200.00` for 200. z.coerce is not used: it
 * takes `1e3`, `0x10` and blanks.
 */
const orderAmountText = z
  .string(errorText(ORDER_RULE))
  .regex(/^0*([1-9][0-9]{0,4}|100000)(\.00?)?$/, ORDER_RULE)
  .transform(toPaise)

/** Whole rupees as text, or as a JSON number, which is judged by its value; the result is paise. */
export const orderAmount = z.union(
  [
    orderAmountText,
    z
      .int(ORDER_RULE)
      .min(1, ORDER_RULE)
      .max(100_000, ORDER_RULE)
      .transform((rupees) => rupees * 100),
  ],
  errorText(ORDER_RULE),
)

const SHOP_AMOUNT = /^0*([1-9][0-9]{0,4}(\.[0-9]{1,2})?|100000(\.00?)?)$/

/** Rupees as text, 1.00 to 100000.00; the result is paise. */
export const shopAmountText = z.string(errorText(SHOP_RULE)).regex(SHOP_AMOUNT, SHOP_RULE).transform(toPaise)

/** Rupees as text or as a JSON number; the result is paise. */
export const shopAmount = textOrNumber(SHOP_AMOUNT, SHOP_RULE)

const REFUND_RULE = 'must be rupees from 0.01 to 100000.00 with at most two decimals, such as 88.82'

/** What goes back of a shop's order: 0.01 to 100000.00, as text or as a JSON number; the result is paise. */
export const shopRefund = textOrNumber(/^(?!0*(\.0*)?$)0*([0-9]{1,5}(\.[0-9]{1,2})?|100000(\.00?)?)$/, REFUND_RULE)

/** A number is read by its digits, never by arithmetic. */
function textOrNumber(pattern: RegExp, rule: string) {
  return z.union(
    [
      z.string(errorText(rule)).regex(pattern, rule).transform(toPaise),
      z
        .number()
        .refine((rupees) => pattern.test(String(rupees)), rule)
        .transform((rupees) => toPaise(String(rupees))),
    ],
    errorText(rule),
  )
}

/** Rupees as text with at most two decimals, in paise. A number holds 15 digits exactly, and a bank's amount has 14. */
export function toPaise(rupees: string): number {
  const [whole = '', decimals = ''] = rupees.split('.')
  return Number(whole) * 100 + Number(decimals.padEnd(2, '0'))
}

const BANK_RULE = 'must be rupees with at most two decimals'

/** Any amount that a bank may name: what numeric(14, 2) holds. */
export const BANK_AMOUNT = /^[0-9]{1,12}(\.[0-9]{1,2})?$/

/** The same of a settlement, which is negative where the bank takes money back. Zero has no sign. */
export const SETTLED_AMOUNT = /^(?!-0+(?:\.0+)?$)-?[0-9]{1,12}(?:\.[0-9]{1,2})?$/

const TOTAL_RULE = 'must be rupees such as 1234567.00 or 12,34,567.00'
const TOTAL = /^-?(?:[0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{2,3}){0,8},[0-9]{3})(?:\.[0-9]{1,2})?$/

/** A sum of rupees as a person copies it, with or without commas; becomes paise, a bigint. */
export const totalText = z
  .string(errorText(TOTAL_RULE))
  .regex(TOTAL, TOTAL_RULE)
  .transform((rupees) => {
    const [whole = '', decimals = ''] = rupees.replaceAll(',', '').split('.')
    return BigInt(whole + decimals.padEnd(2, '0'))
  })

/** Rupees as a number or as text, judged by their digits; becomes decimal text with two decimals. */
export const bankAmount = z
  .union(
    [
      z.string().regex(BANK_AMOUNT, BANK_RULE),
      z
        .number()
        .refine((amount) => BANK_AMOUNT.test(String(amount)), BANK_RULE)
        .meta({ minimum: 0, exclusiveMaximum: 1e12 })
        .transform(String),
    ],
    errorText(BANK_RULE),
  )
  .transform((amount) => toDecimalText(toPaise(amount)))

/** For banks and UPI apps: 58882 paise are `588.82`, 20000 are `200.00`. */
export function toDecimalText(paise: number): string {
  return `${Math.floor(paise / 100)}.${String(paise % 100).padStart(2, '0')}`
}

/**
 * Decimal text of a sum, or of a difference: -1 paisa is `-0.01`. It takes a bigint, because a number would lose digits
 * of a large sum.
 */
export function toSumText(paise: bigint): string {
  const digits = String(paise < 0n ? -paise : paise).padStart(3, '0')
  return `${paise < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/** For merchants: 58882 paise are `588.82`, 20000 are `200`. */
export function toPlainText(paise: number): string {
  return paise % 100 === 0 ? String(paise / 100) : toDecimalText(paise)
}

/**
 * For JSON: rupees as a number. A division rounds to the number nearest to the amount, so it is written with the
 * amount's digits.
 */
export function toJsonNumber(paise: number): number {
  return paise / 100
}

let indian: Intl.NumberFormat | undefined

/** `12,34,567`. The format is made when it is first needed: the first use of Intl takes a start 6 ms. */
export function toIndianDigits(count: number | bigint): string {
  indian ??= new Intl.NumberFormat('en-IN')
  return indian.format(count)
}

/** For people, of decimal text: `1234567.00` is `₹12,34,567.00`, `-0.50` is `-₹0.50`. */
export function toIndianRupees(rupees: string): string {
  const [whole = '', decimals] = rupees.replace('-', '').split('.')
  return `${rupees.startsWith('-') ? '-' : ''}₹${toIndianDigits(BigInt(whole))}.${decimals}`
}

/** For people, in the groups that India reads: 10000000 paise are `₹1,00,000`, 58882 are `₹588.82`. */
export function toIndianText(paise: number): string {
  const decimals = paise % 100 === 0 ? '' : toDecimalText(paise).slice(-3)
  return `₹${toIndianDigits(Math.floor(paise / 100))}${decimals}`
}
