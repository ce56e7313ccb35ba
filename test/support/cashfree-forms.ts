import { createHash } from 'node:crypto'
import type { BankResponse } from './bank-faults.ts'
import type { BookedRefund } from './bank-refunds.ts'
import { CUSTOMER_VPA } from './fake-bank.ts'

/** The records of the fake Cashfree, and Cashfree's formats. */

/** An attempt to pay an order. */
export type CashfreePayment = {
  id: string
  status: keyof typeof PAYMENT_STATES
  /** In paise. */
  amount: number
  /** The bank's reference; empty until the attempt is final. */
  rrn: string
  /** By default, a bank account. */
  instrument?: unknown
  begunAt: Date
  endedAt?: Date
}

export type CashfreeOrder = {
  id: string
  /** The service's orderId. */
  orderId: string
  /** In paise. */
  amount: number
  status: 'ACTIVE' | 'PAID' | 'TERMINATED' | 'TERMINATION_REQUESTED'
  sessionId: string
  createdAt: Date
  expiresAt: Date
  /** The request of the service. */
  sent: Sent
  /** The last element is the link that customers pay. */
  links: string[]
  payments: CashfreePayment[]
}

export type Sent = {
  order_id: string
  order_amount: number
  order_expiry_time: string
  customer_details: { customer_id: string; customer_phone: string }
  order_meta?: { notify_url?: string; payment_methods?: string }
  order_note?: string
}

export type CashfreeRefund = BookedRefund & { orderId: string; note: string }

export type CashfreeDispute = {
  id: string
  type: 'DISPUTE' | 'CHARGEBACK' | 'RETRIEVAL' | 'PRE_ARBITRATION' | 'ARBITRATION'
  /** The end of `dispute_status`, such as `CREATED` or `MERCHANT_WON`. */
  state: string
  /** In paise. */
  amount: number
  order: CashfreeOrder
  payment: CashfreePayment
  createdAt: Date
  updatedAt: Date
  respondBy: Date
  resolvedAt?: Date
}

const PAYMENT_STATES = {
  begun: 'NOT_ATTEMPTED',
  pending: 'PENDING',
  success: 'SUCCESS',
  failed: 'FAILED',
  dropped: 'USER_DROPPED',
  cancelled: 'CANCELLED',
}

const REFUND_STATES = {
  pending: 'PENDING',
  initiated: 'PENDING',
  'on hold': 'ONHOLD',
  success: 'SUCCESS',
  failed: 'CANCELLED',
}

/** A payment as in a list of payments. */
export function paymentOf(order: CashfreeOrder, payment: CashfreePayment) {
  const hasFailed = payment.status === 'failed'
  const method = { channel: 'link', upi_id: CUSTOMER_VPA, upi_payer_ifsc: 'AXL1234' }
  return {
    cf_payment_id: payment.id,
    order_id: order.orderId,
    entity: 'payment',
    payment_currency: 'INR',
    error_details: hasFailed
      ? {
          error_code: 'TRANSACTION_DECLINED',
          error_description: 'issuer bank or payment service provider declined the transaction',
          error_reason: 'auth_declined',
          error_source: 'customer',
          error_code_raw: 'ZM',
          error_description_raw: 'INVALID / INCORRECT MPIN',
          error_subcode_raw: '',
        }
      : null,
    order_amount: asNumber(order.amount),
    order_currency: 'INR',
    is_captured: payment.status === 'success',
    payment_group: payment.instrument === undefined ? 'upi' : payment.instrument,
    authorization: null,
    payment_method: { upi: { ...method, upi_payer_account_number: 'XXXXXXX6024' } },
    payment_amount: asNumber(payment.amount),
    payment_time: istTime(payment.begunAt),
    payment_completion_time: payment.endedAt ? istTime(payment.endedAt) : null,
    payment_status: inWords(PAYMENT_STATES, payment.status),
    payment_message: hasFailed ? 'Transaction failed' : 'Transaction successful',
    bank_reference: payment.rrn || null,
    auth_id: null,
    international_payment: { international: false },
    payment_gateway_details: {
      gateway_name: 'CASHFREE',
      gateway_order_id: order.id,
      gateway_payment_id: payment.id,
      gateway_order_reference_id: 'null',
      gateway_status_code: null,
      gateway_settlement: 'CASHFREE',
      gateway_reference_name: null,
    },
    payment_surcharge: { payment_surcharge_service_charge: 0, payment_surcharge_service_tax: 0 },
  }
}

