import { createHmac, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { setuUnsigned } from '../errors.ts'
import { errorText, text, utr } from '../fields.ts'
import { bodyCheck } from '../http/input.ts'
import { bankAmount, toDecimalText } from '../money.ts'
import type { Intent, IssuedLink } from '../payments/intent.ts'
import { transactionNote, UPI_PREFIX } from '../payments/upi-links.ts'
import type { Acquirer, AcquirerCalls, Ask, Told } from './acquirer.ts'
import { undone } from './ask.ts'
import { type Fields, type News, routeOfOwnForm } from './notification.ts'
import { ACQUIRER_ID, failed, moment, namesOf, notBelieved, orAbsent, paise, paymentNames } from './setu-fields.ts'
import { isRefundEvent, readRefundEvent, type SetuCaller, setuRefunds } from './setu-refunds.ts'
import { createToken } from './setu-token.ts'

/*
 * Setu UMAP. Source: its published OpenAPI document (dynamic QR, payments) and its guides (log-in, notifications). Built
 * against these documents alone; the guide for operators says how to try it with an account of Setu's sandbox.
 */

const NAME = 'setu'

export type SetuSettings = {
  apiUrl: string
  loginUrl: string
  clientId: string
  clientSecret: string
  notificationSecrets: readonly string[]
}

/** Setu takes no other UPI address as that of a payee. */
const SETU_VPA = /^[a-z0-9.-]*@[a-zA-Z]*$/

/** UPI address of the sandbox's played customer. It belongs to nobody. */
const PLAYED_CUSTOMER = 'customer@thisisnobank'

/** NPCI's code for insufficient funds, with which a played payment fails. */
const NO_FUNDS = 'Z9'

const LoggedIn = z.object({ access_token: z.string().regex(/^[\x21-\x7e]{1,8192}$/) })

const DynamicQr = z.object({
  id: z.string().regex(ACQUIRER_ID),
  intentLink: z
    .string()
    .max(2_048)
    .regex(/^upi:\/\/pay\?[!\x24-\x7e]+$/),
  status: z.enum(['inactive', 'active']).optional(),
  referenceId: z.string().optional(),
})

const LastPayment = z.object({
  status: z.enum(['initiated', 'pending', 'success', 'failed']),
  productInstanceId: z.string(),
  amount: paise,
  rrn: orAbsent(z.string()),
  txnTs: orAbsent(moment),
  ...paymentNames,
})

/** The calls of one Setu account. A link that is not for this payee and amount is never returned. */
export function setuCalls(
  { apiUrl, loginUrl, clientId, clientSecret }: SetuSettings,
  ask: Ask,
  elapsedMs: () => number,
): AcquirerCalls {
  const token = createToken(logIn, elapsedMs)

  async function logIn(): Promise<string> {
    const body = { clientID: clientId, secret: clientSecret, grant_type: 'client_credentials' }
    const answer = await ask({ method: 'POST', url: loginUrl, headers: { client: 'bridge' }, body })
    // Any 2xx is taken: Setu's guides do not name the status of a successful log-in.
    if (answer.status < 200 || answer.status > 299) {
      throw failed(answer, 'check SETU_CLIENT_ID and SETU_CLIENT_SECRET')
    }
    const loggedIn = LoggedIn.safeParse(answer.body)
    if (loggedIn.success) return loggedIn.data.access_token
    throw notBelieved(answer, 'Setu answered a log-in without a token')
  }

  /** Makes a call and returns its answer. Throws unless its status is one of `expected`. */
  const call: SetuCaller = async ({ method, path, body }, merchantId, signal, expected) => {
    const url = `${apiUrl}/api/v1/merchants/${path}`
    const send = async () => {
      const { value, renew } = await token.get(signal).catch((fault) => {
        throw undone(fault)
      })
      const headers = { authorization: `Bearer ${value}`, merchantId }
      return { ...(await ask({ method, url, headers, body, signal })), renew }
    }
    let answer = await send()
    if (answer.status === 401) {
      answer.renew()
      answer = await send()
    }
    if (expected.includes(answer.status)) return answer
    const advice = `check merchant ${merchantId} at Setu, its UPI address, and the rights of SETU_CLIENT_ID`
    throw failed(answer, advice)
  }

  async function enquire({ id, merchantId }: IssuedLink, signal: AbortSignal): Promise<Told | undefined> {
    const path = `payments/product-instances/${id}/last`
    const answer = await call({ method: 'GET', path }, merchantId, signal, [200, 404])
    // Nobody has tried to pay.
    if (answer.status === 404) return undefined
    const { data: last } = LastPayment.safeParse(answer.body)
    const rrn = utr.safeParse(last?.rrn)
    if (last?.productInstanceId !== id || (last.status === 'success' && !rrn.success)) {
      throw notBelieved(answer, 'Setu told of a payment in a form that is not known')
    }
    if (last.status !== 'success' && last.status !== 'failed') return undefined
    return {
      status: last.status === 'success' ? 'SUCCESS' : 'FAIL',
      utr: rrn.data,
      amount: toDecimalText(last.amount),
      paidAt: last.txnTs,
      names: namesOf(last),
    }
  }

  return {
    ...setuRefunds(call, enquire),
    enquire,

    async prepare(intent, merchantId, signal) {
      const body = {
        merchantVpa: intent.payee.vpa,
        amount: intent.amount,
        expiryDate: intent.expiresAt.toISOString(),
        referenceId: intent.orderId,
        transactionNote: transactionNote(intent.note),
      }
      const answer = await call({ method: 'POST', path: 'dqr', body }, merchantId, signal, [201])
      const { data: made } = DynamicQr.safeParse(answer.body)
      const reference = made && referenceOf(made.intentLink, intent)
      // A link of another order is refused, even for the same payee and amount: paying it would make that other order
      // paid.
      if (!reference || (made.referenceId ?? intent.orderId) !== intent.orderId) {
        throw notBelieved(answer, 'Setu made a link that is not for this order, payee and amount', {
          orderId: intent.orderId,
        })
      }
      return { acquirer: NAME, merchantId, id: made.id, reference, link: made.intentLink }
    },

    async close({ id, merchantId }, signal) {
      // 400 and 404 are expected too: Setu may refuse to close a QR that was paid or has expired. Then there is nothing
      // to close, and nothing for the operator to mend.
      await call({ method: 'PUT', path: `dqr/${id}/expire` }, merchantId, signal, [200, 400, 404])
    },

    async playCustomer({ merchantId, reference }, { payeeVpa, amount, succeeds }, signal) {
      const played = { refId: reference, payeeVpa, payerVpa: PLAYED_CUSTOMER, amount }
      const body = succeeds ? played : { ...played, payerRespCode: NO_FUNDS }
      await call({ method: 'POST', path: 'pay', body }, merchantId, signal, [200])
    },
  }
}

/** The parameter `tr` of a link that is for this payee and amount; undefined for any other link. */
function referenceOf(link: string, { payee, amount }: Intent): string | undefined {
  const parameters = [...new URLSearchParams(link.slice(UPI_PREFIX.length))]
  // Upper and lower case are the same here: an app may take PA for pa.
  const valuesOf = (name: string) => parameters.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
  const only = (name: string) => {
    const values = valuesOf(name)
    return values.length === 1 ? values[0] : undefined
  }
  const isAmount = (text: string | undefined) => bankAmount.safeParse(text).data === toDecimalText(amount)
  const isOurs =
    only('pa')?.toLowerCase() === payee.vpa.toLowerCase() &&
    isAmount(only('am')) &&
    // `mam` is the least that may be paid. With one below the amount, the customer would choose how much to pay.
    valuesOf('mam').every(isAmount) &&
    only('cu') === 'INR'
  const reference = only('tr')
  return isOurs && reference !== undefined && /^[A-Za-z0-9]{1,35}$/.test(reference) ? reference : undefined
}

const EVENTS = { 'payment.success': 'SUCCESS', 'payment.failed': 'FAIL' } as const

/** What the two events that end a payment must say. Customer data beside it is not read. */
const EndOfPayment = z
  .object({
    eventType: z.enum(['payment.success', 'payment.failed'], errorText('must be text')),
    merchantReferenceId: text(255),
    productInstanceId: z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be an identifier of Setu'),
    amount: paise,
    rrn: utr.optional(),
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

export const setu: Acquirer<{ setu: SetuSettings | undefined }> = {
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
        if (!isSigned(signature, body, account.notificationSecrets)) throw setuUnsigned()
      },
      orderIdOf: ({ merchantReferenceId }) => merchantReferenceId,
      keep: withoutCustomer,
    },
  calls: ({ setu: account }, ask, elapsedMs) => account && setuCalls(account, ask, elapsedMs),
}

/** Whether `header` is the base64 of the HMAC-SHA256 of these bytes with one of `secrets`, found out in constant time. */
function isSigned(header: unknown, body: Buffer, secrets: readonly string[]): boolean {
  if (typeof header !== 'string' || header.length > 64) return false
  const signature = Buffer.from(header, 'base64')
  let signed = false
  for (const secret of secrets) {
    const expected = createHmac('sha256', secret).update(body).digest()
    signed = (signature.length === expected.length && timingSafeEqual(expected, signature)) || signed
  }
  return signed
}

/** The fields that say which payment it is about; Setu sends the customer's address and account beside them. */
function withoutCustomer(body: Buffer): Buffer {
  let event: Record<string, unknown>
  try {
    event = JSON.parse(body.toString('utf8'))
  } catch {
    return Buffer.from('not JSON')
  }
  const names = [...Object.keys(EndOfPayment.shape), 'eventId', 'refId', 'referenceId', 'paymentId', 'status', 'crn']
  return Buffer.from(JSON.stringify(event, names))
}
