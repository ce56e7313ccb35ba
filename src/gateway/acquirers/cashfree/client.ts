import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { accountName, type CashfreeSettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient } from '../client.ts'
import {
  codeOf,
  notBelieved,
  readBody,
  readStatus,
  reportedId,
  requireOrder,
  UnreadableStatus,
} from '../json-request.ts'
import { cashfreeDisputes } from './disputes.ts'
import {
  type CashfreeRequest,
  createCashfreeRequest,
  NAME,
  OrderState,
  PAYMENT_ENDS,
  paymentFields,
  toPaymentReport,
} from './http.ts'
import { cashfreeLinks } from './links.ts'
import { cashfreeNotifications } from './notifications.ts'
import { cashfreeRefunds } from './refunds.ts'
import { cashfreeSettled } from './settlements.ts'

/*
 * Cashfree Payments, API version 2025-01-01. This client is based only on Cashfree's published OpenAPI document
 * (orders, payments, refunds, simulation) and guides (webhooks). Cashfree's order_id is the service's orderId.
 */

export const cashfree: Acquirer<{ cashfree?: CashfreeSettings | undefined }> = {
  variables: 'CASHFREE_CLIENT_ID and CASHFREE_CLIENT_SECRET',
  longestExpiryMinutes: () => 24 * 60,
  notifications: ({ cashfree: account }) => account && cashfreeNotifications(account),
  /** Cashfree allows an account 400 order status requests per minute and documents no limit per order. */
  statusCheckRules: {
    most: 12,
    perMinute: 200,
    firstAfterMs: 20_000,
    pauseMs: 15_000,
    // A pause is at most a tenth of the time to pay, and ten pauses of this length reach the expiry. If the time to pay
    // is long, the first pauses are shorter, so that most checks are in the first minutes.
    pollingPauseMs: (ageMs, timeToPayMs) => Math.min(timeToPayMs / 10, Math.max(90_000, ageMs)),
  },
  client: ({ cashfree: account }, http) => account && cashfreeClient(account, createCashfreeRequest(account, http)),
  settled: ({ cashfree: account }, http) => account && cashfreeSettled(createCashfreeRequest(account, http)),
}

/**
 * A payment in a status response from Cashfree. Every field is optional, so that a payment with missing fields is
 * reported as unreadable.
 */
const PaymentResponse = z.object({
  ...paymentFields,
  order_id: z.unknown().optional(),
  payment_status: z.unknown().optional(),
  payment_amount: paymentFields.payment_amount.catch(undefined),
})

export function cashfreeClient(settings: CashfreeSettings, request: CashfreeRequest): AcquirerClient {
  const name = accountName(NAME, settings.account)

  async function statusOf(orderId: string, signal: AbortSignal | undefined): Promise<unknown> {
    const response = await request({ method: 'GET', path: `orders/${orderId}` }, signal, [200])
    const message = 'Cashfree returned an order in an unknown format'
    const order = readStatus(OrderState, response, message, orderId)
    requireOrder(response, orderId, order.order_id)
    return order.order_status
  }

  /** Returns the payments of an order, oldest first; `undefined` stands for an unreadable payment. */
  async function paymentsOf(orderId: string, signal: AbortSignal | undefined) {
    const response = await request({ method: 'GET', path: `orders/${orderId}/payments` }, signal, [200])
    const message = 'Cashfree returned payments in an unknown format'
    const listed = readBody(z.array(z.unknown()), response, message, { orderId })
    const payments = listed.map((payment) => PaymentResponse.safeParse(payment).data)
    const timeOf = (payment: (typeof payments)[number]) => payment?.payment_time?.getTime() ?? 0
    return { response, payments: payments.sort((a, b) => timeOf(a) - timeOf(b)) }
  }

  return {
    ...cashfreeLinks(settings, request),
    ...cashfreeRefunds(request),
    ...cashfreeDisputes(request),

    async getPayments({ orderId, isOpen }, signal) {
      // An ACTIVE order has no successful payment, so its payments are not read. Cashfree allows four times as many
      // order checks as payment checks.
      const early = isOpen ? await statusOf(orderId, signal) : undefined
      if (early === 'ACTIVE') return []
      const { response, payments } = await paymentsOf(orderId, signal)
      const reports = payments.map((payment) => payment && readPayment(name, orderId, payment))
      const paid = reports.flatMap((report) =>
        typeof report === 'object' && report.status === 'SUCCESS' ? [report] : [],
      )
      const isPaid = paid.length === 0 && ![...UNPAID, 'ACTIVE'].includes(early ?? (await statusOf(orderId, signal)))
      if (isPaid || reports.includes(undefined)) {
        const message = 'Cashfree returned a payment whose status, amount or reference is unreadable'
        throw new UnreadableStatus(response, message, orderId, paid)
      }
      if (paid.length > 0) return paid
      // A pending payment may still succeed, so a failed payment is reported only if no payment is pending.
      const last = reports.includes('pending') ? undefined : reports.at(-1)
      return typeof last === 'object' ? [last] : []
    },

    async check(signal) {
      // Requests an order that does not exist: Cashfree returns its own 404 for valid credentials, and 401 for invalid
      // credentials.
      const response = await request({ method: 'GET', path: 'orders/check-of-credentials' }, signal, [200, 404])
      if (codeOf(response) === undefined)
        throw notBelieved(response, "Cashfree's response is not in its own format: check CASHFREE_API_URL")
    },

    async simulate({ id }, { succeeds }, signal) {
      const { payments } = await paymentsOf(id, signal)
      const open = payments.findLast((payment) => payment && !PAYMENT_ENDS.get(payment.payment_status))
      if (open === undefined) throw new AcquirerError('unavailable', 'Cashfree has no pending payment for this order')
      const simulated = { payment_status: succeeds ? 'SUCCESS' : 'FAILED' }
      const body = { entity: 'PAYMENTS', entity_id: open.cf_payment_id, entity_simulation: simulated }
      await request({ method: 'POST', path: 'simulate', body }, signal, [200])
    },
  }
}

/** Order statuses that mean the order is unpaid. */
const UNPAID: readonly unknown[] = ['EXPIRED', 'TERMINATED', 'TERMINATION_REQUESTED']

/** Payment statuses that may still become successful. */
const PENDING: readonly unknown[] = ['PENDING', 'NOT_ATTEMPTED', 'FLAGGED']

/** Reads a payment from a status response. Returns undefined for an unreadable payment that may have succeeded. */
function readPayment(account: string, orderId: string, payment: z.output<typeof PaymentResponse>) {
  const { payment_status: status, payment_amount: amount, bank_reference: reference, cf_payment_id: id } = payment
  const isFailed = PAYMENT_ENDS.get(status) === 'FAIL'
  if (PENDING.includes(status)) return 'pending' as const
  const isPaid = status === 'SUCCESS' && amount !== undefined && (reference !== undefined || id !== undefined)
  if (!isFailed && !isPaid) return undefined
  const known = { ...payment, order_id: reportedId(payment.order_id, orderId), payment_status: String(status) }
  return toPaymentReport(account, orderId, known) ?? ('pending' as const)
}
