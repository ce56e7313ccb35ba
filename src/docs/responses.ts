import type { Failure } from '../errors.ts'
import { fail } from '../platform/http/envelope.ts'
import type { Described } from '../platform/http/operation.ts'
import { HTTP_ERRORS } from './common-errors.ts'
import { refTo } from './json-schema.ts'

type ResponseObject = { description: string; headers?: object; content?: object }

export const HEADERS = {
  'x-request-id': header('Every answer carries it: the name of this request in the log of the service.'),
  'www-authenticate': header('The scheme that is asked for.', 'Basic realm="UPI payments", charset="UTF-8"'),
  'retry-after': header('Seconds after which to try again.', '1'),
  'ratelimit-limit': header(
    'Requests that the exceeded limit allows: of a key in a second, of wrong secrets in a minute.',
    '1000',
    false,
  ),
  'ratelimit-remaining': header('Requests that are left of it.', '0', false),
  'ratelimit-reset': header('Seconds until the limit starts anew.', '1', false),
  'accept-encoding': header('The codings that are taken, where a coding was refused.', 'identity', false),
  'cache-control': header('How long a copy may be kept.', 'public, max-age=30'),
  etag: header('For If-None-Match.', '"019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3"'),
}

function header(description: string, example?: string, required = true) {
  return { description, required, schema: { type: 'string' }, ...(example !== undefined && { example }) }
}

/** Meaning of each HTTP status, the same for all operations. */
const MEANING: Record<string, string> = {
  400: 'The body or some fields are wrong; `msg` names every wrong field at once.',
  401: 'No, malformed, unknown, wrong or revoked credentials.',
  403: 'The key is good but not for that `mid` or `pid`, or not for refunds, or the merchant is disabled.',
  404: 'There is none.',
  409: 'It contradicts what is stored already.',
  410: 'Paid, cancelled, expired, or its merchant is disabled.',
  413: 'The body is too large.',
  415: 'The body is neither form nor JSON, or is compressed.',
  422: 'This Idempotency-Key was used for another request.',
  429: 'Too many requests, wrong credentials, or long lists at once.',
  500: 'Our fault; quote `x-request-id`.',
  503: 'Briefly away or overloaded; try again after `Retry-After` seconds.',
  '4XX': 'What any address may answer to what is no proper request: 400, 408, 417 or 431.',
}

/** Responses of an operation: one success, a refusal for each status of `failures`, and 4XX for faulty HTTP. */
export function responsesOf(
  answer: Described['answer'],
  failures: readonly Failure[],
  { challenges }: { challenges: boolean },
): Record<string, ResponseObject> {
  const headers = headerRefs('x-request-id', ...(answer.headers ?? []))
  const responses: Record<string, ResponseObject> = { '200': toResponse(answer, headers) }
  // An operation whose answer is HTML also has HTML refusals.
  const type = answer.type === 'text/html' ? answer.type : 'application/json'
  for (const status of new Set(failures.map(({ statusCode }) => String(statusCode)))) {
    const those = failures.filter(({ statusCode }) => String(statusCode) === status)
    responses[status] = refusal(status, those, type, status === '401' && challenges ? ['www-authenticate'] : [])
  }
  responses['4XX'] = refusal('4XX', HTTP_ERRORS, 'application/json', [])
  if (answer.mayBeHeld) responses['304'] = { description: 'The copy that you have is good.', headers }
  return responses
}

function toResponse(
  { description, type, also = {}, schema, named = {}, example }: Described['answer'],
  headers: object,
): ResponseObject {
  const [name] = Object.entries(named).find(([, candidate]) => candidate === schema) ?? []
  if (type === 'text/html') return { description, headers, content: { [type]: { schema: { type: 'string' } } } }
  const others = Object.entries(also).map(([type, example]) => [type, { schema: { type: 'string' }, example }])
  const content = { [type]: name === undefined ? {} : { schema: refTo(name), example }, ...Object.fromEntries(others) }
  return { description, headers, content }
}

function refusal(
  status: string,
  failures: readonly Failure[],
  type: string,
  headerNames: readonly string[],
): ResponseObject {
  const names = new Set([...headerNames, ...failures.flatMap(({ headers }) => Object.keys(headers))])
  const statusCodes = [...new Set(failures.map(({ statusCode }) => statusCode))]
  const schema = {
    allOf: [{ $ref: '#/components/schemas/Refusal' }, { properties: { statusCode: { enum: statusCodes } } }],
  }
  const named = status === '500' ? ['x-request-id', ...names] : [...names]
  return {
    description: MEANING[status] ?? '',
    ...(named.length > 0 && { headers: headerRefs(...named) }),
    content: {
      [type]: type === 'application/json' ? { schema, ...asExamples(failures) } : { schema: { type: 'string' } },
    },
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
