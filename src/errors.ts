/**
 * The closed set of failures that are answered to callers. Any other error is answered by `internalError()`.
 * Each `message` tells the caller what to do next, and nothing of the service's internals.
 */

const STATUS_CODE = {
  badRequest: 400,
  unauthorized: 401,
  forbidden: 403,
  notFound: 404,
  methodNotAllowed: 405,
  requestTimeout: 408,
  conflict: 409,
  gone: 410,
  payloadTooLarge: 413,
  unsupportedMediaType: 415,
  expectationFailed: 417,
  unprocessable: 422,
  tooManyRequests: 429,
  headersTooLarge: 431,
  internalError: 500,
  unavailable: 503,
} as const

export type FailureCode = keyof typeof STATUS_CODE

/** An expected failure; `headers` are sent with the answer. */
export class Failure extends Error {
  readonly code: FailureCode
  /** The HTTP status, named as Fastify and its plugins look for it. */
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: FailureCode, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.statusCode = STATUS_CODE[code]
    this.headers = headers
  }
}

/**
 * Error of a call to an acquirer: `refused` is a fault of the set-up, which the operator has to mend; a `bad answer` must not
 * be believed; `unavailable` passes by itself. `facts` go to the log. A waiting caller gets 503.
 */
export class AcquirerError extends Error {
  readonly outcome: 'refused' | 'bad answer' | 'unavailable'
  readonly facts: Record<string, unknown>
  /** True when the call provably has changed nothing at the acquirer, or made nothing that anybody could pay. */
  isUndone = false
  /** True when the acquirer was not reached, or did not answer in time. */
  isUnanswered = false
  /** True for a status response about the order that may report a payment, in a form that is not known. */
  isUnreadable = false
  /** A link that a failed call may have made, and that can be closed. */
  unsureLink: Record<'acquirer' | 'merchantId' | 'id' | 'reference' | 'link', string> | undefined

  /** For metrics, whose account failed: of several that were requested a link the one that matters most. */
  accountKind: 'default' | 'own' | 'disabled' | undefined

  constructor(outcome: AcquirerError['outcome'], message: string, facts: Record<string, unknown> = {}) {
    super(message)
    this.name = 'AcquirerError'
    this.outcome = outcome
    this.facts = facts
  }
}

/** The error of a call that did not reach the acquirer, or that it did not answer in time. */
export const unanswered = (message: string) =>
  Object.assign(new AcquirerError('unavailable', message), { isUnanswered: true })

/** 400: `message` names every fault of the request at once. */
export const badRequest = (message: string) => new Failure('badRequest', message)

/** 400: without one clear Host, a proxy and this service may read the same request differently. */
export const improperHost = () =>
  badRequest('Send one Host header: a name or address, and a port if there is one, such as pay.example.in:8080')

/** 401: one text for a missing, malformed, unknown, wrong or revoked credential. */
export const unauthorized = () =>
  new Failure(
    'unauthorized',
    'Missing, malformed, unknown, wrong or revoked credentials: send Authorization: Basic base64(PUBLIC_KEY:SECRET_KEY)',
  )

/** 403: one text whether or not the other merchant or partner exists. */
export const forbidden = () => new Failure('forbidden', 'This key may not act for the mid or pid that was sent')

/** 403 for the merchant's own key without the right to refund: its owner has to learn which right is missing. */
export const mayNotRefund = () =>
  new Failure('forbidden', 'This key may not refund: ask the operator for a key with that right')

export const notFound = (message = 'There is nothing at this address') => new Failure('notFound', message)

/** 405: `allow` lists the methods of the address. */
export const methodNotAllowed = (allow: readonly string[]) =>
  new Failure('methodNotAllowed', `This address answers ${allow.join(', ')} only`, { allow: allow.join(', ') })

export const requestTimeout = () =>
  new Failure('requestTimeout', 'The request did not arrive in time; send it again on a new connection')

/** 409 of the order guard; the text is part of the interface. */
export const orderIdExists = () => new Failure('conflict', 'Order ID already exists')

/** 422: the Idempotency-Key was used before, for a request with other fields. */
export const idempotencyKeyReused = () =>
  new Failure('unprocessable', 'This Idempotency-Key was used for another request; send a new key with new fields')

/** 404 to a merchant without an order of this id, and to an acquirer when no merchant has one. */
export const orderNotFound = () => new Failure('notFound', 'Order not found')

