import * as z from 'zod'
import { errorText } from '../../../platform/fields.ts'
import type { HttpClient, HttpRequest } from '../../../platform/outbound/http-client.ts'
import { type FailureReason, findReason, readFailure } from '../../payments/failure-reasons.ts'
import { readInstrument } from '../../payments/instrument.ts'
import type { PaymentReport } from '../../payments/outcome.ts'
import type { RefundStatus, RefundUpdate } from '../../refunds/refund.ts'
import type { RazorpaySettings } from '../accounts.ts'
import {
  createJsonRequest,
  failed,
  type JsonResponse,
  known,
  orAbsent,
  paise,
  readStatus,
  refundStatus,
  shortText,
  textOf,
} from '../json-request.ts'
import { bankReference, paymentId } from '../notification.ts'

/** Requests to Razorpay, and the fields shared by its responses and notifications. */

export const NAME = 'razorpay'

/** Sends a request. Throws unless the response's HTTP status is in `expected`. */
export type RazorpayRequest = (
  request: { method: 'GET' | 'POST'; path: string; body?: object; headers?: Record<string, string> } & Pick<
    HttpRequest,
    'limit'
  >,
  signal: AbortSignal | undefined,
  expected: readonly number[],
) => Promise<JsonResponse>

export function createRazorpayRequest(
  { apiUrl, clientId, clientSecret }: RazorpaySettings,
  http: HttpClient,
): RazorpayRequest {
  const requestJson = createJsonRequest(http)
  const authorization = `Basic ${Buffer.from(`${clientId}:${clientSecret}`).toString('base64')}`
  return async ({ path, headers, ...request }, signal, expected) => {
    const url = `${apiUrl}/${path}`
    const received = await requestJson({ ...request, url, headers: { authorization, ...headers }, signal })
    const response = received.status < 400 ? received : { ...received, body: errorIn(received.body) }
    if (expected.includes(response.status)) return response
    throw failedCall(response)
  }
}

/** Creates the error for an unexpected response. */
export const failedCall = (response: JsonResponse) =>
  failed('Razorpay', response, 'check RAZORPAY_KEY_ID, RAZORPAY_KEY_SECRET and that S2S UPI intent is enabled')

/** Returns the `error` of a response for `codeOf`. Its `reason` is more precise than its `code`, but may be `NA`. */
function errorIn(body: unknown): object {
  const { code, reason, description } = Object(Object(body).error)
  return { code, errorCode: reason === 'NA' ? undefined : reason, description }
}

/** Whether Razorpay described the error of a response with these words. */
export const isDescribed = ({ body }: JsonResponse, words: RegExp) => words.test(textOf(Object(body).description))

/** An identifier that Razorpay has assigned, such as `order_EKwxwAgItmmXdp`. */
export const razorpayId = z.string(errorText('must be text')).regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be a Razorpay id')

/** Accepts a whole number also as text, because notifications are read by parseExact. */
const whole = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (typeof value === 'string' && /^\d{1,15}$/.test(value) ? Number(value) : value), schema)

/** An amount in paise. */
export const amount = whole(paise)

const SECONDS_RULE = 'must be seconds since 1970'
/** A time in seconds since 1970. */
export const seconds = z
  .int(SECONDS_RULE)
  .positive(SECONDS_RULE)
  .max(99_999_999_999, SECONDS_RULE)
  .transform((at) => new Date(at * 1000))

/** A time in an unknown format is treated as absent. */
export const moment = known(whole(seconds))

/**
 * Fields of a payment in responses and notifications. The service sends its orderId as the note `receipt`. An identifier
 * or a time in an unknown format is treated as absent, so that the payment is still recorded.
 */
export const paymentFields = {
  id: paymentId,
  order_id: known(razorpayId),
  status: z.string(errorText('must be text')),
  captured: z.unknown().optional(),
  amount: orAbsent(amount),
  currency: orAbsent(z.literal('INR', errorText('must be INR'))),
  created_at: moment,
  acquirer_data: known(z.object({ rrn: bankReference }).transform(({ rrn }) => rrn)),
  upi: known(z.object({ payer_account_type: z.unknown() })),
  error_reason: z.unknown().optional(),
}

const Payment = z.object(paymentFields)
type Payment = z.output<typeof Payment>

