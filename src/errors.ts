/**
 * The closed set of failures that are sent to callers. Any other error is sent as `internalError()`. Each `message`
 * states what the caller should do next and reveals nothing about the service's internals.
 */

/**
 * Every error code with its HTTP status. Clients decide by the code, so a code never changes its name or its meaning.
 * One code covers all reasons that a caller must not be able to distinguish.
 */
export const ERROR_CODES = {
  invalid_fields: 400,
  invalid_body: 400,
  invalid_idempotency_key: 400,
  invalid_host: 400,
  invalid_url: 400,
  invalid_http: 400,
  invalid_credentials: 401,
  invalid_signature: 401,
  merchant_not_allowed: 403,
  key_lacks_right: 403,
  url_not_found: 404,
  order_not_found: 404,
  refund_not_found: 404,
  logo_not_found: 404,
  method_not_allowed: 405,
  request_timeout: 408,
  order_id_exists: 409,
  refund_id_exists: 409,
  payment_already_successful: 409,
  payment_not_successful: 409,
  payment_disputed: 409,
  refund_exceeds_payment: 409,
  too_many_refunds: 409,
  amount_mismatch: 409,
  utr_already_used: 409,
  refund_mismatch: 409,
  payment_closed: 410,
  body_too_large: 413,
  unsupported_content_type: 415,
  unsupported_content_encoding: 415,
  unsupported_expectation: 417,
  idempotency_key_reused: 422,
  rate_limited: 429,
  too_many_invalid_credentials: 429,
  too_many_concurrent_requests: 429,
  long_list_in_progress: 429,
  headers_too_large: 431,
  too_many_headers: 431,
  internal_error: 500,
  response_lost: 502,
  unavailable: 503,
  response_timeout: 504,
} as const

export type ErrorCode = keyof typeof ERROR_CODES

/** An expected failure; `headers` are sent with the error response, and include the code. */
export class Failure extends Error {
  readonly code: ErrorCode
  /** The HTTP status, under the name that Fastify and its plugins read. */
  readonly statusCode: number
  readonly headers: Readonly<Record<string, string>>

