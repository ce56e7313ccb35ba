import type { ErrorCode, Failure } from '../errors.ts'
import { fail } from '../platform/http/envelope.ts'
import type { Described } from '../platform/http/operation.ts'
import { ERRORS_OF_ALL, HTTP_ERRORS } from './common-errors.ts'
import { refTo, schemaNameOf } from './json-schema.ts'

const JSON_TYPE = 'application/json'

type ResponseObject = { description: string; headers?: object; content?: object }

export const REQUEST_ID_EXAMPLE = 'order-1001-create-1'

export const HEADERS = {
  'x-request-id': header(
    'The identifier of this request in the log of the service. Every response has it.',
    REQUEST_ID_EXAMPLE,
  ),
  'www-authenticate': header('The required authentication scheme.', 'Basic realm="UPI payments", charset="UTF-8"'),
  'retry-after': header('Seconds to wait before the next attempt.', '1'),
  'ratelimit-limit': header(
    'Requests that the exceeded limit allows: requests of a key in a second, or wrong secrets in a minute.',
    '1000',
    false,
  ),
  'ratelimit-remaining': header('Requests that remain within the limit.', '0', false),
  'ratelimit-reset': header('Seconds until the limit resets.', '1', false),
  'accept-encoding': header('The accepted content codings, after a coding was rejected.', 'identity', false),
  'cache-control': header('How long a copy may be cached.', 'public, max-age=30'),
  etag: header('The version of the response, for If-None-Match.', '"019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3"'),
}

function header(description: string, example: string, required = true) {
  return { description, required, schema: { type: 'string' }, example }
}

function errorCode(codes: readonly ErrorCode[]) {
  const description = 'The code of the error, by which a program decides. A code never changes.'
  return { description, required: true, schema: { type: 'string', enum: codes } }
}

/** Meaning of each HTTP status, which is the same for all operations. */
const MEANING: Record<string, string> = {
  400: 'The body or a field is invalid. `msg` names every invalid field.',
  401: 'The credentials are missing, malformed, unknown, wrong, revoked or expired.',
  403: 'The key is valid, but not for this `mid` or `pid` or this operation, or the merchant is disabled.',
  404: 'The order, refund or address does not exist.',
  409: 'The request conflicts with the stored order or refund.',
  410: 'The payment is paid, cancelled or expired, or the merchant is disabled.',
  413: 'The body is too large.',
  415: 'The body is neither a form nor JSON, or it is compressed.',
  422: 'The Idempotency-Key was used for a different request.',
  429: 'Too many requests, wrong credentials or concurrent long lists.',
  500: 'The service failed. Quote `x-request-id` to the operator.',
  503: 'The service is briefly unavailable or overloaded. Retry after `Retry-After` seconds.',
  '4XX': 'Any address may return 400, 408, 417 or 431 for invalid HTTP.',
}

/**
 * Returns the responses of an operation: one success, an error for each status in `failures`, and 4XX for invalid HTTP.
 */
export function responsesOf(
  response: Described['response'],
  failures: readonly Failure[],
  { challenges }: { challenges: boolean },
): Record<string, ResponseObject> {
  const headers = headerRefs('x-request-id', ...(response.headers ?? []))
  const responses: Record<string, ResponseObject> = { '200': toResponse(response, headers) }
  // An operation that returns HTML for a success also returns HTML for an error, except for bytes that are not HTTP.
  const type = response.type === 'text/html' ? response.type : JSON_TYPE
  for (const status of new Set(failures.map(({ statusCode }) => String(statusCode)))) {
    const sameStatus = failures.filter(({ statusCode }) => String(statusCode) === status)
    responses[status] = errorResponse(
      status,
      sameStatus,
      [type],
      status === '401' && challenges ? ['www-authenticate'] : [],
    )
  }
  responses['4XX'] = errorResponse('4XX', HTTP_ERRORS, [...new Set([JSON_TYPE, type])], [])
  if (response.isCacheable) responses['304'] = { description: 'The cached copy is current.', headers }
  return responses
}

function toResponse(response: Described['response'], headers: object): ResponseObject {
  const { description, type, also = {}, example } = response
  const name = schemaNameOf(response)
  if (type === 'text/html') return { description, headers, content: { [type]: { schema: { type: 'string' } } } }
  const others = Object.entries(also).map(([type, example]) => [type, { schema: { type: 'string' }, example }])
  const content = { [type]: name === undefined ? {} : { schema: refTo(name), example }, ...Object.fromEntries(others) }
  return { description, headers, content }
}

function errorResponse(
  status: string,
  failures: readonly Failure[],
  types: readonly string[],
  headerNames: readonly string[],
): ResponseObject {
  const names = new Set([...headerNames, ...failures.flatMap(({ headers }) => Object.keys(headers))])
  const statusCodes = [...new Set(failures.map(({ statusCode }) => statusCode))]
  // Invalid HTTP, a wrong path and HAProxy cause errors of the same status.
  const alsoSent = ERRORS_OF_ALL.filter(({ statusCode }) => statusCodes.includes(statusCode))
  const codes = new Set([...failures, ...alsoSent].map(({ code }) => code))
  const schema = {
    allOf: [{ $ref: '#/components/schemas/ErrorResponse' }, { properties: { statusCode: { enum: statusCodes } } }],
  }
  const named = status === '500' ? ['x-request-id', ...names] : [...names]
  return {
    description: MEANING[status] ?? '',
    headers: { ...headerRefs(...named), 'x-error-code': errorCode([...codes]) },
    content: Object.fromEntries(
      types.map((type) => [
        type,
        type === JSON_TYPE ? { schema, ...asExamples(failures) } : { schema: { type: 'string' } },
      ]),
    ),
  }
}

function asExamples([first, ...others]: readonly Failure[]) {
  if (first === undefined || others.length === 0) return { example: first && fail(first) }
  const all = [first, ...others].map((failure) => [failure.message, { value: fail(failure) }])
  return { examples: Object.fromEntries(all) }
}

function headerRefs(...names: string[]) {
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
}
