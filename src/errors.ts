/**
 * The closed set of failures that are sent to callers. Any other error is sent as `internalError()`. Each `message`
 * states what the caller should do next and reveals nothing about the service's internals.
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

/** An expected failure; `headers` are sent with the error response. */
export class Failure extends Error {
  readonly code: FailureCode
  /** The HTTP status, under the name that Fastify and its plugins read. */
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
 * Error of a call to an acquirer: `refused` is a configuration error that the operator must fix; the content of
 * a `bad answer` must not be used; `unavailable` is temporary. `facts` are logged. A waiting caller gets 503.
 */
export class AcquirerError extends Error {
  readonly outcome: 'refused' | 'bad answer' | 'unavailable'
  readonly facts: Record<string, unknown>
  /** True if the call certainly changed nothing at the acquirer, or created nothing that a customer could pay. */
  isUndone = false
  /** True if the acquirer was not reached or did not respond in time. */
  hasNoResponse = false
  /** True for a status response that is about the order, has an unknown format and may report a payment. */
  isUnreadable = false
  /** A link that a failed call may have created, and that can be closed. */
  unsureLink: Record<'acquirer' | 'merchantId' | 'id' | 'reference' | 'link', string> | undefined

  /**
   * The kind of account that failed, for metrics. If several accounts failed, the kind that comes first in
   * `ACCOUNT_KINDS`.
   */
  accountKind: 'default' | 'own' | 'disabled' | undefined

