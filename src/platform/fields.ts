import { domainToASCII } from 'node:url'
import * as z from 'zod'

/**
 * Kinds of fields that several requests share, each with the rule in its error text. The error text completes a
 * sentence that begins with the field's name: `mid is required`.
 */

/**
 * Replaces the value of a field that was sent more than once, because the service cannot know which value was meant.
 */
export const REPEATED = Symbol('sent more than once')

/** The error text for a missing, repeated or wrongly typed value. */
export function errorText(rule: string) {
  return {
    error: ({ input, expected }: { input?: unknown; expected?: string }) => {
      if (input === undefined) return 'is required'
      // The digits of a number may satisfy the rule, so the error text names the missing quotes.
      if (typeof input === 'number' && expected === 'string') return `${rule}, as text in quotes`
      return input === REPEATED ? 'must be sent once' : rule
    },
  }
}

/**
 * Control characters and halves of surrogate pairs, for a character class of a regular expression. The class consists
 * of ranges, because the OpenAPI document also contains the patterns, and Python does not support \p{Cc}.
 */
export const CONTROLS = '\\u0000-\\u001f\\u007f-\\u009f\\ud800-\\udfff'

export const textRule = (max: number, min = 1) =>
  `must be text of ${min} to ${max} characters, without control characters`

/** Text of `min` to `max` characters (code points), without control characters and halves of surrogate pairs. */
export function text(max: number, min = 1) {
  const rule = textRule(max, min)
  return z.string(errorText(rule)).regex(new RegExp(`^[^${CONTROLS}]{${min},${max}}$`, 'u'), rule)
}

/**
 * The name of a merchant, partner or operator. Rejects tags, zero-width spaces and characters that change the writing
 * direction, because they could disguise a name. The two joiners are accepted, because Indian names need them.
 */
export const displayName = (max: number) =>
  z
    .string(errorText('must be text'))
    .trim()
    .pipe(text(max))
    .refine(
      (text) => !/(?![\u200c\u200d])\p{Cf}/u.test(text),
      'must not contain characters that are invisible or change the writing direction',
    )

/** The name of an operator, as the audit stores it. */
export const personName = displayName(64)

/** Text that matches `form`; `rule` is the error text for the caller. */
export const matching = (form: RegExp, rule: string) => z.string(errorText(rule)).regex(form, rule)

/** Regular expression for the whole numbers from 1 to `max`, without leading zeros; matches nothing if `max` is 0. */
export function oneTo(max: number): string {
  const digits = String(max)
  const shorter = digits.length > 1 ? [`[1-9][0-9]{0,${digits.length - 2}}`] : []
  // A lower number of the same length shares its first digits with `max`, followed by a lower digit.
  const lower = [...digits].flatMap((digit, place) => {
    const [from, to] = [place === 0 ? 1 : 0, Number(digit) - 1]
    return from > to ? [] : `${digits.slice(0, place)}[${from}-${to}][0-9]{${digits.length - place - 1}}`
  })
  return max === 0 ? '(?!)' : [...shorter, ...lower, digits].join('|')
}

/** A whole number from `min` to `max`, as text or as a JSON number. */
export function wholeNumber(min: number, max: number) {
  const rule = `must be a whole number from ${min} to ${max}`
  return z.union(
    [
      matching(new RegExp(`^(?!(${oneTo(min - 1)})$)(${oneTo(max)})$`), rule).transform(Number),
      z.int(rule).min(min, rule).max(max, rule),
    ],
    errorText(rule),
  )
}

export const VPA = /^[A-Za-z0-9._-]{1,255}@[A-Za-z0-9.-]{1,64}$/

/** The format of a UTR: a payment's UTR in a bank's report, or a payout's UTR. */
export const UTR = /^[A-Za-z0-9]{1,35}$/
export const UTR_RULE = 'must be 1 to 35 letters and digits'

/**
 * Words and zeros that banks and acquirers write instead of a missing reference. Such a text would match many payments,
 * so it identifies no payment.
 */
