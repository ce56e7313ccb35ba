import { createHash } from 'node:crypto'
import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { toJsonNumber } from '../../../platform/money.ts'
import type { EnquiryRules } from '../../payments/enquiry-times.ts'
import type { Intent } from '../../payments/intent.ts'
import { accountName, type CashfreeSettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient, RefundOrder } from '../client.ts'
import {
  codeOf,
  type JsonAnswer,
  notBelieved,
  orAbsent,
  readBody,
  readStatus,
  reportedId,
  requireOrder,
  throwUndone,
  UnreadableStatus,
} from '../json-request.ts'
import { notificationPath } from '../notification.ts'
import { readPaymentLink } from '../payment-link.ts'
import {
  type CashfreeRequest,
  createCashfreeRequest,
  NAME,
  PAYMENT_ENDS,
  paymentFields,
  refundFields,
  rupees,
  toPaymentReport,
  toRefundUpdate,
} from './http.ts'
import { cashfreeNotifications } from './notifications.ts'
import { cashfreeSettled } from './settlements.ts'

/*
 * Cashfree Payments, API of 2025-01-01. Sources: Cashfree's published OpenAPI document (orders, payments, refunds,
 * simulation) and guides (webhooks), from which alone this code was written. Cashfree's order_id is our orderId.
 */

const OrderAnswer = z.object({
  order_id: z.string(),
  order_amount: rupees,
  order_currency: z.literal('INR'),
  order_status: z.literal('ACTIVE'),
  payment_session_id: z.string().min(1).max(1_024),
})

const Session = z.object({ data: z.object({ payload: z.object({ default: z.string().max(2_048) }) }) })

/** A payment in a status response. Every field may be missing: what is missing decides whether the payment can be read. */
const PaymentAnswer = z.object({
  ...paymentFields,
  order_id: z.unknown().optional(),
  payment_status: z.unknown().optional(),
  payment_amount: paymentFields.payment_amount.optional().catch(undefined),
  payment_currency: orAbsent(paymentFields.payment_currency),
})

const OrderState = z.object({ order_id: z.unknown().optional(), order_status: z.unknown().optional() })

const RefundAnswer = z.object({ refund_id: z.string(), ...refundFields })

/** Cashfree takes 400 queries of orders a minute from an account, and names no number for one order. */
const ENQUIRY_RULES: EnquiryRules = {
  most: 12,
  perMinute: 200,
  firstAfterMs: 20_000,
  pauseMs: 15_000,
  // Ten pauses of a tenth of the time to pay last until the expiry. Of a long time to pay, the first minutes get most.
  pollingPauseMs: (ageMs, timeToPayMs) => Math.min(timeToPayMs / 10, Math.max(90_000, ageMs)),
}

