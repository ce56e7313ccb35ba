import { createHash } from 'node:crypto'
import { badRequest } from '../errors.ts'
import { toJsonNumber } from '../money.ts'
import type { Idempotency } from './intent.ts'
import type { NewPayment } from './new-payment.ts'

/** 1 to 64 printable ASCII characters. */
const IDEMPOTENCY_KEY = /^[\x20-\x7e]{1,64}$/

export const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  description:
    'A retry with the same key and the same fields gets the first answer again, so an answer that got lost costs nothing. ' +
    'The same key with other fields is 422, and so is any repeat after the operator had the customer of the order forgotten.',
  pattern: IDEMPOTENCY_KEY,
}

/**
 * Returns the Idempotency-Key of a request with the fingerprint of `operation` and the checked `fields`, which a retry must
 * repeat; undefined without the header. How the fields were spelled does not count. The fingerprint is personal data,
 * because the customer can be guessed from it: see forget-customers.ts.
 */
export function readIdempotency(
  header: string | string[] | undefined,
  operation: string,
  fields: NewPayment,
): Idempotency | undefined {
  if (header === undefined) return undefined
  if (typeof header !== 'string' || !IDEMPOTENCY_KEY.test(header)) {
    throw badRequest('Idempotency-Key must be 1 to 64 printable ASCII characters')
  }
  // In rupees, in the field's own place: an instance that knows no paise makes the same fingerprint, and a retry may reach one.
  const inRupees = { ...fields, amount: toJsonNumber(fields.amount) }
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([operation, inRupees]))
    .digest()
  return { key: header, fingerprint }
}
