import * as z from 'zod'
import { AcquirerError, noResponse } from '../../errors.ts'
import type { HttpClient, HttpRequest } from '../../platform/outbound/http-client.ts'
import type { PaymentReport } from '../payments/outcome.ts'
import type { RefundStatus, RefundUpdate } from '../refunds/refund.ts'

/**
 * Sends `body` to an acquirer as JSON, or as a form if `body` is URLSearchParams. Rejects with an AcquirerError unless
 * a complete response arrives.
 */
type JsonRequest = (
  request: Pick<HttpRequest, 'method' | 'url' | 'headers' | 'limit' | 'signal'> & { body?: unknown },
) => Promise<JsonResponse>

/**
 * `body` is undefined if the response body is not JSON. `requestId` is assigned by the acquirer, whose support team
 * needs this id.
 */
export type JsonResponse = { status: number; body: unknown; requestId: string | undefined }

export function createJsonRequest(http: HttpClient, parse: (json: string) => unknown = JSON.parse): JsonRequest {
  return async ({ body, ...request }) => {
    const isForm = body instanceof URLSearchParams
    const json = body !== undefined && {
      headers: { 'content-type': `application/${isForm ? 'x-www-form-urlencoded' : 'json'}`, ...request.headers },
      body: isForm ? String(body) : JSON.stringify(body),
    }
    const response = await http.request({ ...request, ...json, kind: 'acquirer' })
    if ('failure' in response) {
      const problem = noResponse(`the acquirer cannot be reached: ${response.text}`)
      throw response.isUnsent ? undone(problem) : problem
    }
    const { requestid, 'x-request-id': requestId = requestid } = response.headers ?? {}
    return { status: response.status, body: read(response.body), requestId: shortText(requestId) }
  }

  function read(body: Buffer | undefined): unknown {
    try {
      return parse(String(body))
    } catch {
      return undefined
    }
  }
}

/** Marks an AcquirerError as having changed nothing at the acquirer. Returns other errors unchanged. */
export function undone<E>(error: E): E {
  if (error instanceof AcquirerError) error.isUndone = true
  return error
}

/** For the `catch` of a call that changes nothing at the acquirer: marks the error accordingly and throws it again. */
export function throwUndone(error: unknown): never {
  throw undone(error)
}

/**
 * For the `catch` of a call that creates a link. The call created nothing if the acquirer returned an error code that
 * `isRejection` accepts, or 429.
 */
export const throwUnmade =
  (isRejection: (code: unknown) => boolean) =>
  (error: unknown): never => {
    if (!(error instanceof AcquirerError)) throw error
    const { status, code } = error.facts
    throw (error.outcome === 'refused' && isRejection(code)) || status === 429 ? undone(error) : error
  }

/** For the `catch` of a status check after a call that may have changed something. */
export function throwUnsure(error: unknown): never {
  if (error instanceof AcquirerError) error.isUndone = false
  throw error
}

/** Returns `text` only if the text is short and plain: the text comes from outside and is written to the log. */
export function shortText(text: unknown): string | undefined {
  return typeof text === 'string' && /^[\w.:-]{1,100}$/.test(text) ? text : undefined
}

/** Returns the acquirer's own error code; undefined if the response has no code, such as a proxy's response. */
export function codeOf({ body }: JsonResponse): string | undefined {
  const { code, errorCode } = (body ?? {}) as Record<string, unknown>
  return shortText(errorCode) ?? shortText(code)
}

/**
 * Creates the error for an unexpected HTTP status. `advice` is the operator's next step when the acquirer rejects a
 * call.
 */
export function failed(acquirer: string, response: JsonResponse, advice: string): AcquirerError {
  const { status, requestId } = response
  const facts = { status, requestId, code: codeOf(response) }
  const isRejected = status >= 400 && status < 500 && status !== 408 && status !== 429
  const problem = isRejected
    ? new AcquirerError('refused', `${acquirer} rejected a call: ${advice}`, facts)
    : new AcquirerError('unavailable', `a call to ${acquirer} failed`, facts)
  return status === 401 || status === 403 ? undone(problem) : problem
}

