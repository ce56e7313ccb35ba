import * as z from 'zod'
import { unsigned } from '../errors.ts'
import { errorText, text } from '../fields.ts'
import { bodyCheck } from '../http/input.ts'
import { toDecimalText } from '../money.ts'
import type { PaymentLink } from '../payments/intent.ts'
import { transactionNote } from '../payments/upi-links.ts'
import type { Acquirer, AcquirerCalls, JsonRequest, Told } from './acquirer.ts'
import { createJsonRequest, failed, notBelieved, orAbsent, undone } from './json-request.ts'
import { bankReference, type Fields, isSigned, keepFields, type News, routeOfOwnForm } from './notification.ts'
import { readPaymentLink } from './payment-link.ts'
import type { SetuSettings } from './setu-account.ts'
import { ACQUIRER_ID, moment, namesOf, paise, paymentNames } from './setu-fields.ts'
import { isRefundEvent, readRefundEvent, type SetuRequest, setuRefunds } from './setu-refunds.ts'
import { createToken } from './setu-token.ts'

/*
 * Setu UMAP. Source: its published OpenAPI document (dynamic QR, payments) and its guides (log-in, notifications). Built
 * against these documents alone; the guide for operators says how to try it with an account of Setu's sandbox.
 */

const NAME = 'setu'

/** Setu takes no other UPI address as that of a payee. */
const SETU_VPA = /^[a-z0-9.-]*@[a-zA-Z]*$/

/** UPI address of the sandbox's played customer. It belongs to nobody. */
const PLAYED_CUSTOMER = 'customer@thisisnobank'

/** NPCI's code for insufficient funds, with which a played payment fails. */
const NO_FUNDS = 'Z9'

const LoggedIn = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/) })

const DynamicQr = z.object({
  id: z.string().regex(ACQUIRER_ID),
  intentLink: z.string(),
  status: z.enum(['inactive', 'active']).optional(),
  referenceId: z.string().optional(),
})

const LastPayment = z.object({
  status: z.enum(['initiated', 'pending', 'success', 'failed']),
  productInstanceId: z.string(),
  amount: paise,
  rrn: bankReference,
  txnTs: orAbsent(moment),
  ...paymentNames,
})

/** The calls of one Setu account. */
export function setuCalls(
  { apiUrl, loginUrl, clientId, clientSecret }: SetuSettings,
  requestJson: JsonRequest,
  elapsedMs: () => number,
): AcquirerCalls {
  const token = createToken(logIn, elapsedMs)

  async function logIn(): Promise<string> {
    const body = { clientID: clientId, secret: clientSecret, grant_type: 'client_credentials' }
    const answer = await requestJson({ method: 'POST', url: loginUrl, headers: { client: 'bridge' }, body })
    // Any 2xx is taken: Setu's guides do not name the status of a successful log-in.
    if (answer.status < 200 || answer.status > 299) {
      throw failed('Setu', answer, 'check SETU_CLIENT_ID and SETU_CLIENT_SECRET')
    }
    const loggedIn = LoggedIn.safeParse(answer.body)
    if (loggedIn.success) return loggedIn.data.access_token
    throw notBelieved(answer, 'Setu answered a log-in without a token')
  }

  /** Sends a request and returns its answer. Throws unless its status is one of `expected`. */
  const request: SetuRequest = async ({ method, path, body }, merchantId, signal, expected) => {
    const url = `${apiUrl}/api/v1/merchants/${path}`
    const send = async () => {
      const { value, renew } = await token.get(signal).catch((fault) => {
        throw undone(fault)
      })
      const headers = { authorization: `Bearer ${value}`, merchantId }
      return { ...(await requestJson({ method, url, headers, body, signal })), renew }
    }
    let answer = await send()
    if (answer.status === 401) {
      answer.renew()
      answer = await send()
    }
    if (expected.includes(answer.status)) return answer
    const advice = `check merchant ${merchantId} at Setu, its UPI address, and the rights of SETU_CLIENT_ID`
    throw failed('Setu', answer, advice)
  }

  async function enquire({ id, merchantId }: PaymentLink, signal: AbortSignal): Promise<Told | undefined> {
    const path = `payments/product-instances/${id}/last`
    const answer = await request({ method: 'GET', path }, merchantId, signal, [200, 404])
    // Nobody has tried to pay.
    if (answer.status === 404) return undefined
    const { data: last } = LastPayment.safeParse(answer.body)
    if (last?.productInstanceId !== id || (last.status === 'success' && last.rrn === undefined)) {
      throw notBelieved(answer, 'Setu told of a payment in a form that is not known')
    }
    if (last.status !== 'success' && last.status !== 'failed') return undefined
    return {
      status: last.status === 'success' ? 'SUCCESS' : 'FAIL',
      utr: last.rrn,
      amount: toDecimalText(last.amount),
      paidAt: last.txnTs,
      names: namesOf(last),
    }
  }

  return {
    ...setuRefunds(request, enquire),
    enquire,

    async prepare(intent, { id: merchantId, payees }, signal) {
      const body = {
        merchantVpa: intent.payee.vpa,
        amount: intent.amount,
        expiryDate: intent.expiresAt.toISOString(),
        referenceId: intent.orderId,
        transactionNote: transactionNote(intent.note),
      }
      const answer = await request({ method: 'POST', path: 'dqr', body }, merchantId, signal, [201])
      const { data: made } = DynamicQr.safeParse(answer.body)
      const { orderId } = intent
      // A link of another order is refused, even for the same payee and amount: paying it would make that other order
      // paid.
      if (!made || (made.referenceId ?? orderId) !== orderId) {
        throw notBelieved(answer, 'Setu made a QR that is not for this order', { orderId })
      }
      const { reference, payeeVpa } = readPaymentLink(made.intentLink, intent, payees, { requestId: answer.requestId })
      return { paymentLink: { acquirer: NAME, merchantId, id: made.id, reference, link: made.intentLink }, payeeVpa }
    },

    async close({ id, merchantId }, signal) {
      // 400 and 404 are expected too: Setu may refuse to close a QR that was paid or has expired. Then there is nothing
      // to close, and nothing for the operator to mend.
      await request({ method: 'PUT', path: `dqr/${id}/expire` }, merchantId, signal, [200, 400, 404])
      return undefined
    },

    async playCustomer({ merchantId, reference }, { payeeVpa, amount, succeeds }, signal) {
      const played = { refId: reference, payeeVpa, payerVpa: PLAYED_CUSTOMER, amount }
      const body = succeeds ? played : { ...played, payerRespCode: NO_FUNDS }
      await request({ method: 'POST', path: 'pay', body }, merchantId, signal, [200])
    },
  }
}

