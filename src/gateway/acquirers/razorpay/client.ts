import { AcquirerError } from '../../../errors.ts'
import { accountName, type RazorpaySettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient } from '../client.ts'
import { readBody, reportedId, UnreadableStatus } from '../json-request.ts'
import { razorpayDisputes } from './disputes.ts'
import {
  createRazorpayRequest,
  NAME,
  paymentsOf,
  RazorpayList,
  type RazorpayRequest,
  statusOf,
  toPaymentReport,
} from './http.ts'
import { razorpayLinks } from './links.ts'
import { razorpayNotifications } from './notifications.ts'
import { razorpayRefunds } from './refunds.ts'
import { razorpaySettled } from './settlements.ts'

/*
 * Razorpay, API version 1, server-to-server UPI intent. This client is based only on Razorpay's published documentation.
 * The `receipt` of a Razorpay order, and of a refund, is the service's identifier.
 */

export const razorpay: Acquirer<{ razorpay?: RazorpaySettings | undefined }> = {
  variables: 'RAZORPAY_KEY_ID, RAZORPAY_KEY_SECRET and RAZORPAY_WEBHOOK_SECRETS',
  longestExpiryMinutes: ({ razorpay: account }) => account?.linkMinutes,
  notifications: ({ razorpay: account }) => account && razorpayNotifications(account),
  /** Razorpay documents no limit of status checks. */
  statusCheckRules: {
    most: 12,
    firstAfterMs: 20_000,
    pauseMs: 15_000,
    // A pause is at most a tenth of the time to pay. The first pauses are shorter, so that most checks are soon after the
    // creation.
    pollingPauseMs: (ageMs, timeToPayMs) => Math.min(timeToPayMs / 10, Math.max(90_000, ageMs)),
  },
  client: ({ razorpay: account }, http) => account && razorpayClient(account, createRazorpayRequest(account, http)),
  settled: ({ razorpay: account }, http) => account && razorpaySettled(createRazorpayRequest(account, http)),
}

export function razorpayClient(settings: RazorpaySettings, request: RazorpayRequest): AcquirerClient {
  const name = accountName(NAME, settings.account)

  return {
    ...razorpayLinks(settings, request),
    ...razorpayRefunds(request),
    ...razorpayDisputes(request),

    async getPayments({ orderId, paymentLink: { id } }, signal) {
      const { response, payments } = await paymentsOf(request, id, signal)
      const reports = payments.map((payment) => {
        const status = payment && statusOf(payment)
        const isNamed = payment?.id !== undefined || payment?.acquirer_data !== undefined
        if (!status || (status === 'SUCCESS' && (payment.amount === undefined || !isNamed))) return undefined
        return toPaymentReport(name, orderId, { ...payment, order_id: reportedId(payment.order_id, id) }) ?? 'pending'
      })
      const ended = reports.filter((report) => typeof report === 'object')
      const paid = ended.filter((report) => report.status === 'SUCCESS')
      if (reports.includes(undefined)) {
        const message = 'Razorpay returned a payment whose status, amount or reference is unreadable'
        throw new UnreadableStatus(response, message, orderId, paid)
      }
      if (paid.length > 0) return paid
      // A pending payment may still succeed, so a failed payment is reported only if no payment is pending.
      return reports.includes('pending') ? [] : ended.slice(-1)
    },

    async check(signal) {
      const response = await request({ method: 'GET', path: 'orders?count=1' }, signal, [200])
      readBody(RazorpayList, response, "Razorpay's response is not in its own format: check RAZORPAY_API_URL")
    },

    async simulate() {
      throw new AcquirerError('unavailable', 'Razorpay has no simulation call: pay with a UPI ID of its test mode')
    },
  }
}
