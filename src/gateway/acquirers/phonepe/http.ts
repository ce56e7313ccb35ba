import * as z from 'zod'
import type { HttpClient } from '../../../platform/outbound/http-client.ts'
import { readInstrument } from '../../payments/instrument.ts'
import type { PhonepeSettings } from '../accounts.ts'
import {
  codeOf,
  createJsonRequest,
  failed,
  type JsonResponse,
  notBelieved,
  orAbsent,
  readBody,
} from '../json-request.ts'
import { bankReference } from '../notification.ts'
import { createToken, type Token } from '../token.ts'

/** Requests to PhonePe, and the fields of its responses. */

export const NAME = 'phonepe'

/** Sends a request. Throws unless the response's HTTP status is in `expected`. */
export type PhonepeRequest = (
  request: { method: 'GET' | 'POST'; path: string; body?: object },
  signal: AbortSignal | undefined,
  expected: readonly number[],
) => Promise<JsonResponse>

/**
 * Both times are in seconds since 1970. The service reads these times instead of `expires_in`, which PhonePe may return
 * as null.
 */
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
    const response = await requestJson({ method: 'POST', url: loginUrl, body })
    if (response.status !== 200) {
      throw failed('PhonePe', response, 'check PHONEPE_CLIENT_ID, PHONEPE_CLIENT_VERSION and PHONEPE_CLIENT_SECRET')
    }
    const created = readBody(LoggedIn, response, 'PhonePe returned a login without a token and its expiry')
    // The lifetime is the difference of two times from PhonePe's clock. Tokens are renewed after half of the lifetime,
    // as in PhonePe's own clients.
    const lifeMs = (created.expires_at - created.issued_at) * 1000
    return { value: created.access_token, freshMs: lifeMs / 2, validMs: lifeMs }
  }

  return async ({ method, path, body }, signal, expected) => {
    const url = `${apiUrl}/${path}`
    const response = await sendWithToken(
      (token) => requestJson({ method, url, headers: { authorization: `O-Bearer ${token}` }, body, signal }),
      signal,
    )
    if (expected.includes(response.status)) return response
    throw failed('PhonePe', response, 'check PHONEPE_CLIENT_ID, and that PhonePe has enabled Custom Checkout')
  }
}

/** An identifier that PhonePe has assigned. An identifier in an unknown format is treated as absent. */
export const phonepeId = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,64}$/)
  .optional()
  .catch(undefined)

const Rail = z
  .object({ type: orAbsent(z.literal('UPI')), utr: bankReference })
  .optional()
  .catch(undefined)

const partFields = { rail: Rail, instrument: z.unknown().optional() }

/**
 * PhonePe documents the rail and the instrument of a payment in two places. Rails other than UPI are treated as absent.
 */
export const railFields = {
  ...partFields,
  splitInstruments: z.array(z.object(partFields).catch({})).optional().catch(undefined),
}

type Rails = z.output<z.ZodObject<typeof railFields>>

export const utrOf = (reported: readonly Rails[]) =>
  reported
    .flatMap(({ rail, splitInstruments = [] }) => [rail, ...splitInstruments.map((one) => one.rail)])
    .find((rail) => rail?.utr)?.utr

/** A credit card is also a card on another rail, and a payment with several instruments has no single price. */
export function instrumentOf({ splitInstruments: [part, ...others] = [], ...attempt }: Rails) {
  const { rail, instrument } = part?.instrument === undefined ? attempt : part
  const { type } = Object(instrument) as { type?: unknown }
  const isUnknown = others.length > 0 || (type === 'CREDIT_CARD' && rail?.type !== 'UPI')
  return isUnknown ? 'unknown' : readInstrument(INSTRUMENT_TYPES, type)
}

const INSTRUMENT_TYPES = { 'bank account': /^ACCOUNT$/, 'credit card': /^CREDIT_CARD$/, wallet: /^WALLET$/ }

/** Failure codes. A code in an unknown format is treated as absent. */
export const codeFields = { errorCode: z.unknown().optional(), detailedErrorCode: z.unknown().optional() }

/** HTTP statuses with which PhonePe rejects a refund. A proxy's response with such a status is not a rejection. */
export const REJECTED = [400, 402, 404, 417, 422]

/**
 * Returns undefined if PhonePe does not have the resource at `path`, which only an error in PhonePe's own format
 * proves.
 */
export async function find(
  request: PhonepeRequest,
  path: string,
  signal: AbortSignal | undefined,
): Promise<JsonResponse | undefined> {
  const response = await request({ method: 'GET', path }, signal, [200, ...REJECTED])
  if (response.status === 200) return response
  if (codeOf(response) !== undefined) return undefined
  throw notBelieved(response, `PhonePe's response ${response.status} is not in its own format`, { path })
}

/**
 * Codes that do not prove a rejection: five documented codes for a name that PhonePe already has, and one code for an
 * internal error at PhonePe.
 */
const NO_REJECTIONS =
  'ORDER_ALREADY_EXISTS INVALID_TRANSACTION_ID INVALID_MERCHANT_ORDER_ID DUPLICATE_TRANSACTION TXN_ALREADY_PROCESSED INTERNAL_SERVER_ERROR'

/**
 * Whether PhonePe certainly changed nothing. The error must have one of PhonePe's own codes, unlike a proxy's error,
 * and the code must not be in NO_REJECTIONS.
 */
export const isRejection = (code: unknown) => code !== undefined && !NO_REJECTIONS.split(' ').includes(String(code))
