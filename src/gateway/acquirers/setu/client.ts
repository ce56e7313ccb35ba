import * as z from 'zod'
import { AcquirerError } from '../../../errors.ts'
import { utrOfId } from '../../../platform/fields.ts'
import type { EnquiryRules } from '../../payments/enquiry-times.ts'
import type { PaymentNames, PaymentReport } from '../../payments/outcome.ts'
import { transactionNote } from '../../payments/upi-links.ts'
import type { RefundUpdate } from '../../refunds/refund.ts'
import { accountName, type SetuSettings } from '../accounts.ts'
import type { Acquirer } from '../acquirer.ts'
import type { AcquirerClient, LinkedOrder, RefundOrder } from '../client.ts'
import {
  createJsonRequest,
  failed,
  type JsonAnswer,
  type JsonRequest,
  notBelieved,
  orAbsent,
  paise,
  readBody,
  readStatus,
  reportedId,
  shortText,
  throwUndone,
  UnreadableStatus,
  undone,
} from '../json-request.ts'
import { readPaymentLink } from '../payment-link.ts'
import { createToken, type Token } from '../token.ts'
import { ACQUIRER_ID, NAME, paymentFields, refundFields, toPaymentReport, toRefundUpdate } from './fields.ts'
import { setuNotifications } from './notifications.ts'

/*
 * Setu UMAP. Sources: Setu's published OpenAPI document (dynamic QR, payments, refunds) and guides (log-in,
 * notifications). This code was written from these documents alone; our guide setu.md describes a test in the sandbox.
 */

/** The form of a payee's UPI address at Setu. Setu refuses an address of any other form. */
const SETU_VPA = /^[a-z0-9.-]*@[a-zA-Z]*$/

/** UPI address of the sandbox's simulated customer. It belongs to nobody. */
const SIMULATED_CUSTOMER = 'customer@thisisnobank'

/** NPCI's code for insufficient funds, with which a simulated payment fails. */
const NO_FUNDS = 'Z9'

/** A token is valid for 300 s. Setu advises renewal in the 4th minute. The last 10 s are reserved for slow requests. */
const TOKEN_FRESH_MS = 240_000
const TOKEN_VALID_MS = 290_000

const LoggedIn = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/) })

const DynamicQr = z.object({
  id: z.string().regex(ACQUIRER_ID),
  intentLink: z.string(),
  status: z.enum(['inactive', 'active']).optional(),
  referenceId: z.string().optional(),
})

/** A payment's status response. Every field may be missing: what is missing decides whether the response can be read. */
const PaymentAnswer = z.object({
  ...paymentFields,
  status: z.unknown().optional(),
  productInstanceId: z.unknown().optional(),
  amount: paise.optional().catch(undefined),
  txnTs: paymentFields.txnTs.catch(undefined),
})

/** Setu's document requires neither `amount` nor `referenceId` of a refund. */
const RefundAnswer = z.object({
  ...refundFields,
  status: z.string().max(40),
  amount: orAbsent(paise),
  referenceId: orAbsent(z.string()),
})

const RefundsAnswer = z.object({ refunds: z.array(z.unknown()) })

const REFUND_STATES = { pending: 'PENDING', initiated: 'PENDING', success: 'SUCCESS', failed: 'FAIL' } as const

/** HTTP statuses by which Setu refuses a refund for good. Such a status from a proxy does not count as a refusal. */
const REFUSED = [400, 404, 422]
const RefusalAnswer = z.object({ code: z.string().min(1), detail: z.unknown() })

/**
 * NPCI's rule for members (operating circular 215 of 26 April 2025): three enquiries about a payment, the first one 90 s
 * after it began. Setu names no limit for the account.
 */
const ENQUIRY_RULES: EnquiryRules = {
  most: 3,
  firstAfterMs: 90_000,
  pauseMs: 60_000,
  // The second enquiry comes at half of the time to pay: a caller who polls would otherwise use up both at once.
  pollingPauseMs: (ageMs, timeToPayMs) => timeToPayMs / 2 - ageMs,
}

