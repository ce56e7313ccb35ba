import { randomUUID } from 'node:crypto'
import type { Merchant } from '../tenants/merchants.ts'
import type { NewPayment } from './new-payment.ts'

/*
 * What we call things:
 *
 * intent     a row of payment_intents: a request to be paid once, with its amount, payee and expiry
 * order      the same row as the shop sees it; merchantOrderId is the shop's name for it (order_id), orderId is ours
 * payment    money that a customer sends for an intent; the bank names it by a UTR
 * report     what the bank, the operator or the sandbox says of a payment: SUCCESS, FAIL or REJECT
 * change     what a report did to an intent: SUCCESS, once (payment_changes), or a failed attempt (payment_attempts)
 * link       what an acquirer that makes its own links has made for an intent (paymentLink), with a `tr` of its own
 * exception  a report that the operator has to look into, because it contradicts what we know or comes too late
 */

/** The account that is paid, as UPI names it: address (pa), name (pn) and category code (mc). */
export type Payee = { vpa: string; name: string; mcc: string }

/** A merchant's request for one payment, which can be paid once. */
export type Intent = {
  mid: string
  /** Our identifier: unguessable, time-ordered, 32 hex digits. In our links it is the UPI parameter `tr`. */
  orderId: string
  /** The merchant's order_id, or our orderId where none was sent. */
  merchantOrderId: string
  /** In paise. */
  amount: number
  redirectUrl: string
  note: string
  customer: { name: string; email: string; mobile: string }
  payee: Payee
  createdAt: Date
  expiresAt: Date
  /** The acquirer's link; absent where we make the links ourselves. */
  paymentLink?: PaymentLink | null
  /** Tells a retry from a new request; undefined where the merchant sent no Idempotency-Key. */
  idempotency: Idempotency | undefined
}

/** A link that an acquirer has made for one intent. `id` is its identifier there, `reference` the link's `tr`. */
export type PaymentLink = { acquirer: string; merchantId: string; id: string; reference: string; link: string }

/** `fingerprint` is the SHA-256 of the operation and its checked fields. */
export type Idempotency = { key: string; fingerprint: Buffer }

/**
 * Makes the intent of a checked request. `expiryMinutes` is for merchants without a setting of their own. Pure but for the
 * orderId, which is random.
 */
export function buildIntent(
  request: NewPayment,
  merchant: Merchant,
  now: Date,
  expiryMinutes: number,
  idempotency?: Idempotency,
): Intent {
  const orderId = newId(now)
  return {
    mid: merchant.mid,
    orderId,
    merchantOrderId: request.order_id ?? orderId,
    amount: request.amount,
    redirectUrl: request.redirect_url,
    note: request.note,
    customer: { name: request.customer_name, email: request.customer_email, mobile: request.customer_mobile },
    payee: { vpa: merchant.vpa, name: merchant.name, mcc: merchant.mcc },
    createdAt: now,
    expiresAt: new Date(now.getTime() + (merchant.expiryMinutes ?? expiryMinutes) * 60_000),
    idempotency,
  }
}

/**
 * Makes an orderId, or the service's name of a refund: 48 bits of time, so that new ones lie together in the index, and 80
 * random bits, so that nobody can guess one. The random bits are those of a UUID without its version and variant digits,
 * because Node.js prepares UUIDs in advance, while randomBytes takes 7 µs a call.
 */
export function newId(now: Date): string {
  const uuid = randomUUID()
  return orderIdsBegin(now) + uuid.slice(0, 8) + uuid.slice(24)
}

/** The first 12 digits of orderIds made at `moment`. Earlier orderIds sort before them; no orderId is from before 1970. */
export function orderIdsBegin(moment: Date): string {
  return Math.max(0, moment.getTime()).toString(16).padStart(12, '0')
}

const ORDER_ID = /^[0-9a-f]{32}$/

/** Whether `text` has the form of our orderIds; any other text is refused without a query. */
export function isOrderId(text: string): boolean {
  return ORDER_ID.test(text)
}
