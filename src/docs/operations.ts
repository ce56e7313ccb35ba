import type * as z from 'zod'
import { PaymentNotification } from '../acquirer/schema.ts'
import {
  badRequest,
  bodyEncoded,
  forbidden,
  idempotencyKeyReused,
  internalError,
  notFound,
  notificationRefused,
  notificationUnsigned,
  notReady,
  oneLongListAtATime,
  orderIdExists,
  orderNotFound,
  payloadTooLarge,
  paymentClosed,
  tooManyLists,
  tooManyRequests,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../errors.ts'
import { BODY_LIMIT_BYTES } from '../http/input.ts'
import { IDEMPOTENCY_KEY } from '../payments/idempotency.ts'
import { CheckPaymentStatus, CreatePaymentIntent } from '../payments/schema.ts'
import { FetchSettlementList } from '../settlements/schema.ts'
import {
  Alive,
  NotificationRecorded,
  OrderRequestCreated,
  PaymentIntentCreated,
  PaymentStatus,
  Ready,
  SettlementList,
} from './answers.ts'
import { refTo, toFormSchema, toJsonBodySchema } from './json-schema.ts'
import { answers, headerRefs, json } from './responses.ts'

export const ORDER_ID = {
  name: 'orderId',
  in: 'path',
  required: true,
  description: 'The `orderId` that was answered.',
  schema: { type: 'string' },
  example: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
}

const REQUEST_ID_HEADER = {
  name: 'x-request-id',
  in: 'header',
  description: 'Your own name for this request, 1 to 64 of `A-Z a-z 0-9 . _ -`; any other is replaced by ours.',
  schema: { type: 'string' },
}

const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  in: 'header',
  description:
    'A retry with the same key and the same fields gets the first answer again, so an answer that got lost costs nothing. ' +
    'The same key with other fields is 422, and so is any repeat after the operator had the customer of the order forgotten.',
  schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
}

const OUR_FAULT = [internalError(), unavailable()]

/** What every operation may answer that asks for credentials and takes a body. */
const AT_THE_DOOR = [
  unauthorized(),
  forbidden(),
  payloadTooLarge(BODY_LIMIT_BYTES),
  unsupportedMediaType(),
  bodyEncoded(),
  tooManyRequests(60_000, 12),
  ...OUR_FAULT,
]

/** Of a form; in JSON, `amount` may be a number too. */
const NEW_PAYMENT = {
  mid: 'DEMO_MERCHANT',
  amount: '200',
  redirect_url: 'https://shop.example/thank-you',
  note: 'Two cups of masala chai',
  customer_name: 'Asha Rao',
  customer_email: 'asha@shop.example',
  customer_mobile: '9876543210',
}

const NEW_PAYMENT_AS_JSON = { ...NEW_PAYMENT, amount: 200 }

const BAD_NEW_PAYMENT = badRequest('amount must be a whole number from 1 to 100000; customer_mobile must be 10 digits')

const UPI_QUERY =
  'ver=01&mode=04&pa=demo@not-a-bank.invalid&pn=Demo%20Merchant&mc=5814&tr=019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3' +
  '&tn=Two%20cups%20of%20masala%20chai&am=200.00&cu=INR&qrMedium=02'

