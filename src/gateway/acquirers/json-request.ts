import * as z from 'zod'
import { AcquirerError, unanswered } from '../../errors.ts'
import type { HttpClient, HttpRequest } from '../../platform/outbound/http-client.ts'
import type { PaymentReport } from '../payments/outcome.ts'

/** Sends `body` to an acquirer as JSON, or as a form if it is URLSearchParams. Rejects with an AcquirerError when no whole answer comes. */
export type JsonRequest = (
  request: Pick<HttpRequest, 'method' | 'url' | 'headers' | 'limit' | 'signal'> & { body?: unknown },
) => Promise<JsonAnswer>

/** `body` is undefined if it is not JSON. `requestId` is the acquirer's; its support asks for it. */
export type JsonAnswer = { status: number; body: unknown; requestId: string | undefined }

export function createJsonRequest(http: HttpClient, parse: (json: string) => unknown = JSON.parse): JsonRequest {
  return async ({ body, ...request }) => {
    const isForm = body instanceof URLSearchParams
    const json = body !== undefined && {
      headers: { 'content-type': `application/${isForm ? 'x-www-form-urlencoded' : 'json'}`, ...request.headers },
      body: isForm ? String(body) : JSON.stringify(body),
    }
    const answer = await http.request({ ...request, ...json, kind: 'acquirer' })
    if ('failure' in answer) {
      const fault = unanswered(`the acquirer cannot be reached: ${answer.text}`)
      throw answer.isUnsent ? undone(fault) : fault
    }
    const { requestid, 'x-request-id': requestId = requestid } = answer.headers ?? {}
    return { status: answer.status, body: read(answer.body), requestId: shortText(requestId) }
  }

  function read(body: Buffer | undefined): unknown {
    try {
      return parse(String(body))
    } catch {
      return undefined
    }
  }
}

/** Marks an AcquirerError to say that the call has changed nothing at the acquirer. Returns other errors unchanged. */
export function undone<E>(error: E): E {
  if (error instanceof AcquirerError) error.isUndone = true
  return error
}

/** For the `catch` of a call that changes nothing at the acquirer. */
export function throwUndone(error: unknown): never {
  throw undone(error)
}

/**
 * For the `catch` of a call that creates a link: an error with a code of the acquirer's own for which `isRefusal`, and a rejection of
 * too many calls, create nothing.
 */
export const throwUnmade =
  (isRefusal: (code: unknown) => boolean) =>
  (error: unknown): never => {
    if (!(error instanceof AcquirerError)) throw error
    const { status, code } = error.facts
    throw (error.outcome === 'refused' && isRefusal(code)) || status === 429 ? undone(error) : error
  }

/** For the `catch` of a query that follows a call which may have changed something. */
export function throwUnsure(error: unknown): never {
  if (error instanceof AcquirerError) error.isUndone = false
  throw error
}

/** Returns `text` only if it is short and plain: a stranger sent it, and it goes into the log. */
export function shortText(text: unknown): string | undefined {
  return typeof text === 'string' && /^[\w.:-]{1,100}$/.test(text) ? text : undefined
}

/** The acquirer's code of an error; undefined if the answer has none, as that of a proxy. */
export function codeOf({ body }: JsonAnswer): string | undefined {
  const { code, errorCode = code } = (body ?? {}) as Record<string, unknown>
  return shortText(errorCode)
}

/** The error of an unexpected status; `advice` tells the operator what to check when the acquirer refuses a call. */
export function failed(acquirer: string, answer: JsonAnswer, advice: string): AcquirerError {
  const { status, requestId } = answer
  const facts = { status, requestId, code: codeOf(answer) }
  const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429
  const fault = isRefused
    ? new AcquirerError('refused', `${acquirer} refused a call: ${advice}`, facts)
    : new AcquirerError('unavailable', `a call of ${acquirer} failed`, facts)
  return status === 401 || status === 403 ? undone(fault) : fault
}

export const notBelieved = ({ requestId }: JsonAnswer, message: string, facts: object = {}) =>
  new AcquirerError('bad answer', message, { ...facts, requestId })

/**
 * Returns a status response as `schema` reads it. Throws for any body that has none of the fields of `schema`: such JSON, a
 * proxy's for instance, is not in the acquirer's own form.
 */
export function readStatus<S extends z.ZodObject>(schema: S, answer: JsonAnswer, message: string, orderId: string) {
  const isOwn = Object.keys(schema.shape).some((name) => Object.hasOwn(Object(answer.body), name))
  return readBody(schema, isOwn ? answer : { ...answer, body: undefined }, message, { orderId })
}

/**
 * The id of an order in a status response, if it is another one than `ours`; otherwise `ours`. Ids are compared without case. An id
 * in an unknown form counts as absent, because the request has named the order; so does a number, which parseExact returns as text.
 */
export const reportedId = (id: unknown, ours: string) =>
  typeof id === 'string' && /\D/.test(id) && id.toLowerCase() !== ours.toLowerCase() ? id : ours

/** Throws if a status response names another order of ours. */
export function requireOrder(answer: JsonAnswer, orderId: string, reported: unknown): void {
  if (reportedId(reported, orderId) === orderId) return
  throw notBelieved(answer, 'a status response of the acquirer names another order', { orderId })
}

/**
 * The error of a status response about our order that may report a payment, in a form that is not known. `readable` are payments
 * of the same response that can be read.
 */
export class UnreadableStatus extends AcquirerError {
  readonly readable: readonly PaymentReport[]

  constructor({ requestId }: JsonAnswer, message: string, orderId: string, readable: readonly PaymentReport[] = []) {
    super('bad answer', message, { orderId, requestId })
    this.isUnreadable = true
    this.readable = readable
  }
}

/** Returns the body of an answer as `schema` reads it. Throws an AcquirerError with `message` for any other body. */
export function readBody<S extends z.ZodType>(
  schema: S,
  answer: JsonAnswer,
  message: string,
  facts?: object,
): z.output<S> {
  const { data } = schema.safeParse(answer.body)
  if (data !== undefined) return data
  throw notBelieved(answer, message, facts)
}

const PAISE_RULE = 'must be whole paise'
/** An amount in whole paise of at most 14 digits, which is also the maximum of `bankAmount`. */
export const paise = z.int(PAISE_RULE).positive(PAISE_RULE).max(99_999_999_999_999, PAISE_RULE)

/** Null and empty text count as absent: a payment that failed early may have neither reference nor time. */
export const orAbsent = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === null || value === '' ? undefined : value), schema.optional())
