import * as z from 'zod'
import { CONTROLS, identifier, otherwise, text } from '../fields.ts'

const AMOUNT_RULE = 'must be a whole number from 1 to 100000'
const MOBILE_RULE = 'must be 10 digits'
const REDIRECT_RULE = 'must be an absolute http or https address of at most 2048 characters, without user and password'

/**
 * Whole rupees. Shop plugins send `200.00`, which is 200; JSON may carry a number, judged by its value.
 * Never z.coerce: it takes `1e3`, `0x10` and blanks.
 */
const amount = z.union(
  [
    z
      .string()
      .regex(/^0*([1-9][0-9]{0,4}|100000)(\.00?)?$/)
      .transform(Number),
    z.int(AMOUNT_RULE).min(1, AMOUNT_RULE).max(100_000, AMOUNT_RULE),
  ],
  otherwise(AMOUNT_RULE),
)

/** The browser is sent here later, so nothing but a plain web address passes: no `javascript:`, no `https://bank@evil`. */
const redirectUrl = z
  .string(otherwise(REDIRECT_RULE))
  .max(2048, REDIRECT_RULE)
  .regex(new RegExp(`^[Hh][Tt][Tt][Pp][Ss]?://[^@/?#\\s\\\\]+([/?#][^\\s\\\\${CONTROLS}]*)?$`, 'u'), REDIRECT_RULE)
  .refine(URL.canParse, REDIRECT_RULE)

/** Line breaks and tabs of a pasted remark become blanks; every other control character is refused. */
const note = z
  .string(otherwise('must be text of 1 to 255 characters'))
  // What `text` asks for, as far as it can be said of the remark before its blanks are mended.
  .meta({
    minLength: 1,
    maxLength: 255,
    pattern: '^[^\\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u0084\\u0086-\\u009f\\ud800-\\udfff]*$',
  })
  .transform((remark) => remark.replace(/\r\n|[\t\n\v\f\r\u0085\u2028\u2029]/g, ' ').trim())
  .pipe(text(255))

const mid = identifier.meta({ description: 'Your merchant identifier, as the operator assigned it.' })

/** Contract A2, in the order of its table. */
export const CreatePaymentIntent = z.object({
  mid,
  amount: amount.meta({ description: 'Whole rupees, 1 to 100000. `200.00` is 200; `200.50` is refused.' }),
  order_id: text(64)
    .meta({
      description: 'Your own order identifier, compared exactly. It may be used once; a repeat is refused with 409.',
    })
    .optional(),
  redirect_url: redirectUrl.meta({
    description:
      'Where the customer is sent after paying: an absolute http or https address, without user and password.',
  }),
  note: note.meta({ description: 'What the payment is for. Line breaks become blanks.' }),
  customer_name: text(100).meta({ description: 'Full name.' }),
  customer_email: z.email(otherwise('must be a valid e-mail address')).max(254, 'must be at most 254 characters'),
  customer_mobile: z
    .string(otherwise(MOBILE_RULE))
    .regex(/^[0-9]{10}$/, MOBILE_RULE)
    .meta({ description: '10 digits.' }),
})

export type CreatePaymentIntent = z.output<typeof CreatePaymentIntent>

/** Contract C2: order_id is the merchant's own, else ours. */
export const CheckPaymentStatus = z.object({
  mid,
  order_id: text(64).meta({ description: 'The `order_id` that you sent, or the `orderId` that you got.' }),
})
