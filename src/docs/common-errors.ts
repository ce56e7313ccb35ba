import {
  bodyEncoded,
  expectationFailed,
  type Failure,
  forbidden,
  headersTooLarge,
  improperHost,
  internalError,
  methodNotAllowed,
  notFound,
  payloadTooLarge,
  requestTimeout,
  tooManyRequests,
  unauthorized,
  unavailable,
  unsupportedMediaType,
} from '../errors.ts'
import { LIMITS } from '../limits.ts'
import type { Described } from '../platform/http/operation.ts'

/** Errors that all operations for a kind of caller have in common. An operation may have further errors. */
export const COMMON_ERRORS: Record<Described['access'], readonly Failure[]> = {
  key: [
    unauthorized(),
    forbidden(),
    payloadTooLarge(LIMITS.body.bytes),
    unsupportedMediaType(),
    bodyEncoded(),
    tooManyRequests(1_000, 'a second', 1),
    internalError(),
    unavailable(),
  ],
  signature: [payloadTooLarge(LIMITS.body.bytes), bodyEncoded(), internalError(), unavailable()],
  anyone: [],
}

/** Errors that any path returns for a request that is not valid HTTP. */
export const HTTP_ERRORS: readonly Failure[] = [
  improperHost(),
  requestTimeout(),
  expectationFailed(),
  headersTooLarge(),
]

/** Errors for requests that reach no operation. */
export const ROUTING_ERRORS: readonly Failure[] = [notFound(), methodNotAllowed(['POST'])]
