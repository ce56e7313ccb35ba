import { toDecimalText } from '../../platform/money.ts'
import { toIstIso } from '../../platform/time.ts'
import type { Intent } from './intent.ts'

/** Largest number of characters that UPI apps show from `tn`, the note in a link. */
const NOTE_LIMIT = 50
/** Largest number of characters of a note in a QR code of the service's own link. */
const QR_NOTE_LIMIT = 20

/** The data from which a UPI link is built. */
export type Payment = Pick<Intent, 'orderId' | 'amount' | 'note' | 'payee' | 'paymentLink' | 'expiresAt'>

/** The start of a link that any UPI app opens. The rest of an acquirer's link is never changed. */
export const UPI_PREFIX = 'upi://pay?'

/**
 * NPCI's initiation modes: one for a link that opens an app, and one for a QR code that is created online for one
 * payment.
 */
const [LINK_MODE, QR_MODE] = ['04', '22']

/**
 * Returns the query of a payment's link, the part after the `?`. The service's own link contains its expiry, so that
 * the payer's app rejects an expired link. Source: NPCI, UPI Linking Specification 1.6, "Parameters". Every value is
 * percent-encoded, so that a merchant's text cannot add or change a parameter.
 */
export function upiLinkQuery(payment: Payment): string {
  if (payment.paymentLink) return payment.paymentLink.link.slice(UPI_PREFIX.length)
  const query = upiQuery(payment, { mode: LINK_MODE, note: transactionNote(payment.note), encode })
  return `${query}&QRexpire=${encode(toIstIso(payment.expiresAt))}`
}

/** Returns links with the same query. The link `intent` opens any UPI app; each other link opens one wallet. */
export function upiLinks(query: string) {
  return {
    intent: `${UPI_PREFIX}${query}`,
    phonepe: `phonepe://pay?${query}`,
    paytm: `paytmmp://pay?${query}`,
    gpay: `tez://upi/pay?${query}`,
  }
}

/** The web address at which an acquirer's sandbox simulates the customer; undefined for a link that moves money. */
export const sandboxAddress = ({ paymentLink }: Pick<Payment, 'paymentLink'>) =>
  paymentLink && !paymentLink.link.startsWith(UPI_PREFIX) ? paymentLink.link : undefined

export function linksOf(payment: Payment): ReturnType<typeof upiLinks> {
  const address = sandboxAddress(payment)
  if (address === undefined) return upiLinks(upiLinkQuery(payment))
  return { intent: address, phonepe: address, paytm: address, gpay: address }
}

/**
 * Returns the link inside the QR code: the acquirer's link, or the service's own link. The service's link is as short as
 * possible, because many cameras cannot read small modules from a screen: it contains only short notes in ASCII (50
 * percent-encoded characters of Devanagari enlarge the QR code from 57 to 93 modules a side), and escapes only what a
 * query requires.
 */
export function upiQrLink(payment: Payment & Pick<Intent, 'createdAt'>): string {
  if (payment.paymentLink) return payment.paymentLink.link
  const note = transactionNote(payment.note)
  const short = note.length <= QR_NOTE_LIMIT && isAscii(note) ? note : undefined
  const query = upiQuery(payment, { mode: QR_MODE, note: short, encode: encodeShort })
  const times = `QRts=${encodeShort(toIstIso(payment.createdAt))}&QRexpire=${encodeShort(toIstIso(payment.expiresAt))}`
  return `${UPI_PREFIX}${query}&qrMedium=06&${times}`
}

type QueryForm = { mode: string; note: string | undefined; encode: (value: string) => string }

function upiQuery({ orderId, amount, payee }: Payment, { mode, note, encode }: QueryForm) {
  // The @ of the payee's UPI address stays literal, because some apps do not decode %40.
  const pa = encode(payee.vpa).replace('%40', '@')
  const tn = note === undefined ? '' : `&tn=${encode(note)}`
  return `ver=01&mode=${mode}&pa=${pa}&pn=${encode(payee.name)}&mc=${payee.mcc}&tr=${orderId}${tn}&am=${toDecimalText(amount)}&cu=INR`
}

const isAscii = (text: string) => /^[ -~]*$/.test(text)

/**
 * Percent-encodes a value, including !'()*, which encodeURIComponent does not encode: RFC 3986 reserves these
 * characters, and different apps treat them differently.
 */
function encode(value: string): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * Percent-encodes the characters of a value that RFC 3986, section 3.4, does not allow in a query, and `&`, `=`, `+` and
 * `;`, which programs read as separators or as a space.
 */
const encodeShort = (value: string) => encodeURIComponent(value).replace(/%(?:2[4CF]|3[AF]|40)/g, decodeURIComponent)

/**
 * Reduces a note to the characters that UPI apps accept: letters, digits and marks of any script, spaces and `. , - _
 * :`, at most 50 characters, never cut within a character as a reader sees it. An empty result becomes `Payment`.
 */
export function transactionNote(note: string): string {
  const accepted = note
    .replace(/[^\p{L}\p{M}\p{N} .,_:-]/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return cut(accepted, NOTE_LIMIT).trimEnd() || 'Payment'
}

let graphemes: Intl.Segmenter | undefined

/** The longest prefix of `text` that has at most `limit` code points and does not cut a grapheme. */
function cut(text: string, limit: number): string {
  // `length` counts UTF-16 units. A text has at least as many UTF-16 units as code points, so this text is short
  // enough.
  if (text.length <= limit) return text
  // The segmenter is created at its first use, because loading Intl would delay every startup of the service.
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let stored = ''
  let size = 0
  for (const { segment } of graphemes.segment(text)) {
    size += [...segment].length
    if (size > limit) break
    stored += segment
  }
  return stored
}
