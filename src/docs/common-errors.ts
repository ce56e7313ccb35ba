import {
  bodyEncoded,
  expectationFailed,
  Failure,
  forbidden,
  headersTooLarge,
  improperHost,
  internalError,
  invalidBody,
  invalidHttp,
  invalidUrl,
  lacksRight,
  methodNotAllowed,
  notFound,
  payloadTooLarge,
  requestTimeout,
  tooManyHeaders,
  tooManyInvalidCredentials,
  tooManyRequests,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../errors.ts'
import { LIMITS } from '../limits.ts'
import type { Described } from '../platform/http/operation.ts'

/** Returns the errors that all operations with this access have in common. An operation may have further errors. */
export function commonErrors(access: Described['access']): readonly Failure[] {
  if (access === 'anyone') return []
  const unreadable = invalidBody('The body must be one JSON object in UTF-8')
  const errors = [unreadable, payloadTooLarge(LIMITS.body.bytes), bodyEncoded(), internalError(), unavailable()]
  if (access === 'signature') return errors
  return [
    unauthorized(),
    forbidden(),
    lacksRight(access),
    unsupportedMediaType(),
    tooManyRequests(1_000, 1),
    tooManyInvalidCredentials(LIMITS.rates.wrongSecrets, 60),
    ...errors,
  ]
}

/** Errors that any address returns for a request that is not valid HTTP. */
export const HTTP_ERRORS: readonly Failure[] = [
  invalidHttp(),
  invalidUrl(),
  improperHost(),
  requestTimeout(),
  expectationFailed(),
  headersTooLarge(),
  tooManyHeaders(LIMITS.connections.headers),
]

const CHECK = 'Send the same request again, or check whether it was processed.'

/** Errors that any address returns, of requests that reach no operation too. */
export const ERRORS_OF_ALL: readonly Failure[] = [
  ...HTTP_ERRORS,
  notFound(),
  methodNotAllowed(['POST']),
  // Only HAProxy returns these errors; haproxy.cfg has the same codes and texts.
  new Failure('too_many_concurrent_requests', 'Too many concurrent requests. Try again after Retry-After seconds.'),
  new Failure('response_lost', `The response was lost. ${CHECK}`),
  new Failure('response_timeout', `The response took too long. ${CHECK}`),
]
