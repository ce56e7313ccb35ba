import type { CashfreeCall } from './cashfree-bank.ts'
import { departureFrom, NEVER, type RequestSchemas } from './request-schemas.ts'

/** Request schemas from Cashfree's documents. */
const object = (required: string[], properties: Record<string, object>) => ({
  type: 'object',
  additionalProperties: false,
  required,
  properties,
})

const rupees = (minimum: number) => ({ type: 'number', minimum, multipleOf: 0.01 })
const text = { type: 'string', minLength: 1 }

const versioned = { 'x-api-version': { const: '2025-01-01' } }
const asClient = { ...versioned, 'x-client-id': text, 'x-client-secret': text }
const json = { 'content-type': { const: 'application/json' } }

const REQUESTS: RequestSchemas<CashfreeCall> = {
  createOrder: {
    headers: { ...asClient, ...json },
    body: object(
      // Fields that Cashfree treats as optional are required here: it would choose the order id itself and accept
      // payments for 30 days.
      ['order_id', 'order_amount', 'order_currency', 'customer_details', 'order_meta', 'order_expiry_time'],
      {
        order_id: { type: 'string', pattern: '^[A-Za-z0-9_-]{3,45}$' },
        order_amount: rupees(1),
        order_currency: { const: 'INR' },
        customer_details: object(['customer_id', 'customer_phone'], {
          customer_id: { type: 'string', pattern: '^[A-Za-z0-9]{3,50}$' },
          customer_phone: { type: 'string', pattern: '^[0-9]{10}$' },
        }),
        order_meta: object(['payment_methods'], {
          notify_url: { type: 'string', pattern: '^https://', maxLength: 250 },
          payment_methods: { const: 'upi' },
        }),
        order_expiry_time: { type: 'string', format: 'date-time' },
        order_note: { type: 'string', minLength: 3, maxLength: 200 },
      },
    ),
  },
  openSession: {
    // The session id authorises the request.
    headers: { ...versioned, ...json, 'x-client-id': NEVER, 'x-client-secret': NEVER },
    body: object(['payment_session_id', 'payment_method'], {
      payment_session_id: text,
      payment_method: object(['upi'], { upi: object(['channel'], { channel: { const: 'link' } }) }),
    }),
  },
  findOrder: { headers: asClient },
  payments: { headers: asClient },
  terminate: {
    headers: { ...asClient, ...json },
    body: object(['order_status'], { order_status: { const: 'TERMINATED' } }),
  },
  refund: {
    headers: { ...asClient, ...json },
    body: object(['refund_amount', 'refund_id', 'refund_speed'], {
      refund_amount: rupees(0.01),
      refund_id: { type: 'string', pattern: '^[A-Za-z0-9]{3,40}$' },
      refund_note: { type: 'string', minLength: 3, maxLength: 100 },
      refund_speed: { const: 'STANDARD' },
    }),
  },
  findRefund: { headers: asClient },
  simulate: {
    headers: { ...asClient, ...json },
    body: object(['entity', 'entity_id', 'entity_simulation'], {
      entity: { const: 'PAYMENTS' },
      entity_id: text,
      entity_simulation: object(['payment_status'], {
        payment_status: { enum: ['SUCCESS', 'FAILED', 'PENDING', 'USER_DROPPED'] },
        payment_error_code: text,
      }),
    }),
  },
  dispute: { headers: asClient },
  recon: {
    headers: { ...asClient, ...json },
    body: object(['pagination', 'filters'], {
      pagination: object(['limit'], {
        limit: { type: 'integer', minimum: 1, maximum: 1_000 },
        cursor: { type: ['string', 'null'] },
      }),
      filters: object(['start_date', 'end_date'], {
        start_date: { type: 'string', format: 'date-time' },
        end_date: { type: 'string', format: 'date-time' },
      }),
    }),
  },
}

/** Returns how a request violates Cashfree's documents; undefined if it does not. */
export const departure = departureFrom(REQUESTS)