export function cashfreeClient(settings: CashfreeSettings, request: CashfreeRequest): AcquirerClient {
  const { isSandbox = false } = settings
  const name = accountName(NAME, settings.account)

  /** Creates the order. After a 409 the existing order is read: a proxy may have repeated the request. */
  async function makeOrder(intent: Intent, signal: AbortSignal | undefined): Promise<string> {
    const { orderId, amount, expiresAt } = intent
    const body = {
      order_id: orderId,
      order_amount: toJsonNumber(amount),
      order_currency: 'INR',
      customer_details: customerOf(intent),
      order_meta: { payment_methods: 'upi', notify_url: notifyUrl(settings) },
      order_expiry_time: expiresAt.toISOString(),
      order_note: noteOf(intent.note, 200),
    }
    const made = await request({ method: 'POST', path: 'orders', body }, signal, [200, 409])
    const answer =
      made.status === 409 ? await request({ method: 'GET', path: `orders/${orderId}` }, signal, [200]) : made
    const { data: order } = OrderAnswer.safeParse(answer.body)
    if (order?.order_id === orderId && order.order_amount === amount) return order.payment_session_id
    throw notBelieved(answer, 'Cashfree made an order that is not this one', { orderId })
  }

  /** Makes the link of an order. The request carries no credentials: the session authorises it. */
  async function requestLink(session: string, signal: AbortSignal | undefined) {
    const body = { payment_session_id: session, payment_method: { upi: { channel: 'link' } } }
    const answer = await request({ method: 'POST', path: 'orders/sessions', body, isOpen: true }, signal, [200])
    return { link: Session.safeParse(answer.body).data?.data.payload.default ?? '', requestId: answer.requestId }
  }

  async function statusOf(orderId: string, signal: AbortSignal | undefined): Promise<unknown> {
    const answer = await request({ method: 'GET', path: `orders/${orderId}` }, signal, [200])
    const message = 'Cashfree returned an order in a form that is not known'
    const order = readStatus(OrderState, answer, message, orderId)
    requireOrder(answer, orderId, order.order_id)
    return order.order_status
  }

  /** The payments of an order, oldest first; `undefined` stands for one that cannot be read. */
  async function paymentsOf(orderId: string, signal: AbortSignal | undefined) {
    const answer = await request({ method: 'GET', path: `orders/${orderId}/payments` }, signal, [200])
    const message = 'Cashfree returned payments in a form that is not known'
    const listed = readBody(z.array(z.unknown()), answer, message, { orderId })
    const payments = listed.map((payment) => PaymentAnswer.safeParse(payment).data)
    const timeOf = (payment: (typeof payments)[number]) => payment?.payment_time?.getTime() ?? 0
    return { answer, payments: payments.sort((a, b) => timeOf(a) - timeOf(b)) }
  }

  function updateOf(answer: JsonAnswer, { ourRefundId }: RefundOrder) {
    const message = 'Cashfree told of a refund in a form that is not known'
    const refund = readBody(RefundAnswer, answer, message, { ourRefundId })
    return { ...toRefundUpdate(refund), ourRefundId: refund.refund_id }
  }

  async function getRefund(order: RefundOrder, signal: AbortSignal | undefined) {
    const path = `orders/${order.orderId}/refunds/${order.ourRefundId}`
    const answer = await request({ method: 'GET', path }, signal, [200, 404])
    if (answer.status === 200) return updateOf(answer, order)
    // Only a 404 of Cashfree itself, with a code, means that the refund is unknown; a proxy may answer 404 too.
    if (codeOf(answer) !== undefined) return undefined
    throw notBelieved(answer, 'Cashfree answered 404 in a form that is not its own')
  }

  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId } = intent
      // An order without a link cannot be paid, however its request failed.
      const session = await makeOrder(intent, signal).catch(throwUndone)
      const named = { acquirer: name, merchantId, id: orderId, reference: orderId }
      try {
        const made = await requestLink(session, signal)
        if (isSandbox && /^https:\/\/[!-~]+$/.test(made.link)) {
          return { paymentLink: { ...named, link: made.link }, payeeVpa: intent.payee.vpa }
        }
        const { reference, payeeVpa } = readPaymentLink(made, intent, payees)
        return { paymentLink: { ...named, reference, link: made.link }, payeeVpa }
      } catch (error) {
        if (error instanceof AcquirerError) error.unsureLink = { ...named, link: '' }
        throw error
      }
    },

    async closeLink({ id }, signal) {
      const body = { order_status: 'TERMINATED' }
      const answer = await request({ method: 'PATCH', path: `orders/${id}`, body }, signal, [200, 400, 409, 422])
      const state = answer.status === 200 ? OrderState.safeParse(answer.body).data?.order_status : undefined
      if (state === 'TERMINATED') return 'closed'
      return state === 'TERMINATION_REQUESTED' ? 'unknown' : 'paid'
    },

    async getPayments({ orderId, isOpen }, signal) {
      // Cashfree allows four times as many checks of orders as of payments. A payment of an ACTIVE order has not succeeded.
      const early = isOpen ? await statusOf(orderId, signal) : undefined
      if (early === 'ACTIVE') return []
      const { answer, payments } = await paymentsOf(orderId, signal)
      const reports = payments.map((payment) => payment && readPayment(name, orderId, payment))
      const paid = reports.flatMap((report) =>
        typeof report === 'object' && report.status === 'SUCCESS' ? [report] : [],
      )
      const isPaid = paid.length === 0 && ![...UNPAID, 'ACTIVE'].includes(early ?? (await statusOf(orderId, signal)))
      if (isPaid || reports.includes(undefined)) {
        const message = 'Cashfree returned a payment whose status, amount or reference cannot be read'
        throw new UnreadableStatus(answer, message, orderId, paid)
      }
      if (paid.length > 0) return paid
      // A pending payment may still succeed, so a failed payment is reported only when no payment is pending.
      const last = reports.includes('pending') ? undefined : reports.at(-1)
      return typeof last === 'object' ? [last] : []
    },

    async refund(order, signal) {
      const { orderId, ourRefundId, amount, note, isSecond } = order
      // A second payment is not refunded here, because Cashfree's refund names only the order and returns its first
      // one.
      if (isSecond) return { status: 'FAIL', reference: '', reason: ONLY_ITS_OWN }
      const refund = { refund_id: ourRefundId, refund_amount: toJsonNumber(amount), refund_speed: 'STANDARD' }
      const body = { ...refund, refund_note: noteOf(note, 100) }
      const path = `orders/${orderId}/refunds`
      const answer = await request({ method: 'POST', path, body }, signal, [200, ...REFUSED])
      if (answer.status === 200) return updateOf(answer, order)
      // Cashfree may refuse a repeated request because the first request has created the refund.
      const known = await getRefund(order, signal)
      if (known) return known
      const code = codeOf(answer)
      // A 409 says that the refund exists, even if the query above did not find it.
      const isRefused = code !== undefined && answer.status !== 409
      if (isRefused) return { status: 'FAIL', reference: '', reason: `refused: ${code}` }
      throw notBelieved(answer, `an answer ${answer.status} of Cashfree is no end of a refund`, { ourRefundId })
    },
    getRefund,
    repeatsRefunds: true,

    async check(signal) {
      // An order that does not exist: Cashfree answers 404 in its own form, and 401 to wrong credentials.
      const answer = await request({ method: 'GET', path: 'orders/check-of-credentials' }, signal, [200, 404])
      if (codeOf(answer) === undefined) throw notBelieved(answer, 'Cashfree answered in a form that is not its own')
    },

    async simulate({ id }, { succeeds }, signal) {
      const { payments } = await paymentsOf(id, signal)
      const open = payments.findLast((payment) => payment && !PAYMENT_ENDS.get(payment.payment_status))
      if (open === undefined) throw new AcquirerError('unavailable', 'Cashfree has no open payment of this order')
      const simulated = { payment_status: succeeds ? 'SUCCESS' : 'FAILED' }
      const body = { entity: 'PAYMENTS', entity_id: open.cf_payment_id, entity_simulation: simulated }
      await request({ method: 'POST', path: 'simulate', body }, signal, [200])
    },
  }
}

