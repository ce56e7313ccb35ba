import { toIstIso } from '../ist.ts'
import { toDecimalText } from '../money.ts'
import type { Intent } from './intent.ts'

/** Longest `tn` that UPI apps show, in characters. */
const NOTE_LIMIT = 50

/**
 * The fields of a UPI link. Source: NPCI, UPI Linking Specification 1.6, "Parameters". Every value is percent-encoded, so a merchant's
 * text cannot add or change a parameter.
 */
export type Payment = Pick<Intent, 'orderId' | 'amount' | 'note' | 'payee' | 'paymentLink'>

/** The start of a link that any UPI app opens. The parameters behind it in an acquirer's link are never changed. */
export const UPI_PREFIX = 'upi://pay?'

/** Returns the part of a link behind the `?`. */
export function upiLinkQuery(payment: Payment): string {
  if (payment.paymentLink) return payment.paymentLink.link.slice(UPI_PREFIX.length)
  return upiQuery(payment, { mode: '04', qrMedium: '02', note: transactionNote(payment.note) })
}

/** The links differ only in their prefix: `intent` opens any UPI app, the others open one wallet each. */
export function upiLinks(query: string) {
  return {
    intent: `${UPI_PREFIX}${query}`,
    phonepe: `phonepe://upi/pay?${query}`,
    paytm: `paytmmp://upi/pay?${query}`,
    gpay: `tez://upi/pay?${query}`,
  }
}

/** The web address by which an acquirer's sandbox simulates a customer; undefined for every link that pays. */
export const sandboxAddress = ({ paymentLink }: Pick<Payment, 'paymentLink'>) =>
  paymentLink && !paymentLink.link.startsWith(UPI_PREFIX) ? paymentLink.link : undefined

export function linksOf(payment: Payment): ReturnType<typeof upiLinks> {
  const address = sandboxAddress(payment)
  if (address === undefined) return upiLinks(upiLinkQuery(payment))
  return { intent: address, phonepe: address, paytm: address, gpay: address }
}

/**
 * The link inside the QR: an acquirer's own, or ours, which carries its expiry, so that the payer's app refuses it in time. Our link
 * has only an ASCII note: percent-encoded, 50 characters of Devanagari make 93 modules a side instead of 61, which are too small for
 * many cameras to read from a screen.
 */
export function upiQrLink(payment: Payment & Pick<Intent, 'createdAt' | 'expiresAt'>): string {
  if (payment.paymentLink) return payment.paymentLink.link
  const note = transactionNote(payment.note)
  const query = upiQuery(payment, { mode: '15', qrMedium: '06', note: isAscii(note) ? note : undefined })
  return `${UPI_PREFIX}${query}&QRts=${encode(toIstIso(payment.createdAt))}&QRexpire=${encode(toIstIso(payment.expiresAt))}`
}

function upiQuery(
  { orderId, amount, payee }: Payment,
  { mode, qrMedium, note }: { mode: string; qrMedium: string; note: string | undefined },
) {
  // The @ of the payee's address is not encoded, because some apps do not decode %40. VPA allows no other reserved character.
  const pa = encode(payee.vpa).replace('%40', '@')
  const tn = note === undefined ? '' : `&tn=${encode(note)}`
  return `ver=01&mode=${mode}&pa=${pa}&pn=${encode(payee.name)}&mc=${payee.mcc}&tr=${orderId}${tn}&am=${toDecimalText(amount)}&cu=INR&qrMedium=${qrMedium}`
}

const isAscii = (text: string) => /^[ -~]*$/.test(text)

/**
 * Percent-encodes also !'()*, which encodeURIComponent leaves: RFC 3986 reserves them, and readers of links treat them
 * differently.
 */
function encode(value: string): string {
  return encodeURIComponent(value).replace(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`)
}

/**
 * A note as UPI apps accept it: letters, digits and marks of any script, blanks and `. , - _ :`, at most 50 characters,
 * cut between characters as a reader sees them. If nothing is left, it is `Payment`.
 */
export function transactionNote(note: string): string {
  const accepted = note
    .replace(/[^\p{L}\p{M}\p{N} .,_:-]/gu, ' ')
    .replace(/ {2,}/g, ' ')
    .trim()
  return cut(accepted, NOTE_LIMIT).trimEnd() || 'Payment'
}

let graphemes: Intl.Segmenter | undefined

/** The longest start of `text` that has at most `limit` code points and breaks no grapheme. */
function cut(text: string, limit: number): string {
  // A text has at least as many UTF-16 units as code points.
  if (text.length <= limit) return text
  // The segmenter is made at its first use, because loading Intl would delay every start.
  graphemes ??= new Intl.Segmenter('en', { granularity: 'grapheme' })
  let kept = ''
  let size = 0
  for (const { segment } of graphemes.segment(text)) {
    size += [...segment].length
    if (size > limit) break
    kept += segment
  }
  return kept
}