  constructor(outcome: AcquirerError['outcome'], message: string, facts: Record<string, unknown> = {}) {
    super(message)
    this.name = 'AcquirerError'
    this.outcome = outcome
    this.facts = facts
  }
}

/** The error for a call that did not reach the acquirer, or to which the acquirer did not respond in time. */
export const noResponse = (message: string) =>
  Object.assign(new AcquirerError('unavailable', message), { hasNoResponse: true })

/** 400: `message` names every error in the request. */
export const badRequest = (message: string) => new Failure('badRequest', message)

/**
 * 400: the request does not have exactly one valid Host header, so a proxy and this service may read the request
 * differently.
 */
export const improperHost = () =>
  badRequest('The Host header is missing, repeated or invalid. Send one Host header, such as pay.example.in:8080.')

/**
 * 401: the same text for a missing, malformed, unknown, wrong, revoked or expired credential, so that the text does not reveal
 * the reason.
 */
export const unauthorized = () =>
  new Failure(
    'unauthorized',
    'The credentials are missing, malformed, unknown, wrong, revoked or expired. Send Authorization: Basic base64(PUBLIC_KEY:SECRET_KEY).',
  )

/** 403: the same text whether or not the other merchant or partner exists. */
export const forbidden = () =>
  new Failure(
    'forbidden',
    'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.',
  )

/** 403 for a key of this merchant or partner without the right that the operation requires. */
export const lacksRight = (right: string) =>
  new Failure('forbidden', `This key lacks the right '${right}'. Ask the operator for a key with this right.`)

export const notFound = (message = 'This URL does not exist. Check its path.') => new Failure('notFound', message)

/** 405: `allow` lists the methods that the URL supports. */
export const methodNotAllowed = (allow: readonly string[]) =>
  new Failure('methodNotAllowed', `This URL does not allow this method. Use ${allow.join(' or ')}.`, {
    allow: allow.join(', '),
  })

export const requestTimeout = () =>
  new Failure('requestTimeout', 'The request did not arrive in time. Send it again on a new connection.')

/** 409: the merchant has already used this order_id. The interface fixes the text. */
export const orderIdExists = () => new Failure('conflict', 'Order ID already exists')

/** 422: the Idempotency-Key was already used for a request with other fields. */
export const idempotencyKeyReused = () =>
  new Failure(
    'unprocessable',
    'This Idempotency-Key was already used with other fields. Use a new key for a new request.',
  )

/** 404 for a merchant that has no order with this id, and for an acquirer if no merchant has an order with this id. */
export const orderNotFound = () => new Failure('notFound', 'Order not found')

/** 409: a paid order cannot be cancelled, only refunded. */
export const paymentSuccessful = () => new Failure('conflict', 'Payment already successful')

/** 404: the merchant has no refund with this refund_id. */
export const refundNotFound = () => new Failure('notFound', 'Refund not found')

const REFUND_ERRORS = {
  'not successful': 'Payment is not successful',
  exceeds: 'Refund exceeds what was paid',
  'too many': 'Too many refunds of this payment',
  'refund_id exists': 'Refund ID already exists',
}

/** 409: nothing was stored, so the refund_id can be used again. */
export const refundRejected = (why: keyof typeof REFUND_ERRORS) => new Failure('conflict', REFUND_ERRORS[why])

/**
 * 401 for a notification in the service's own format without a valid signature. The text is the same for every reason.
 */
export const notificationUnsigned = () =>
  new Failure(
    'unauthorized',
    'The signature is missing, invalid or more than 5 minutes old. Send X-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">.',
  )

/** 401 for a notification in an acquirer's own format: `how` names the header that the acquirer must send. */
export const unsigned = (how: string) => new Failure('unauthorized', how)

/** 409: the notification contradicts the stored order or refund. */
export const notificationRejected = (kind: keyof typeof REJECTED_NOTIFICATIONS) =>
  new Failure('conflict', REJECTED_NOTIFICATIONS[kind])

const REJECTED_NOTIFICATIONS = {
  'amount differs': 'The amount differs from that of the order',
  'UTR of another order': 'This UTR was already used by another order',
  'refund differs': 'The order, amount, merchant or identifier differs from that of the refund',
}

/** 410: the QR code belongs to an intent that is paid, cancelled or expired, or to a disabled merchant. */
export const paymentClosed = () =>
  new Failure('gone', 'This payment is no longer open. Ask the merchant for a new one.')

export const payloadTooLarge = (limitBytes: number) =>
  new Failure('payloadTooLarge', `The body is too large. Send at most ${limitBytes} bytes.`)

export const unsupportedMediaType = () =>
  new Failure(
    'unsupportedMediaType',
    'This content type is not supported. Send the body as application/x-www-form-urlencoded or application/json.',
  )

/** 415 for a compressed body, such as gzip. RFC 9110, section 15.5.16, requires the header Accept-Encoding. */
export const bodyEncoded = () =>
  new Failure('unsupportedMediaType', 'The body is encoded. Send it uncompressed, without Content-Encoding.', {
    'accept-encoding': 'identity',
  })

export const expectationFailed = () =>
  new Failure('expectationFailed', 'This Expect header is not supported. Send 100-continue or no Expect header.')

/**
 * 429: the caller has used all `limit` requests that are allowed in `time`. The count restarts after `resetSeconds`.
 */
export const tooManyRequests = (limit: number, time: 'a second' | 'a minute', resetSeconds: number) =>
  new Failure(
    'tooManyRequests',
    `Too many requests: the limit is ${limit} ${time}. Try again after Retry-After seconds.`,
    {
      'retry-after': String(resetSeconds),
      'ratelimit-limit': String(limit),
      'ratelimit-remaining': '0',
      'ratelimit-reset': String(resetSeconds),
    },
  )

/**
 * 429: the caller is already reading a long list from this instance, and only one long list at a time is allowed. A
 * list takes about `retrySeconds`.
 */
export const oneLongListAtATime = (retrySeconds: number) =>
  new Failure(
    'tooManyRequests',
    'Another long list is still being sent to you. Read it to its end, or try again after Retry-After seconds.',
    { 'retry-after': String(retrySeconds) },
  )

export const headersTooLarge = () =>
  new Failure('headersTooLarge', 'The request headers are too large. Send at most 16 KiB of headers.')

export const tooManyHeaders = (limit: number) =>
  new Failure('headersTooLarge', `The request has too many headers. Send at most ${limit} headers.`)

/** 500: a fixed text; only the log contains the cause. */
export const internalError = () =>
  new Failure('internalError', 'The service failed. Try again, and report the x-request-id if the error persists.')

const UNAVAILABLE = 'The service is temporarily unavailable. Repeat the request unchanged after Retry-After seconds.'

/** 503: the database is unreachable, or the service is overloaded. */
export const unavailable = (message = UNAVAILABLE) => new Failure('unavailable', message, { 'retry-after': '1' })

/**
 * 503 for a request that creates an order: the order may be stored although the response was lost, and only a repeat
 * with the same Idempotency-Key returns the order's links.
 */
export const createUnavailable = () =>
  unavailable(
    `${UNAVAILABLE} If it had no Idempotency-Key and then returns 409, the order was stored: cancel it and create another one.`,
  )
