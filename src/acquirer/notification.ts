import { createHmac, timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import * as z from 'zod'
import { Failure, notificationRefused, orderNotFound } from '../errors.ts'
import { errorText, utr } from '../fields.ts'
import { registerSignedJson } from '../http/input.ts'
import { success } from '../http/operation.ts'
import { isOrderId } from '../payments/intent.ts'
import type { PaymentReport } from '../payments/outcome.ts'
import type { Reports } from '../payments/reports.ts'
import type { RefundUpdates } from '../refunds/record-update.ts'
import type { RefundUpdate } from '../refunds/refund.ts'

/** What the notifications of every acquirer need. */
export type NotificationDependencies = {
  reports: Reports
  refunds: Pick<RefundUpdates, 'recordNotification'>
  now: () => Date
}

/** The contents of a notification. */
export type Notification = { payment: PaymentReport } | { refund: RefundUpdate }

/** The fields of a notification, as they were sent. */
export type Fields = Record<string | symbol, unknown>

/** How an acquirer's notifications are taken. */
export type Notifications = {
  /** Reads the JSON of a body; JSON.parse where it is left out. */
  parse?: (json: string) => unknown
  /** Adds its route: that of an operation, or of `routeOfOwnForm`. */
  register: (app: FastifyInstance, dependencies: NotificationDependencies) => void
  /** Throws the 401 unless `body` is signed. */
  requireSignature: (request: FastifyRequest, body: Buffer, now: Date) => void
  /** The orderId, for the log line of a refusal too: nothing of the notification is checked yet. */
  orderIdOf: (fields: Fields) => unknown
  /** Returns the part of an unreadable signed body that may be kept: nothing of the customer. */
  keep: (body: Buffer) => Buffer
}

/** When the money moved, or an attempt failed, as acquirers write it. */
export const isoTime = z.iso
  .datetime({ offset: true, ...errorText('must be a time in ISO 8601 with its zone') })
  .transform((time) => new Date(time))

/** A payment's UTR. Absent where it is in no form that is known: only a success needs it. */
export const bankReference = utr.optional().catch(undefined)

/** The rule of a zod object that a success, `status` being `success`, has the fields of these names. */
export const requiredWithSuccess =
  <Name extends string>(status: Name, success: string, needed: readonly Name[]) =>
  (payment: { [Field in Name]?: unknown }, context: z.core.$RefinementCtx) => {
    if (payment[status] !== success) return
    for (const name of needed) {
      if (payment[name] !== undefined) continue
      context.addIssue({ code: 'custom', path: [name], message: `is required with ${success}` })
    }
  }

export const NOTIFICATION_RECORDED = success('Notification recorded', {
  description: 'Recorded.',
  name: 'NotificationRecorded',
  data: z.strictObject({}),
  example: {},
})

export const NOTIFICATION_REFUSALS = [
  orderNotFound(),
  notificationRefused('amount differs'),
  notificationRefused('UTR of another order'),
]

/** Records what an acquirer reports of a payment. Throws 404 for an unknown order, 409 where it contradicts what we know. */
export async function recordNotification(
  { reports, now }: Pick<NotificationDependencies, 'reports' | 'now'>,
  report: PaymentReport,
) {
  const recorded = await reports.record(report, { source: 'notification', now })
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

/** Records what an acquirer reports of a refund. Throws 404 for an unknown one, 409 where it differs from what we sent. */
async function recordRefund(
  acquirer: string,
  { refunds, now }: Pick<NotificationDependencies, 'refunds' | 'now'>,
  update: RefundUpdate,
) {
  const recorded = await refunds.recordNotification(acquirer, update, now())
  if (recorded === undefined) throw orderNotFound()
  if (recorded.exception === 'refund differs') throw notificationRefused('refund differs')
  return {}
}

/**
 * The route of an acquirer's notifications in its own form, which our documents do not describe. `read` returns undefined for a
 * notification that changes nothing, and throws the 400 for a notification that it cannot read.
 */
export function routeOfOwnForm(
  acquirer: string,
  read: (fields: Fields) => Notification | undefined,
): Notifications['register'] {
  return (app, dependencies) => {
    app.post<{ Body: Fields }>(`/acquirer/${acquirer}/notification`, async ({ body }) => {
      const notification = read(body)
      if (notification === undefined) return NOTIFICATION_RECORDED.toBody({})
      return NOTIFICATION_RECORDED.toBody(
        'refund' in notification
          ? await recordRefund(acquirer, dependencies, notification.refund)
          : await recordNotification(dependencies, notification.payment),
      )
    })
  }
}

/** Lets `app`, a scope of its own, take the signed notifications of one acquirer. */
export function takeNotifications(
  app: FastifyInstance,
  { parse, register, requireSignature, orderIdOf, keep }: Notifications,
  { fieldLimit, ...dependencies }: NotificationDependencies & { fieldLimit: number },
) {
  const { reports, now } = dependencies
  registerSignedJson(app, { fieldLimit, parse, accept: (request, body) => requireSignature(request, body, now()) })
  app.addHook('preValidation', (request, _reply, done) => {
    const orderId = orderIdOf(request.body as Fields)
    if (typeof orderId === 'string' && isOrderId(orderId)) request.orderId = orderId
    done()
  })
  // A signed body that is refused with 400 is stored: the body may be about money, and the acquirer may not send it again.
  app.setErrorHandler(async (error, { signedBody }) => {
    if (signedBody && error instanceof Failure && error.code === 'badRequest') {
      await reports.saveUnreadable(keep(signedBody), now())
    }
    throw error
  })
  register(app, dependencies)
}

/** Whether `header` is the base64 of the HMAC-SHA256 of `parts` with one of `secrets`, found out in constant time. */
export function isSigned(header: unknown, secrets: readonly string[], ...parts: readonly (string | Buffer)[]): boolean {
  if (typeof header !== 'string' || header.length > 64) return false
  const signature = Buffer.from(header, 'base64')
  let signed = false
  for (const secret of secrets) {
    const hmac = createHmac('sha256', secret)
    for (const part of parts) hmac.update(part)
    const expected = hmac.digest()
    signed = (signature.length === expected.length && timingSafeEqual(expected, signature)) || signed
  }
  return signed
}

/** Of a body that cannot be read, the fields of these names, at any depth: what is beside them may be the customer's. */
export function onlyFields(body: Buffer, names: string[]): Buffer {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body.toString('utf8')), names))
  } catch {
    return Buffer.from('not JSON')
  }
}