const PLACEHOLDER = /^(?:0+|NA|NIL|NONE|NULL|UNDEFINED|UNKNOWN|NOTAVAILABLE|NOTAPPLICABLE)$/

/**
 * Removes the padding of an RRN. The RRN of a UPI payment has 12 digits, but some banks and acquirers pad the RRN to 16
 * digits with zeros. Other references are not changed.
 */
export const unpadded = (reference: string): string => reference.replace(/^0000(?=[0-9]{12}$)/, '')

/** The SQL equivalent of `unpadded`. */
export const UNPADDED = (reference: string) => `regexp_replace(${reference}, '^0000(?=[0-9]{12}$)', '')`

/**
 * Returns the unpadded reference, and for an RRN also the padded form, because settlements contain references as the
 * bank wrote them.
 */
export const formsOf = (reference: string): string[] =>
  /^[0-9]{12}$/.test(reference) ? [reference, `0000${reference}`] : [reference]

/** Returns the acquirer's payment id in the form of a UTR: 1 to 35 letters and digits, in upper case. */
export const utrOfId = (id: string) => id.replace(/[_-]/g, '').slice(-35).toUpperCase()

/** The SQL equivalent of `utrOfId`. */
export const UTR_OF_ID = (id: string) => `upper(right(translate(${id}, '_-', ''), 35))`

/**
 * Unique transaction reference of a payment. The result is in upper case and unpadded, because banks write the same UTR
 * in several forms.
 */
export const utr = matching(UTR, UTR_RULE).transform((text) => unpadded(text.toUpperCase()))

/** The UTR in a report of a payment. A placeholder is treated as absent. */
export const reportedUtr = utr.transform((text) => (PLACEHOLDER.test(text) ? undefined : text))

/**
 * Converts compatibility forms, such as full-width letters and no-break spaces, to plain characters, and the digits of
 * every script to the digits 0 to 9.
 */
const toPlain = (text: string) =>
  text.normalize('NFKC').replace(/(?![0-9])\p{Nd}/gu, (digit) => String(digitValue(digit)))

/**
 * Returns the value of a decimal digit. Unicode encodes the ten digits of a script consecutively, but the digits of two
 * scripts may be adjacent.
 */
function digitValue(digit: string): number {
  const code = digit.codePointAt(0) as number
  let before = 0
  while (/\p{Nd}/u.test(String.fromCodePoint(code - before - 1))) before += 1
  return before % 10
}

/** Words that apps and people write before a reference. */
const LABELS = /^(?:(?:UPI|UTR|RRN|REF|REFERENCE|NO|NUMBER|ID|TXN|TRANSACTION|BANK|PAYMENT)(?:[^A-Z0-9]+|$))+/

/**
 * Returns the references in pasted text: all long words with digits, except words before the @ of an address. If the
 * text contains no such word, the whole text after its labels is one reference, written in groups. Letters before an
 * RRN in groups may be a word or a bank's code, so the result contains the reference with and without the letters.
 */
function referencesIn(pasted: string): string[] {
  const text = toPlain(pasted)
    .replace(/\p{Cf}/gu, '')
    .toUpperCase()
  const long = text.match(/(?<![A-Z0-9])(?:[0-9]{12}|(?=[A-Z]*[0-9])[A-Z0-9]{16,35})(?![A-Z0-9]|[\w.-]*@)/g)
  if (long) return [...new Set(long.map(unpadded))]
  const unlabelled = text.replace(/^[^A-Z0-9]+/, '').replace(LABELS, '')
  const [first = '', ...groups] = unlabelled.replace(/[^A-Z0-9]+$/, '').split(/[\s\p{Pd}]+/u)
  if (groups.some((group) => !/[0-9]/.test(group))) return []
  const rest = unpadded(groups.join(''))
  return [...(/^[A-Z]+$/.test(first) && /^[0-9]{12}$/.test(rest) ? [rest] : []), first + groups.join('')]
}