  constructor(code: ErrorCode, message: string, headers: Record<string, string> = {}) {
    super(message)
    this.name = 'Failure'
    this.code = code
    this.statusCode = ERROR_CODES[code]
    this.headers = { 'x-error-code': code, ...headers }
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

/** 400: `message` names every invalid field of the request. */
export const badRequest = (message: string) => new Failure('invalid_fields', message)

/** 400: the body could not be read, so no field was checked. */
export const invalidBody = (message: string) => new Failure('invalid_body', message)

export const invalidIdempotencyKey = () =>
  new Failure('invalid_idempotency_key', 'Idempotency-Key must be 1 to 64 printable ASCII characters')

/**
 * 400: the request does not have exactly one valid Host header, so a proxy and this service may read the request
 * differently.
 */
export const improperHost = () =>
  new Failure(
    'invalid_host',
    'The Host header is missing, repeated or invalid. Send one Host header, such as pay.example.in:8080.',
  )

export const invalidUrl = () =>
  new Failure('invalid_url', 'The URL contains invalid percent-encoding. Encode a literal % as %25.')

/** 400: the bytes on the connection are not HTTP. */
export const invalidHttp = () =>
  new Failure('invalid_http', 'The request is not valid HTTP/1.1. Check the client or proxy that sent it.')

/**
 * 401: the same text for a missing, malformed, unknown, wrong, revoked or expired credential, so that the text does not
 * reveal the reason.
 */
export const unauthorized = () =>
  new Failure(
    'invalid_credentials',
    'The credentials are missing, malformed, unknown, wrong, revoked or expired. Send Authorization: Basic base64(PUBLIC_KEY:SECRET_KEY).',
  )

/** 403: the same text whether or not the other merchant or partner exists. */
export const forbidden = () =>
  new Failure(
    'merchant_not_allowed',
    'This key has no access to this mid or pid, or the merchant is disabled. Check the mid or pid and the key.',
  )

/** 403 for a key of this merchant or partner without the right that the operation requires. */
export const lacksRight = (right: string) =>
  new Failure('key_lacks_right', `This key lacks the right '${right}'. Ask the operator for a key with this right.`)

export const notFound = () => new Failure('url_not_found', 'This URL does not exist. Check its path.')

/** 405: `allow` lists the methods that the URL supports. */
export const methodNotAllowed = (allow: readonly string[]) =>
  new Failure('method_not_allowed', `This URL does not allow this method. Use ${allow.join(' or ')}.`, {
    allow: allow.join(', '),
  })

export const requestTimeout = () =>
  new Failure('request_timeout', 'The request did not arrive in time. Send it again on a new connection.')

/** 409: the merchant has already used this order_id. The interface fixes the text. */
export const orderIdExists = () => new Failure('order_id_exists', 'Order ID already exists')

/** 422: the Idempotency-Key was already used for a request with other fields. */
export const idempotencyKeyReused = () =>
  new Failure(
    'idempotency_key_reused',
    'This Idempotency-Key was already used with other fields. Use a new key for a new request.',
  )

/** 404 for a merchant that has no order with this id, and for an acquirer if no merchant has an order with this id. */
export const orderNotFound = () => new Failure('order_not_found', 'Order not found')

/** 404 for a customer whose pay page has no order. */
export const noPaymentHere = () => new Failure('order_not_found', 'There is no payment at this address')

/** 404: the merchant of the pay page has no logo, or another one. */
export const noLogoHere = () => new Failure('logo_not_found', 'There is no logo at this address')

/** 409: a paid order cannot be cancelled, only refunded. */
export const paymentSuccessful = () => new Failure('payment_already_successful', 'Payment already successful')

/** 404: the merchant has no refund with this refund_id. */
export const refundNotFound = () => new Failure('refund_not_found', 'Refund not found')

const conflict = ([code, message]: readonly [ErrorCode, string]) => new Failure(code, message)

const REFUND_ERRORS = {
  'not successful': ['payment_not_successful', 'Payment is not successful'],
  disputed: ['payment_disputed', 'Payment is disputed'],
  exceeds: ['refund_exceeds_payment', 'Refund exceeds what was paid'],
  'too many': ['too_many_refunds', 'Too many refunds of this payment'],
  'refund_id exists': ['refund_id_exists', 'Refund ID already exists'],
} as const

/** 409: nothing was stored, so the refund_id can be used again. */
export const refundRejected = (why: keyof typeof REFUND_ERRORS) => conflict(REFUND_ERRORS[why])

/**
 * 401 for a notification in the service's own format without a valid signature. The text is the same for every reason.
 */
export const notificationUnsigned = () =>
  new Failure(
    'invalid_signature',
    'The signature is missing, invalid or more than 5 minutes old. Send X-Signature: t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">.',
  )

/** 401 for a notification in an acquirer's own format: `how` names the header that the acquirer must send. */
export const unsigned = (how: string) => new Failure('invalid_signature', how)

const REJECTED_NOTIFICATIONS = {
  'amount differs': ['amount_mismatch', 'The amount differs from that of the order'],
  'UTR of another order': ['utr_already_used', 'This UTR was already used by another order'],
  'refund differs': ['refund_mismatch', 'The order, amount, merchant or identifier differs from that of the refund'],
} as const

/** 409: the notification contradicts the stored order or refund. */
export const notificationRejected = (kind: keyof typeof REJECTED_NOTIFICATIONS) =>
  conflict(REJECTED_NOTIFICATIONS[kind])

/** 410: the QR code belongs to an intent that is paid, cancelled or expired, or to a disabled merchant. */
export const paymentClosed = () =>
  new Failure('payment_closed', 'This payment is no longer open. Ask the merchant for a new one.')

export const payloadTooLarge = (limitBytes: number) =>
  new Failure('body_too_large', `The body is too large. Send at most ${limitBytes} bytes.`)

export const unsupportedMediaType = () =>
  new Failure(
    'unsupported_content_type',
    'This content type is not supported. Send the body as application/x-www-form-urlencoded or application/json.',
  )

/** 415 for a compressed body, such as gzip. RFC 9110, section 15.5.16, requires the header Accept-Encoding. */
export const bodyEncoded = () =>
  new Failure('unsupported_content_encoding', 'The body is encoded. Send it uncompressed, without Content-Encoding.', {
    'accept-encoding': 'identity',
  })

export const expectationFailed = () =>
  new Failure('unsupported_expectation', 'This Expect header is not supported. Send 100-continue or no Expect header.')

/** 429: the key has used all `limit` requests that are allowed in a second. The count restarts after `resetSeconds`. */
export const tooManyRequests = (limit: number, resetSeconds: number) =>
  new Failure(
    'rate_limited',
    `Too many requests: the limit is ${limit} a second. Try again after Retry-After seconds.`,
    limitHeaders(limit, resetSeconds),
  )

/**
 * 429: the caller has sent `limit` wrong secrets or unknown keys in a minute. The count restarts after `resetSeconds`;
 * the pause applies to invalid credentials only.
 */
export const tooManyInvalidCredentials = (limit: number, resetSeconds: number) =>
  new Failure(
    'too_many_invalid_credentials',
    `Too many invalid credentials: the limit is ${limit} a minute. Correct both keys and repeat the request: valid credentials are accepted immediately.`,
    limitHeaders(limit, resetSeconds),
  )

const limitHeaders = (limit: number, resetSeconds: number) => ({
  'retry-after': String(resetSeconds),
  'ratelimit-limit': String(limit),
  'ratelimit-remaining': '0',
  'ratelimit-reset': String(resetSeconds),
})

/**
 * 429: the caller is already reading a long list from this instance, and only one long list at a time is allowed. A
 * list takes about `retrySeconds`.
 */
export const oneLongListAtATime = (retrySeconds: number) =>
  new Failure(
    'long_list_in_progress',
    'Another long list is still being sent to you. Read it to its end, or try again after Retry-After seconds.',
    { 'retry-after': String(retrySeconds) },
  )

export const headersTooLarge = () =>
  new Failure('headers_too_large', 'The request headers are too large. Send at most 16 KiB of headers.')

export const tooManyHeaders = (limit: number) =>
  new Failure('too_many_headers', `The request has too many headers. Send at most ${limit} headers.`)

/** 500: a fixed text; only the log contains the cause. */
export const internalError = () =>
  new Failure('internal_error', 'The service failed. Try again, and report the x-request-id if the error persists.')

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
