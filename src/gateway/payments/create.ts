import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import * as z from 'zod'
import { createUnavailable, idempotencyKeyReused, invalidIdempotencyKey, orderIdExists } from '../../errors.ts'
import { type OperationRequest, operation, success } from '../../platform/http/operation.ts'
import type { DeadlineOf } from '../../platform/http/time-limits.ts'
import { toPlainText } from '../../platform/money.ts'
import { toIstText } from '../../platform/time.ts'
import type { Linker } from '../acquirers/client.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { insertWithLink, type Linking } from './insert-with-link.ts'
import { buildIntent, type Idempotency, type Intent } from './intent.ts'
import { BAD_NEW_PAYMENT, NEW_PAYMENT, type NewPayment, orderId } from './new-payment.ts'
import { linksOf, upiQrLink } from './upi-links.ts'

type Dependencies = Linking & {
  now: () => Date
  expiryMinutes: number
  publicUrl: string
  drawQr: (form: 'png', text: string) => Promise<Buffer>
  /**
   * Returns the clients from which to request a merchant's link, in the order of attempts. The list is empty if the
   * service builds the link itself. Throws 503 if no client is available.
   */
  linkersOf: (merchant: Merchant) => Promise<Linker[]>
  deadlineOf: DeadlineOf
}

const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,64}$/

const NEW_ORDER = {
  tag: 'Merchant' as const,
  access: 'create' as const,
  headers: [
    {
      name: 'Idempotency-Key',
      description:
        'A retry with the same key and the same fields returns the first response again, so a lost response costs nothing. The ' +
        'same key with other fields returns 422, and so does any retry after the operator has erased the customer’s data.',
      pattern: IDEMPOTENCY_KEY,
      example: '8c1f6f0e-3f5b-4a57-9d0e-2b7f1a6c4d35',
    },
  ],
  body: NEW_PAYMENT,
  errors: [BAD_NEW_PAYMENT, invalidIdempotencyKey(), orderIdExists(), idempotencyKeyReused(), createUnavailable()],
  route: { config: { unavailable: createUnavailable() } },
}

const UPI_QUERY =
  'ver=01&mode=04&pa=demo@not-a-bank.invalid&pn=Demo%20Merchant&mc=5814&tr=019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3' +
  '&tn=Two%20cups%20of%20masala%20chai&am=200.00&cu=INR&QRexpire=2026-11-21T15%3A45%3A00%2B05%3A30'

const link = (scheme: string, app: string) =>
  z
    .string()
    .regex(new RegExp(`^${scheme}\\?`))
    .meta({ description: `Opens ${app}.` })

const PaymentIntent = z.strictObject({
  intent: link('upi:\\/\\/pay', 'any UPI app'),
  phonepe: link('phonepe:\\/\\/pay', 'PhonePe'),
  paytm: link('paytmmp:\\/\\/pay', 'Paytm'),
  gpay: link('tez:\\/\\/upi\\/pay', 'Google Pay'),
  dynamicQR: z
    .string()
    .regex(/^(https?:\/\/|data:image\/png;base64,)/)
    .meta({
      description:
        'URL of the QR code as PNG (replace `qr.png` by `qr.svg` for SVG). If the operator has set it for the merchant, the PNG itself as a `data:` URL.',
    }),
  expiry: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/)
    .meta({ description: 'When the intent expires, in Indian Standard Time. After that, its QR returns 410.' }),
  amount: z
    .string()
    .regex(/^[1-9]\d{0,5}(\.\d{2})?$/)
    .meta({ description: 'Amount in rupees: `200`, or `588.82` for a merchant with the input `shop`.' }),
  orderId,
  cred: link('upi:\\/\\/pay', 'any UPI app')
    .meta({
      description: 'The same as `intent`. Present only if `dynamicQR` is a `data:` URL, for the public Android client.',
      example: `upi://pay?${UPI_QUERY}`,
    })
    .optional(),
  merchantName: z
    .string()
    .meta({
      description: 'The name of the payee. Present only if `dynamicQR` is a `data:` URL.',
      example: 'Demo Merchant',
    })
    .optional(),
})

