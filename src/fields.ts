import * as z from 'zod'

/**
 * Kinds of fields that several requests share, each with the rule in its error text.
 * The error text ends a sentence that begins with the field's name: `mid is required`.
 */

/** Replaces the value of a field that was sent more than once, because nobody can know which value was meant. */
export const REPEATED = Symbol('sent more than once')

/** The error text for a missing, repeated or wrongly typed value. */
export function errorText(rule: string) {
  return {
    error: ({ input, expected }: { input?: unknown; expected?: string }) => {
      if (input === undefined) return 'is required'
      // The digits of a number may obey the rule, so the error text names the missing quotes.
      if (typeof input === 'number' && expected === 'string') return `${rule}, as text in quotes`
      return input === REPEATED ? 'must be sent once' : rule
    },
  }
}

/**
 * Control characters and halves of surrogate pairs, for a character class of a regular expression. Written as ranges,
 * because the OpenAPI document contains the patterns too, and Python does not know \p{Cc}.
 */
export const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff'

export const textRule = (max: number, min = 1) =>
  `must be text of ${min} to ${max} characters, without control characters`

/** Text of `min` to `max` characters (code points), without control characters and halves of surrogate pairs. */
export function text(max: number, min = 1) {
  const rule = textRule(max, min)
  return z.string(errorText(rule)).regex(new RegExp(`^[^${CONTROLS}]{${min},${max}}$`, 'u'), rule)
}

/** Text that matches `form`; `rule` is the error text for its sender. */
export const matching = (form: RegExp, rule: string) => z.string(errorText(rule)).regex(form, rule)

export const VPA = /^[A-Za-z0-9._-]{1,255}@[A-Za-z0-9.-]{1,64}$/

/** The UTR of a payment in a bank's report, and of a payout. */
export const UTR = /^[A-Za-z0-9]{1,35}$/
export const UTR_RULE = 'must be 1 to 35 letters and digits'

/** Words and zeros that banks and acquirers write where they have no reference. They name many payments, so they name none. */
const PLACEHOLDER = /^(?:0+|NA|NIL|NONE|NULL|UNDEFINED|UNKNOWN|NOTAVAILABLE|NOTAPPLICABLE)$/

/** The RRN of a UPI payment has 12 digits; some banks and acquirers pad it to 16 with zeros. Other references stay as they are. */
export const unpadded = (reference: string): string => reference.replace(/^0000(?=[0-9]{12}$)/, '')

/** An unpadded reference, and for an RRN its padded form, under which earlier versions stored what was reported padded. */
export const formsOf = (reference: string): string[] =>
  /^[0-9]{12}$/.test(reference) ? [reference, `0000${reference}`] : [reference]

/** The acquirer's id of a payment in the form of a UTR: 1 to 35 letters and digits, in upper case. */
export const utrOfId = (id: string) => id.replace(/[_-]/g, '').slice(-35).toUpperCase()

/** The same in SQL. */
export const UTR_OF_ID = (id: string) => `upper(right(translate(${id}, '_-', ''), 35))`

/** Unique transaction reference of a payment, in upper case and unpadded: banks write the same UTR in several forms. */
export const utr = matching(UTR, UTR_RULE).transform((text) => unpadded(text.toUpperCase()))

/** The UTR in a report of a payment. A placeholder counts as absent. */
export const reportedUtr = utr.transform((text) => (PLACEHOLDER.test(text) ? undefined : text))

/** A UTR copied from a bank's page: blanks, dashes and invisible marks are removed. */
export const utrAsWritten = z
  .string(errorText(UTR_RULE))
  .transform((text) => text.replace(/[\s\p{Cf}\p{Pd}]/gu, ''))
  .pipe(utr)

export const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/
export const IDENTIFIER_RULE = 'must be 1 to 64 characters of A-Z a-z 0-9 _ -'

/** The identifier of a merchant or partner, which the operator assigns. */
export const identifier = matching(IDENTIFIER, IDENTIFIER_RULE)

const MOBILE_AS_WRITTEN_RULE =
  'must be 10 digits, written with or without +91, 91 or 0 before them, blanks, dots, dashes and brackets'
const MOBILE_AS_WRITTEN = /^(?:\+?91|0)?([0-9]{10})$/

/** A mobile number as customers type it at a checkout; becomes its 10 digits. */
export const mobileAsWritten = z
  .string(errorText(MOBILE_AS_WRITTEN_RULE))
  .transform((text) => text.replace(/[\p{Zs}\p{Pd}.()[\]]/gu, ''))
  .refine((text) => MOBILE_AS_WRITTEN.test(text), MOBILE_AS_WRITTEN_RULE)
  .transform((text) => text.slice(-10))

/**
 * Parses `text`; returns undefined when it is not a URL. `canParse` of URL is not used: in Node.js 20, optimised by V8,
 * it refuses every URL with a letter such as ü.
 */
export function readUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