/** Statuses of an order that say that it is not paid. */
const UNPAID: readonly unknown[] = ['EXPIRED', 'TERMINATED', 'TERMINATION_REQUESTED']

/** Statuses of a payment that may still succeed. */
const PENDING: readonly unknown[] = ['PENDING', 'NOT_ATTEMPTED', 'FLAGGED']

/** Reads a payment in a status response. Undefined if it may be paid and cannot be read. */
function readPayment(account: string, orderId: string, payment: z.output<typeof PaymentAnswer>) {
  const { payment_status: status, payment_amount: amount, bank_reference: reference, cf_payment_id: id } = payment
  const isFailed = PAYMENT_ENDS.get(status) === 'FAIL'
  if (PENDING.includes(status) || (isFailed && amount === undefined)) return 'pending' as const
  const isPaid = status === 'SUCCESS' && (reference !== undefined || id !== undefined)
  if (amount === undefined || !(isFailed || isPaid)) return undefined
  const known = {
    ...payment,
    order_id: reportedId(payment.order_id, orderId),
    payment_status: String(status),
    payment_amount: amount,
  }
  return toPaymentReport(account, orderId, known) ?? ('pending' as const)
}

/** Cashfree takes an https address of at most 250 characters; without one, Cashfree uses that of its dashboard. */
function notifyUrl({ publicUrl, account }: CashfreeSettings): string | undefined {
  const url = `${publicUrl}${notificationPath(NAME, account)}`
  return url.startsWith('https:') && url.length <= 250 ? url : undefined
}

/** The customer's identifier, which Cashfree requires: a hash, so that Cashfree does not get the customer's name. */
function customerOf({ mid, customer: { mobile } }: Intent) {
  const id = createHash('sha256').update(`${mid} ${mobile}`).digest('hex').slice(0, 40)
  return { customer_id: id, customer_phone: /^[6-9]/.test(mobile) ? mobile : '9999999999' }
}

/** Cashfree refuses notes of fewer than 3 characters. */
function noteOf(note: string, most: number): string | undefined {
  const characters = [...note].slice(0, most)
  return characters.length < 3 ? undefined : characters.join('')
}

const ONLY_ITS_OWN =
  'Cashfree takes refunds of the payment that an order was paid by: send a second one back in its dashboard'

/** HTTP statuses by which Cashfree may refuse a refund. Such a status from a proxy does not count as a refusal. */
const REFUSED = [400, 404, 409, 422]

export const cashfree: Acquirer<{ cashfree?: CashfreeSettings | undefined }> = {
  variables: 'CASHFREE_CLIENT_ID and CASHFREE_CLIENT_SECRET',
  notifications: ({ cashfree: account }) => account && cashfreeNotifications(account),
  enquiryRules: ENQUIRY_RULES,
  client: ({ cashfree: account }, http) => account && cashfreeClient(account, createCashfreeRequest(account, http)),
  settled: ({ cashfree: account }, http) => account && cashfreeSettled(createCashfreeRequest(account, http)),
}
