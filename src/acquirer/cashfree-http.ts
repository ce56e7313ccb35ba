import * as z from 'zod'
import { errorText, text } from '../fields.ts'
import { bankAmount, toPaise } from '../money.ts'
import type { HttpClient, HttpRequest } from '../outbound/http-client.ts'
import type { FinalStatus } from '../payments/outcome.ts'
import type { RefundStatus } from '../refunds/refund.ts'
import type { JsonAnswer, RefundTold } from './acquirer.ts'
import type { CashfreeSettings } from './cashfree-account.ts'
import { parseExact } from './exact-json.ts'
import { createJsonRequest, failed, orAbsent, shortText } from './json-request.ts'
import { isoTime } from './notification.ts'

/** How Cashfree is called, and how it writes its fields: every number is its text. */

export const NAME = 'cashfree'
const API_VERSION = '2025-01-01'

/** Sends a request to a Cashfree account; one that `isOpen` takes no credentials. Throws unless its status is one of `expected`. */
export type CashfreeRequest = (
  request: { method: 'GET' | 'POST' | 'PATCH'; path: string; body?: object; isOpen?: true } & Pick<
    HttpRequest,
    'limit'
  >,
  signal: AbortSignal,
  expected: readonly number[],
) => Promise<JsonAnswer>

export function createCashfreeRequest(
  { apiUrl, clientId, clientSecret }: CashfreeSettings,
  http: HttpClient,
): CashfreeRequest {
  const requestJson = createJsonRequest(http, parseExact)
  const credentials = { 'x-client-id': clientId, 'x-client-secret': clientSecret }
  return async ({ path, isOpen, ...request }, signal, expected) => {
    const headers = { 'x-api-version': API_VERSION, ...(!isOpen && credentials) }
    const answer = await requestJson({ ...request, url: `${apiUrl}/${path}`, headers, signal })
    if (expected.includes(answer.status)) return answer
    throw failed('Cashfree', answer, 'check CASHFREE_CLIENT_ID, CASHFREE_CLIENT_SECRET and the rights of that account')
  }
}

/** An identifier, which older samples spell as a number. */
export const cashfreeId = z
  .string(errorText('must be text'))
  .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be an identifier of Cashfree')

/** Rupees with at most two decimals; becomes paise. */
export const rupees = bankAmount.transform(toPaise)

/** Absent where it is in no form that is known: the payment counts all the same. */
export const time = orAbsent(isoTime).catch(undefined)

/** How a payment ends; every other word is of one that has not ended. */
export const PAYMENT_ENDS = new Map<unknown, FinalStatus>([
  ['SUCCESS', 'SUCCESS'],
  ...['FAILED', 'USER_DROPPED', 'CANCELLED', 'VOID'].map((word) => [word, 'FAIL'] as const),
])

const REFUND_STATES = new Map<string, RefundStatus>([
  ['SUCCESS', 'SUCCESS'],
  ...['PENDING', 'ONHOLD'].map((word) => [word, 'PENDING'] as const),
  ...['CANCELLED', 'FAILED'].map((word) => [word, 'FAIL'] as const),
])

/** What Cashfree says of a refund, in an answer or in a notification. */
export const refundFields = {
  order_id: text(64),
  cf_refund_id: cashfreeId,
  refund_status: z.string(errorText('must be text')),
  refund_amount: rupees,
  refund_arn: z.unknown().optional(),
}

export function toRefundTold(
  refund: z.output<z.ZodObject<typeof refundFields>>,
): RefundTold & { id: string; amount: number } {
  const { order_id: orderId, cf_refund_id: id, refund_status: word, refund_amount: amount, refund_arn: arn } = refund
  const status = REFUND_STATES.get(word)
  return {
    ...(status === undefined ? { status: 'PENDING', strangeStatus: shortText(word) ?? '?' } : { status }),
    ...{ orderId, id, amount, reference: shortText(arn) ?? '' },
    reason: status === 'FAIL' ? shortText(word) : undefined,
  }
}