/** A UTR that a person has pasted from an app, a message or a spreadsheet, together with the text around the UTR. */
export const pastedUtr = z
  .string(errorText(UTR_RULE))
  .transform((pasted, { issues }) => {
    const references = referencesIn(pasted)
    if (references.length < 2) return references[0] ?? ''
    issues.push({
      code: 'custom',
      input: pasted,
      message: `has several references: enter one of ${references.join(', ')}`,
    })
    return z.NEVER
  })
  .pipe(utr)

/**
 * A bank's reference of a payout, as a person has pasted the reference. Spaces and dashes inside the reference are part
 * of it.
 */
export const pastedReference = z
  .string(errorText(textRule(64)))
  .transform((pasted) => toPlain(pasted).replace(/^[^\w./-]+|[^\w./-]+$/g, ''))
  .pipe(text(64))

export const IDENTIFIER = /^[A-Za-z0-9_-]{1,64}$/
export const IDENTIFIER_RULE = 'must be 1 to 64 characters of A-Z a-z 0-9 _ -'

/** The identifier of a merchant or partner, which the operator assigns. */
export const identifier = matching(IDENTIFIER, IDENTIFIER_RULE)

/** A character before the @ of an e-mail address, except the dot. */
const EMAIL_CHARACTER = `[^.@\\s${CONTROLS}]`
/**
 * A character of a domain except the dot, or any character beyond ASCII: the pattern lists excluded characters, because
 * the OpenAPI document contains the pattern, and Python does not support \p{L}.
 */
const DOMAIN_CHARACTER = `[^\\s!-,./:-@\\[-\`{-~${CONTROLS}]`
const EMAIL = new RegExp(
  `^${EMAIL_CHARACTER}(?:[^@\\s${CONTROLS}]{0,62}${EMAIL_CHARACTER})?@${DOMAIN_CHARACTER}+(?:\\.${DOMAIN_CHARACTER}+)+$`,
  'u',
)
const EMAIL_RULE = 'must be a valid e-mail address'
const EMAIL_LIMIT_CHARACTERS = 254

/** An e-mail address, whose domain may be in any script. The result is the stored form of the address. */
export const emailAddress = matching(EMAIL, EMAIL_RULE)
  .refine((address) => /@[\p{L}\p{M}\p{Nd}.-]+$/u.test(address), EMAIL_RULE)
  .refine(
    (address) => [...address].length <= EMAIL_LIMIT_CHARACTERS,
    `must be at most ${EMAIL_LIMIT_CHARACTERS} characters`,
  )
  .meta({ format: 'idn-email', maxLength: EMAIL_LIMIT_CHARACTERS })
  .transform(storedEmail)

/**
 * Returns the form in which an address is stored and compared. A domain with non-ASCII characters may also be sent as
 * `xn--…`, which names the same domain.
 */
export function storedEmail(address: string): string {
  if (/^\p{ASCII}*$/u.test(address)) return address
  return address.normalize('NFC').replace(/(?<=@)[^@]*$/, (domain) => domainToASCII(domain) || domain)
}

const MOBILE_AS_WRITTEN_RULE =
  'must be 10 digits; a prefix +91, 0091, 91 or 0, spaces, dots, dashes and brackets are allowed'
const MOBILE_AS_WRITTEN = /^(?:(?:\+|00)?91)?0?[0-9]{10}$/

/**
 * A mobile number as customers type or paste the number at a checkout, in the digits of any script. The result is the
 * 10 digits.
 */
export const mobileAsWritten = z
  .string(errorText(MOBILE_AS_WRITTEN_RULE))
  .transform((text) => toPlain(text).replace(/[\p{Zs}\p{Pd}\p{Cf}.()[\]]/gu, ''))
  .refine((text) => MOBILE_AS_WRITTEN.test(text), MOBILE_AS_WRITTEN_RULE)
  .transform((text) => text.slice(-10))

/**
 * Parses `text`; returns undefined if the text is not a URL. The static method canParse of URL is not used, because in
 * Node.js 20, once V8 has optimised this method, it rejects every URL with a letter such as ü.
 */
export function readUrl(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