/** A refund as in a response. */
export function refundOf(refund: CashfreeRefund) {
  const hasEnded = refund.status === 'success'
  return {
    cf_payment_id: refund.paymentId,
    cf_refund_id: refund.id,
    refund_id: refund.ourRefundId,
    order_id: refund.orderId,
    entity: 'refund',
    refund_amount: asNumber(refund.amount),
    refund_currency: 'INR',
    refund_note: refund.note,
    refund_status: inWords(REFUND_STATES, refund.status),
    refund_type: refund.ourRefundId === '' ? 'PAYMENT_AUTO_REFUND' : 'MERCHANT_INITIATED',
    refund_splits: [],
    status_description: hasEnded ? 'Refund processed successfully' : 'In Progress',
    refund_arn: refund.reference || null,
    metadata: null,
    created_at: istTime(new Date(refund.createdAt)),
    processed_at: hasEnded && refund.endedAt ? istTime(refund.endedAt) : null,
    refund_charge: 0,
    refund_mode: 'STANDARD',
    refund_speed: { requested: 'STANDARD', accepted: 'STANDARD', processed: 'STANDARD', message: null },
    forex_conversion_handling_charge: null,
    forex_conversion_handling_tax: null,
    forex_conversion_rate: null,
    charges_currency: 'INR',
  }
}

/** A dispute as in a response, and the parts of its notification. */
export function disputeOf(dispute: CashfreeDispute) {
  const { order, payment } = dispute
  // Older samples contain a number that a double cannot represent, newer ones text.
  const id = Number(payment.id.at(-1)) % 2 ? payment.id : number(payment.id)
  return {
    dispute: {
      dispute_id: dispute.id,
      dispute_type: dispute.type,
      reason_code: '1402',
      reason_description: 'Duplicate Processing',
      dispute_amount: asNumber(dispute.amount),
      created_at: istTime(dispute.createdAt),
      updated_at: istTime(dispute.updatedAt),
      respond_by: istTime(dispute.respondBy),
      resolved_at: dispute.resolvedAt ? istTime(dispute.resolvedAt) : null,
      dispute_status: `${dispute.type}_${dispute.state}`,
      cf_dispute_remarks: 'Dispute is created, please take action',
    },
    order_details: {
      order_id: order.orderId,
      order_currency: 'INR',
      order_amount: asNumber(order.amount),
      cf_payment_id: id,
      payment_currency: 'INR',
      payment_amount: asNumber(payment.amount),
    },
    customer_details: {
      customer_name: 'Canaryname Rao',
      customer_email: 'canarymail@example.in',
      customer_phone: order.sent.customer_details.customer_phone,
    },
  }
}

/** Cashfree's name of a state; a state made up by a test in upper case. */
const inWords = (words: Record<string, string>, state: string) => words[state] ?? state.toUpperCase()

const NUMBER_MARK = '\u0001'
/** A number that is serialised as `digits`, which JSON.stringify would shorten or round. */
export const number = (digits: string) => `${NUMBER_MARK}${digits}`
export const toJson = (value: object) => JSON.stringify(value).replace(/"\\u0001([^"]*)"/g, '$1')

export const rupees = (paise: number) => (paise / 100).toFixed(2)
export const asNumber = (paise: number) => number(inSomeForm(paise, String(paise)))

/** Rupees with two or as few decimals as possible; `name` alone determines the format. */
export function inSomeForm(paise: number, name: string): string {
  const isShort = (createHash('sha256').update(name).digest()[0] as number) % 2
  return isShort ? rupees(paise).replace(/\.?0+$/, '') : rupees(paise)
}

/** Formats a time in ISO 8601 with India's offset. */
export function istTime(moment: Date): string {
  return new Date(moment.getTime() + 19_800_000).toISOString().replace(/\.\d+Z$/, '+05:30')
}

export const responded = (status: number, body: object): BankResponse => ({ status, body: toJson(body) })

export function reject(status: number, code: string, message: string): BankResponse {
  const types: Record<number, string> = {
    401: 'authentication_error',
    422: 'idempotency_error',
    429: 'rate_limit_error',
  }
  const type = types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
  return responded(status, { message, code, help: 'https://docs.example/errors', type })
}
