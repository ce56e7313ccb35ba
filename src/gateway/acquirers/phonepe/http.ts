import * as z from 'zod'
import { toDecimalText } from '../../../platform/money.ts'
import type { HttpClient } from '../../../platform/outbound/http-client.ts'
import { type FailureReason, readFailure } from '../../payments/failure-reasons.ts'
import type { PaymentReport } from '../../payments/outcome.ts'
import type { RefundStatus, RefundUpdate } from '../../refunds/refund.ts'
import type { PhonepeSettings } from '../accounts.ts'
import {
  createJsonRequest,
  failed,
  type JsonAnswer,
  notBelieved,
  orAbsent,
  paise,
  readBody,
  readStatus,
  reportedId,
  requireOrder,
  shortText,
  UnreadableStatus,
} from '../json-request.ts'
import { bankReference, paymentId } from '../notification.ts'
import { createToken, type Token } from '../token.ts'

/** Requests to PhonePe, and its answers. */

export const NAME = 'phonepe'

/** Sends a request. Throws unless the answer's HTTP status is in `expected`. */
export type PhonepeRequest = (
  request: { method: 'GET' | 'POST'; path: string; body?: object },
  signal: AbortSignal | undefined,
  expected: readonly number[],
) => Promise<JsonAnswer>

/** The two times are seconds since 1970. PhonePe's `expires_in` may be null. */
const LoggedIn = z
  .object({ access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/), issued_at: z.int(), expires_at: z.int() })
  .refine(({ issued_at, expires_at }) => expires_at > issued_at)

export function createPhonepeRequest(
  { apiUrl, loginUrl, clientId, clientVersion, clientSecret }: PhonepeSettings,
  http: HttpClient,
  elapsedMs: () => number,
): PhonepeRequest {
  const requestJson = createJsonRequest(http)
  const { sendWithToken } = createToken(logIn, elapsedMs)

  async function logIn(): Promise<Token> {
    const credentials = { client_id: clientId, client_version: clientVersion, client_secret: clientSecret }
    const body = new URLSearchParams({ ...credentials, grant_type: 'client_credentials' })
    const answer = await requestJson({ method: 'POST', url: loginUrl, body })
    if (answer.status !== 200) {
      throw failed('PhonePe', answer, 'check PHONEPE_CLIENT_ID, PHONEPE_CLIENT_VERSION and PHONEPE_CLIENT_SECRET')
    }
    const made = readBody(LoggedIn, answer, 'PhonePe answered a log-in without a token that ends')
    // PhonePe's clock alone says how long a token lives. PhonePe's own clients renew at half of the time.
    const lifeMs = (made.expires_at - made.issued_at) * 1000
    return { value: made.access_token, freshMs: lifeMs / 2, validMs: lifeMs }
  }

  return async ({ method, path, body }, signal, expected) => {
    const url = `${apiUrl}/${path}`
    const answer = await sendWithToken(
      (token) => requestJson({ method, url, headers: { authorization: `O-Bearer ${token}` }, body, signal }),
      signal,
    )
    if (expected.includes(answer.status)) return answer
    throw failed('PhonePe', answer, 'check PHONEPE_CLIENT_ID, and that PhonePe has enabled Custom Checkout')
  }
}

/** An identifier at PhonePe. */
export const phonepeId = z.string().regex(/^[A-Za-z0-9_-]{1,64}$/)

const Rail = z
  .object({ type: z.literal('UPI'), utr: bankReference })
  .optional()
  .catch(undefined)

/** PhonePe's pages have the rail of a payment in two places. Other rails than UPI count as absent. */
const railFields = {
  rail: Rail,
  splitInstruments: z
    .array(z.object({ rail: Rail }))
    .optional()
    .catch(undefined),
}

/** Codes of a failure; in an unknown form they count as absent. */
const codeFields = { errorCode: z.unknown().optional(), detailedErrorCode: z.unknown().optional() }

/** An attempt to pay. An identifier or time in an unknown form counts as absent, and so does such an attempt in an order. */
const Attempt = z.object({
  ...railFields,
  ...codeFields,
  state: z.unknown().optional(),
  amount: paise.optional().catch(undefined),
  transactionId: paymentId,
  timestamp: z.int().positive().max(9_999_999_999_999).optional().catch(undefined),
})