export function setuClient(
  { account, apiUrl, loginUrl, clientId, clientSecret }: SetuSettings,
  requestJson: JsonRequest,
  elapsedMs: () => number,
): AcquirerClient {
  const name = accountName(NAME, account)
  const { getToken, sendWithToken } = createToken(logIn, elapsedMs)

  async function logIn(): Promise<Token> {
    const body = { clientID: clientId, secret: clientSecret, grant_type: 'client_credentials' }
    const answer = await requestJson({ method: 'POST', url: loginUrl, headers: { client: 'bridge' }, body })
    // Any 2xx is taken: Setu's guides do not name the status of a successful log-in.
    if (answer.status < 200 || answer.status > 299) {
      throw failed('Setu', answer, 'check SETU_CLIENT_ID and SETU_CLIENT_SECRET')
    }
    const { access_token: value } = readBody(LoggedIn, answer, 'Setu answered a log-in without a token')
    return { value, freshMs: TOKEN_FRESH_MS, validMs: TOKEN_VALID_MS }
  }

  /** Throws unless the status of the answer is one of `expected`. */
  async function request(
    { method, path, body }: { method: 'GET' | 'POST' | 'PUT'; path: string; body?: object },
    merchantId: string,
    signal: AbortSignal | undefined,
    expected: readonly number[],
  ): Promise<JsonAnswer> {
    const url = `${apiUrl}/api/v1/merchants/${path}`
    const answer = await sendWithToken((token) => {
      const headers = { authorization: `Bearer ${token}`, merchantId }
      return requestJson({ method, url, headers, body, signal })
    }, signal)
    if (expected.includes(answer.status)) return answer
    const advice = `check merchant ${merchantId} at Setu, its UPI address, and the rights of SETU_CLIENT_ID`
    throw failed('Setu', answer, advice)
  }

  async function getPayments({ orderId, paymentLink }: LinkedOrder, signal?: AbortSignal): Promise<PaymentReport[]> {
    const path = `payments/product-instances/${paymentLink.id}/last`
    const answer = await request({ method: 'GET', path }, paymentLink.merchantId, signal, [200, 404])
    // Setu answers 404 while nobody has tried to pay.
    if (answer.status === 404) return []
    const last = readStatus(PaymentAnswer, answer, 'Setu returned a payment in a form that is not known', orderId)
    if (last.status === 'initiated' || last.status === 'pending') return []
    const productInstanceId = reportedId(last.productInstanceId, paymentLink.id)
    const isNamed = last.rrn !== undefined || last.id !== undefined
    const { amount } = last
    if (amount !== undefined && (last.status === 'failed' || (last.status === 'success' && isNamed))) {
      const status = last.status === 'success' ? 'SUCCESS' : 'FAIL'
      const report = toPaymentReport(name, orderId, status, { ...last, amount, productInstanceId })
      return report ? [report] : []
    }
    const message = 'Setu returned a payment whose status, amount or reference cannot be read'
    throw last.status === 'failed'
      ? notBelieved(answer, message, { orderId })
      : new UnreadableStatus(answer, message, orderId)
  }

  /** Finds Setu's identifiers of a payment whose report had none. Setu reports only the last payment of a link. */
  async function namesOfPayment(order: RefundOrder, signal?: AbortSignal): Promise<PaymentNames> {
    const [last] = await getPayments(order, signal)
    const { id, txnId } = last?.names ?? {}
    const isIt = last?.status === 'SUCCESS' && id !== undefined && [last.utr, utrOfId(id)].includes(order.utr)
    if (isIt && txnId !== undefined) return { id, txnId }
    throw new AcquirerError('bad answer', 'Setu does not name the payment that goes back: ask Setu about it', {
      ourRefundId: order.ourRefundId,
    })
  }

  return {
    async createLink(intent, { id: merchantId, payees }, signal) {
      const { orderId } = intent
      const body = {
        merchantVpa: intent.payee.vpa,
        amount: intent.amount,
        expiryDate: intent.expiresAt.toISOString(),
        referenceId: orderId,
        transactionNote: transactionNote(intent.note),
      }
      const answer = await request({ method: 'POST', path: 'dqr', body }, merchantId, signal, [201]).catch(throwUnmade)
      const { data: made } = DynamicQr.safeParse(answer.body)
      // A link of another order is refused even with equal payee and amount: it would pay the other order.
      if (!made || (made.referenceId ?? orderId) !== orderId) {
        throw notBelieved(answer, 'Setu made a QR that is not for this order', { orderId })
      }
      const { reference, payeeVpa } = readPaymentLink(
        { link: made.intentLink, requestId: answer.requestId },
        intent,
        payees,
      )
      return { paymentLink: { acquirer: name, merchantId, id: made.id, reference, link: made.intentLink }, payeeVpa }
    },

    async closeLink({ id, merchantId }, signal) {
      // Setu answers 400 or 404 for a QR that was paid or has expired.
      const answer = await request({ method: 'PUT', path: `dqr/${id}/expire` }, merchantId, signal, [200, 400, 404])
      return answer.status === 200 ? 'closed' : 'paid'
    },

    getPayments,

    check: async (signal) => void (await getToken(signal)),

    async simulate({ merchantId, reference }, { payeeVpa, amount, succeeds }, signal) {
      const played = { refId: reference, payeeVpa, payerVpa: SIMULATED_CUSTOMER, amount }
      const body = succeeds ? played : { ...played, payerRespCode: NO_FUNDS }
      await request({ method: 'POST', path: 'pay', body }, merchantId, signal, [200])
    },

    // Setu has no guard against repeated refunds, and finds a refund only by its payment.
    async refund(order, signal) {
      const { ourRefundId, amount, note, paymentLink } = order
      // Without the payment's identifiers no refund is sent, so the error is marked: the call has changed nothing.
      const payment = order.payment ?? (await namesOfPayment(order, signal).catch(throwUndone))
      const remarks = transactionNote(note)
      const body = { paymentId: payment.id, amount, referenceId: ourRefundId, remarks, type: 'online' }
      const expected = [201, ...REFUSED]
      const answer = await request({ method: 'POST', path: 'refunds', body }, paymentLink.merchantId, signal, expected)
      if (answer.status !== 201) return { status: 'FAIL', reference: '', reason: refusalOf(answer), payment }
      const message = 'Setu answered a refund in a form that is not known'
      return { ...updateOf(readBody(RefundAnswer, answer, message, { ourRefundId })), payment }
    },

    async getRefund(order, signal) {
      const { ourRefundId, paymentLink } = order
      const payment = order.payment ?? (await namesOfPayment(order, signal))
      const path = `refunds/${payment.txnId}/payment`
      const answer = await request({ method: 'GET', path }, paymentLink.merchantId, signal, [200, 404])
      if (answer.status === 404 && refusalOf(answer)) return undefined
      const message = 'Setu listed refunds in a form that is not known'
      const ours = readBody(RefundsAnswer, answer, message, { ourRefundId })
        .refunds.flatMap((refund) => RefundAnswer.safeParse(refund).data ?? [])
        .filter(({ referenceId }) => referenceId === ourRefundId)
        .map(updateOf)
      // Setu may list a refund twice, if a person had it sent again. A success counts first, a failure last.
      const byStatus = ['SUCCESS', 'PENDING', 'FAIL'].map((status) => ours.find((update) => update.status === status))
      const update = byStatus.find((found) => found !== undefined)
      return update && { ...update, payment }
    },
  }
}

