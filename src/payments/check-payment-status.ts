import type { FastifyReply } from 'fastify'
import * as z from 'zod'
import { badRequest, orderNotFound } from '../errors.ts'
import { text } from '../fields.ts'
import { jsonAnswer, operation, SUCCEEDED } from '../http/operation.ts'
import type { Patiently } from '../http/time-limits.ts'
import { HIGHEST_MAX_RUPEES, toJsonNumber } from '../money.ts'
import { authorizeMerchant } from '../tenants/authorize.ts'
import type { Waiting } from './enquiries.ts'
import { FAILURE_REASONS } from './failure-reasons.ts'
import type { Intents, PaymentStatus } from './intents.ts'
import { mid } from './new-payment.ts'
import { FINAL_MESSAGES, FINAL_STATUSES, OPEN_MESSAGES, type Outcome, outcome } from './outcome.ts'

const reason = z
  .enum(FAILURE_REASONS)
  .meta({ description: 'Why the last attempt failed; absent unless an attempt is the last that is known.' })
  .optional()

const PaymentFinal = z.strictObject({
  status: z.literal(true).meta({ description: 'It is final, which says nothing of paid: see `txnStatus`.' }),
  statusCode: SUCCEEDED,
  txnStatus: z.enum(FINAL_STATUSES).meta({ description: 'Only `SUCCESS` is paid.' }),
  msg: z.enum(FINAL_MESSAGES),
  reason,
  data: z.strictObject({
    amount: z
      .number()
      .min(1)
      .max(HIGHEST_MAX_RUPEES)
      .meta({ description: 'Rupees; here a number. Whole, or with paise for a merchant set to `shop`.' }),
    UTR: z.string().meta({ description: 'Unique transaction reference; empty without a successful payment.' }),
    order_id: z.string().meta({ description: 'As you asked for it.' }),
  }),
})

const PaymentPending = z.strictObject({
  status: z.literal(false),
  statusCode: SUCCEEDED,
  txnStatus: z.literal('PENDING'),
  msg: z.enum(OPEN_MESSAGES),
  reason,
})

const PaymentStatusAnswer = z.union([PaymentFinal, PaymentPending])

/** The body of a request about one payment. Its example is the order that `npm start` creates. */
export const WHICH_PAYMENT = {
  name: 'WhichPayment',
  schema: z.object({
    mid,
    order_id: text(64).meta({ description: 'The `order_id` that you sent, or the `orderId` that you got.' }),
  }),
  example: { mid: 'DEMO_MERCHANT', order_id: 'DEMO-1' },
}

/** The answer. Its `status` is whether `txnStatus` is final, because public clients read `status` in this meaning. */
export const PAYMENT_STATUS = jsonAnswer({
  description: 'What is known now.',
  schema: PaymentStatusAnswer,
  named: { PaymentStatus: PaymentStatusAnswer, PaymentFinal, PaymentPending },
  example: {
    status: true,
    statusCode: 200,
    txnStatus: 'SUCCESS',
    msg: 'Payment successful',
    data: { amount: 200, UTR: '523504870405', order_id: 'DEMO-1' },
  },
})

/** The answer's data. `orderId` is the identifier in the request, ours or the merchant's, which the answer repeats. */
export function toPaymentStatus(
  payment: PaymentStatus,
  orderId: string,
  now: Date,
): z.output<typeof PaymentStatusAnswer> {
  const { txnStatus, msg } = outcome(payment, now)
  const reason = payment.failureReason && { reason: payment.failureReason }
  if (txnStatus === 'PENDING') return { status: false, statusCode: 200, txnStatus, msg, ...reason }
  const data = { amount: toJsonNumber(payment.amount), UTR: payment.utr ?? '', order_id: orderId }
  return { status: true, statusCode: 200, txnStatus, msg, ...reason, data }
}

export const checkPaymentStatus = operation({
  path: '/v1/payments/checkPaymentStatus',
  tag: 'Merchant',
  summary: 'Ask what became of a payment',
  description:
    'Ask before you ship. **Only `txnStatus` SUCCESS is paid**: `status` says whether `txnStatus` is final, and a payment that ' +
    'failed has `data` too. While it is PENDING, ask again after some seconds. A failed attempt leaves it PENDING with `Last ' +
    'attempt failed; still open`, since customers try again; what is unpaid 10 minutes after expiry is FAIL or REJECT. Money ' +
    'that comes even later makes it SUCCESS; a SUCCESS is never undone. While our ' +
    'database is briefly away, this call waits for up to 8 s before it answers 503, so give it a time-out of 10 s or more. A 503 ' +
    'says nothing about the payment.',
  body: WHICH_PAYMENT,
  refusals: [badRequest('order_id is required'), orderNotFound()],
  answer: PAYMENT_STATUS,
  // Shop plugins take a 503 of this call for a failed payment, even when the order is paid.
  route: { config: { waitsForDatabase: true } },
  handle: ({ intents, waiting, patiently, now }: Dependencies) => {
    return async (request, reply) => {
      const { body, caller } = request
      const { mid } = authorizeMerchant(caller, body.mid)
      const payment = await patiently(request, () => intents.findStatus(mid, body.order_id))
      if (!payment) throw orderNotFound()
      const answer = toPaymentStatus(payment, body.order_id, now())
      saveOnceSent(reply, { intents, now }, payment, answer)
      // The answer does not wait for the enquiry. After an error the caller's next request makes the enquiry due.
      const makeDue = waiting.enquiryFor(payment, now())
      if (makeDue) reply.raw.once('finish', () => void makeDue().catch(() => undefined))
      return answer
    }
  },
})

type Saving = { intents: Pick<Intents, 'saveAnswered'>; now: () => Date }

type Dependencies = Saving & {
  intents: Pick<Intents, 'findStatus'>
  waiting: Pick<Waiting, 'enquiryFor'>
  patiently: Patiently
}

/** Stores, once the answer was sent, that the merchant knows of the order's end. */
export function saveOnceSent(
  reply: FastifyReply,
  { intents, now }: Saving,
  { mid, orderId, returnCallWaits, failTold }: PaymentStatus,
  { txnStatus }: Pick<Outcome, 'txnStatus'>,
): void {
  const isFailed = txnStatus === 'FAIL' || txnStatus === 'REJECT'
  if (!returnCallWaits && (!isFailed || failTold)) return
  // 'finish' is not emitted if the caller left before the whole answer was written. An error is ignored: then the shop
  // gets one more return call, or a payment in a day file does not count as late.
  reply.raw.once('finish', () => void intents.saveAnswered({ mid, orderId, isFailed }, now()).catch(() => undefined))
}
