import { randomUUID } from 'node:crypto'
import type { Paise } from '../../platform/money.ts'
import type { Merchant } from '../tenants/merchants.ts'
import type { NewPayment } from './new-payment.ts'

/*
 * - intent: a row of payment_intents, which requests one payment, with its amount, payee and expiry.
 * - order: the same row as the merchant sees it. merchantOrderId is the merchant's identifier (order_id), and orderId is
 *   the service's identifier.
 * - payment: money that a customer sends for an intent. The bank identifies the payment by a UTR.
 * - report: a payment's status from the bank, the operator or the sandbox: SUCCESS, FAIL or REJECT.
 * - link: a link with its own `tr` that an acquirer has created for an intent (paymentLink).
 * - exception: a report that the operator must investigate, because it contradicts the database or
 *   arrives too late.
 */

/** The payee, with the UPI parameters address (pa), name (pn) and category code (mc). */
type Payee = { vpa: string; name: string; mcc: string }

export type Intent = {
  mid: string
  /**
   * The service's identifier: 32 hex digits, ordered by time and unguessable. In the service's own links, the
   * identifier is the UPI parameter `tr`.
   */
  orderId: string
  /** The merchant's order_id; the orderId if the merchant sent none. */
  merchantOrderId: string
  amount: Paise
  redirectUrl: string
  note: string
  customer: { name: string; email: string; mobile: string }
  payee: Payee
  createdAt: Date
  expiresAt: Date
  /** The acquirer's link; absent if the service builds the link itself. */
  paymentLink?: PaymentLink | null
  /** Undefined if the merchant sent no Idempotency-Key. */
  idempotency: Idempotency | undefined
}

/**
 * A link that an acquirer created. `id` is the acquirer's identifier of the link, and `reference` is the `tr` in the
 * link.
 */
export type PaymentLink = {
  acquirer: string
  merchantId: string
  id: string
  reference: string
  link: string
  /** True if the merchant's fallback acquirer created the link. The field is not read from the database. */
  isByFallback?: boolean
}

/** An Idempotency-Key. `fingerprint` is a SHA-256 of the request's operation and checked fields. */
export type Idempotency = { key: string; fingerprint: Buffer }

/**
 * Builds an intent without storing it. `expiryMinutes` applies to requests without `expiry_minutes` of merchants without
 * their own setting.
 */
export function buildIntent(
  request: NewPayment,
  merchant: Merchant,
  { now, expiryMinutes, idempotency }: { now: Date; expiryMinutes: number; idempotency?: Idempotency | undefined },
): Intent {
  const orderId = newId(now)
  const minutes = request.expiry_minutes ?? merchant.expiryMinutes ?? expiryMinutes
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
    expiresAt: new Date(now.getTime() + minutes * 60_000),
    idempotency,
  }
}

/**
 * Returns a new orderId or ourRefundId: 48 bits of time, so that new identifiers are adjacent in the index, and 80
 * random bits, so that they cannot be guessed. The random bits come from a UUID, without its version and
 * variant digits, because Node.js prepares UUIDs in advance.
 */
export function newId(now: Date): string {
  const uuid = randomUUID()
  return orderIdsBegin(now) + uuid.slice(0, 8) + uuid.slice(24)
}

/**
 * Returns the first 12 digits of an orderId created at `moment`. Earlier orderIds sort before this text. A moment
 * before 1970 is treated as 1970.
 */
export function orderIdsBegin(moment: Date): string {
  return Math.max(0, moment.getTime()).toString(16).padStart(12, '0')
}

/** SQL for `orderIdsBegin`. `moment` is SQL. */
export const orderIdsBeginSql = (moment: string) =>
  `lpad(to_hex(greatest(0, extract(epoch from ${moment}) * 1000)::bigint), 12, '0')`

const ORDER_ID = /^[0-9a-f]{32}$/

export const isOrderId = (text: string): boolean => ORDER_ID.test(text)