export const notBelieved = ({ requestId }: JsonResponse, message: string, facts: object = {}) =>
  new AcquirerError('bad answer', message, { ...facts, requestId })

/**
 * Parses a status response with `schema`. Throws if the body has none of the fields of `schema`: JSON without these
 * fields does not come from the acquirer, but, for instance, from a proxy.
 */
export function readStatus<S extends z.ZodObject>(schema: S, response: JsonResponse, message: string, orderId: string) {
  const isOwn = Object.keys(schema.shape).some((name) => Object.hasOwn(Object(response.body), name))
  return readBody(schema, isOwn ? response : { ...response, body: undefined }, message, { orderId })
}

/**
 * Returns the order id in a status response if this id differs from `ours`, otherwise `ours`. The comparison ignores
 * case. An id in an unknown format is treated as absent, because the request named the order; a number, which
 * parseExact returns as text, is treated as absent for the same reason.
 */
export const reportedId = (id: unknown, ours: string) =>
  typeof id === 'string' && /\D/.test(id) && id.toLowerCase() !== ours.toLowerCase() ? id : ours

/** Throws if a status response is about another order. */
export function requireOrder(response: JsonResponse, orderId: string, reported: unknown): void {
  if (reportedId(reported, orderId) === orderId) return
  throw notBelieved(response, 'a status response of the acquirer names another order', { orderId })
}

/**
 * A status response about this order that may report a payment in an unknown format. `readable` contains the payments
 * of the same response that could be read.
 */
export class UnreadableStatus extends AcquirerError {
  readonly readable: readonly PaymentReport[]

  constructor({ requestId }: JsonResponse, message: string, orderId: string, readable: readonly PaymentReport[] = []) {
    super('bad answer', message, { orderId, requestId })
    this.isUnreadable = true
    this.readable = readable
  }
}

/** Parses the body of a response with `schema`. Throws an AcquirerError with `message` if the body does not match. */
export function readBody<S extends z.ZodType>(
  schema: S,
  response: JsonResponse,
  message: string,
  facts?: object,
): z.output<S> {
  const { data } = schema.safeParse(response.body)
  if (data !== undefined) return data
  throw notBelieved(response, message, facts)
}

const PAISE_RULE = 'must be a whole number of paise'
/** An amount in whole paise of at most 14 digits, the same maximum as `bankAmount`. */
export const paiseFrom = (least: number) => z.int(PAISE_RULE).min(least, PAISE_RULE).max(99_999_999_999_999, PAISE_RULE)
export const paise = paiseFrom(1)

/** Treats null and empty text as absent: a payment that failed early may have neither reference nor time. */
export const orAbsent = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === null || value === '' ? undefined : value), schema.optional())

/** Treats a value in an unknown format as absent too. */
export const known = <S extends z.ZodType>(schema: S) => orAbsent(schema).catch(undefined)

/**
 * Returns '' for a value that is not text. Avoids `String()`, because it would call an object's own toString,
 * which may throw.
 */
export const textOf = (value: unknown) => (typeof value === 'string' ? value : '')

/** Reads an acquirer's word for the status of a refund. A refund with an unknown word is pending. */
export function refundStatus(
  states: ReadonlyMap<string, RefundStatus>,
  word: string,
): Pick<RefundUpdate, 'status' | 'unknownStatus'> {
  const status = states.get(word)
  return status === undefined ? { status: 'PENDING', unknownStatus: shortText(word) ?? '?' } : { status }
}

/** Parses a page of settlements with `schema`. The error names the unreadable row by the id that `idOf` returns. */
export function readPage<S extends z.ZodType>(
  schema: S,
  response: JsonResponse,
  acquirer: string,
  idOf: (row: unknown) => unknown,
): z.output<S> {
  const { data: page, error } = schema.safeParse(response.body)
  if (page !== undefined) return page
  const [issue] = error?.issues ?? []
  const [list = '', index = ''] = issue?.path ?? []
  const id = shortText(idOf(Object(Object(response.body)[list])[index]))
  const problem = id === undefined ? '' : `: ${String(issue?.path.at(-1))} of the row with id ${id} ${issue?.message}`
  throw notBelieved(response, `${acquirer} returned settlements in an unknown format${problem}`)
}
