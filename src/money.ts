import * as z from 'zod'
import { errorText } from './fields.ts'

/**
 * Rupees and paise: how an amount is read, and each way to spell it. The amount of an intent is a number of whole rupees;
 * what the bank says is decimal text. Neither is ever a float.
 */

const ORDER_RULE = 'must be a whole number from 1 to 100000'

/** Whole rupees as text. Shop plugins send `200.00`, which is 200. Never z.coerce: it takes `1e3`, `0x10` and blanks. */
export const orderAmountText = z
  .string(errorText(ORDER_RULE))
  .regex(/^0*([1-9][0-9]{0,4}|100000)(\.00?)?$/, ORDER_RULE)
  .transform(Number)

/** JSON may carry a number too, judged by its value. */
export const orderAmount = z.union(
  [orderAmountText, z.int(ORDER_RULE).min(1, ORDER_RULE).max(100_000, ORDER_RULE)],
  errorText(ORDER_RULE),
)

const BANK_RULE = 'must be rupees with at most two decimals'

/** Any amount that a bank may name: what numeric(14, 2) holds. */
export const BANK_AMOUNT = /^[0-9]{1,12}(\.[0-9]{1,2})?$/

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
  .transform((amount) => {
    const [whole = '', decimals = ''] = amount.split('.')
    return `${whole.replace(/^0+(?=\d)/, '')}.${decimals.padEnd(2, '0')}`
  })

/** For banks and UPI apps: 200 is `200.00`. */
export function toDecimalText(amount: number): string {
  return `${amount}.00`
}

/** Whole paise as decimal text: 20000 is `200.00`. */
export function paiseToDecimalText(paise: number): string {
  return `${Math.floor(paise / 100)}.${String(paise % 100).padStart(2, '0')}`
}

/** For merchants: 200 is `200`. */
export function toPlainText(amount: number): string {
  return String(amount)
}

const INDIAN = new Intl.NumberFormat('en-IN')

/** For people, in the groups that India reads: 100000 is `1,00,000`. */
export function toIndianText(amount: number): string {
  return INDIAN.format(amount)
}