/** Returns the payments of an order, oldest first; `undefined` stands for an unreadable payment. */
export async function paymentsOf(request: RazorpayRequest, orderId: string, signal: AbortSignal | undefined) {
  const response = await request({ method: 'GET', path: `orders/${orderId}/payments` }, signal, [200])
  const { count, items } = readStatus(Payments, response, 'Razorpay returned payments in an unknown format', orderId)
  const payments = items.map((payment) => Payment.safeParse(payment).data)
  if (typeof count === 'number' && count !== items.length) payments.push(undefined)
  const timeOf = (payment: Payment | undefined) => payment?.created_at?.getTime() ?? 0
  return { response, payments: payments.sort((a, b) => timeOf(a) - timeOf(b)) }
}

/** A list in an unknown format is one unreadable payment. */
const Payments = z.object({ count: z.unknown().optional(), items: z.array(z.unknown()).catch([undefined]) })

export const RazorpayList = z.object({ items: z.array(z.unknown()) })

/**
 * Returns `pending` while a payment may still be captured, and undefined for an unknown status. Razorpay returns an
 * authorized payment that it did not capture: the payment is then `refunded` without having been `captured`.
 */
export function statusOf({ status, captured }: Pick<Payment, 'status' | 'captured'>) {
  if (status === 'created' || status === 'authorized') return 'pending'
  if (status === 'captured' || (status === 'refunded' && captured === true)) return 'SUCCESS'
  return status === 'failed' || (status === 'refunded' && captured === false) ? 'FAIL' : undefined
}

const ACCOUNT_TYPES = {
  'bank account': /^bank_account$/,
  'credit card': /^credit_card$/,
  wallet: /^wallet$/,
  'credit line': /^credit_line$/,
}

/** Returns undefined unless `status` is final. `account` is the acquirer account's name. */
export function toPaymentReport(account: string, orderId: string, payment: Payment): PaymentReport | undefined {
  const status = statusOf(payment)
  const failure = status === 'FAIL' ? failureOf(payment) : undefined
  if (status === undefined || status === 'pending' || failure === 'under way') return undefined
  return {
    orderId,
    status,
    utr: payment.acquirer_data,
    amount: payment.amount,
    paidAt: payment.created_at,
    acquirer: { name: account, id: payment.order_id },
    names: payment.id === undefined ? undefined : { id: payment.id },
    instrument: readInstrument(ACCOUNT_TYPES, payment.upi?.payer_account_type),
    failure,
  }
}

/** Razorpay's error reasons by failure reason. Reasons that name no cause, such as payment_declined, are `other`. */
const REASONS: Partial<Record<FailureReason, RegExp>> = {
  wrong_pin: /^incorrect_pin$/,
  insufficient_funds: /^insufficient_funds$/,
  limit_exceeded: /_limit_/,
  bank_unavailable: /^((bank|gateway)_technical_error|server_error|vpa_resolution_failed)$/,
  declined_by_customer: /^payment_cancelled$/,
  not_authorised_in_time: /^payment_(timed_out|collect_request_expired)$/,
}

function failureOf({ status, error_reason: code }: Payment) {
  if (status === 'refunded') return { reason: 'not_authorised_in_time' } as const
  return readFailure(
    [code],
    findReason(REASONS, (words) => words.test(textOf(code))),
  )
}

const REFUND_STATES = new Map<string, RefundStatus>([
  ['pending', 'PENDING'],
  ['processed', 'SUCCESS'],
  ['failed', 'FAIL'],
])

/** Fields of a refund in responses and notifications. Its `receipt` identifies a refund of the service. */
export const refundFields = {
  id: known(razorpayId),
  payment_id: paymentId,
  receipt: known(z.string()),
  status: z.string(errorText('must be text')),
  amount: orAbsent(amount),
  acquirer_data: known(z.record(z.string(), z.unknown())),
}

export function toRefundUpdate({ id, status: word, amount, acquirer_data: data }: RefundFields): RefundUpdate {
  const read = refundStatus(REFUND_STATES, word)
  return {
    ...read,
    id,
    amount,
    reference: shortText(data?.arn) ?? shortText(data?.rrn) ?? '',
    reason: read.status === 'FAIL' ? shortText(word) : undefined,
  }
}

type RefundFields = z.output<z.ZodObject<typeof refundFields>>
