import * as z from 'zod'
import { errorText } from './fields.ts'

/**
 * Rupees and paise: the one place where an amount is read, and each way to spell it. The amount of an intent is a whole number
 * of paise, 100 to 50,000,000; what the bank says is decimal text. Neither is ever a float.
 */

/** Largest amount of an intent in rupees, as the interface has it, unless the operator sets another one for a merchant. */
export const USUAL_MAX_RUPEES = 100_000
/** The largest that may be set. NPCI allows as much for verified merchants of some categories. */
export const HIGHEST_MAX_RUPEES = 500_000

/** Whole rupees as text or as a JSON number, which is judged by its value; the result is paise. */
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

/** Rupees from 1.00, as text or as a JSON number; the result is paise. */
export const shopAmount = (maxRupees: number) => textOrNumber(shopPattern(maxRupees), shopRule(maxRupees))

/** The amount of any intent as a person types it; the result is paise. */
export const shopAmountText = textInPaise(shopPattern(HIGHEST_MAX_RUPEES), shopRule(HIGHEST_MAX_RUPEES))

function shopPattern(maxRupees: number): RegExp {
  return new RegExp(`^0*((${oneTo(maxRupees - 1)})(\\.[0-9]{1,2})?|${maxRupees}(\\.00?)?)$`)
}

function shopRule(maxRupees: number): string {
  const example = maxRupees > 588 ? ', such as 588.82' : ''
  return `must be rupees from 1.00 to ${maxRupees}.00 with at most two decimals${example}`
}

const REFUND_RULE = `must be rupees from 0.01 to ${HIGHEST_MAX_RUPEES}.00 with at most two decimals, such as 88.82`

/** What goes back of a shop's order: from 0.01, as text or as a JSON number; the result is paise. */
export const shopRefund = textOrNumber(
  new RegExp(
    `^(?!0*(\\.0*)?$)0*((0|${oneTo(HIGHEST_MAX_RUPEES - 1)})(\\.[0-9]{1,2})?|${HIGHEST_MAX_RUPEES}(\\.00?)?)$`,
  ),
  REFUND_RULE,
)

/** The regular expression of the whole numbers from 1 to `max`, without zeros before them; of nothing when that is 0. */
function oneTo(max: number): string {
  const digits = String(max)
  const shorter = digits.length > 1 ? [`[1-9][0-9]{0,${digits.length - 2}}`] : []
  // Of the same length: those that begin as `max` does and then have a lower digit.
  const lower = [...digits].flatMap((digit, place) => {
    const [from, to] = [place === 0 ? 1 : 0, Number(digit) - 1]
    return from > to ? [] : `${digits.slice(0, place)}[${from}-${to}][0-9]{${digits.length - place - 1}}`
  })
  return max === 0 ? '(?!)' : [...shorter, ...lower, digits].join('|')
}

function textInPaise(pattern: RegExp, rule: string) {
  return z.string(errorText(rule)).regex(pattern, rule).transform(toPaise)
}

/** A number is read by its digits, never by arithmetic. */
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

/** For people, whole numbers: `12,34,567`. By their digits, since the first use of Intl takes a start 6 ms. */
export function toIndianDigits(count: number | string): string {
  return String(count).replace(/\B(?=(\d\d)*\d{3}$)/g, ',')
}

/** For people, text whose amounts get the groups that India reads: `paid 3218361.86` becomes `paid 32,18,361.86`. */
export function groupRupees(text: string): string {
  return text.replace(/(?<![\w.,])\d+(?=\.\d\d(?!\w|[.,]\d))/g, toIndianDigits)
}

/** For people, of decimal text: `1234567.00` is `₹12,34,567.00`, `-0.50` is `-₹0.50`. */
export function toIndianRupees(rupees: string): string {
  return groupRupees(rupees).replace(/^-?/, '$&₹')
}

/** For people, in the groups that India reads: 50000000 paise are `₹5,00,000`, 58882 are `₹588.82`. */
export function toIndianText(paise: number): string {
  const decimals = paise % 100 === 0 ? '' : toDecimalText(paise).slice(-3)
  return `₹${toIndianDigits(Math.floor(paise / 100))}${decimals}`
}
