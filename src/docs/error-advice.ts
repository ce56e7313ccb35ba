import type { ErrorCode } from '../errors.ts'

/** What a caller does after an error. */
export const ADVICE: Record<ErrorCode, string> = {
  invalid_fields: 'Correct every field that msg names.',
  invalid_body: 'Send one form or one JSON object in UTF-8 with at most 100 fields.',
  invalid_idempotency_key: 'Send a key of 1 to 64 printable ASCII characters.',
  invalid_host: 'Send one valid Host header. Check each proxy on the way.',
  invalid_url: 'Correct the percent-encoding of the URL.',
  invalid_http: 'Correct the client or the proxy that sent the request.',
  invalid_credentials: 'Check the public key and the secret key.',
  invalid_signature: 'Check the secret, the signed bytes and your clock, and sign the request again.',
  merchant_not_allowed: 'Check the mid, the pid and the key. If they are correct, contact the operator.',
  key_lacks_right: 'Use a key with the right that msg names, or ask the operator for one.',
  url_not_found: 'Correct the path.',
  order_not_found: 'Check the identifier. No order with this identifier was created.',
  refund_not_found: 'Check the refund_id. No refund with this refund_id was accepted.',
  logo_not_found: 'Show the pay page without a logo.',
  method_not_allowed: 'Use a method that the header Allow names.',
  request_timeout: 'Open a new connection and send the request within 10 seconds.',
  order_id_exists: 'Check the payment status of this order_id. For another order, send a new order_id.',
  refund_id_exists: 'Call checkRefundStatus for this refund_id. For another refund, send a new refund_id.',
  payment_already_successful: 'Fulfil the order, or refund the payment.',
  payment_not_successful: 'Do not refund this order, because it is not paid.',
  payment_disputed:
    'Wait until the dispute is final. The bank may return the money, and a refund would return it twice.',
  refund_exceeds_payment: 'Reduce the amount. Pending and successful refunds together cannot exceed the paid amount.',
  too_many_refunds: 'Contact the operator. A payment can have at most 100 refunds.',
  amount_mismatch: 'Compare the amount with the order. The operator sees the notification.',
  utr_already_used: 'Check which order was paid. The operator sees the notification.',
  refund_mismatch: 'Compare the notification with the refund. The operator sees the notification.',
  payment_closed: 'Check the payment status. If the order is not paid, create a new order.',
  body_too_large: 'Shorten the body to at most 16 KiB.',
  unsupported_content_type: 'Correct the header Content-Type.',
  unsupported_content_encoding: 'Send the body without compression.',
  unsupported_expectation: 'Remove the header Expect.',
  idempotency_key_reused: 'Use a new key for a new request.',
  rate_limited: 'Send fewer requests per second.',
  too_many_invalid_credentials:
    'Correct the public key and the secret key. Requests with invalid credentials return 429 for Retry-After seconds.',
  too_many_concurrent_requests: 'Send fewer requests at the same time.',
  long_list_in_progress: 'Read one long list at a time.',
  headers_too_large: 'Send at most 16 KiB of headers.',
  too_many_headers: 'Send fewer headers.',
  internal_error: 'If the error persists, send the operator the x-request-id.',
  response_lost: 'Repeat the request, which may have been processed.',
  unavailable: 'Repeat the request. The payment status is unknown.',
  response_timeout: 'Repeat the request, which may have been processed.',
}

const UNCHANGED = 'Yes, unchanged.'
const AFTER_PAUSE = 'Yes, unchanged, after Retry-After seconds.'

/** Errors after which the request may be sent again, and how. */
export const REPEATABLE: Partial<Record<ErrorCode, string>> = {
  request_timeout: UNCHANGED,
  rate_limited: AFTER_PAUSE,
  too_many_invalid_credentials: 'Yes, immediately, with valid credentials.',
  too_many_concurrent_requests: AFTER_PAUSE,
  long_list_in_progress: AFTER_PAUSE,
  internal_error: UNCHANGED,
  response_lost: UNCHANGED,
  unavailable: AFTER_PAUSE,
  response_timeout: UNCHANGED,
}