/** 409: a paid order cannot be cancelled, only refunded. */
export const paymentSuccessful = () => new Failure('conflict', 'Payment already successful')

/** 404: the merchant has no refund with this refund_id. */
export const refundNotFound = () => new Failure('notFound', 'Refund not found')

const REFUND_REFUSALS = {
  'not successful': 'Payment is not successful',
  exceeds: 'Refund exceeds what was paid',
  'too many': 'Too many refunds of this payment',
  'refund_id exists': 'Refund ID already exists',
}

/** 409: nothing was stored, so the refund_id can be used again. */
export const refundRefused = (why: keyof typeof REFUND_REFUSALS) => new Failure('conflict', REFUND_REFUSALS[why])

/** 401 for a notification in the service's own format without a valid signature: one text for every fault. */
export const notificationUnsigned = () =>
  new Failure('unauthorized', 'Send X-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">, within 5 minutes')

/** 401 for a notification in an acquirer's own format: `how` names the header that the acquirer has to send. */
export const unsigned = (how: string) => new Failure('unauthorized', how)

/** 409: the notification contradicts the stored order or refund. */
export const notificationRefused = (kind: keyof typeof REFUSED_NOTIFICATIONS) =>
  new Failure('conflict', REFUSED_NOTIFICATIONS[kind])

const REFUSED_NOTIFICATIONS = {
  'amount differs': 'The amount differs from the amount of the order',
  'UTR of another order': 'This UTR was already used by another order',
  'refund differs': 'The order, amount, merchant or identifier differs from that of the refund',
}

/** 410: a QR whose intent is paid, cancelled or expired, or whose merchant is disabled. */
export const paymentClosed = () => new Failure('gone', 'This payment is no longer open; ask the merchant for a new one')

export const payloadTooLarge = (limitBytes: number) =>
  new Failure('payloadTooLarge', `The body must be at most ${limitBytes} bytes`)

export const unsupportedMediaType = () =>
  new Failure(
    'unsupportedMediaType',
    'Send the body as Content-Type: application/x-www-form-urlencoded or application/json',
  )

/** 415 for a compressed body, such as gzip. RFC 9110, section 15.5.16, requires the header Accept-Encoding. */
export const bodyEncoded = () =>
  new Failure('unsupportedMediaType', 'Send the body uncompressed, without Content-Encoding', {
    'accept-encoding': 'identity',
  })

export const expectationFailed = () =>
  new Failure('expectationFailed', 'The only Expect that is understood is 100-continue')

/** 429: the `limit` requests allowed in `time` are used up; the count starts anew in `resetSeconds`. */
export const tooManyRequests = (limit: number, time: 'a second' | 'a minute', resetSeconds: number) =>
  new Failure('tooManyRequests', `Too many requests: at most ${limit} ${time}; try again after Retry-After seconds`, {
    'retry-after': String(resetSeconds),
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': '0',
    'ratelimit-reset': String(resetSeconds),
  })

/** 429: a caller reads one long list at a time from an instance; a list takes about `retrySeconds`. */
export const oneLongListAtATime = (retrySeconds: number) =>
  new Failure(
    'tooManyRequests',
    'Another long list of yours is still being read; read it to its end first, or try again after Retry-After seconds',
    { 'retry-after': String(retrySeconds) },
  )

export const headersTooLarge = () =>
  new Failure('headersTooLarge', 'The request headers are too large; send at most 16 KiB of them')

export const tooManyHeaders = (limit: number) =>
  new Failure('headersTooLarge', `The request has too many headers; send at most ${limit} of them`)

/** 500: a fixed text; the cause goes to the log only. */
export const internalError = () =>
  new Failure('internalError', 'Something went wrong on our side; try again, and tell us the x-request-id if it stays')

const UNAVAILABLE = 'The service is briefly unavailable; repeat the request unchanged in a moment'

/** 503: the database is unreachable, or the service is overloaded. */
export const unavailable = (message = UNAVAILABLE) => new Failure('unavailable', message, { 'retry-after': '1' })

/** 503 of a create: the order may be stored without an answer, and only an Idempotency-Key finds its links again. */
export const createUnavailable = () =>
  unavailable(
    `${UNAVAILABLE}. If it had no Idempotency-Key and is 409 then, the order was stored: cancel that order and create another`,
  )
