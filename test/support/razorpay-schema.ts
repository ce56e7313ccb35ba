import type { RazorpayCall } from './razorpay-bank.ts'
import { departureFrom, type RequestSchemas } from './request-schemas.ts'

/** Request schemas from Razorpay's documents. */
const object = (properties: Record<string, object>) => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
})

const authorized = { authorization: { type: 'string', pattern: '^Basic [A-Za-z0-9+/=]+$' } }
const json = { ...authorized, 'content-type': { const: 'application/json' } }
/** Razorpay rejects fractions of a paisa and less than one rupee. */
const paise = (minimum: number) => ({ type: 'integer', minimum })
const INR = { const: 'INR' }
/** Razorpay accepts 40 characters. */
const receipt = { type: 'string', pattern: '^[0-9a-f]{32}$' }
/** From 12 minutes to 3 days. */
const captureMinutes = { type: 'integer', minimum: 12, maximum: 4_320 }

const REQUESTS: RequestSchemas<RazorpayCall> = {
  createOrder: {
    headers: json,
    body: object({
      amount: paise(100),
      currency: INR,
      receipt,
      payment: object({
        capture: { const: 'automatic' },
        capture_options: object({
          automatic_expiry_period: captureMinutes,
          manual_expiry_period: captureMinutes,
          refund_speed: { const: 'normal' },
        }),
      }),
    }),
  },
  findOrder: { headers: authorized },
  createPayment: {
    headers: json,
    body: object({
      amount: paise(100),
      currency: INR,
      order_id: { type: 'string', pattern: '^order_' },
      email: { type: 'string', format: 'email' },
      contact: { type: 'string', pattern: '^[6-9][0-9]{9}$' },
      method: { const: 'upi' },
      upi: object({ flow: { const: 'intent' } }),
      notes: object({ receipt }),
    }),
  },
  payments: { headers: authorized },
  refund: {
    headers: { ...json, 'x-refund-idempotency': { type: 'string', pattern: '^[A-Za-z0-9_-]{10,}$' } },
    body: object({ amount: paise(100), speed: { const: 'normal' }, receipt }),
  },
  findRefund: { headers: authorized },
  dispute: { headers: authorized },
}

/** Returns how a request violates Razorpay's documents; undefined if it does not. */
export const departure = departureFrom(REQUESTS)
