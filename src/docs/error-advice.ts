import type { ErrorCode } from '../errors.ts'

/** What a caller does after an error. `repeat` states whether the same request may be sent again. */
export type Advice = { action: string; repeat: string }

const REPEAT = {
  no: 'No.',
  unchanged: 'Yes, unchanged.',
  afterPause: 'Yes, unchanged, after Retry-After seconds.',
}
const { no, unchanged, afterPause } = REPEAT

export const ERROR_ADVICE: Record<ErrorCode, Advice> = {
  invalid_fields: { action: 'Correct every field that msg names.', repeat: no },
  invalid_body: { action: 'Send one form or one JSON object in UTF-8 with at most 100 fields.', repeat: no },
  invalid_idempotency_key: { action: 'Send a key of 1 to 64 printable ASCII characters.', repeat: no },
  invalid_host: { action: 'Send one valid Host header. Check each proxy on the way.', repeat: no },
  invalid_url: { action: 'Correct the percent-encoding of the URL.', repeat: no },
  invalid_http: { action: 'Correct the client or the proxy that sent the request.', repeat: no },
  invalid_credentials: { action: 'Check the public key and the secret key.', repeat: no },
  invalid_signature: {
    action: 'Check the secret, the signed bytes and your clock, and sign the request again.',
    repeat: no,
  },
  merchant_not_allowed: {
    action: 'Check the mid, the pid and the key. If they are correct, contact the operator.',
    repeat: no,
  },
  key_lacks_right: { action: 'Use a key with the right that msg names, or ask the operator for one.', repeat: no },
  url_not_found: { action: 'Correct the path.', repeat: no },
  order_not_found: {
    action: 'Check the identifier. No order with this identifier was created.',
    repeat: no,
  },
  refund_not_found: {
    action: 'Check the refund_id. No refund with this refund_id was accepted.',
    repeat: no,
  },
  logo_not_found: { action: 'Show the pay page without a logo.', repeat: no },
  method_not_allowed: { action: 'Use a method that the header Allow names.', repeat: no },
  request_timeout: { action: 'Open a new connection and send the request within 10 seconds.', repeat: unchanged },
  order_id_exists: {
    action: 'Check the payment status of this order_id. For another order, send a new order_id.',
    repeat: no,
  },
  refund_id_exists: {
    action: 'Call checkRefundStatus for this refund_id. For another refund, send a new refund_id.',
    repeat: no,
  },
  payment_already_successful: { action: 'Fulfil the order, or refund the payment.', repeat: no },
  payment_not_successful: { action: 'Do not refund this order, because it is not paid.', repeat: no },
  refund_exceeds_payment: {
    action: 'Reduce the amount. Pending and successful refunds together cannot exceed the paid amount.',
    repeat: no,
  },
  too_many_refunds: { action: 'Contact the operator. A payment can have at most 100 refunds.', repeat: no },
  amount_mismatch: { action: 'Compare the amount with the order. The operator sees the notification.', repeat: no },
  utr_already_used: { action: 'Check which order was paid. The operator sees the notification.', repeat: no },
  refund_mismatch: {
    action: 'Compare the notification with the refund. The operator sees the notification.',
    repeat: no,
  },
  payment_closed: { action: 'Check the payment status. If the order is not paid, create a new order.', repeat: no },
  body_too_large: { action: 'Shorten the body to at most 16 KiB.', repeat: no },
  unsupported_content_type: { action: 'Correct the header Content-Type.', repeat: no },
  unsupported_content_encoding: { action: 'Send the body without compression.', repeat: no },
  unsupported_expectation: { action: 'Remove the header Expect.', repeat: no },
  idempotency_key_reused: { action: 'Use a new key for a new request.', repeat: no },
  rate_limited: { action: 'Send fewer requests per second.', repeat: afterPause },
  too_many_invalid_credentials: { action: 'Check the public key and the secret key.', repeat: no },
  too_many_concurrent_requests: { action: 'Send fewer requests at the same time.', repeat: afterPause },
  long_list_in_progress: { action: 'Read one long list at a time.', repeat: afterPause },
  headers_too_large: { action: 'Send at most 16 KiB of headers.', repeat: no },
  too_many_headers: { action: 'Send fewer headers.', repeat: no },
  internal_error: { action: 'If the error persists, send the operator the x-request-id.', repeat: unchanged },
  response_lost: { action: 'Repeat the request, which may have been processed.', repeat: unchanged },
  unavailable: { action: 'Repeat the request. The payment status is unknown.', repeat: afterPause },
  response_timeout: { action: 'Repeat the request, which may have been processed.', repeat: unchanged },
}
