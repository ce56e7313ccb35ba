import * as z from 'zod'
import { errorText, matching } from './fields.ts'

/**
 * Parses and formats every amount. The amount of an intent is a whole number of paise, 100 to 50,000,000; an amount from a
 * bank is decimal text. Neither is ever a float.
 */

/** Largest amount of an intent in rupees, unless the operator sets another one for the merchant. */
export const USUAL_MAX_RUPEES = 100_000
/** Largest amount that the operator can set: NPCI's limit for verified merchants of some categories. */
export const HIGHEST_MAX_RUPEES = 500_000

/** Whole rupees as text or as a JSON number; the result is paise. */
export function orderAmount(maxRupees: number) {
  const rule = `must be a whole number from 1 to ${maxRupees}`
  return z.union(
    [
      // Shop plugins send `200.00` for 200. z.coerce is not used: it takes `1e3`, `0x10` and blanks.
      textInPaise(new RegExp(`^0*(${oneTo(maxRupees)})(\\.00?)?$`), rule),
      z
        .int(rule)
        .min(1, rule)
        .max(maxRupees, rule)
        .transform((rupees) => rupees * 100),
    ],
    errorText(rule),
  )
}

/** Some store software sends four decimals: 100.0000 is 100. */
const SHOP_DECIMALS = '\\.[0-9]{1,2}0*'

/** Rupees from 1.00, as text or as a JSON number; the result is paise. */
export const shopAmount = (maxRupees: number) => textOrNumber(shopPattern(maxRupees), shopRule(maxRupees))

/** The amount of any intent as a person types it; the result is paise. */
export const shopAmountText = textInPaise(shopPattern(HIGHEST_MAX_RUPEES), shopRule(HIGHEST_MAX_RUPEES))

function shopPattern(maxRupees: number): RegExp {
  return new RegExp(`^0*((${oneTo(maxRupees - 1)})(${SHOP_DECIMALS})?|${maxRupees}(\\.0+)?)$`)
}

function shopRule(maxRupees: number): string {
  const example = maxRupees > 588 ? ', such as 588.82' : ''
  return `must be rupees from 1.00 to ${maxRupees}.00 with at most two decimals${example}`
}

const REFUND_RULE = `must be rupees from 0.01 to ${HIGHEST_MAX_RUPEES}.00 with at most two decimals, such as 88.82`

/** The amount of a shop's refund, from 0.01, as text or as a JSON number; the result is paise. */
export const shopRefund = textOrNumber(
  new RegExp(
    `^(?!0*(\\.0*)?$)0*((0|${oneTo(HIGHEST_MAX_RUPEES - 1)})(${SHOP_DECIMALS})?|${HIGHEST_MAX_RUPEES}(\\.0+)?)$`,
  ),
  REFUND_RULE,
)

/** Regular expression for the whole numbers from 1 to `max`, without leading zeros; matches nothing when `max` is 0. */
function oneTo(max: number): string {
  const digits = String(max)
  const shorter = digits.length > 1 ? [`[1-9][0-9]{0,${digits.length - 2}}`] : []
  // Numbers of the same length share a beginning with `max` and then have a lower digit.
  const lower = [...digits].flatMap((digit, place) => {
    const [from, to] = [place === 0 ? 1 : 0, Number(digit) - 1]
    return from > to ? [] : `${digits.slice(0, place)}[${from}-${to}][0-9]{${digits.length - place - 1}}`
  })
  return max === 0 ? '(?!)' : [...shorter, ...lower, digits].join('|')
}

function textInPaise(pattern: RegExp, rule: string) {
  return matching(pattern, rule).transform(toPaise)
}

/** A number is converted by its digits, never by arithmetic. */
function textOrNumber(pattern: RegExp, rule: string) {
  return z.union(
    [
      textInPaise(pattern, rule),
      z
        .number()
        .refine((rupees) => pattern.test(String(rupees)), rule)
        .transform((rupees) => toPaise(String(rupees))),
    ],
    errorText(rule),
  )
}

