import { departureFrom, type RequestSchemas } from './request-schemas.ts'
import type { SetuCall } from './setu-bank.ts'

/** Request schemas from Setu's documents. */
const text = { type: 'string', minLength: 1 }
const vpa = { type: 'string', pattern: '^[a-z0-9.-]*@[a-zA-Z]*$' }
/** Setu accepts no payment below one rupee. */
const paise = { type: 'integer', minimum: 100 }
const json = { const: 'application/json' }

const asMerchant = { authorization: { type: 'string', pattern: '^Bearer [!-~]+$' }, merchantid: text }

const REQUESTS: RequestSchemas<SetuCall> = {
  logIn: {
    headers: { client: { const: 'bridge' }, 'content-type': json },
    body: {
      required: ['clientID', 'secret', 'grant_type'],
      properties: { clientID: text, secret: text, grant_type: { const: 'client_credentials' } },
    },
  },
  createDqr: {
    headers: { ...asMerchant, 'content-type': json },
    body: {
      // Setu requires only the address; without the other fields a customer could choose the amount, or pay at any
      // time.
      required: ['merchantVpa', 'amount', 'expiryDate', 'referenceId'],
      properties: {
        merchantVpa: vpa,
        amount: paise,
        expiryDate: { type: 'string', format: 'date-time' },
        referenceId: { type: 'string', minLength: 1, maxLength: 255 },
        transactionNote: { type: 'string' },
        metadata: { type: 'object', maxProperties: 5, additionalProperties: { type: 'string' } },
      },
    },
  },
  expireDqr: { headers: asMerchant },
  last: { headers: asMerchant },
  refund: {
    headers: { ...asMerchant, 'content-type': json },
    body: {
      // Setu requires neither referenceId nor type; the service finds its refunds by the referenceId.
      required: ['paymentId', 'amount', 'referenceId', 'type'],
      properties: {
        paymentId: text,
        amount: { type: 'integer', minimum: 1 },
        referenceId: { type: 'string', pattern: '^[A-Za-z0-9]{1,35}$' },
        remarks: { type: 'string' },
        type: { const: 'online' },
      },
    },
  },
  refundsOfPayment: { headers: asMerchant },
  pay: {
    headers: { ...asMerchant, 'content-type': json },
    body: {
      required: ['refId', 'payerVpa', 'payeeVpa'],
      properties: {
        refId: { type: 'string', pattern: '^[a-zA-Z0-9]{1,35}$' },
        payerVpa: text,
        payeeVpa: vpa,
        amount: { type: 'integer' },
        payerRespCode: { type: 'string' },
      },
    },
  },
}

/** Returns how a request violates Setu's documents; undefined if it does not. */
export const departure = departureFrom(REQUESTS)