/** A refusal in Setu's own form, and a refusal of too many calls, make no QR. */
function throwUnmade(error: unknown): never {
  if (!(error instanceof AcquirerError)) throw error
  const { status, code } = error.facts
  throw (error.outcome === 'refused' && code !== undefined) || status === 429 ? undone(error) : error
}

function updateOf({ status, ...refund }: z.output<typeof RefundAnswer>): RefundUpdate {
  const state = Object.hasOwn(REFUND_STATES, status) ? REFUND_STATES[status as keyof typeof REFUND_STATES] : undefined
  const unknownStatus = state === undefined ? (shortText(status) ?? '?') : undefined
  return toRefundUpdate({ ...refund, status: state ?? 'PENDING', unknownStatus })
}

/** Setu's reason for a refusal. Throws for the answer of a proxy, because Setu may have accepted the refund. */
function refusalOf(answer: JsonAnswer): string {
  const { code } = readBody(RefusalAnswer, answer, `Setu answered ${answer.status} in a form that is not its own`)
  return `refused: ${shortText(code) ?? answer.status}`
}

export const setu: Acquirer<{ setu?: SetuSettings | undefined }> = {
  variables: 'SETU_CLIENT_ID, SETU_CLIENT_SECRET and SETU_NOTIFICATION_SECRETS',
  faultOf({ vpa, acquirerMerchantId }) {
    if (!acquirerMerchantId) return 'setu needs --acquirer-merchant-id, the identifier of the merchant at Setu'
    return SETU_VPA.test(vpa) ? undefined : 'setu takes a --vpa of a-z 0-9 . - before the @ and letters behind it'
  },
  notifications: ({ setu: account }) => account && setuNotifications(account),
  enquiryRules: ENQUIRY_RULES,
  client: ({ setu: account }, http, elapsedMs) => account && setuClient(account, createJsonRequest(http), elapsedMs),
}