/** Paise of rupees, whose decimals after the second are zeros. A bank's amount has up to 14 digits, and a number holds 15 exactly. */
export function toPaise(rupees: string): number {
  const [whole = '', decimals = ''] = rupees.split('.')
  return Number(whole) * 100 + Number(decimals.padEnd(2, '0').slice(0, 2))
}

const BANK_RULE = 'must be rupees with at most two decimals'

/** Any amount from a bank: the range of numeric(14, 2). */
export const BANK_AMOUNT = /^[0-9]{1,12}(\.[0-9]{1,2})?$/

/** An amount of a settlement is negative where the bank takes money back. Zero has no sign. */
export const SETTLED_AMOUNT = /^(?!-0+(?:\.0+)?$)-?[0-9]{1,12}(?:\.[0-9]{1,2})?$/

const TOTAL_RULE = 'must be rupees such as 1234567.00 or 12,34,567.00'
const TOTAL = /^-?(?:[0-9]{1,18}|[0-9]{1,3}(?:,[0-9]{2,3}){0,8},[0-9]{3})(?:\.[0-9]{1,2})?$/

/** A sum of rupees as a person copies it, with or without commas; becomes a bigint of paise. */
export const totalText = matching(TOTAL, TOTAL_RULE).transform(toSum)

/** Paise of rupees with at most two decimals, with or without commas. */
export function toSum(rupees: string): bigint {
  const [whole = '', decimals = ''] = rupees.replaceAll(',', '').split('.')
  return BigInt(whole + decimals.padEnd(2, '0'))
}

/** Rupees as a number or as text; becomes decimal text with two decimals. */
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

/** The amount for banks and UPI apps: 58882 paise are `588.82`, 20000 are `200.00`. */
export function toDecimalText(paise: number): string {
  return `${Math.floor(paise / 100)}.${String(paise % 100).padStart(2, '0')}`
}

/** Decimal text of a sum or difference: -1 paisa is `-0.01`. A bigint, because a number would lose digits. */
export function toSumText(paise: bigint): string {
  const digits = String(paise < 0n ? -paise : paise).padStart(3, '0')
  return `${paise < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/** The amount for merchants: 58882 paise are `588.82`, 20000 are `200`. */
export const toPlainText = (paise: number): string => (paise % 100 === 0 ? String(paise / 100) : toDecimalText(paise))

/** Rupees for JSON: the division gives the number nearest to the amount, which JSON writes with the amount's digits. */
export const toJsonNumber = (paise: number): number => paise / 100

/** For people: 1234567 is `12,34,567`. Without Intl, whose first use delays the start. */
export const toIndianDigits = (count: number | string): string => String(count).replace(/\B(?=(\d\d)*\d{3}$)/g, ',')

/** For people: `1 row`, `2 rows`, `1,00,000 rows`; `many` is the plural where it is not `what` with an s. */
export const counted = (count: number, what: string, many = `${what}s`): string =>
  `${toIndianDigits(count)} ${count === 1 ? what : many}`

/** For people: groups the digits of amounts in a text, `paid 3218361.86` becomes `paid 32,18,361.86`. */
export function groupRupees(text: string): string {
  return text.replace(/(?<![\w.,])\d+(?=\.\d\d(?!\w|[.,]\d))/g, toIndianDigits)
}

/** For people: the decimal text `1234567.00` is `₹12,34,567.00`, `-0.50` is `-₹0.50`. */
export const toIndianRupees = (rupees: string): string => groupRupees(rupees).replace(/^-?/, '$&₹')

/** For people: 50000000 paise are `₹5,00,000`, 58882 are `₹588.82`. */
export function toIndianText(paise: number): string {
  const decimals = paise % 100 === 0 ? '' : toDecimalText(paise).slice(-3)
  return `₹${toIndianDigits(Math.floor(paise / 100))}${decimals}`
}
