/**
 * References of bank transfers: NEFT references have 16 or 22 characters, RTGS references 22, and IMPS and UPI
 * references 12 digits, which some banks pad with zeros to 16. The length alone does not identify the kind of transfer.
 */

/**
 * Normalizes a reference for comparison, because banks print the same reference in upper or lower case, and with or
 * without leading zeros.
 */
export const comparable = (reference: string) => reference.toUpperCase().replace(/^0+/, '')

/** Returns whether a text is a reference of 12 digits, and not a mobile number. */
const isOfDigits = (text: string) => /^(?:0000)?(?!91[6-9])\d{12}$/.test(text)

/**
 * Returns whether a text is long enough to be a bank's reference, and is not a word, an amount, an IFSC, a cheque number or a
 * mobile number.
 */
function isLong(text: string): boolean {
  if (/^\d+$/.test(text)) return isOfDigits(text)
  if (/(?<!\d)(?:0000)?91[6-9]\d{9}(?!\d)/.test(text)) return false
  return text.length >= 12 && text.length <= 35 && text.replace(/\D/g, '').length >= 6
}

/**
 * The word UPI, also as banks extend it, such as `UPIAR`. These lines may contain parts of a customer's UPI address
 * without an @, which look like references: `UPI-ASHA RAO-ASHA1990123456-OKAXIS-632312345678`.
 */
const UPI = /(?<![a-z])UPI[a-z]{0,3}(?![a-z])/i
/**
 * The part before the @ in a UPI address or e-mail address identifies a person and may be a mobile number:
 * `asha1990@okaxis`, `asha1990-2@ybl`. The hyphen may also separate the address from a reference of 12 digits.
 */
const BEFORE_AT = /(?<![A-Za-z0-9._])[A-Za-z0-9._]+(?:-\d{1,2})?(?=\s*@)/g
const HYPHENATED_BEFORE_AT = /(?<![A-Za-z0-9._-])[A-Za-z0-9._-]+(?=\s*@)/g
const WORD = /[A-Za-z0-9]+/g

/**
 * Returns the normalized references in the texts of a statement line, such as `NEFT CR-YESB0000001-…-YESIG62440270133`.
 * A line with the word UPI has only references of 12 digits. Also returns any whole word, or whole text, that `known`
 * contains, however short.
 */
export function referencesIn(texts: readonly string[], known: ReadonlySet<string>): string[] {
  const line = texts.join('\n')
  const [address, isReference] = UPI.test(line) ? [BEFORE_AT, isOfDigits] : [HYPHENATED_BEFORE_AT, isLong]
  return [
    ...(line.replace(address, '').match(WORD) ?? []).filter(isReference).map(comparable),
    ...[...(line.match(WORD) ?? []), ...texts].map(comparable).filter((word) => known.has(word)),
    // A text that consists only of zeros normalizes to an empty text.
  ].filter((reference) => reference !== '')
}
