import * as z from 'zod'
import { errorText } from '../../../platform/fields.ts'
import type { HttpClient } from '../../../platform/outbound/http-client.ts'
import { zonedMoment } from '../../../platform/time.ts'
import { readFailure } from '../../payments/failure-reasons.ts'
import { readInstrument } from '../../payments/instrument.ts'
import type { FinalStatus, PaymentReport } from '../../payments/outcome.ts'
import type { RefundUpdate } from '../../refunds/refund.ts'
import type { SetuSettings } from '../accounts.ts'
import { createJsonRequest, failed, known, orAbsent, paise, readBody, shortText } from '../json-request.ts'
import { bankReference, paymentId } from '../notification.ts'
import { createToken, type Token } from '../token.ts'

/** Requests to Setu, and the fields shared by its responses and notifications. */

export const NAME = 'setu'

/**
 * A token is valid for 300 s. Setu advises renewal in the 4th minute. The service does not use a token in its last 10
 * s, so that slow requests still arrive in time.
 */
const TOKEN_FRESH_MS = 240_000
const TOKEN_VALID_MS = 290_000

const LoggedIn = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/) })

/**
 * Creates the functions that call Setu with a shared access token. `logIn` resolves if Setu accepts the account's
 * credentials.
 */
export function createSetuRequest(
  { apiUrl, loginUrl, clientId, clientSecret }: SetuSettings,
  http: HttpClient,
  elapsedMs: () => number,
) {
  const requestJson = createJsonRequest(http)
  const { getToken, sendWithToken } = createToken(requestToken, elapsedMs)

  async function requestToken(): Promise<Token> {
    const body = { clientID: clientId, secret: clientSecret, grant_type: 'client_credentials' }
    const response = await requestJson({ method: 'POST', url: loginUrl, headers: { client: 'bridge' }, body })
    // Accepts any 2xx: Setu's guides do not document the status of a successful login.
    if (response.status < 200 || response.status > 299) {
      throw failed('Setu', response, 'check SETU_CLIENT_ID and SETU_CLIENT_SECRET')
    }
    const { access_token: value } = readBody(LoggedIn, response, 'Setu returned a login without a token')
    return { value, freshMs: TOKEN_FRESH_MS, validMs: TOKEN_VALID_MS }
  }

  /** Throws unless the response's HTTP status is in `expected`. */
  async function request(
    {
      method,
      path,
      merchantId,
      body,
    }: { method: 'GET' | 'POST' | 'PUT'; path: string; merchantId: string; body?: object },
    signal: AbortSignal | undefined,
    expected: readonly number[],
  ) {
    const url = `${apiUrl}/api/v1/merchants/${path}`
    const response = await sendWithToken((token) => {
      const headers = { authorization: `Bearer ${token}`, merchantId }
      return requestJson({ method, url, headers, body, signal })
    }, signal)
    if (expected.includes(response.status)) return response
    const advice = `check merchant ${merchantId} at Setu, its UPI address, and the rights of SETU_CLIENT_ID`
    throw failed('Setu', response, advice)
  }

  return { request, logIn: getToken }
}

export type SetuRequest = ReturnType<typeof createSetuRequest>['request']

export const ACQUIRER_ID = /^[A-Za-z0-9_-]{1,64}$/

export const acquirerId = z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be a Setu identifier')

/** A time in an unknown format is treated as absent, so that the payment is still recorded. */
export const paymentFields = {
  productInstanceId: orAbsent(acquirerId),
  amount: orAbsent(paise),
  rrn: bankReference,
  txnTs: known(zonedMoment),
  id: paymentId,
  txnId: paymentId,
  customerAccountType: z.unknown().optional(),
  reason: z.unknown().optional(),
}

const ACCOUNT_TYPES = { 'bank account': /^(SAVINGS|CURRENT)$/, 'credit card': /^CREDIT$/ }

type Payment = z.output<z.ZodObject<typeof paymentFields>>

/** Returns undefined while the payment is pending. `account` is the acquirer account's name. */
export function toPaymentReport(
  account: string,
  orderId: string,
  status: FinalStatus,
  payment: Payment,
): PaymentReport | undefined {
  const failure = status === 'SUCCESS' ? undefined : failureOf(payment.reason)
  if (failure === 'under way') return undefined
  return {
    orderId,
    status,
    utr: payment.rrn,
    amount: payment.amount,
    paidAt: payment.txnTs,
    acquirer: { name: account, id: payment.productInstanceId },
    names: payment.id === undefined ? undefined : { id: payment.id, txnId: payment.txnId },
    instrument: readInstrument(ACCOUNT_TYPES, payment.customerAccountType),
    failure,
  }
}

/** Setu documents every field of a reason as optional. NPCI's category TD is a technical failure of a bank. */
function failureOf(reason: unknown) {
  const { npciRespCode, npciErrCode, npciErrCategory } = (reason ?? {}) as Record<string, unknown>
  return readFailure([npciRespCode, npciErrCode], npciErrCategory === 'TD' ? 'bank_unavailable' : undefined)
}

/** Fields of a refund, which its `referenceId` identifies. An id in an unknown format is treated as absent. */
export const refundFields = {
  id: known(acquirerId),
  crn: z.unknown().optional(),
  reason: z.unknown().optional(),
}

type SetuRefund = z.output<z.ZodObject<typeof refundFields>> &
  Pick<RefundUpdate, 'status' | 'unknownStatus' | 'amount' | 'merchantId'> & { referenceId?: string | undefined }

export const toRefundUpdate = ({ crn, reason, referenceId, ...update }: SetuRefund): RefundUpdate => ({
  ...update,
  ourRefundId: referenceId,
  reference: shortText(crn) ?? '',
  reason: reasonOf(reason),
})

/** Setu's and NPCI's codes for the failure of a refund. */
function reasonOf(reason: unknown): string | undefined {
  const { errCode, npciErrCode } = (reason ?? {}) as Record<string, unknown>
  const codes = [errCode, npciErrCode].map(shortText).filter((code) => code !== undefined)
  return codes.length > 0 ? codes.join(', ') : undefined
}
