import { createHmac, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { badRequest, setuUnsigned } from '../errors.ts'
import { errorText, text, utr } from '../fields.ts'
import { operation } from '../http/operation.ts'
import type { Limits } from '../limits.ts'
import { bankAmount, toDecimalText } from '../money.ts'
import type { Intent } from '../payments/intent.ts'
import { transactionNote, UPI_PREFIX } from '../payments/upi-links.ts'
import type { Acquirer } from './acquirer.ts'
import { callJson, shortText } from './call-json.ts'
import { type AcquirerCalls, AcquirerFault } from './issuer.ts'
import {
  isoTime,
  logOrderOf,
  NOTIFICATION_RECORDED,
  NOTIFICATION_REFUSALS,
  type NotificationDependencies,
  recordNotification,
} from './notification.ts'
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

/** Of nobody, for the sandbox. */
const PLAYED_CUSTOMER = 'customer@thisisnobank'

/** What the customer's bank says then, in the codes of NPCI. */
const NO_FUNDS = 'Z9'

const ACQUIRER_ID = /^[A-Za-z0-9_-]{1,64}$/

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

const PAISE_RULE = 'must be whole paise'
/** The most that `bankAmount` takes too, because it is all that the database holds. */
const paise = z.int(PAISE_RULE).positive(PAISE_RULE).max(99_999_999_999_999, PAISE_RULE)

/** RFC 3339, and what the examples in Setu's guides have instead: a zone without its colon, as +0530. */
const moment = z.preprocess(
  (time) => (typeof time === 'string' ? time.replace(/([+-]\d{2})(\d{2})$/, '$1:$2') : time),
  isoTime,
)

/** A payment that failed early may have neither reference nor time: null and empty text say so too. */
const orAbsent = <S extends z.ZodType>(schema: S) =>
  z.preprocess((value) => (value === null || value === '' ? undefined : value), schema.optional())

const LastPayment = z.object({
  status: z.enum(['initiated', 'pending', 'success', 'failed']),
  productInstanceId: z.string(),
  amount: paise,
  rrn: orAbsent(z.string()),
  txnTs: orAbsent(moment),
})

/** The calls of one Setu account. A link that is not for this payee and amount is never returned. */
export function setuCalls(
  { apiUrl, loginUrl, clientId, clientSecret }: SetuSettings,
  { callMs, answerBytes }: Limits['acquirers'],
  elapsedMs: () => number,
): AcquirerCalls {
  const token = createToken(logIn, elapsedMs)

  async function logIn(): Promise<string> {
    const { status, body, requestId } = await callJson(loginUrl, {
      method: 'POST',
      headers: { client: 'bridge', 'content-type': 'application/json' },
      body: { clientID: clientId, secret: clientSecret, grant_type: 'client_credentials' },
      timeoutMs: callMs,
      maxBytes: answerBytes,
    })
    const loggedIn = LoggedIn.safeParse(body)
    // Its guides do not say which of the successful ones it has.
    const isSuccess = status >= 200 && status < 300
    if (isSuccess && loggedIn.success) return loggedIn.data.access_token
    if (status >= 400 && status < 500 && status !== 429) {
      throw new AcquirerFault('refused', 'Setu refused the log-in: check SETU_CLIENT_ID and SETU_CLIENT_SECRET', {
        status,
        requestId,
      })
    }
    throw new AcquirerFault(isSuccess ? 'bad answer' : 'unavailable', 'the log-in at Setu failed', {
      status,
      requestId,
    })
  }

  /** The answer to a call, which has one of the statuses `expected`. */
  async function call(
    { method, path, body }: { method: 'GET' | 'POST' | 'PUT'; path: string; body?: unknown },
    merchantId: string,
    deadline: number,
    expected: readonly number[],
  ) {
    const timeLeft = () => Math.min(callMs, deadline - elapsedMs())
    const send = async () => {
      const { value, renew } = await within(timeLeft(), token.get())
      const answer = await callJson(`${apiUrl}/api/v1/merchants/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${value}`,
          merchantId,
          ...(body !== undefined && { 'content-type': 'application/json' }),
        },
        body,
        timeoutMs: timeLeft(),
        maxBytes: answerBytes,
      })
      return { ...answer, renew }
    }
    let answer = await send()
    if (answer.status === 401) {
      answer.renew()
      answer = await send()
    }
    if (expected.includes(answer.status)) return answer
    const { status, requestId } = answer
    const facts = { status, requestId, code: shortText((answer.body as { code?: unknown } | undefined)?.code) }
    if (status >= 400 && status < 500 && status !== 408 && status !== 429) {
      const advice = `check merchant ${merchantId} at Setu, its UPI address, and the rights of SETU_CLIENT_ID`
      throw new AcquirerFault('refused', `Setu refused a call: ${advice}`, facts)
    }
    throw new AcquirerFault('unavailable', 'a call of Setu failed', facts)
  }

  return {
    async prepare(intent, merchantId, deadline) {
      const body = {
        merchantVpa: intent.payee.vpa,
        amount: intent.amount,
        expiryDate: intent.expiresAt.toISOString(),
        referenceId: intent.orderId,
        transactionNote: transactionNote(intent.note),
      }
      const answer = await call({ method: 'POST', path: 'dqr', body }, merchantId, deadline, [201])
      const made = DynamicQr.safeParse(answer.body)
      const reference = made.success ? referenceOf(made.data.intentLink, intent) : undefined
      // The QR of another order, though for the same payee and amount, would make that one paid.
      const isOfAnother = (made.data?.referenceId ?? intent.orderId) !== intent.orderId
      if (!made.success || reference === undefined || isOfAnother) {
        throw new AcquirerFault('bad answer', 'Setu made a link that is not for this order, payee and amount', {
          orderId: intent.orderId,
          requestId: answer.requestId,
        })
      }
      return { acquirer: NAME, merchantId, id: made.data.id, reference, link: made.data.intentLink }
    },

    async close({ id, merchantId }, deadline) {
      // A QR that was paid, or has expired, may be refused: there is nothing to close then, and nothing for the
      // operator to mend.
      await call({ method: 'PUT', path: `dqr/${id}/expire` }, merchantId, deadline, [200, 400, 404])
    },

    async enquire({ id, merchantId }, deadline) {
      const path = `payments/product-instances/${id}/last`
      const answer = await call({ method: 'GET', path }, merchantId, deadline, [200, 404])
      // Nobody has tried to pay.
      if (answer.status === 404) return undefined
      const { data: last } = LastPayment.safeParse(answer.body)
      const rrn = utr.safeParse(last?.rrn)
      if (last?.productInstanceId !== id || (last.status === 'success' && !rrn.success)) {
        throw new AcquirerFault('bad answer', 'Setu told of a payment in a form that is not known', {
          requestId: answer.requestId,
        })
      }
      if (last.status !== 'success' && last.status !== 'failed') return undefined
      return {
        status: last.status === 'success' ? 'SUCCESS' : 'FAIL',
        utr: rrn.data,
        amount: toDecimalText(last.amount),
        paidAt: last.txnTs,
      }
    },

    async playCustomer({ merchantId, reference }, { payeeVpa, amount, succeeds }, deadline) {
      const body = {
        refId: reference,
        payeeVpa,
        payerVpa: PLAYED_CUSTOMER,
        amount,
        ...(!succeeds && { payerRespCode: NO_FUNDS }),
      }
      await call({ method: 'POST', path: 'pay', body }, merchantId, deadline, [200])
    },
  }
}

