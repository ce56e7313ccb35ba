import * as z from 'zod'
import { identifier, otherwise, text } from '../fields.ts'

const AMOUNT_RULE = 'must be a whole number from 1 to 100000'
const MOBILE_RULE = 'must be 10 digits'
const REDIRECT_RULE = 'must be an absolute http or https address of at most 2048 characters, without user and password'

/**
 * Whole rupees. Shop plugins send `200.00`, which is 200; JSON may carry a number, judged by its value.
 * Never z.coerce: it takes `1e3`, `0x10` and blanks.
 */
const amount = z
  .union(
    [
      z
        .string()
        .regex(/^\d{1,9}(\.00?)?$/)
        .transform(Number),
      z.number(),
    ],
    otherwise(AMOUNT_RULE),
  )
  .refine((rupees) => Number.isInteger(rupees) && rupees >= 1 && rupees <= 100_000, AMOUNT_RULE)

/** The browser is sent here later, so nothing but a plain web address passes: no `javascript:`, no `https://bank@evil`. */
const redirectUrl = z
  .string(otherwise(REDIRECT_RULE))
  .max(2048, REDIRECT_RULE)
  .regex(/^https?:\/\/[^@/?#\s\\]+([/?#][^\s\\\p{Cc}\p{Cs}]*)?$/iu, REDIRECT_RULE)
  .refine(URL.canParse, REDIRECT_RULE)

/** Line breaks and tabs of a pasted remark become blanks; every other control character is refused. */
const note = z
  .string(otherwise('must be text of 1 to 255 characters'))
  .transform((remark) => remark.replace(/\r\n|[\t\n\v\f\r\u0085\u2028\u2029]/g, ' ').trim())
  .pipe(text(255))

/** Contract A2, in the order of its table. */
export const CreatePaymentIntent = z.object({
  mid: identifier,
  amount,
  order_id: text(64).optional(),
  redirect_url: redirectUrl,
  note,
  customer_name: text(100),
  customer_email: z.email(otherwise('must be a valid e-mail address')).max(254, 'must be at most 254 characters'),
  customer_mobile: z.string(otherwise(MOBILE_RULE)).regex(/^[0-9]{10}$/, MOBILE_RULE),
})

export type CreatePaymentIntent = z.output<typeof CreatePaymentIntent>

/** Contract C2: order_id is the merchant's own, else ours. */
export const CheckPaymentStatus = z.object({ mid: identifier, order_id: text(64) })
