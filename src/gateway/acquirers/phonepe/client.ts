import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { type EnquiryRules, UNLIMITED } from '../../payments/enquiry-times.ts'
import { accountName, type PhonepeSettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient, RefundOrder } from '../client.ts'
import { codeOf, type JsonAnswer, notBelieved, readBody, throwUnsure, undone } from '../json-request.ts'
import { readPaymentLink } from '../payment-link.ts'
import {
  createPhonepeRequest,
  isRefusal,
  NAME,
  type PhonepeRequest,
  phonepeId,
  readPayments,
  readRefund,
} from './http.ts'
import { phonepeNotifications } from './notifications.ts'

/*
 * PhonePe Payment Gateway, API v2, custom checkout. Sources: PhonePe's published pages, clients and skill files, from
 * which alone this code was written. PhonePe's merchantOrderId is our orderId, its merchantRefundId our ourRefundId.
 */

const SHORTEST_EXPIRY_MINUTES = 5

/** PhonePe's answer to a create does not name our order. `qrData` is a picture of the link, and not read. */
const Made = z.object({ orderId: phonepeId, state: z.enum(['CREATED', 'PENDING']), intentUrl: z.string().max(2_048) })

/** PhonePe's newest document names 15 queries of an order: 12, and 3 after its expiry. It names no limit for the account. */
const ENQUIRY_RULES: EnquiryRules = {
  // Webhooks, which others may send too, must not use up those after the expiry.
  most: UNLIMITED,
  mostWhileWaiting: 12,
  firstAfterMs: 20_000,
  pauseMs: 10_000,
  // Eight pauses of an eighth of the time to pay last until the expiry. Of a long time to pay, the first minutes get most.
  pollingPauseMs: (ageMs, timeToPayMs) => Math.min(timeToPayMs / 8, ageMs),
}

export function phonepeClient(settings: PhonepeSettings, request: PhonepeRequest): AcquirerClient {
  const name = accountName(NAME, settings.account)

  /** Undefined if PhonePe does not have what `path` names. Only a refusal in PhonePe's own form says so. */
  async function find(path: string, signal: AbortSignal | undefined): Promise<JsonAnswer | undefined> {
    const answer = await request({ method: 'GET', path }, signal, [200, ...REFUSED])
    if (answer.status === 200) return answer
    if (codeOf(answer) !== undefined) return undefined
    throw notBelieved(answer, `PhonePe answered ${answer.status} in a form that is not its own`, { path })
  }

  async function getRefund({ ourRefundId }: RefundOrder, signal: AbortSignal | undefined) {
    const answer = await find(`payments/v2/refund/${ourRefundId}/status`, signal)
    return answer && readRefund(ourRefundId, answer)
  }

  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId, amount, createdAt, expiresAt } = intent
      const expireAfter = Math.round((expiresAt.getTime() - createdAt.getTime()) / 1000)
      if (expireAfter < SHORTEST_EXPIRY_MINUTES * 60) {
        throw undone(new AcquirerError('refused', EXPIRY_RULE, { orderId }))
      }
      const paymentFlow = { type: 'PG', paymentMode: { type: 'UPI_QR' } }
      const body = { merchantOrderId: orderId, amount, expireAfter, paymentFlow }
      const answer = await request({ method: 'POST', path: 'payments/v2/pay', body }, signal, [200]).catch(throwUnmade)
      const made = readBody(Made, answer, 'PhonePe made an order in a form that is not known', { orderId })
      const names = { acquirer: name, merchantId, id: made.orderId, link: made.intentUrl }
      if (settings.isSandbox && /^https:\/\/[!-~]+$/.test(made.intentUrl)) {
        return { paymentLink: { ...names, reference: orderId }, payeeVpa: intent.payee.vpa }
      }
      const unchecked = { link: made.intentUrl, requestId: answer.requestId, isCurrencyOptional: true }
      const { reference, payeeVpa } = readPaymentLink(unchecked, intent, payees)
      return { paymentLink: { ...names, reference }, payeeVpa }
    },

    /** PhonePe has no call that closes an order: the order ends by its expiry. */
    closeLink: async () => 'unknown',

    async getPayments({ orderId, paymentLink }, signal) {
      const path = `payments/v2/order/${orderId}/status?details=true`
      return readPayments(name, { orderId, id: paymentLink.id }, await request({ method: 'GET', path }, signal, [200]))
    },

    async check(signal) {
      // An order that does not exist: PhonePe refuses its name in its own form, and wrong credentials with 401.
      const answer = await find('payments/v2/order/check-of-credentials/status?details=true', signal)
      if (answer) throw notBelieved(answer, 'PhonePe told of an order that does not exist: check PHONEPE_API_URL')
    },

    // PhonePe does not say what it answers to a repeated refund, so a refund is sent once.
    async refund(order, signal) {
      const { orderId, ourRefundId, amount, isSecond } = order
      // PhonePe's refund names only the order.
      if (isSecond) return { status: 'FAIL', reference: '', reason: ONLY_ITS_OWN }
      const body = { merchantRefundId: ourRefundId, originalMerchantOrderId: orderId, amount }
      const answer = await request({ method: 'POST', path: 'payments/v2/refund', body }, signal, [200, ...REFUSED])
      if (answer.status === 200) return readRefund(ourRefundId, answer)
      // A proxy may have repeated the request, and PhonePe may have refused only the repeat.
      const known = await getRefund(order, signal).catch(throwUnsure)
      if (known) return known
      const code = codeOf(answer)
      if (isRefusal(code)) return { status: 'FAIL', reference: '', reason: `refused: ${code}` }
      throw notBelieved(answer, `an answer ${answer.status} of PhonePe is no end of a refund`, { ourRefundId })
    },
    getRefund,

    async simulate() {
      throw new AcquirerError('unavailable', 'PhonePe plays no customer: pay on the page of its sandbox')
    },
  }
}

/**
 * A refusal in PhonePe's own form, and a refusal of too many calls, make no order. PhonePe refuses a name that it has
 * already, for instance when a proxy repeats the request: that order's link is lost, since PhonePe gives a link only once.
 */
function throwUnmade(error: unknown): never {
  if (!(error instanceof AcquirerError)) throw error
  const { status, code } = error.facts
  throw (error.outcome === 'refused' && isRefusal(code)) || status === 429 ? undone(error) : error
}

const EXPIRY_RULE = `phonepe takes orders of ${SHORTEST_EXPIRY_MINUTES} minutes and more: set --expiry-minutes ${SHORTEST_EXPIRY_MINUTES} or more`

const ONLY_ITS_OWN =
  'PhonePe takes refunds of the payment that an order was paid by: ask PhonePe to send a second one back'

/** HTTP statuses by which PhonePe may refuse a refund. Such a status from a proxy does not count as a refusal. */
const REFUSED = [400, 402, 404, 417, 422]

export const phonepe: Acquirer<{ phonepe?: PhonepeSettings | undefined }> = {
  variables: 'PHONEPE_CLIENT_ID, PHONEPE_CLIENT_VERSION, PHONEPE_CLIENT_SECRET and PHONEPE_WEBHOOK_PASSWORD',
  faultOf: ({ expiryMinutes }) =>
    (expiryMinutes ?? SHORTEST_EXPIRY_MINUTES) < SHORTEST_EXPIRY_MINUTES ? EXPIRY_RULE : undefined,
  notifications: ({ phonepe: account }) => account && phonepeNotifications(account),
  enquiryRules: ENQUIRY_RULES,
  client: ({ phonepe: account }, http, elapsedMs) =>
    account && phonepeClient(account, createPhonepeRequest(account, http, elapsedMs)),
}
