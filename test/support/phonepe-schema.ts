import type { PhonepeCall } from './phonepe-bank.ts'
import { departureFrom, type RequestSchemas } from './request-schemas.ts'

/** Request schemas from PhonePe's documents. */
const object = (properties: Record<string, object>) => ({
  type: 'object',
  additionalProperties: false,
  required: Object.keys(properties),
  properties,
})

const text = { type: 'string', minLength: 1 }
/** PhonePe's limit is 63 characters; the `tr` of a link allows 35 letters and digits. */
const name = { type: 'string', pattern: '^[A-Za-z0-9]{1,35}$' }
const paise = { type: 'integer', minimum: 100 }

const authorized = { authorization: { type: 'string', pattern: '^O-Bearer [!-~]+$' } }
const json = { 'content-type': { const: 'application/json' } }

const REQUESTS: RequestSchemas<PhonepeCall> = {
  logIn: {
    headers: { 'content-type': { const: 'application/x-www-form-urlencoded' } },
    body: object({
      client_id: text,
      client_version: { type: 'string', pattern: '^[0-9]+$' },
      client_secret: text,
      grant_type: { const: 'client_credentials' },
    }),
  },
  createOrder: {
    headers: { ...authorized, ...json },
    body: object({
      merchantOrderId: name,
      amount: paise,
      expireAfter: { type: 'integer', minimum: 300, maximum: 5_184_000 },
      paymentFlow: object({ type: { const: 'PG' }, paymentMode: object({ type: { const: 'UPI_QR' } }) }),
    }),
  },
  order: { headers: authorized },
  refund: {
    headers: { ...authorized, ...json },
    body: object({ merchantRefundId: name, originalMerchantOrderId: name, amount: paise }),
  },
  findRefund: { headers: authorized },
  disputes: { headers: authorized },
}

/** Returns how a request violates PhonePe's documents; undefined if it does not. */
export const departure = departureFrom(REQUESTS)