/** An order's status response. Every field may be missing: what is missing decides whether the response can be read. */
const Order = z.object({
  ...codeFields,
  orderId: z.unknown().optional(),
  merchantOrderId: z.unknown().optional(),
  state: z.unknown().optional(),
  amount: paise.optional().catch(undefined),
  paymentDetails: z
    .array(z.unknown())
    .catch([])
    .transform((attempts) => attempts.flatMap((attempt) => Attempt.safeParse(attempt).data ?? [])),
})

type Rails = Pick<z.output<typeof Attempt>, keyof typeof railFields>

const utrOf = (told: readonly Rails[]) =>
  told
    .flatMap(({ rail, splitInstruments = [] }) => [rail, ...splitInstruments.map((one) => one.rail)])
    .find((rail) => rail?.utr)?.utr

/**
 * Reads every completed payment of a COMPLETED order, and the last attempt of a FAILED one; none of an order that can be paid.
 * Only the order's own state decides: an attempt may fail in an order that is then paid. `account` is the name of our account,
 * `id` PhonePe's name of the order.
 */
export function readPayments(
  account: string,
  { orderId, id }: { orderId: string; id: string },
  answer: JsonAnswer,
): PaymentReport[] {
  const order = readStatus(Order, answer, 'PhonePe returned an order in a form that is not known', orderId)
  requireOrder(answer, orderId, order.merchantOrderId)
  const { state, amount } = order
  const attempts = order.paymentDetails.sort((a, b) => (a.timestamp ?? 0) - (b.timestamp ?? 0))
  const reportOf = (attempt: z.output<typeof Attempt>, amount: number) => ({
    orderId,
    utr: utrOf([attempt]),
    amount: toDecimalText(amount),
    paidAt: attempt.timestamp === undefined ? undefined : new Date(attempt.timestamp),
    acquirer: { name: account, id: reportedId(order.orderId, id) },
    names: attempt.transactionId === undefined ? undefined : { id: attempt.transactionId },
  })
  if (state === 'CREATED' || state === 'PENDING') return []
  const completed = attempts.filter((attempt) => attempt.state === 'COMPLETED')
  // A wallet or a gift balance pays without a UTR. Then PhonePe's id names the payment.
  const paid =
    state === 'COMPLETED' && amount !== undefined
      ? completed
          .filter((attempt) => (attempt.amount ?? amount) === amount)
          .map((attempt) => ({ ...reportOf(attempt, amount), status: 'SUCCESS' as const }))
          .filter(({ utr, names }) => utr !== undefined || names !== undefined)
      : []
  if (paid.length < completed.length || (state !== 'FAILED' && paid.length === 0)) {
    throw new UnreadableStatus(answer, 'PhonePe returned an order whose state or payment cannot be read', orderId, paid)
  }
  if (paid.length > 0) return paid
  const last = attempts.at(-1)
  if (last === undefined) return []
  if (amount === undefined) throw notBelieved(answer, 'PhonePe returned a failed order without its amount', { orderId })
  const failure = failureOf(last) ?? failureOf(order)
  return failure === 'under way' ? [] : [{ ...reportOf(last, amount), status: 'FAIL', failure }]
}

