import * as z from 'zod'
import { idempotencyKeyReused, orderIdExists } from '../errors.ts'
import { operation, success } from '../http/operation.ts'
import { toIstText } from '../ist.ts'
import { toPlainText } from '../money.ts'
import type { Merchant } from '../tenants/merchants.ts'
import { IDEMPOTENCY_KEY_HEADER } from './idempotency.ts'
import type { Intent } from './intent.ts'
import { BAD_NEW_PAYMENT, NEW_PAYMENT, orderId } from './new-payment.ts'
import { type NewPaymentDependencies, storeNewPayment } from './store-new-payment.ts'
import { upiLinks } from './upi-links.ts'

const link = (scheme: string, app: string) =>
  z
    .string()
    .regex(new RegExp(`^${scheme}\\?`))
    .meta({ description: `Opens ${app}.` })

const PaymentIntent = z.strictObject({
  intent: link('upi:\\/\\/pay', 'any UPI app'),
  phonepe: link('phonepe:\\/\\/upi\\/pay', 'PhonePe'),
  paytm: link('paytmmp:\\/\\/upi\\/pay', 'Paytm'),
  gpay: link('tez:\\/\\/upi\\/pay', 'Google Pay'),
  dynamicQR: z
    .string()
    .regex(/^(https?:\/\/|data:image\/png;base64,)/)
    .meta({
      description:
        'Address of the QR as PNG (`qr.svg` lies beside `qr.png`); for a merchant who is set so, the PNG itself as a `data:` URL.',
    }),
  expiry: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}$/)
    .meta({ description: 'When the intent expires, in Indian Standard Time. From then on its QR answers 410.' }),
  amount: z
    .string()
    .regex(/^[1-9]\d{0,5}(\.\d{2})?$/)
    .meta({ description: 'Rupees: `200`, or `588.82` for a merchant set to `shop`.' }),
  orderId,
  cred: link('upi:\\/\\/pay', 'any UPI app')
    .meta({
      description: 'The same as `intent`. Only where `dynamicQR` is a `data:` URL: the public Android client reads it.',
    })
    .optional(),
  merchantName: z
    .string()
    .meta({ description: 'The name that the customer pays. Only where `dynamicQR` is a `data:` URL.' })
    .optional(),
})

const UPI_QUERY =
  'ver=01&mode=04&pa=demo@not-a-bank.invalid&pn=Demo%20Merchant&mc=5814&tr=019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3' +
  '&tn=Two%20cups%20of%20masala%20chai&am=200.00&cu=INR&qrMedium=02'

export const createPaymentIntent = operation({
  path: '/v1/payments/createPaymentIntent',
  tag: 'Merchant',
  summary: 'Create a payment intent',
  description:
    'Makes UPI links and a QR that take one payment, for 15 minutes unless the operator sets otherwise. Show them to the ' +
    'customer, then ask checkPaymentStatus.',
  headers: [IDEMPOTENCY_KEY_HEADER],
  body: NEW_PAYMENT,
  refusals: [BAD_NEW_PAYMENT, orderIdExists(), idempotencyKeyReused()],
  answer: success('Payment intent created successfully', {
    description: 'The intent.',
    name: 'PaymentIntentCreated',
    dataName: 'PaymentIntent',
    data: PaymentIntent,
    example: {
      intent: `upi://pay?${UPI_QUERY}`,
      phonepe: `phonepe://upi/pay?${UPI_QUERY}`,
      paytm: `paytmmp://upi/pay?${UPI_QUERY}`,
      gpay: `tez://upi/pay?${UPI_QUERY}`,
      dynamicQR: 'http://localhost:3000/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3/qr.png',
      expiry: '2026-11-21 15:45:00',
      amount: '200',
      orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
    },
  }),
  handle: ({ dynamicQr, ...dependencies }: Dependencies) => {
    return async (request) => {
      const { intent, merchant } = await storeNewPayment('createPaymentIntent', request, dependencies)
      const links = upiLinks(intent)
      return {
        ...links,
        dynamicQR: await dynamicQr(intent, merchant),
        expiry: toIstText(intent.expiresAt),
        amount: toPlainText(intent.amount),
        orderId: intent.orderId,
        ...(merchant.dynamicQr === 'image' && { cred: links.intent, merchantName: intent.payee.name }),
      }
    }
  },
})

type Dependencies = NewPaymentDependencies & {
  /** The field dynamicQR: a link, or the image itself, by the merchant's setting. */
  dynamicQr: (intent: Intent, merchant: Merchant) => Promise<string>
}
