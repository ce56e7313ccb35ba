import type { FastifyReply } from 'fastify'
import * as z from 'zod'
import { text } from '../../platform/fields.ts'
import { jsonResponse, SUCCEEDED } from '../../platform/http/operation.ts'
import { HIGHEST_MAX_RUPEES, toJsonNumber } from '../../platform/money.ts'
import { FAILURE_REASONS } from './failure-reasons.ts'
import type { PaymentStatus } from './find-payment-status.ts'
import type { Intents } from './intents.ts'
import { mid } from './new-payment.ts'
import { FINAL_STATUSES, type FinalStatus, isOver, isOverSql, type Judged, STATUSES, type Status } from './outcome.ts'

export const OPEN_MESSAGES = ['Payment pending', 'Last attempt failed; still open'] as const
export const FINAL_MESSAGES = [
  'Payment successful',
  'Payment failed',
  'Payment rejected',
  'Payment intent expired',
  'Payment cancelled',
] as const

const reason = z
  .enum(FAILURE_REASONS)
  .meta({ description: 'Why the last attempt failed. Absent unless the last report is of a failed attempt.' })
  .optional()

const PaymentFinal = z.strictObject({
  status: z.literal(true).meta({ description: '`txnStatus` is final. This does not mean that the order is paid.' }),
  statusCode: SUCCEEDED,
  txnStatus: z.enum(FINAL_STATUSES).meta({ description: 'Only `SUCCESS` means that the order is paid.' }),
  msg: z.enum(FINAL_MESSAGES),
  reason,
  data: z.strictObject({
    amount: z.number().min(1).max(HIGHEST_MAX_RUPEES).meta({
      description: 'Amount in rupees, as a number: whole, or with paise for a merchant with the input `shop`.',
    }),
    UTR: z.string().meta({ description: 'Unique transaction reference; empty without a successful payment.' }),
    order_id: z.string().meta({ description: 'The `order_id` of the request.' }),
  }),
})

const PaymentPending = z.strictObject({
  status: z.literal(false),
  statusCode: SUCCEEDED,
  txnStatus: z.literal('PENDING'),
  msg: z.enum(OPEN_MESSAGES),
  reason,
})

const PaymentStatusResponse = z.union([PaymentFinal, PaymentPending])

/** The body of a request about one payment. Its example is the order that `npm start` creates. */
export const WHICH_PAYMENT = {
  name: 'WhichPayment',
  schema: z.object({
    mid,
    order_id: text(64).meta({ description: 'Your `order_id`, or the `orderId` of the create response.' }),
  }),
  example: { mid: 'DEMO_MERCHANT', order_id: 'DEMO-1' },
}

/**
 * The response. The envelope's `status` is true only if `txnStatus` is final, because public clients interpret `status`
 * in this way.
 */
export const PAYMENT_STATUS = jsonResponse({
  description: 'The current status.',
  schema: PaymentStatusResponse,
  named: { PaymentStatus: PaymentStatusResponse, PaymentFinal, PaymentPending },
  example: {
    status: true,
    statusCode: 200,
    txnStatus: 'SUCCESS',
    msg: 'Payment successful',
    data: { amount: 200, UTR: '523504870405', order_id: 'DEMO-1' },
  },
})

export type StatusReporting = { intents: Pick<Intents, 'saveReportedStatus'>; now: () => Date }

/**
 * Returns the response of an operation that reports a payment's status, and stores that a final status was reported,
 * once the response is sent. `orderId` is the identifier in the request, either the service's or the merchant's. The
 * response repeats this identifier.
 */
export function reportPaymentStatus(
  reply: FastifyReply,
  { intents, now }: StatusReporting,
  payment: PaymentStatus,
  orderId: string,
): z.output<typeof PaymentStatusResponse> {
  const { txnStatus, msg } = outcome(payment.status, isOver(payment, now()))
  const reason = payment.failureReason && { reason: payment.failureReason }
  const isFailed = txnStatus === 'FAIL' || txnStatus === 'REJECT'
  if (payment.returnUrlCallbackWaits || (isFailed && !payment.failureReported)) {
    // 'finish' is not emitted if the caller disconnected before the whole response was written. An error is ignored,
    // because it only means that the merchant's server gets one more return-URL callback, or that a payment in a daily
    // transaction report is not treated as late.
    const reported = { mid: payment.mid, orderId: payment.orderId, isFailed }
    reply.raw.once('finish', () => void intents.saveReportedStatus(reported, now()).catch(() => undefined))
  }
  if (txnStatus === 'PENDING') return { status: false, statusCode: 200, txnStatus, msg, ...reason }
  const data = { amount: toJsonNumber(payment.amount), UTR: payment.utr ?? '', order_id: orderId }
  return { status: true, statusCode: 200, txnStatus, msg, ...reason, data }
}

/** The status and message that a merchant receives. PENDING means that the intent may still be paid. */
type Outcome =
  | { txnStatus: 'PENDING'; msg: (typeof OPEN_MESSAGES)[number] }
  | { txnStatus: FinalStatus; msg: (typeof FINAL_MESSAGES)[number] }

/** Returns the status that checkPaymentStatus returns for an order at `now`. */
export const txnStatusOf = (order: Judged, now: Date) => outcome(order.status, isOver(order, now)).txnStatus

function outcome(status: Status, over: boolean): Outcome {
  switch (status) {
    case 'SUCCESS':
      return { txnStatus: 'SUCCESS', msg: 'Payment successful' }
    case 'CANCELLED':
      return { txnStatus: 'FAIL', msg: 'Payment cancelled' }
    case 'PENDING':
      if (!over) return { txnStatus: 'PENDING', msg: 'Payment pending' }
      return { txnStatus: 'FAIL', msg: 'Payment intent expired' }
    case 'FAIL':
    case 'REJECT':
      if (!over) return { txnStatus: 'PENDING', msg: 'Last attempt failed; still open' }
      return { txnStatus: status, msg: status === 'FAIL' ? 'Payment failed' : 'Payment rejected' }
  }
}

/** SQL condition: `txnStatus` of the order `i` is this one. `now` is SQL. */
export function hasTxnStatusSql(txnStatus: Outcome['txnStatus'], now: string): string {
  const isAny = (over: boolean) => {
    const statuses = STATUSES.filter((status) => outcome(status, over).txnStatus === txnStatus)
    return `i.status = any (array[${statuses.map((status) => `'${status}'`)}]::text[])`
  }
  return `case when ${isOverSql(now)} then ${isAny(true)} else ${isAny(false)} end`
}

/** SQL for a property of the outcome of the order `i`, with one case for each outcome. `now` is SQL. */
export function outcomeSql(property: keyof Outcome, now: string): string {
  const casesOf = (over: boolean) =>
    `case i.status ${STATUSES.map((status) => `when '${status}' then '${outcome(status, over)[property]}'`).join(' ')} end`
  return `case when ${isOverSql(now)} then ${casesOf(true)} else ${casesOf(false)} end`
}