/** PhonePe's codes by reason, from its page of error codes. Card codes and codes without a cause are left out. */
const CODES: Partial<Record<FailureReason, string>> = {
  wrong_pin: 'INVALID_MPIN',
  pin_tries_exceeded: 'MPIN_LIMIT_BREACHED',
  insufficient_funds: 'INSUFFICIENT_BALANCE',
  limit_exceeded: 'TXN_LIMIT_BREACHED TXN_FREQ_LIMIT_BREACHED TRANSACTION_LIMIT_EXCEEDED',
  bank_unavailable:
    'BANK_TECHNICAL_ISSUE TECHNICAL_ISSUE TECHNICAL_ISSUE_BANK BANK_ERROR BANK_NOT_ABLE_TO_PROCESS GENERIC_NPCI_ERROR ' +
    'GENERIC_ERROR PROCESSOR_ERROR CONNECTION_TIMEOUT AUTH_TIMEOUT INTERNAL_SERVER_ERROR',
  declined_by_customer: 'TXN_CANCELLED CANCELLED_BY_USER ORDER_CANCELLED_BY_USER REQUEST_DECLINE_BY_REQUESTEE',
  not_authorised_in_time:
    'TXN_NOT_COMPLETED ORDER_EXPIRED TXN_AUTO_FAILED REQUEST_TIME_OUT TIMED_OUT TRANSACTION_TIME_OUT',
  risk_declined: 'TXN_BLOCKED BUSINESS_RISK_RULES INTERNAL_SECURITY_BLOCK USER_BLACKLISTED',
  account_problem:
    'ACCOUNT_BLOCKED ACCOUNT_INACTIVE ACCOUNT_DOES_NOT_EXIST ACCOUNT_NOT_ELIGIBLE MPIN_NOT_SET DEVICE_FINGERPRINT_MISMATCH',
  payee_not_allowed: 'INVALID_VPA MERCHANT_CONFIG_NOT_FOUND BANK_MERCHANT_CONFIG MERCHANT_ERROR',
}

/**
 * NPCI's code is the detailed code, or its part before the first `_`, as in `U16_NPCI_TXNRISK`. PhonePe's own code beside
 * it counts if it names a cause.
 */
function failureOf({ errorCode, detailedErrorCode: detailed }: { errorCode?: unknown; detailedErrorCode?: unknown }) {
  const reasons = Object.entries(CODES) as [FailureReason, string][]
  const reason = reasons.find(([, codes]) => codes.split(' ').includes(String(errorCode)))?.[0]
  const own = reason || !detailed ? errorCode : undefined
  return readFailure([detailed, String(detailed ?? '').split('_')[0], own], reason)
}

const REFUND_STATES = new Map<string, RefundStatus>([
  ['PENDING', 'PENDING'],
  // PhonePe has accepted the refund, which may still fail.
  ['CONFIRMED', 'PENDING'],
  ['COMPLETED', 'SUCCESS'],
  ['FAILED', 'FAIL'],
])

/** The answer to the sending of a refund has only the first three fields. */
const Refund = z.object({
  ...railFields,
  ...codeFields,
  refundId: phonepeId,
  amount: paise,
  state: z.string(),
  merchantRefundId: orAbsent(z.string()),
  originalMerchantOrderId: orAbsent(z.string()),
  paymentDetails: z.array(z.object(railFields)).optional().catch(undefined),
})

export function readRefund(ourRefundId: string, answer: JsonAnswer): RefundUpdate {
  const refund = readBody(Refund, answer, 'PhonePe told of a refund in a form that is not known', { ourRefundId })
  const { state, errorCode, detailedErrorCode = errorCode, paymentDetails = [] } = refund
  const status = REFUND_STATES.get(state)
  return {
    status: status ?? 'PENDING',
    unknownStatus: status === undefined ? (shortText(state) ?? '?') : undefined,
    ourRefundId: refund.merchantRefundId,
    orderId: refund.originalMerchantOrderId,
    id: refund.refundId,
    amount: refund.amount,
    reference: utrOf([refund, ...paymentDetails]) ?? '',
    reason: status === 'FAIL' ? (shortText(detailedErrorCode) ?? 'FAILED') : undefined,
  }
}

/** Codes of a name that PhonePe has already, which PhonePe's pages spell in five ways, and the code of a fault of its own. */
const NO_REFUSALS =
  'ORDER_ALREADY_EXISTS INVALID_TRANSACTION_ID INVALID_MERCHANT_ORDER_ID DUPLICATE_TRANSACTION TXN_ALREADY_PROCESSED INTERNAL_SERVER_ERROR'

/** Whether PhonePe has certainly done nothing: a refusal in its own form, not a proxy's, and with none of NO_REFUSALS. */
export const isRefusal = (code: unknown) => code !== undefined && !NO_REFUSALS.split(' ').includes(String(code))