const EVENTS = { 'payment.success': 'SUCCESS', 'payment.failed': 'FAIL' } as const

/** What the two events that end a payment must say. Customer data beside it is not read. */
const EndOfPayment = z
  .object({
    eventType: z.enum(['payment.success', 'payment.failed'], errorText('must be text')),
    merchantReferenceId: text(255),
    productInstanceId: z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be an identifier of Setu'),
    amount: paise,
    rrn: bankReference,
    txnTs: moment.optional(),
    ...paymentNames,
  })
  .superRefine(({ eventType, rrn, txnTs }, context) => {
    if (eventType !== 'payment.success') return
    if (rrn === undefined) context.addIssue({ code: 'custom', path: ['rrn'], message: 'is required with success' })
    if (txnTs === undefined) context.addIssue({ code: 'custom', path: ['txnTs'], message: 'is required with success' })
  })

const checkEndOfPayment = bodyCheck(EndOfPayment)

/** The news in an event; undefined for one that tells nothing that counts, whose fields are not checked. */
function readEvent(event: Fields): News | undefined {
  if (isRefundEvent(event)) return readRefundEvent(event)
  if (typeof event.eventType === 'string' && !Object.hasOwn(EVENTS, event.eventType)) return undefined
  const { eventType, merchantReferenceId, productInstanceId, amount, rrn, txnTs, ...names } = checkEndOfPayment(event)
  return {
    orderId: merchantReferenceId,
    status: EVENTS[eventType],
    utr: rrn,
    amount: toDecimalText(amount),
    paidAt: txnTs,
    acquirer: { name: NAME, id: productInstanceId },
    names: namesOf(names),
  }
}

const SIGNATURE = 'Send x-setu-signature: base64 of the HMAC-SHA256 of the body'

/** The fields that say which payment it is about; Setu sends the customer's address and account beside them. */
const KEPT = [...Object.keys(EndOfPayment.shape), 'eventId', 'refId', 'referenceId', 'paymentId', 'status', 'crn']

export const setu: Acquirer<{ setu?: SetuSettings | undefined }> = {
  variables: 'SETU_CLIENT_ID, SETU_CLIENT_SECRET and SETU_NOTIFICATION_SECRETS',
  faultOf({ vpa, acquirerMerchantId }) {
    if (!acquirerMerchantId) return 'setu needs --acquirer-merchant-id, the identifier of the merchant at Setu'
    return SETU_VPA.test(vpa) ? undefined : 'setu takes a --vpa of a-z 0-9 . - before the @ and letters behind it'
  },
  notifications: ({ setu: account }) =>
    account && {
      // Setu's signature holds no time, so a copy of a notification is valid for ever. Repeats change nothing, in any
      // order.
      register: routeOfOwnForm('/acquirer/setu/notification', readEvent),
      requireSignature(request, body) {
        const signature = request.headers['x-setu-signature']
        if (!isSigned(signature, account.notificationSecrets, body)) throw unsigned(SIGNATURE)
      },
      orderIdOf: ({ merchantReferenceId }) => merchantReferenceId,
      keep: (body) => keepFields(body, KEPT),
    },
  calls: ({ setu: account }, http, elapsedMs) => account && setuCalls(account, createJsonRequest(http), elapsedMs),
}
