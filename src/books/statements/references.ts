/**
 * References of bank transfers: NEFT references have 16 or 22 characters, RTGS references 22, and IMPS and UPI
 * references 12 digits, which some banks pad with zeros to 16. The length alone does not identify the kind of transfer.
 */

/**
 * Normalizes a reference for comparison, because banks print the same reference in upper or lower case, and with or
 * without leading zeros.
 */
export const comparable = (reference: string) => reference.toUpperCase().replace(/^0+/, '')

/**
 * Returns whether a text is long enough to be a bank's reference, and is not a word, an amount, an IFSC, a cheque number or a
 * mobile number.
 */
function isLong(text: string): boolean {
  if (/(?<!\d)(?:0000)?91[6-9]\d{9}(?!\d)/.test(text)) return false
  if (/^\d+$/.test(text)) return text.length === 12 || (text.length === 16 && text.startsWith('0000'))
  return text.length >= 12 && text.length <= 35 && text.replace(/\D/g, '').length >= 6
}

/**
 * The part before the @ in a UPI address or e-mail address identifies a person and may be a mobile number:
 * `asha1990@okaxis`, `asha1990-2@ybl`.
 */
const BEFORE_AT = /[A-Za-z0-9._]+(?:-\d{1,2})?(?=\s*@)/g

/**
 * Returns the normalized references in the text of a statement line, such as `NEFT CR-YESB0000001-…-YESIG62440270133`.
 * Also returns any whole word, or the whole text, that `known` contains, however short.
 */
export function referencesIn(text: string, known: ReadonlySet<string>): string[] {
  const parts = text.replace(BEFORE_AT, '').match(/[A-Za-z0-9]+/g) ?? []
  return [
    ...parts.filter(isLong).map(comparable),
    ...[...parts, text].map(comparable).filter((part) => known.has(part)),
    // A text that consists only of zeros normalizes to an empty text.
  ].filter((reference) => reference !== '')
}
