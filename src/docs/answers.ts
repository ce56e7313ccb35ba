import * as z from 'zod'
import type { PaymentIntentWire } from '../payments/wire.ts'
import type { SettlementWire } from '../settlements/wire.ts'
import { named } from './json-schema.ts'

/**
 * What successes look like, strictly: a field that an answer has and these have not is a fault of the test that sees it.
 */

const succeeded = z.literal(200).meta({ type: 'integer' })

const orderId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,35}$/)
  .meta({ description: 'Our identifier of the order, new for every intent. UPI apps carry it as `tr`.' })

const utr = z.string().meta({ description: 'Unique transaction reference of the payment.' })

export const PaymentIntentCreated = success(
  'Payment intent created successfully',
  z.strictObject({
    intent: z
      .string()
      .regex(/^upi:\/\/pay\?/)
      .meta({ description: 'Opens any UPI app.' }),
    phonepe: z
      .string()
      .regex(/^phonepe:\/\/upi\/pay\?/)
      .meta({ description: 'Opens PhonePe.' }),
    paytm: z
      .string()
      .regex(/^paytmmp:\/\/upi\/pay\?/)
      .meta({ description: 'Opens Paytm.' }),
    gpay: z
      .string()
      .regex(/^tez:\/\/upi\/pay\?/)
      .meta({ description: 'Opens Google Pay.' }),
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
      .regex(/^[1-9]\d{0,5}$/)
      .meta({ description: 'Whole rupees.' }),
    orderId,
  }) satisfies z.ZodType<PaymentIntentWire>,
)

export const OrderRequestCreated = success(
  'Order request created successfully',
  z.strictObject({ orderId, payment_url: z.url().meta({ description: 'The page to send the customer to.' }) }),
)

const PaymentPending = z.strictObject({
  status: z.literal(false),
  statusCode: succeeded,
  txnStatus: z.literal('PENDING'),
  msg: z.enum(['Payment pending', 'Last attempt failed; still open']),
})

const PaymentFinal = z.strictObject({
  status: z.literal(true).meta({ description: 'It is final, which says nothing of paid: see `txnStatus`.' }),
  statusCode: succeeded,
  txnStatus: z.enum(['SUCCESS', 'FAIL', 'REJECT']).meta({ description: 'Only `SUCCESS` is paid.' }),
  msg: z.enum(['Payment successful', 'Payment failed', 'Payment rejected', 'Payment intent expired']),
  data: z.strictObject({
    amount: z.int().min(1).max(100_000).meta({ description: 'Whole rupees; here a number.' }),
    UTR: utr.meta({ description: 'Unique transaction reference; empty without a successful payment.' }),
    order_id: z.string().meta({ description: 'As you asked for it.' }),
  }),
})

export const PaymentStatus = z.union([PaymentFinal, PaymentPending])

const isoMoment = z
  .string()
  .regex(/^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/)
  .meta({ format: 'date-time' })

const Settlement = z.strictObject({
  amount: z
    .string()
    .regex(/^\d{1,12}\.\d{2}$/)
    .meta({ description: 'Rupees with two decimals, as text: never read it as a float.' }),
  UTR: utr,
  bankReferenceNumber: z.string(),
  status: z.enum(['SUCCESS', 'PENDING', 'FAILED']),
  merchant_id: z.string(),
  initiationDate: isoMoment.meta({ description: 'When the bank began it, UTC. The range applies to this moment.' }),
  created_at: isoMoment.meta({ description: 'When the record was made, UTC.' }),
}) satisfies z.ZodType<SettlementWire>

export const SettlementList = z.strictObject({
  status: z.literal(true),
  statusCode: succeeded,
  msg: z.enum(['Settlements found', 'No settlements found']),
  data: z.array(Settlement).meta({ description: 'Oldest first, then by UTR. Empty when there is none in the range.' }),
})

export const NotificationRecorded = success('Notification recorded', z.strictObject({}))
export const Alive = success('Alive', z.strictObject({}))
export const Ready = success(
  'Ready',
  z.strictObject({
    warnings: z
      .array(z.string())
      .meta({ description: 'What the operator should mend although the service can serve.' }),
  }),
)

/** Every answer that is no success: `Refusal` of envelope.ts. */
export const Refusal = z.strictObject({
  status: z.literal(false),
  statusCode: z.int().min(400).max(599).meta({ description: 'The HTTP status.' }),
  msg: z.string().min(1).meta({ description: 'What to do, for people. It may change; decide by `statusCode`.' }),
})

function success<D extends z.ZodType>(msg: string, data: D) {
  return z.strictObject({ status: z.literal(true), statusCode: succeeded, msg: z.literal(msg), data })
}

for (const [id, schema] of Object.entries({
  PaymentIntentCreated,
  PaymentIntent: PaymentIntentCreated.shape.data,
  OrderRequestCreated,
  OrderRequest: OrderRequestCreated.shape.data,
  PaymentStatus,
  PaymentFinal,
  PaymentPending,
  SettlementList,
  Settlement,
  NotificationRecorded,
  Alive,
  Ready,
  Refusal,
})) {
  named.add(schema, { id })
}
