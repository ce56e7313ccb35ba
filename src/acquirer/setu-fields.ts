import * as z from 'zod'
import type { PaymentNames } from '../payments/outcome.ts'
import { AcquirerFault, type JsonAnswer } from './acquirer.ts'
import { shortText, undone } from './ask.ts'
import { isoTime } from './notification.ts'

/** How Setu writes its fields, and what its answers mean that are not the ones expected. */

export const ACQUIRER_ID = /^[A-Za-z0-9_-]{1,64}$/

const PAISE_RULE = 'must be whole paise'
/** An amount in whole paise, up to 14 digits: the most that the database holds and `bankAmount` takes. */
export const paise = z.int(PAISE_RULE).positive(PAISE_RULE).max(99_999_999_999_999, PAISE_RULE)

/** A time in RFC 3339, or with a zone without its colon (+0530), as in the examples of Setu's guides. */
export const moment = z.preprocess(
  (time) => (typeof time === 'string' ? time.replace(/([+-]\d{2})(\d{2})$/, '$1:$2') : time),
  isoTime,
)

/**
 * A field that may be absent, which null and empty text mean too: a payment that failed early may have neither
 * reference nor time.
 */
export const orAbsent = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === null || value === '' ? undefined : value), schema.optional())

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

/** What an unexpected status means; `advice` is for the operator, where it is theirs to mend. */
export function failed({ status, requestId, body }: JsonAnswer, advice: string): AcquirerFault {
  const facts = { status, requestId, code: shortText((body as { code?: unknown } | undefined)?.code) }
  const isRefused = status >= 400 && status < 500 && status !== 408 && status !== 429
  const fault = isRefused
    ? new AcquirerFault('refused', `Setu refused a call: ${advice}`, facts)
    : new AcquirerFault('unavailable', 'a call of Setu failed', facts)
  return status === 401 || status === 403 ? undone(fault) : fault
}

export const notBelieved = ({ requestId }: JsonAnswer, message: string, facts: object = {}) =>
  new AcquirerFault('bad answer', message, { ...facts, requestId })