export const createPaymentIntent = {
  operationId: 'createPaymentIntent',
  tags: ['Merchant'],
  summary: 'Create a payment intent',
  description:
    'Makes UPI links and a QR that take one payment, for 15 minutes unless the operator sets otherwise. Show them to the ' +
    'customer, then ask checkPaymentStatus.',
  parameters: [IDEMPOTENCY_KEY_HEADER, REQUEST_ID_HEADER],
  requestBody: formOrJson('NewPayment', CreatePaymentIntent, NEW_PAYMENT, NEW_PAYMENT_AS_JSON),
  responses: answers(
    json('The intent.', PaymentIntentCreated, {
      status: true,
      statusCode: 200,
      msg: 'Payment intent created successfully',
      data: {
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
    [BAD_NEW_PAYMENT, orderIdExists(), idempotencyKeyReused(), ...AT_THE_DOOR],
  ),
}

export const createOrderRequest = {
  operationId: 'createOrderRequest',
  tags: ['Merchant'],
  summary: 'Create an order and a page to pay it',
  description:
    'Takes the fields of createPaymentIntent and answers the address of our pay page. Send the customer there; the page ' +
    'sends them on to `redirect_url`. Then ask checkPaymentStatus.',
  parameters: [IDEMPOTENCY_KEY_HEADER, REQUEST_ID_HEADER],
  requestBody: formOrJson('NewPayment', CreatePaymentIntent, NEW_PAYMENT, NEW_PAYMENT_AS_JSON),
  responses: answers(
    json('The order.', OrderRequestCreated, {
      status: true,
      statusCode: 200,
      msg: 'Order request created successfully',
      data: {
        orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
        payment_url: 'http://localhost:3000/pay/019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
      },
    }),
    [BAD_NEW_PAYMENT, orderIdExists(), idempotencyKeyReused(), ...AT_THE_DOOR],
  ),
}

/** The order that the demo of `npm start` has. */
const WHICH_PAYMENT = { mid: 'DEMO_MERCHANT', order_id: 'DEMO-1' }

export const checkPaymentStatus = {
  operationId: 'checkPaymentStatus',
  tags: ['Merchant'],
  summary: 'Ask what became of a payment',
  description:
    'Ask before you ship. **Only `txnStatus` SUCCESS is paid**: `status` says whether `txnStatus` is final, and a payment that ' +
    'failed has `data` too. While it is PENDING, ask again after some seconds. A failed attempt leaves it PENDING with `Last ' +
    'attempt failed; still open`, since customers try again; what is unpaid 10 minutes after expiry is FAIL or REJECT. Money ' +
    'that comes even later makes it SUCCESS; a SUCCESS is never undone. While our ' +
    'database is briefly away, this call waits for up to 8 s before it answers 503, so give it a time-out of 10 s or more. A 503 ' +
    'says nothing about the payment.',
  parameters: [REQUEST_ID_HEADER],
  requestBody: formOrJson('WhichPayment', CheckPaymentStatus, WHICH_PAYMENT),
  responses: answers(
    json('What is known now.', PaymentStatus, {
      status: true,
      statusCode: 200,
      txnStatus: 'SUCCESS',
      msg: 'Payment successful',
      data: { amount: 200, UTR: '523504870405', order_id: 'DEMO-1' },
    }),
    [badRequest('order_id is required'), orderNotFound(), ...AT_THE_DOOR],
  ),
}

/** Wide enough for whatever a sandbox holds: there is no maximum range. */
const WHICH_SETTLEMENTS = { pid: 'DEMO_PARTNER', mid: 'DEMO_MERCHANT', s_date: '01-01-2026', e_date: '31-12-2029' }

export const fetchSettlementList = {
  operationId: 'fetchSettlementList',
  tags: ['Partner'],
  summary: 'List what was settled to a merchant',
  description:
    'Both days are days of India, included, and apply to `initiationDate`. There is no maximum range: a long list is streamed, ' +
    'and one that breaks off is no valid JSON; ask again. A partner reads one long list at a time.',
  parameters: [REQUEST_ID_HEADER],
  requestBody: formOrJson('WhichSettlements', FetchSettlementList, WHICH_SETTLEMENTS),
  responses: answers(
    json('The settlements.', SettlementList, {
      status: true,
      statusCode: 200,
      msg: 'Settlements found',
      data: [
        {
          amount: '1999.00',
          UTR: 'DEMON26278000001',
          bankReferenceNumber: 'DEMOBANK-0001',
          status: 'SUCCESS',
          merchant_id: 'DEMO_MERCHANT',
          initiationDate: '2026-10-05T04:30:00.000Z',
          created_at: '2026-10-06T04:30:00.000Z',
        },
      ],
    }),
    [
      badRequest('s_date must be a date that exists, as dd-mm-yyyy'),
      oneLongListAtATime(5),
      tooManyLists(1),
      ...AT_THE_DOOR,
    ],
  ),
}

const NOTIFICATION = {
  orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
  status: 'SUCCESS',
  UTR: '523504870405',
  amount: '200.00',
  paidAt: '2026-11-21T15:40:12+05:30',
}

export const paymentNotification = {
  operationId: 'paymentNotification',
  tags: ['Acquirer'],
  summary: 'Tell of a payment',
  description:
    'The acquirer calls it, signed. May be repeated, in any order: the answer stays the same. FAIL and REJECT are attempts: send ' +
    'one for each, with its UTR or its time. On 5xx, and when no answer comes, send it again.',
  security: [{ acquirerSignature: [] }],
  parameters: [REQUEST_ID_HEADER],
  requestBody: {
    required: true,
    content: {
      'application/json': {
        schema: refTo('PaymentNotification'),
        example: NOTIFICATION,
      },
    },
  },
  responses: answers(
    json('Recorded.', NotificationRecorded, {
      status: true,
      statusCode: 200,
      msg: 'Notification recorded',
      data: {},
    }),
    [
      badRequest('UTR is required with SUCCESS'),
      notificationUnsigned(),
      orderNotFound(),
      notificationRefused('amount differs'),
      notificationRefused('UTR of another order'),
      payloadTooLarge(BODY_LIMIT_BYTES),
      bodyEncoded(),
      ...OUR_FAULT,
    ],
    { credentials: false },
  ),
}

const NO_PAYMENT_HERE = notFound('There is no payment at this address')

export const payPage = {
  operationId: 'payPage',
  tags: ['Customer'],
  summary: 'The page on which the customer pays',
  description:
    'The `payment_url` of createOrderRequest. For browsers; it says by itself what becomes of the payment. An attempt that failed ' +
    'leaves it open.',
  security: [],
  responses: answers(
    { description: 'The page.', content: { 'text/html': { schema: { type: 'string' } } } },
    [NO_PAYMENT_HERE, paymentClosed(), ...OUR_FAULT],
    { credentials: false, refusalType: 'text/html' },
  ),
}

export function qr(form: string, type: string, operationId: string) {
  const cached = headerRefs('cache-control', 'etag')
  return {
    operationId,
    tags: ['Customer'],
    summary: `The QR as ${form}`,
    description: 'Answers until the intent is paid or expired; then 410.',
    security: [],
    responses: {
      ...answers(
        { description: 'The picture.', headers: cached, content: { [type]: {} } },
        [NO_PAYMENT_HERE, paymentClosed(), ...OUR_FAULT],
        { credentials: false },
      ),
      '304': { description: 'The copy that you have is good.', headers: { ...headerRefs('x-request-id'), ...cached } },
    },
  }
}

export const livez = {
  operationId: 'livez',
  tags: ['Operator'],
  summary: 'Whether the process answers',
  description: 'For whoever restarts processes. Says nothing of the database.',
  security: [],
  responses: answers(json('It does.', Alive, { status: true, statusCode: 200, msg: 'Alive', data: {} }), [], {
    credentials: false,
  }),
}

export const readyz = {
  operationId: 'readyz',
  tags: ['Operator'],
  summary: 'Whether the service can serve',
  description: 'For load balancers: send nothing here while it is 503.',
  security: [],
  responses: answers(
    json('It can.', Ready, { status: true, statusCode: 200, msg: 'Ready', data: { warnings: [] } }),
    [notReady('The database does not answer'), notReady('Shutting down'), internalError()],
    { credentials: false },
  ),
}

/** Bodies in JSON by the names that generated code gives their types. Of a form every value is text: it has no name. */
export const REQUEST_BODIES = {
  NewPayment: toJsonBodySchema(CreatePaymentIntent, NEW_PAYMENT_AS_JSON),
  WhichPayment: toJsonBodySchema(CheckPaymentStatus, WHICH_PAYMENT),
  WhichSettlements: toJsonBodySchema(FetchSettlementList, WHICH_SETTLEMENTS),
  PaymentNotification: toJsonBodySchema(PaymentNotification, NOTIFICATION),
}

function formOrJson(
  name: keyof typeof REQUEST_BODIES,
  schema: z.ZodType,
  form: Record<string, string>,
  asJson: Record<string, unknown> = form,
) {
  return {
    required: true,
    content: {
      'application/x-www-form-urlencoded': { schema: toFormSchema(schema, form), example: form },
      'application/json': { schema: refTo(name), example: asJson },
    },
  }
}
