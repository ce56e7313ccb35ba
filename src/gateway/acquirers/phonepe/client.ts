import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { type FailureReason, findReason, readFailure } from '../../payments/failure-reasons.ts'
import type { PaymentReport } from '../../payments/outcome.ts'
import { UNLIMITED } from '../../payments/status-check-times.ts'
import { accountName, type PhonepeSettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient } from '../client.ts'
import {
  type JsonResponse,
  notBelieved,
  paise,
  readStatus,
  reportedId,
  requireOrder,
  textOf,
  UnreadableStatus,
} from '../json-request.ts'
import { paymentId } from '../notification.ts'
import { phonepeDisputes } from './disputes.ts'
import {
  codeFields,
  createPhonepeRequest,
  find,
  instrumentOf,
  NAME,
  type PhonepeRequest,
  railFields,
  utrOf,
} from './http.ts'
import { EXPIRY_RULE, phonepeLinks, SHORTEST_EXPIRY_MINUTES } from './links.ts'
import { phonepeNotifications } from './notifications.ts'
import { phonepeRefunds } from './refunds.ts'

/*
 * PhonePe Payment Gateway, API v2, custom checkout. This client is based only on PhonePe's published pages, clients and
 * skill files. PhonePe's merchantOrderId is the service's orderId. PhonePe's merchantRefundId is the service's
 * `ourRefundId`.
 */

export const phonepe: Acquirer<{ phonepe?: PhonepeSettings | undefined }> = {
  variables: 'PHONEPE_CLIENT_ID, PHONEPE_CLIENT_VERSION, PHONEPE_CLIENT_SECRET and PHONEPE_WEBHOOK_PASSWORD',
  errorOf: ({ expiryMinutes }) =>
    (expiryMinutes ?? SHORTEST_EXPIRY_MINUTES) < SHORTEST_EXPIRY_MINUTES ? EXPIRY_RULE : undefined,
  notifications: ({ phonepe: account }) => account && phonepeNotifications(account),
  /**
   * PhonePe's newest document allows 15 status checks per order, 12 before and 3 after its expiry, and states no limit
   * per account.
   */
  statusCheckRules: {
    // Status checks have no total limit: anyone can send webhooks, and forged ones must not use up the checks reserved
    // for the time after the expiry.
    most: UNLIMITED,
    mostWhileWaiting: 12,
    firstAfterMs: 20_000,
    pauseMs: 10_000,
    // A pause is at most an eighth of the time to pay. The first pauses are shorter, so that most checks are soon after
    // the creation, but not so short that the checks of a long order are used up on its first day.
    pollingPauseMs: (ageMs, timeToPayMs) => Math.min(timeToPayMs / 8, Math.max(ageMs, timeToPayMs / 240)),
  },
  client: ({ phonepe: account }, http, elapsedMs) =>
    account && phonepeClient(account, createPhonepeRequest(account, http, elapsedMs)),
}

export function phonepeClient(settings: PhonepeSettings, request: PhonepeRequest): AcquirerClient {
  const name = accountName(NAME, settings.account)

  return {
    ...phonepeLinks(settings, request),
    ...phonepeRefunds(request),
    ...phonepeDisputes(request),

    async getPayments({ orderId, paymentLink }, signal) {
      const path = `payments/v2/order/${orderId}/status?details=true`
      return readPayments(name, { orderId, id: paymentLink.id }, await request({ method: 'GET', path }, signal, [200]))
    },

    async check(signal) {
      // Requests an order that does not exist: PhonePe returns an error in its own format for valid credentials, and
      // 401 for invalid credentials.
      const response = await find(request, 'payments/v2/order/check-of-credentials/status?details=true', signal)
      if (response) throw notBelieved(response, 'PhonePe returned an order that does not exist: check PHONEPE_API_URL')
    },

    async simulate() {
      throw new AcquirerError('unavailable', 'PhonePe has no simulation call: pay on the page of its sandbox')
    },
  }
}

/**
 * An attempt to pay. An identifier or a time in an unknown format is treated as absent; an order skips an unreadable
 * attempt.
 */
const Attempt = z.object({
  ...railFields,
  ...codeFields,
  state: z.unknown().optional(),
  amount: paise.optional().catch(undefined),
  transactionId: paymentId,
  timestamp: z.int().positive().max(9_999_999_999_999).optional().catch(undefined),
})

/**
 * An order's status response. Every field is optional, so that a response with missing fields is reported as
 * unreadable.
 */
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

/**
 * Returns every completed payment of a COMPLETED order, the last attempt of a FAILED order, and nothing for an order
 * that can still be paid. The order's state alone decides, because an attempt may fail in an order that is paid later.
 * `account` is the acquirer account's name, `id` PhonePe's identifier of the order.
 */
export function readPayments(
  account: string,
  { orderId, id }: { orderId: string; id: string },
  response: JsonResponse,
): PaymentReport[] {
  const order = readStatus(Order, response, 'PhonePe returned an order in an unknown format', orderId)
  requireOrder(response, orderId, order.merchantOrderId)
  const { state, amount } = order
  const attempts = order.paymentDetails.sort((a, b) => (a.timestamp ?? 0) - (b.timestamp ?? 0))
  const reportOf = (attempt: z.output<typeof Attempt>) => ({
    orderId,
    utr: utrOf([attempt]),
    amount,
    paidAt: attempt.timestamp === undefined ? undefined : new Date(attempt.timestamp),
    // `id` is the service's orderId if the response to the create contained no id of PhonePe.
    acquirer: { name: account, id: id === orderId ? id : reportedId(order.orderId, id) },
    names: attempt.transactionId === undefined ? undefined : { id: attempt.transactionId },
    instrument: instrumentOf(attempt),
  })
  if (state === 'CREATED' || state === 'PENDING') return []
  const completed = attempts.filter((attempt) => attempt.state === 'COMPLETED')
  // A payment from a wallet or a gift balance has no UTR, so PhonePe's id identifies the payment.
  const paid =
    state === 'COMPLETED' && amount !== undefined
      ? completed
          .filter((attempt) => (attempt.amount ?? amount) === amount)
          .map((attempt) => ({ ...reportOf(attempt), status: 'SUCCESS' as const }))
          .filter(({ utr, names }) => utr !== undefined || names !== undefined)
      : []
  if (paid.length < completed.length || (state !== 'FAILED' && paid.length === 0)) {
    throw new UnreadableStatus(
      response,
      'PhonePe returned an order whose state or payment is unreadable',
      orderId,
      paid,
    )
  }
  if (paid.length > 0) return paid
  const last = attempts.at(-1)
  if (last === undefined) return []
  const failure = failureOf(last) ?? failureOf(order)
  return failure === 'under way' ? [] : [{ ...reportOf(last), status: 'FAIL', failure }]
}

/** PhonePe's error codes by failure reason. The list omits codes for cards and codes that name no cause. */
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
 * NPCI's code is the detailed code, or its part before the first `_`, as in `U16_NPCI_TXNRISK`. PhonePe's own error
 * code is used if PhonePe's code names a cause.
 */
function failureOf({ errorCode, detailedErrorCode: detailed }: { errorCode?: unknown; detailedErrorCode?: unknown }) {
  const reason = findReason(CODES, (codes) => codes.split(' ').includes(textOf(errorCode)))
  const own = reason || !detailed ? errorCode : undefined
  return readFailure([detailed, textOf(detailed).split('_')[0], own], reason)
}
