import * as z from 'zod'
import { errorText, matching, oneTo } from './fields.ts'

/**
 * An amount: a whole number of paise. `toPaise` parses text in rupees, and the formatters below convert paise back to
 * text.
 */
export type Paise = number

/**
 * Returns the sum of two amounts, also as the function of `reduce`. Throws if the sum is beyond 2^53, because a number
 * would lose digits.
 */
export function addPaise(one: Paise, other: Paise): Paise {
  const sum = one + other
  if (!Number.isSafeInteger(sum)) throw new Error('the amounts add up to more than 90 lakh crore rupees')
  return sum
}

/** Largest amount of an intent in rupees, unless the operator sets another maximum for the merchant. */
export const USUAL_MAX_RUPEES = 100_000
/** Largest maximum in rupees that the operator can set: NPCI's limit for verified merchants in some categories. */
export const HIGHEST_MAX_RUPEES = 500_000

/** Accepts whole rupees as text or as a JSON number; the result is paise. */
export function orderAmount(maxRupees: number) {
  const rule = `must be a whole number from 1 to ${maxRupees}`
  return z.union(
    [
      // Accepts `200.00` for 200, because store plugins send amounts in this form. z.coerce is not used, because it
      // accepts `1e3`, `0x10` and spaces.
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

/** Accepts further zeros after two decimals, because some store software sends 100.0000 for 100. */
const LENIENT_DECIMALS = '\\.[0-9]{1,2}0*'

/** Accepts rupees from 1.00, as text or as a JSON number; the result is paise. */
export const lenientAmount = (maxRupees: number) => textOrNumber(lenientPattern(maxRupees), lenientRule(maxRupees))

/** Accepts the amount of any intent as a person types the amount; the result is paise. */
export const lenientAmountText = textInPaise(lenientPattern(HIGHEST_MAX_RUPEES), lenientRule(HIGHEST_MAX_RUPEES))

function lenientPattern(maxRupees: number): RegExp {
  return new RegExp(`^0*((${oneTo(maxRupees - 1)})(${LENIENT_DECIMALS})?|${maxRupees}(\\.0+)?)$`)
}

function lenientRule(maxRupees: number): string {
  const example = maxRupees > 588 ? ', such as 588.82' : ''
  return `must be rupees from 1.00 to ${maxRupees}.00 with at most two decimals${example}`
}

const REFUND_RULE = `must be rupees from 0.01 to ${HIGHEST_MAX_RUPEES}.00 with at most two decimals, such as 88.82`

/**
 * Accepts a refund amount from 0.01 from a merchant with the input setting `shop`, as text or as a JSON number; the
 * result is paise.
 */
export const lenientRefund = textOrNumber(
  new RegExp(
    `^(?!0*(\\.0*)?$)0*((0|${oneTo(HIGHEST_MAX_RUPEES - 1)})(${LENIENT_DECIMALS})?|${HIGHEST_MAX_RUPEES}(\\.0+)?)$`,
  ),
  REFUND_RULE,
)

function textInPaise(pattern: RegExp, rule: string) {
  return matching(pattern, rule).transform(toPaise)
}

/** Accepts a number or text. A number is converted by its digits, never by arithmetic. */
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

/**
 * Converts rupees as text to paise. The text may be negative or contain commas; the decimals after the second decimal
 * must be zeros.
 */
export function toPaise(rupees: string): Paise {
  const [whole = '', decimals = ''] = rupees.replaceAll(',', '').split('.')
  return Number(whole + decimals.padEnd(2, '0').slice(0, 2))
}

const BANK_RULE = 'must be rupees with at most two decimals'

/** The format of an amount in a bank's notification: less than 10^12 rupees. */
const BANK_AMOUNT = /^[0-9]{1,12}(\.[0-9]{1,2})?$/

/**
 * Largest single amount, in paise, that an import accepts: 10^11 rupees. A sum of 900 such amounts is still an exact
 * number.
 */
export const MOST_PAISE_OF_IMPORT: Paise = 10 ** 13

const TOTAL_RULE = 'must be rupees such as 1234567.00 or 12,34,567.00'
const TOTAL = /^-?(?:[0-9]{1,13}|[0-9]{1,3}(?:,[0-9]{2,3}){0,5},[0-9]{3})(?:\.[0-9]{1,2})?$/

/** A sum in rupees as a person copies the sum, with or without commas; the result is paise. */
export const totalText = matching(TOTAL, TOTAL_RULE).transform(toPaise)

/** Rupees as a number or as text; the result is paise. */
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
  .transform(toPaise)

/** Formats paise as rupees with two decimals: 58882 becomes `588.82`, 20000 becomes `200.00`, -1 becomes `-0.01`. */
export function toDecimalText(paise: Paise | bigint): string {
  const digits = String(paise).replace('-', '').padStart(3, '0')
  return `${paise < 0 ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}

/** Formats paise as rupees for merchants: 58882 becomes `588.82`, 20000 becomes `200`. */
export const toPlainText = (paise: Paise): string => (paise % 100 === 0 ? String(paise / 100) : toDecimalText(paise))

/**
 * Converts paise to rupees for JSON. The division yields the number nearest to the amount, and JSON writes this number
 * with the amount's digits.
 */
export const toJsonNumber = (paise: Paise): number => paise / 100

/**
 * Formats a number for people: 1234567 becomes `12,34,567`. Intl is not used, because the first use of Intl delays
 * startup.
 */
export const toIndianDigits = (count: number | string): string => String(count).replace(/\B(?=(\d\d)*\d{3}$)/g, ',')

/**
 * Formats a count for people: `1 row`, `2 rows`, `1,00,000 rows`. `many` is the plural if the plural is not `what` with
 * an s.
 */
export const counted = (count: number, what: string, many = `${what}s`): string =>
  `${toIndianDigits(count)} ${count === 1 ? what : many}`

/** Formats for people: groups the digits of amounts in a text, so `paid 3218361.86` becomes `paid 32,18,361.86`. */
export function groupRupees(text: string): string {
  return text.replace(/(?<![\w.,])\d+(?=\.\d\d(?!\w|[.,]\d))/g, toIndianDigits)
}

/** Formats paise for operators: 123456700 becomes `₹12,34,567.00`, -50 becomes `-₹0.50`. */
export const toIndianRupees = (paise: Paise | bigint): string => groupRupees(toDecimalText(paise)).replace(/^-?/, '$&₹')

/** Formats paise for customers: 50000000 becomes `₹5,00,000`, 58882 becomes `₹588.82`. */
export function toIndianText(paise: Paise): string {
  const decimals = paise % 100 === 0 ? '' : toDecimalText(paise).slice(-3)
  return `₹${toIndianDigits(Math.floor(paise / 100))}${decimals}`
}