export const createPaymentIntent = operation({
  path: '/v1/payments/createPaymentIntent',
  ...NEW_ORDER,
  summary: 'Create a payment intent',
  description:
    'Creates UPI links and a QR code for one payment. They are valid for 15 minutes unless the operator sets another time or the ' +
    'request has `expiry_minutes`. Show them to the customer, then call checkPaymentStatus.',
  response: success('Payment intent created successfully', {
    description: 'The payment intent.',
    name: 'PaymentIntentCreated',
    dataName: 'PaymentIntent',
    data: PaymentIntent,
    example: {
      intent: `upi://pay?${UPI_QUERY}`,
      phonepe: `phonepe://pay?${UPI_QUERY}`,
      paytm: `paytmmp://pay?${UPI_QUERY}`,
      gpay: `tez://upi/pay?${UPI_QUERY}`,
      dynamicQR: '{PUBLIC_URL}/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3/qr.png',
      expiry: '2026-11-21 15:45:00',
      amount: '200',
      orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    },
  }),
  handle: (dependencies: Dependencies) => {
    return async (request, reply) => {
      const { intent, merchant } = await createIntent('createPaymentIntent', request, reply, dependencies)
      const links = linksOf(intent)
      const inline = merchant.dynamicQr === 'image' && {
        dynamicQR: `data:image/png;base64,${(await dependencies.drawQr('png', upiQrLink(intent))).toString('base64')}`,
        cred: links.intent,
        merchantName: intent.payee.name,
      }
      return {
        ...links,
        dynamicQR: `${dependencies.publicUrl}/pay/${intent.orderId}/qr.png`,
        expiry: toIstText(intent.expiresAt),
        amount: toPlainText(intent.amount),
        orderId: intent.orderId,
        ...inline,
      }
    }
  },
})

export const createOrderRequest = operation({
  path: '/v1/payments/createOrderRequest',
  ...NEW_ORDER,
  summary: 'Create an order with a hosted pay page',
  description:
    'Accepts the fields of createPaymentIntent and returns the URL of a hosted pay page. Redirect the customer to it. After the ' +
    'payment, the page sends the customer to `redirect_url`. Then call checkPaymentStatus.',
  response: success('Order request created successfully', {
    description: 'The order.',
    name: 'OrderRequestCreated',
    dataName: 'OrderRequest',
    data: z.strictObject({
      orderId,
      payment_url: z.url().meta({ description: 'The pay page to which you redirect the customer.' }),
    }),
    example: {
      orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
      payment_url: '{PUBLIC_URL}/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    },
  }),
  handle: (dependencies: Dependencies) => {
    return async (request, reply) => {
      const { intent } = await createIntent('createOrderRequest', request, reply, dependencies)
      return { orderId: intent.orderId, payment_url: `${dependencies.publicUrl}/pay/${intent.orderId}` }
    }
  },
})

/**
 * Stores the intent of a request, or returns the stored intent if the request is a repeat. Throws 403 for another
 * merchant or a key without the right, 409 for a used order_id, 422 for an Idempotency-Key of another request, 503 if no
 * acquirer creates a link.
 */
export async function createIntent(
  operation: string,
  request: OperationRequest<typeof NewPayment>,
  reply: FastifyReply,
  dependencies: Omit<Dependencies, 'publicUrl' | 'drawQr'>,
): Promise<{ intent: Intent; merchant: Merchant }> {
  const { intents, now, expiryMinutes, linkersOf, limits, deadlineOf } = dependencies
  const { body, headers } = request
  const merchant = authorizeMerchant(request)
  const idempotency = readIdempotency(headers['idempotency-key'], operation, body)
  const intent = buildIntent(body, merchant, { now: now(), expiryMinutes, idempotency })
  const linkers = await linkersOf(merchant)
  if (linkers.length > 0) deadlineOf(request, reply).extend(limits.acquirers.requestMs)
  // The unique constraints of the order_id and of the Idempotency-Key decide between concurrent requests.
  const stored =
    linkers.length > 0 ? await insertWithLink(intent, merchant, linkers, dependencies) : await intents.insert(intent)
  if ('intent' in stored) return { intent: stored.intent, merchant }
  throw stored.rejected === 'order id exists' ? orderIdExists() : idempotencyKeyReused()
}

/**
 * Returns the Idempotency-Key, if the request has one, with a fingerprint of the operation and its checked fields,
 * which a retry must repeat. The fingerprint is personal data, because customer data can be guessed from the
 * fingerprint: see erase-customers.ts.
 */
export function readIdempotency(
  header: string | string[] | undefined,
  operation: string,
  fields: NewPayment,
): Idempotency | undefined {
  if (header === undefined) return undefined
  if (typeof header !== 'string' || !IDEMPOTENCY_KEY.test(header)) throw invalidIdempotencyKey()
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([operation, fields]))
    .digest()
  return { key: header, fingerprint }
}
