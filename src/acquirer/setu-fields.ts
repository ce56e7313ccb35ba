import * as z from 'zod'
import type { PaymentNames } from '../payments/outcome.ts'
import { isoTime } from './notification.ts'

/** How Setu writes its fields. */

export const ACQUIRER_ID = /^[A-Za-z0-9_-]{1,64}$/

const PAISE_RULE = 'must be whole paise'
/** An amount in whole paise, up to 14 digits: the most that the database holds and `bankAmount` takes. */
export const paise = z.int(PAISE_RULE).positive(PAISE_RULE).max(99_999_999_999_999, PAISE_RULE)

/** A time in RFC 3339, or with a zone without its colon (+0530), as in the examples of Setu's guides. */
export const moment = z.preprocess(
  (time) => (typeof time === 'string' ? time.replace(/([+-]\d{2})(\d{2})$/, '$1:$2') : time),
  isoTime,
)

/** The identifiers of a payment. A form that is not known hides them, since the payment counts all the same. */
const name = z.string().regex(ACQUIRER_ID).optional().catch(undefined)
export const paymentNames = { id: name, txnId: name }

export function namesOf({
  id,
  txnId,
}: {
  id?: string | undefined
  txnId?: string | undefined
}): PaymentNames | undefined {
  return id !== undefined && txnId !== undefined ? { id, txnId } : undefined
}
