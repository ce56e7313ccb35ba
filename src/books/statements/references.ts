/**
 * References of bank transfers: NEFT has 16 characters or 22, RTGS 22, IMPS and UPI 12 digits, which some banks pad to 16 with zeros.
 * No length decides which is which.
 */

/** The form in which two references are compared: banks write upper or lower case, and zeros in front. */
export const comparable = (reference: string) => reference.toUpperCase().replace(/^0+/, '')

/** A text that a bank made as a reference: not a word, an amount, an IFSC, a cheque's number or a mobile number. */
function isLong(text: string): boolean {
  if (/(?<!\d)(?:0000)?91[6-9]\d{9}(?!\d)/.test(text)) return false
  if (/^\d+$/.test(text)) return text.length === 12 || (text.length === 16 && text.startsWith('0000'))
  return text.length >= 12 && text.length <= 35 && text.replace(/\D/g, '').length >= 6
}

/** What stands before the @ of a UPI or e-mail address names a person, and may be a mobile number: `asha1990@okaxis`, `asha1990-2@ybl`. */
const BEFORE_AT = /[A-Za-z0-9._]+(?:-\d{1,2})?(?=\s*@)/g

/**
 * The references, comparable, in a text of a statement's line, such as `NEFT CR-YESB0000001-…-YESIG62440270133`; and whatever stands
 * in it whole that is one of `known`, however short.
 */
export function referencesIn(text: string, known: ReadonlySet<string>): string[] {
  const parts = text.replace(BEFORE_AT, '').match(/[A-Za-z0-9]+/g) ?? []
  return [
    ...parts.filter(isLong).map(comparable),
    ...[...parts, text].map(comparable).filter((part) => known.has(part)),
    // Zeros alone are none.
  ].filter((reference) => reference !== '')
}