/** Rejects when `promise` takes longer than this; it goes on for others. */
async function within<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new AcquirerFault('unavailable', 'the acquirer did not answer in time')), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** The parameter `tr` of a link that is for this payee and amount; undefined for any other link. */
function referenceOf(link: string, { payee, amount }: Intent): string | undefined {
  const parameters = [...new URLSearchParams(link.slice(UPI_PREFIX.length))]
  // In any case: an app may take PA for pa.
  const valuesOf = (name: string) => parameters.filter(([key]) => key.toLowerCase() === name).map(([, value]) => value)
  const only = (name: string) => {
    const values = valuesOf(name)
    return values.length === 1 ? values[0] : undefined
  }
  const isAmount = (text: string | undefined) => bankAmount.safeParse(text).data === toDecimalText(amount)
  const isOurs =
    only('pa')?.toLowerCase() === payee.vpa.toLowerCase() &&
    isAmount(only('am')) &&
    // The least that may be paid: with a smaller one the customer chooses the amount.
    valuesOf('mam').every(isAmount) &&
    only('cu') === 'INR'
  const reference = only('tr')
  return isOurs && reference !== undefined && /^[A-Za-z0-9]{1,35}$/.test(reference) ? reference : undefined
}

const EVENTS = { 'payment.success': 'SUCCESS', 'payment.failed': 'FAIL' } as const

