import type { FastifyRequest } from 'fastify'
import * as z from 'zod'
import { badRequest } from '../../errors.ts'
import {
  CONTROLS,
  emailAddress,
  errorText,
  identifier,
  matching,
  mobileAsWritten,
  readUrl,
  text,
  textRule,
  wholeNumber,
} from '../../platform/fields.ts'
import { lenientAmount, orderAmount, USUAL_MAX_RUPEES } from '../../platform/money.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { LEAST_EXPIRY_MINUTES, LONGEST_EXPIRY_MINUTES } from './order-lifetime.ts'

const REDIRECT_RULE = 'must be an absolute http or https URL of at most 2048 characters, without user and password'

/**
 * The longest host with its port. The DNS allows 253 characters, and the DNS form of a non-ASCII name is never shorter
 * than the name.
 */
const HOST_LIMIT_CHARACTERS = 253 + ':65535'.length

/**
 * Accepts only plain web addresses, no `javascript:` and no `https://bank@evil`, because the service redirects the
 * customer's browser to this address. The checks stop at the first failure, because `new URL` takes too long for very
 * long hosts.
 */
const redirectUrl = z
  .string(errorText(REDIRECT_RULE))
  .max(2048, { error: REDIRECT_RULE, abort: true })
  .regex(
    new RegExp(
      `^[Hh][Tt][Tt][Pp][Ss]?://[^@/?#\\s\\\\${CONTROLS}]{1,${HOST_LIMIT_CHARACTERS}}([/?#][^\\s\\\\${CONTROLS}]*)?$`,
      'u',
    ),
    { error: REDIRECT_RULE, abort: true },
  )
  .refine((address) => readUrl(address) !== undefined, REDIRECT_RULE)

/**
 * A note. Line breaks and tabs, which pasted text may contain, become spaces; other control characters are rejected.
 */
export function note(max: number, min = 1) {
  const rule = textRule(max, min)
  return (
    z
      .string(errorText(rule))
      .trim()
      // The length is checked before line breaks are replaced, because replacing 16 KiB of line breaks blocks the event
      // loop. The limit is doubled, because a character or a line break (CR LF) has up to two UTF-16 units.
      .max(2 * max, rule)
      // The OpenAPI document contains only the rules of `text` that apply before line breaks are replaced.
      .meta({
        minLength: min,
        maxLength: max,
        pattern: '^[^\\u0000-\\u0008\\u000e-\\u001f\\u007f-\\u0084\\u0086-\\u009f\\ud800-\\udfff]*$',
      })
      .transform((remark) => remark.replace(/\r\n|[\t\n\v\f\r\u0085\u2028\u2029]/g, ' ').trim())
      .pipe(text(max, min))
  )
}

export const mid = identifier.meta({ description: 'Your merchant identifier, assigned by the operator.' })

/** The fields of a payment intent, in the order in which an error names invalid fields. */
export const NewPayment = z.object({
  mid,
  amount: orderAmount(USUAL_MAX_RUPEES).meta({
    description:
      `Whole rupees from 1 to ${USUAL_MAX_RUPEES}, or to the maximum that the operator has set for you. \`200.00\` is 200; ` +
      '`200.50` is rejected. If the operator has set your input to `shop`, paise are accepted, as in `588.82`, and further decimals if they are zeros.',
  }),
  order_id: text(64)
    .meta({
      description: 'Your own order identifier, compared exactly. It can be used once; a repeat is rejected with 409.',
      example: '8c1f6f0e-3f5b-4a57-9d0e-2b7f1a6c4d35',
    })
    .optional(),
  redirect_url: redirectUrl.meta({
    description:
      'The absolute http or https URL to which the customer is redirected after the payment, without user and password.',
  }),
  note: note(255).meta({ description: 'What the payment is for. Line breaks become spaces.' }),
  customer_name: text(100).meta({ description: 'The customer’s full name.' }),
  customer_email: emailAddress.meta({
    description:
      'At most 254 characters, of which 64 before the `@`. The domain may be in any script, or in its form `xn--…`.',
  }),
  customer_mobile: matching(/^[0-9]{10}$/, 'must be 10 digits').meta({
    description:
      '10 digits. With the input `shop`, other notations such as `+91 98765-43210` and digits of any script are accepted too.',
  }),
  expiry_minutes: wholeNumber(LEAST_EXPIRY_MINUTES, LONGEST_EXPIRY_MINUTES)
    .meta({
      description:
        `Minutes in which the customer can pay, a whole number from ${LEAST_EXPIRY_MINUTES} to ${LONGEST_EXPIRY_MINUTES}, or to the maximum ` +
        'that the operator has set for you. Without this field, your usual time applies.',
      example: '60',
    })
    .optional(),
})

export type NewPayment = z.output<typeof NewPayment>

/** Schemas by the merchant's maxima. The map stays small, because operators set few different maxima. */
const schemas = new Map<string, Record<Merchant['input'], z.ZodObject>>()

function newPaymentOf({ caller }: FastifyRequest): z.ZodObject {
  if (caller.kind !== 'merchant') return NewPayment
  const { input, maxAmount, maxExpiryMinutes } = caller.merchant
  const maxima = `${maxAmount} ${maxExpiryMinutes}`
  let both = schemas.get(maxima)
  if (!both) {
    const expiry_minutes = wholeNumber(LEAST_EXPIRY_MINUTES, maxExpiryMinutes).optional()
    both = {
      strict: NewPayment.extend({ amount: orderAmount(maxAmount), expiry_minutes }),
      // Merchants with the input `shop` may send amounts with paise, and mobile numbers in other notations.
      shop: NewPayment.extend({ amount: lenientAmount(maxAmount), customer_mobile: mobileAsWritten, expiry_minutes }),
    }
    schemas.set(maxima, both)
  }
  return both[input]
}

const EXAMPLE = {
  mid: 'DEMO_MERCHANT',
  amount: '200',
  redirect_url: 'https://shop.example/thank-you',
  note: 'Two cups of masala chai',
  customer_name: 'Asha Rao',
  customer_email: 'asha@shop.example',
  customer_mobile: '9876543210',
}

/** The request body of the operations that create an intent. In JSON, `amount` may also be a number. */
export const NEW_PAYMENT = {
  name: 'NewPayment',
  schema: NewPayment,
  schemaFor: newPaymentOf,
  example: EXAMPLE,
  jsonExample: { ...EXAMPLE, amount: 200 },
}

export const BAD_NEW_PAYMENT = badRequest(
  `amount must be a whole number from 1 to ${USUAL_MAX_RUPEES}; customer_mobile must be 10 digits`,
)

export const orderId = z
  .string()
  .regex(/^[0-9a-f]{32}$/)
  .meta({ description: 'The service’s identifier of the order, unique per intent. UPI apps send it as `tr`.' })
