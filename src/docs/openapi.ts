import { namedSchemas } from './json-schema.ts'
import {
  checkPaymentStatus,
  createOrderRequest,
  createPaymentIntent,
  fetchSettlementList,
  livez,
  ORDER_ID,
  paymentNotification,
  payPage,
  qr,
  REQUEST_BODIES,
  readyz,
} from './operations.ts'
import { HEADERS } from './responses.ts'

export type DocumentOptions = {
  publicUrl: string
  /** Whether this service takes notifications of an acquirer. */
  takesNotifications: boolean
}

/** What the service says over HTTP, as OpenAPI 3.1: the schemas are those that check requests, the texts those of errors.ts. */
export function openApiDocument({ publicUrl, takesNotifications }: DocumentOptions) {
  const { NotificationRecorded, ...answers } = namedSchemas()
  const { PaymentNotification, ...bodies } = REQUEST_BODIES
  return {
    openapi: '3.1.0',
    info: { title: 'UPI payments', version: '1.0.0', description: DESCRIPTION, license: LICENSE },
    servers: [{ url: publicUrl }],
    security: [{ basic: [] }],
    tags: TAGS.filter(({ name }) => takesNotifications || name !== 'Acquirer'),
    paths: {
      '/v1/payments/createPaymentIntent': { post: createPaymentIntent },
      '/v1/payments/createOrderRequest': { post: createOrderRequest },
      '/v1/payments/checkPaymentStatus': { post: checkPaymentStatus },
      '/v1/partner/fetchSettlementList': { post: fetchSettlementList },
      ...(takesNotifications && { '/acquirer/paymentNotification': { post: paymentNotification } }),
      '/pay/{orderId}': { parameters: [ORDER_ID], get: payPage },
      '/pay/{orderId}/qr.png': { parameters: [ORDER_ID], get: qr('PNG', 'image/png', 'payQrPng') },
      '/pay/{orderId}/qr.svg': { parameters: [ORDER_ID], get: qr('SVG', 'image/svg+xml', 'payQrSvg') },
      '/livez': { get: livez },
      '/readyz': { get: readyz },
    },
    components: {
      schemas: { ...bodies, ...answers, ...(takesNotifications && { PaymentNotification, NotificationRecorded }) },
      headers: HEADERS,
      securitySchemes: { basic: BASIC, ...(takesNotifications && { acquirerSignature: SIGNATURE }) },
    },
  }
}

const LICENSE = { name: 'Proprietary', identifier: 'LicenseRef-Proprietary' }

const DESCRIPTION = `Takes UPI payments in India.

Every answer is an envelope: \`status\`, \`statusCode\` (the HTTP status), \`msg\`, and \`data\` of a success. A body may be a form
or JSON. Blanks around a value are trimmed, an empty optional field is an absent one, unknown fields are ignored, and a field that
is sent twice is refused.

A first payment: **createPaymentIntent**, show \`dynamicQR\` on a desktop and the wallet links on a phone (or call
**createOrderRequest** and send the customer to \`payment_url\`), then ask **checkPaymentStatus** before you ship: a redirect
proves nothing.`

const TAGS = [
  { name: 'Merchant', description: 'Take payments, with a merchant’s key.' },
  { name: 'Partner', description: 'Read what was settled, with a partner’s key.' },
  { name: 'Acquirer', description: 'How the bank tells of payments.' },
  { name: 'Customer', description: 'What the addresses show that a merchant gets for its customer.' },
  { name: 'Operator', description: 'Whether the service is well.' },
]

const BASIC = {
  type: 'http',
  scheme: 'basic',
  description: 'The public key as user name, the secret key as password.',
}

const SIGNATURE = {
  type: 'apiKey',
  in: 'header',
  name: 'X-Signature',
  description:
    '`t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`: the key is a secret shared with the operator, `t.body` is the time, ' +
    'a dot and the bytes of the body. Good for 5 minutes either way. Several `v1=` may be sent while secrets change.',
}