const endsPayment = (eventType: string) => Object.hasOwn(EVENTS, eventType)

/** What the two events that end a payment must say. Customer data beside it is not read. */
const EndOfPayment = z
  .object({
    eventType: z.enum(['payment.success', 'payment.failed']),
    merchantReferenceId: text(255),
    productInstanceId: z.string(errorText('must be text')).regex(ACQUIRER_ID, 'must be an identifier of Setu'),
    amount: paise,
    rrn: utr.optional(),
    txnTs: moment.optional(),
  })
  .superRefine(({ eventType, rrn, txnTs }, context) => {
    if (eventType !== 'payment.success') return
    if (rrn === undefined) context.addIssue({ code: 'custom', path: ['rrn'], message: 'is required with success' })
    if (txnTs === undefined) context.addIssue({ code: 'custom', path: ['txnTs'], message: 'is required with success' })
  })

/** Every event that Setu sends. The fields of those that we ignore are not judged. */
const SetuNotification = z
  .object({
    eventType: text(64),
    merchantReferenceId: z.unknown().meta({ type: 'string', description: 'Our `orderId`.' }),
    productInstanceId: z.unknown().meta({ type: 'string', description: 'The dynamic QR.' }),
    amount: z.unknown().meta({ type: 'integer', description: 'Paise.' }),
    rrn: z.unknown().meta({ type: 'string', description: 'The reference that the customer sees: our UTR.' }),
    txnTs: z.unknown().meta({ type: 'string', description: 'When the money moved.' }),
  })
  .superRefine((event, context) => {
    if (!endsPayment(event.eventType)) return
    for (const { path, message } of EndOfPayment.safeParse(event).error?.issues ?? []) {
      context.addIssue({ code: 'custom', path, message })
    }
  })

const EXAMPLE = {
  eventType: 'payment.success',
  merchantReferenceId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
  productInstanceId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
  rrn: '523504870405',
  txnTs: '2026-11-21T15:40:12+05:30',
}

const setuNotification = operation({
  path: '/acquirer/setu/notification',
  name: 'setuNotification',
  tag: 'Acquirer',
  summary: 'Tell of a payment, as Setu does',
  description:
    'Setu calls it, signed. payment.success and payment.failed are recorded; every other event is answered 200 and changes nothing. ' +
    'A copy of a notification is valid for ever, so repeats change nothing, in any order.',
  access: 'signature',
  body: {
    name: 'SetuNotification',
    schema: SetuNotification,
    example: EXAMPLE,
    jsonExample: { ...EXAMPLE, amount: 20000 },
  },
  refusals: [badRequest('rrn is required with success'), setuUnsigned(), ...NOTIFICATION_REFUSALS],
  answer: NOTIFICATION_RECORDED,
  route: logOrderOf('merchantReferenceId'),
  handle: (dependencies: NotificationDependencies) => {
    return async ({ body }) => {
      if (!endsPayment(body.eventType)) return {}
      const { eventType, merchantReferenceId, productInstanceId, amount, rrn, txnTs } = EndOfPayment.parse(body)
      return recordNotification(dependencies, {
        orderId: merchantReferenceId,
        status: EVENTS[eventType],
        utr: rrn,
        amount: toDecimalText(amount),
        paidAt: txnTs,
        acquirer: { name: NAME, id: productInstanceId },
      })
    }
  },
})

export const setu: Acquirer<{ setu: SetuSettings | undefined }> = {
  variables: 'SETU_CLIENT_ID, SETU_CLIENT_SECRET and SETU_NOTIFICATION_SECRETS',
  faultOf({ vpa, acquirerMerchantId }) {
    if (!acquirerMerchantId) return 'setu needs --acquirer-merchant-id, the identifier of the merchant at Setu'
    return SETU_VPA.test(vpa) ? undefined : 'setu takes a --vpa of a-z 0-9 . - before the @ and letters behind it'
  },
  notifications({ setu: account }) {
    if (!account) return undefined
    return {
      operation: setuNotification,
      requireSignature(request, body) {
        const signature = request.headers['x-setu-signature']
        if (!isSigned(signature, body, account.notificationSecrets)) throw setuUnsigned()
      },
      keep: withoutCustomer,
    }
  },
  calls: ({ setu: account }, limits, elapsedMs) => account && setuCalls(account, limits, elapsedMs),
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
  const names = [...Object.keys(SetuNotification.shape), 'eventId', 'id', 'txnId', 'refId']
  return Buffer.from(JSON.stringify(event, names))
}
