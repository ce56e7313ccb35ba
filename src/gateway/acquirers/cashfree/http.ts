import * as z from 'zod'
import { errorText, text } from '../../../platform/fields.ts'
import { bankAmount } from '../../../platform/money.ts'
import type { HttpClient, HttpRequest } from '../../../platform/outbound/http-client.ts'
import { zonedMoment } from '../../../platform/time.ts'
import { readFailure } from '../../payments/failure-reasons.ts'
import { readInstrument } from '../../payments/instrument.ts'
import type { FinalStatus, PaymentReport } from '../../payments/outcome.ts'
import type { RefundStatus, RefundUpdate } from '../../refunds/refund.ts'
import type { CashfreeSettings } from '../accounts.ts'
import { parseExact } from '../exact-json.ts'
import {
  createJsonRequest,
  failed,
  type JsonResponse,
  known,
  orAbsent,
  refundStatus,
  shortText,
} from '../json-request.ts'
import { bankReference, paymentId } from '../notification.ts'

/**
 * Requests to Cashfree, and the fields shared by its responses and notifications. Numbers are parsed as text, see
 * exact-json.ts.
 */

export const NAME = 'cashfree'
const API_VERSION = '2025-01-01'

/** Sends a request. Throws unless the response's HTTP status is in `expected`. `isOpen` omits the credentials. */
export type CashfreeRequest = (
  request: { method: 'GET' | 'POST' | 'PATCH'; path: string; body?: object; isOpen?: true } & Pick<
    HttpRequest,
    'limit'
  >,
  signal: AbortSignal | undefined,
  expected: readonly number[],
) => Promise<JsonResponse>

export function createCashfreeRequest(
  { apiUrl, clientId, clientSecret }: CashfreeSettings,
  http: HttpClient,
): CashfreeRequest {
  const requestJson = createJsonRequest(http, parseExact)
  const credentials = { 'x-client-id': clientId, 'x-client-secret': clientSecret }
  return async ({ path, isOpen, ...request }, signal, expected) => {
    const headers = { 'x-api-version': API_VERSION, ...(!isOpen && credentials) }
    const response = await requestJson({ ...request, url: `${apiUrl}/${path}`, headers, signal })
    if (expected.includes(response.status)) return response
    throw failed(
      'Cashfree',
      response,
      'check CASHFREE_CLIENT_ID, CASHFREE_CLIENT_SECRET and the rights of that account',
    )
  }
}

/** A Cashfree identifier. Older Cashfree samples contain numbers, which parseExact returns as text. */
const cashfreeId = z.string(errorText('must be text')).regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be a Cashfree identifier')

/** The status of an order. */
export const OrderState = z.object({ order_id: z.unknown().optional(), order_status: z.unknown().optional() })

/** Returns undefined for a note of fewer than 3 characters, which Cashfree rejects. */
export function noteOf(note: string, most: number): string | undefined {
  const characters = [...note].slice(0, most)
  return characters.length < 3 ? undefined : characters.join('')
}

/** Final payment statuses; a payment of any other status is pending. */
export const PAYMENT_ENDS = new Map<unknown, FinalStatus>([
  ['SUCCESS', 'SUCCESS'],
  ...['FAILED', 'USER_DROPPED', 'CANCELLED', 'VOID'].map((word) => [word, 'FAIL'] as const),
])

/**
 * Fields of a payment in responses and notifications. An identifier or a time in an unknown format is treated as
 * absent, so that the payment is still recorded.
 */
export const paymentFields = {
  order_id: text(64),
  payment_status: z.string(errorText('must be text')),
  payment_amount: orAbsent(bankAmount),
  payment_currency: orAbsent(z.literal('INR', errorText('must be INR'))),
  bank_reference: bankReference,
  payment_time: known(zonedMoment),
  cf_payment_id: paymentId,
  payment_group: z.unknown().optional(),
  payment_message: z.string().optional().catch(undefined),
  error_details: z.unknown().optional(),
}

const PAYMENT_GROUPS = { 'bank account': /^upi$/, 'credit card': /^upi_credit_card$/, wallet: /^upi_ppi/ }

type Payment = z.output<z.ZodObject<typeof paymentFields>>

/**
 * Returns undefined while the payment is pending. `account` is the acquirer account's name, `orderId` the order that
 * the caller expects.
 */
export function toPaymentReport(account: string, orderId: string, payment: Payment): PaymentReport | undefined {
  const status = PAYMENT_ENDS.get(payment.payment_status)
  const failure = status === 'FAIL' ? failureOf(payment) : undefined
  if (status === undefined || failure === 'under way') return undefined
  return {
    orderId,
    status,
    utr: payment.bank_reference,
    amount: payment.payment_amount,
    paidAt: payment.payment_time,
    acquirer: { name: account, id: payment.order_id },
    names: payment.cf_payment_id === undefined ? undefined : { id: payment.cf_payment_id },
    instrument: readInstrument(PAYMENT_GROUPS, payment.payment_group),
    failure,
  }
}

/**
 * NPCI's code is in `error_code_raw` or at the start of the message: `ZM::…`. A leading `01` is not NPCI's code for a
 * pending payment, because Cashfree documents `01::REJECTED`. `error_reason` auth_declined names no cause.
 */
function failureOf({ payment_status: status, payment_message: message, error_details: details }: Payment) {
  const { error_code_raw: code, error_reason: reason } = (details ?? {}) as Record<string, unknown>
  const [, begin] = /^(?!01)([A-Z0-9]{2,3})::/.exec(message ?? '') ?? []
  const isLeft = status === 'USER_DROPPED' || status === 'CANCELLED'
  const byBank = reason === 'bank_rejected' ? 'bank_unavailable' : undefined
  return readFailure([code, begin], isLeft ? 'not_authorised_in_time' : byBank)
}

const REFUND_STATES = new Map<string, RefundStatus>([
  ['SUCCESS', 'SUCCESS'],
  ...['PENDING', 'ONHOLD'].map((word) => [word, 'PENDING'] as const),
  ...['CANCELLED', 'FAILED'].map((word) => [word, 'FAIL'] as const),
])

/**
 * Fields of a refund in Cashfree's responses and notifications. Its `refund_id` identifies a refund of the service. A
 * `cf_refund_id` in an unknown format is treated as absent.
 */
export const refundFields = {
  order_id: orAbsent(text(64)),
  cf_refund_id: known(cashfreeId),
  refund_status: z.string(errorText('must be text')),
  refund_amount: orAbsent(bankAmount),
  refund_arn: z.unknown().optional(),
}

export function toRefundUpdate(refund: z.output<z.ZodObject<typeof refundFields>>): RefundUpdate {
  const { order_id: orderId, cf_refund_id: id, refund_status: word, refund_amount: amount, refund_arn: arn } = refund
  const read = refundStatus(REFUND_STATES, word)
  return {
    ...read,
    orderId,
    id,
    amount,
    reference: shortText(arn) ?? '',
    reason: read.status === 'FAIL' ? shortText(word) : undefined,
  }
}
