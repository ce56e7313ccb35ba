import {
  bodyEncoded,
  expectationFailed,
  type Failure,
  forbidden,
  headersTooLarge,
  improperHost,
  internalError,
  lacksRight,
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

/** Returns the errors that all operations with this access have in common. An operation may have further errors. */
export function commonErrors(access: Described['access']): readonly Failure[] {
  if (access === 'anyone') return []
  const errors = [payloadTooLarge(LIMITS.body.bytes), bodyEncoded(), internalError(), unavailable()]
  if (access === 'signature') return errors
  const ofKeys = [unauthorized(), forbidden(), lacksRight(access), tooManyRequests(1_000, 'a second', 1)]
  return [...ofKeys, unsupportedMediaType(), ...errors]
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
