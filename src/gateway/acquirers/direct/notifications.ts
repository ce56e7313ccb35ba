import { createHmac, timingSafeEqual } from 'node:crypto'
import * as z from 'zod'
import { badRequest, notificationUnsigned } from '../../../errors.ts'
import { errorText, reportedUtr, text } from '../../../platform/fields.ts'
import { operation } from '../../../platform/http/operation.ts'
import { bankAmount } from '../../../platform/money.ts'
import { zonedMoment } from '../../../platform/time.ts'
import { failureFields, failureIn } from '../../payments/failure-reasons.ts'
import type { Acquirer } from '../acquirer.ts'
import {
  NOTIFICATION_ERRORS,
  NOTIFICATION_RECORDED,
  type NotificationDependencies,
  recordNotification,
  requiredWithSuccess,
} from '../notification.ts'

const PaymentNotification = z
  .object({
    orderId: text(64).meta({ description: "The service's `orderId`: the parameter `tr` of the UPI link." }),
    status: z.enum(['SUCCESS', 'FAIL', 'REJECT'], errorText('must be SUCCESS, FAIL or REJECT')),
    UTR: reportedUtr
      .meta({
        description:
          'Unique transaction reference; required with SUCCESS. Not case-sensitive. Also distinguishes failed attempts.',
      })
      .optional(),
    amount: bankAmount.meta({ description: 'Rupees with at most two decimals.' }),
    paidAt: zonedMoment
      .meta({
        description:
          'When the money was transferred or the attempt failed, in RFC 3339 with or without seconds; required with SUCCESS.',
      })
      .optional(),
    ...failureFields,
  })
  .superRefine(requiredWithSuccess('status', 'SUCCESS', ['UTR', 'paidAt']))
  // The rule of `requiredWithSuccess` as JSON Schema: UTR and paidAt are required unless the status is FAIL or REJECT.
  .meta({ anyOf: [{ properties: { status: { enum: ['FAIL', 'REJECT'] } } }, { required: ['UTR', 'paidAt'] }] })

export const paymentNotification = operation({
  path: '/acquirer/paymentNotification',
  tag: 'Acquirer',
  summary: 'Report a payment',
  description:
    'The acquirer sends each payment result, signed. Repeats in any order change nothing and get the same response. FAIL and REJECT report single attempts: ' +
    'send one notification per attempt, with its UTR or its time. Retry after a 5xx status or a time-out.',
  access: 'signature',
  body: {
    name: 'PaymentNotification',
    schema: PaymentNotification,
    example: {
      orderId: '019aa0b1c2d3e4f5a6b7c8d9e0f1a2b3',
      status: 'SUCCESS',
      UTR: '523504870405',
      amount: '200.00',
      paidAt: '2026-11-21T15:40:12+05:30',
    },
  },
  errors: [badRequest('UTR is required with SUCCESS'), notificationUnsigned(), ...NOTIFICATION_ERRORS],
  response: NOTIFICATION_RECORDED,
  route: { config: { acquirer: 'direct' } },
  handle: (dependencies: NotificationDependencies) => {
    return async ({ body, place }) => {
      const { orderId, status, UTR: utr, amount, paidAt } = body
      const failure = failureIn(body)
      if (failure === 'under way') return {}
      const report = { orderId, status, utr, amount, paidAt, acquirer: { name: 'direct' }, failure }
      return recordNotification(dependencies, report, { place, isDisabled: false })
    }
  },
})

/**
 * With the acquirer `direct`, the service creates the links, and the payee's bank sends notifications in the service's
 * own format.
 */
export const direct: Acquirer<{ direct: readonly string[] }> = {
  variables: 'ACQUIRER_SECRETS',
  notifications({ direct: secrets }) {
    if (secrets.length === 0) return undefined
    return {
      requireSignature(request, body, now) {
        if (!isSignedInTime(request.headers['x-signature'], body, secrets, now)) throw notificationUnsigned()
      },
      orderIdOf: ({ orderId }) => orderId,
      toStored: (body) => body,
    }
  },
}

/**
 * Maximum difference between signature time and current time. An older signature may be a replay, and a later signature
 * means that a clock is wrong.
 */
const TOLERANCE_SECONDS = 300

/**
 * Whether `header` (`t=<unix seconds>,v1=<hex HMAC-SHA256 of "t.body">`) signs `body` with one of `secrets`, at a time
 * within 5 minutes of `now`. Compares every secret with every v1, so that the duration reveals nothing.
 */
function isSignedInTime(header: unknown, body: Buffer, secrets: readonly string[], now: Date): boolean {
  if (typeof header !== 'string' || header.length > 1_024) return false
  const parts = header.split(',').map((part) => part.trim().split('='))
  const times = parts.filter(([name]) => name === 't').map(([, value]) => value ?? '')
  const [time] = times
  if (time === undefined || times.length > 1 || !/^\d{1,12}$/.test(time)) return false
  if (Math.abs(now.getTime() / 1000 - Number(time)) > TOLERANCE_SECONDS) return false
  const signatures = parts
    .filter(([name, value]) => name === 'v1' && /^[0-9a-f]{64}$/i.test(value ?? ''))
    .map(([, value]) => Buffer.from(value ?? '', 'hex'))
  let signed = false
  for (const secret of secrets) {
    const expected = createHmac('sha256', secret).update(`${time}.`).update(body).digest()
    for (const signature of signatures) signed = timingSafeEqual(expected, signature) || signed
  }
  return signed
}
