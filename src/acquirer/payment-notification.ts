import type { FastifyInstance } from 'fastify'
import * as z from 'zod'
import { badRequest, Failure, notificationRefused, notificationUnsigned, orderNotFound } from '../errors.ts'
import { errorText, text, utr } from '../fields.ts'
import { registerSignedJson } from '../http/input.ts'
import { operation, success } from '../http/operation.ts'
import { bankAmount } from '../money.ts'
import { isOrderId } from '../payments/intent.ts'
import { recordReport } from '../payments/record-report.ts'
import type { Reports } from '../payments/reports.ts'
import { isSigned } from './signature.ts'

const PAID_AT_RULE = 'must be a time in ISO 8601 with its zone'

/** The acquirer's notification. UTR and paidAt are needed with SUCCESS only. */
export const PaymentNotification = z
  .object({
    orderId: text(64).meta({ description: 'Our `orderId`: the parameter `tr` of the UPI link.' }),
    status: z.enum(['SUCCESS', 'FAIL', 'REJECT'], errorText('must be SUCCESS, FAIL or REJECT')),
    UTR: utr
      .meta({
        description:
          'Unique transaction reference; needed with SUCCESS. Upper and lower case are the same. It also tells failed attempts apart.',
      })
      .optional(),
    amount: bankAmount.meta({ description: 'Rupees with at most two decimals.' }),
    paidAt: z.iso
      .datetime({ offset: true, ...errorText(PAID_AT_RULE) })
      .transform((moment) => new Date(moment))
      .meta({
        description: 'When the money moved, or the attempt failed, in ISO 8601 with its zone; needed with SUCCESS.',
      })
      .optional(),
  })
  .superRefine(({ status, UTR, paidAt }, context) => {
    if (status !== 'SUCCESS') return
    if (UTR === undefined) context.addIssue({ code: 'custom', path: ['UTR'], message: 'is required with SUCCESS' })
    if (paidAt === undefined)
      context.addIssue({ code: 'custom', path: ['paidAt'], message: 'is required with SUCCESS' })
  })
  // The same in the words of JSON Schema.
  .meta({ anyOf: [{ properties: { status: { enum: ['FAIL', 'REJECT'] } } }, { required: ['UTR', 'paidAt'] }] })

export const paymentNotification = operation({
  path: '/acquirer/paymentNotification',
  tag: 'Acquirer',
  summary: 'Tell of a payment',
  description:
    'The acquirer calls it, signed. May be repeated, in any order: the answer stays the same. FAIL and REJECT are attempts: send ' +
    'one for each, with its UTR or its time. On 5xx, and when no answer comes, send it again.',
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
  refusals: [
    badRequest('UTR is required with SUCCESS'),
    notificationUnsigned(),
    orderNotFound(),
    notificationRefused('amount differs'),
    notificationRefused('UTR of another order'),
  ],
  answer: success('Notification recorded', {
    description: 'Recorded.',
    name: 'NotificationRecorded',
    data: z.strictObject({}),
    example: {},
  }),
  route: {
    // Before the fields are checked, so that the log line of a refusal has the orderId too.
    preValidation: (request, _reply, done) => {
      const orderId = (request.body as { orderId?: unknown } | null)?.orderId
      if (typeof orderId === 'string' && isOrderId(orderId)) request.orderId = orderId
      done()
    },
  },
  handle: ({ reports, now }: { reports: Reports; now: () => Date }) => {
    return async ({ body }) => {
      const { orderId, status, UTR: utr, amount, paidAt } = body
      const report = { orderId, status, utr, amount, paidAt }
      const recorded = await recordReport(reports, report, { reason: 'notification', now })
      if (!('exception' in recorded)) return {}
      switch (recorded.exception) {
        case 'double payment':
        case 'failure after success':
          return {}
        case 'unknown order':
          throw orderNotFound()
        default:
          throw notificationRefused(recorded.exception)
      }
    }
  },
})

/** Keeps what is refused with 400 although it is signed: it may be money, and the acquirer may not send it again. */
export function keepUnreadable(app: FastifyInstance, { reports, now }: { reports: Reports; now: () => Date }) {
  app.setErrorHandler(async (error, { signedBody }) => {
    if (signedBody && error instanceof Failure && error.code === 'badRequest') {
      await reports.keepUnreadable(signedBody, now())
    }
    throw error
  })
}

/** Makes `app` refuse with 401 whatever is not signed with one of `secrets`. `app` must be a scope of its own. */
export function requireSignature(
  app: FastifyInstance,
  { secrets, now, fieldLimit }: { secrets: readonly string[]; now: () => Date; fieldLimit: number },
) {
  registerSignedJson(app, fieldLimit, (request, body) => {
    if (!isSigned(request.headers['x-signature'], body, secrets, now())) throw notificationUnsigned()
  })
}
