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

/** Errors that any path returns for a request that is not valid HTTP. */
export const HTTP_ERRORS: readonly Failure[] = [
  invalidHttp(),
  invalidUrl(),
  improperHost(),
  requestTimeout(),
  expectationFailed(),
  headersTooLarge(),
  tooManyHeaders(LIMITS.connections.headers),
]

/** Errors for requests that reach no operation. */
export const ROUTING_ERRORS: readonly Failure[] = [notFound(), methodNotAllowed(['POST'])]

/** Errors that only HAProxy returns; haproxy.cfg has the same codes and texts. */
export const BALANCER_ERRORS: readonly Failure[] = [
  new Failure('too_many_concurrent_requests', 'Too many concurrent requests. Try again after Retry-After seconds.', {
    'retry-after': '1',
  }),
  new Failure(
    'response_lost',
    'The response was lost. Send the same request again, or check whether it was processed.',
  ),
  new Failure(
    'response_timeout',
    'The response took too long. Send the same request again, or check whether it was processed.',
  ),
]
